"""
The log of a throw-away server, line by line, as `cluster.py` has it written.

    2026-11-25 16:31:04.158 UTC [2287] LOG:  automatic analyze of table "profile.public.t"
    at_s (cut off at milliseconds) pid severity  said

A message's further lines begin with a tab and are no `LogLine`. A log is as long as its run, so it
is read one line at a time.

Source: `heap_vacuum_rel`, src/backend/access/heap/vacuumlazy.c, and `do_analyze_rel`,
src/backend/commands/analyze.c (REL_15_STABLE, REL_18_STABLE), for what autovacuum says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

TICK_S = 0.001
"""`%m` cuts times off at milliseconds."""

_LINE = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) UTC \[(\d+)\] ([A-Z]+\d?): +(.*)$")
# Names are not quoted in the log, and may have quotes themselves: what ends one is known.
_AUTOVACUUM = re.compile(
    r"automatic (?:aggressive )?(vacuum|analyze)(?: to prevent wraparound)? "
    r'of table "(.*)"(?:: index scans: \d+)?$'
)


class LogLine(NamedTuple):
    """The first line of a message; `at_s` in epoch seconds."""

    at_s: float
    pid: int
    severity: str
    said: str


def lines_from(log: Path, start_bytes: int) -> Iterator[str]:
    """The lines of a server's log from a byte on, one at a time."""
    with log.open("rb") as file:
        file.seek(start_bytes)
        for line in file:
            yield line.decode(errors="replace").rstrip("\r\n")


def log_line(line: str) -> LogLine | None:
    """A line that begins a message; None for any other."""
    match = _LINE.match(line)
    if match is None:
        return None
    at_s = datetime.fromisoformat(match[1]).replace(tzinfo=UTC).timestamp()
    return LogLine(at_s=at_s, pid=int(match[2]), severity=match[3], said=match[4])


def autovacuum_of(said: str) -> tuple[str, str] | None:
    """`vacuum` or `analyze`, and database.schema.table, where a worker has done with one."""
    match = _AUTOVACUUM.match(said)
    return None if match is None else (match[1], match[2])
