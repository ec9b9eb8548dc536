"""
What the server did by itself inside the window, out of its log: checkpoints and autovacuums.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pgheadroom.play.ended import Ended
from pgheadroom.servers.log_lines import TICK_S, autovacuum_of, lines_from, log_line
from pgheadroom.types import Span

CHECKED = re.compile(r".+: vac: \d+ \(thresh(?:old)? ")
"""
A worker has looked whether a table is due: all at first, and each again before its turn. From 19 on
it says `thresh`.
"""

_CHECKPOINT = re.compile("checkpoint (starting|complete)")
_ELAPSED = re.compile(r"^\tsystem usage: .*elapsed: ([\d.]+) s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """
    Something that the server did by itself.

    `t_s` counts from the start of the clients; that of a vacuum or an analyze is its end, and
    `elapsed_s` how long it took. `began_frac` and `at_frac` say the same as the share of the
    clients' transactions that had ended by then; None where nothing tells.
    `began_s` is when a vacuum's table was looked at for the last time, right before it: to a
    millisecond, where `elapsed_s` is told to ten. `began` and `ended` are within which shares of
    the transactions it then began and ended.
    """

    t_s: float
    kind: str
    table: str | None = None
    elapsed_s: float = 0.0
    began_frac: float | None = None
    at_frac: float | None = None
    began_s: float | None = None
    began: Span | None = None
    ended: Span | None = None

    @property
    def middle_s(self) -> float:
        """Half-way from its beginning to its end, as `t_s`."""
        return self.t_s - self.elapsed_s / 2


def read_events(log: Path, start_bytes: int, began_at: float) -> tuple[Event, ...]:
    """
    Read the events that the log tells of.

    Args:
        log: The server's log, its times in UTC.
        start_bytes: Where the window begins in it.
        began_at: When the clients started, in epoch seconds.
    """
    events: list[Event] = []
    checked: dict[int, float] = {}
    for line in lines_from(log, start_bytes):
        read = log_line(line)
        if read is None:
            # An autovacuum's own lines, the last of which tells how long it took.
            elapsed = _ELAPSED.match(line)
            if elapsed is not None and events and events[-1].kind.startswith("auto"):
                events[-1] = replace(events[-1], elapsed_s=float(elapsed[1]))
            continue
        t_s = round(read.at_s - began_at, 3)
        if (checkpoint := _CHECKPOINT.match(read.said)) is not None:
            events.append(Event(t_s=t_s, kind=f"checkpoint_{checkpoint[1]}"))
        elif (work := autovacuum_of(read.said)) is not None:
            kind, name = work
            began_s = checked.pop(read.pid, None) if kind == "vacuum" else None
            # PostgreSQL names a table database.schema.table; a profile's own name may have dots.
            table = name.split(".", 2)[-1]
            events.append(Event(t_s=t_s, kind=f"auto{kind}", table=table, began_s=began_s))
        elif CHECKED.match(read.said):
            checked[read.pid] = t_s
    return tuple(events)


def within(events: Sequence[Event], until_s: float) -> tuple[Event, ...]:
    """
    Those of the clients' time; what was under way at its end is in if most of it had been done.

    Args:
        events: What the log tells.
        until_s: When the last client had ended, in seconds since the first one started.
    """
    return tuple(event for event in events if 0 <= event.middle_s <= until_s)


def place_events(events: Sequence[Event], ended: Ended, began_at: float) -> tuple[Event, ...]:
    """
    Say of each event how many of the clients' transactions had ended by then.

    Args:
        events: What the log tells.
        ended: When the transactions ended: all of them, as pgbench says.
        began_at: When the clients started, in epoch seconds.
    """
    if not ended:
        return tuple(events)

    def share(t_s: float) -> float:
        return ended.share(began_at + t_s)

    def moment(t_s: float) -> Span:
        return share(t_s), share(t_s + TICK_S)

    return tuple(
        replace(
            event,
            began_frac=share(event.t_s - event.elapsed_s),
            at_frac=share(event.t_s),
            began=None if event.began_s is None else moment(event.began_s),
            ended=None if event.began_s is None else moment(event.t_s),
        )
        for event in events
    )
