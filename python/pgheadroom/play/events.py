"""
What the server did by itself inside the window, out of its log: checkpoints and autovacuums.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

_LINE = re.compile(
    r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) UTC \[\d+\] LOG:  "
    r"(checkpoint starting|checkpoint complete|"
    r'automatic (?:aggressive )?(vacuum|analyze) of table "([^"]*)")'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """`t_s` counts from the start of the clients; a vacuum's time is that of its end."""

    t_s: float
    kind: str
    table: str | None = None


def read_events(log: Path, start_bytes: int, began_at: float) -> tuple[Event, ...]:
    """
    Read the events that the log tells of.

    Args:
        log: The server's log, its times in UTC.
        start_bytes: Where the window begins in it.
        began_at: When the clients started, in epoch seconds.
    """
    with log.open("rb") as file:
        file.seek(start_bytes)
        lines = file.read().decode(errors="replace").splitlines()
    events = []
    for line in lines:
        match = _LINE.match(line)
        if match is None:
            continue
        at = datetime.fromisoformat(match[1]).replace(tzinfo=UTC).timestamp()
        kind = f"auto{match[3]}" if match[3] else match[2].replace(" ", "_")
        # PostgreSQL names a table database.schema.table.
        table = match[4].rpartition(".")[2] if match[4] else None
        events.append(Event(t_s=round(at - began_at, 3), kind=kind, table=table))
    return tuple(events)
