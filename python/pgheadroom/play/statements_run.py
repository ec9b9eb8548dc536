"""
When statements of the laboratory's own sessions ran, out of the server's log.

    %m:     began <------- duration -------> the line, cut off at milliseconds
            |==============================|

A session that sets `log_min_duration_statement` to 0 has a line for each statement, written by its
backend when it is done. That says more than a client can: on busy cores a client learns of the end
of a statement many transactions later.

Source: `check_log_duration` and `exec_simple_query`, src/backend/tcop/postgres.c (REL_18_STABLE).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from pgheadroom.play.ended import Ended
from pgheadroom.servers.log_lines import TICK_S, lines_from, log_line
from pgheadroom.types import Span

LOGS_ITSELF = "SET log_min_duration_statement = 0"
"""What a session says first whose statements are to be found."""

_RAN = re.compile(
    r"duration: (\d+\.\d+) ms  (?:statement|parse [^:]*|bind [^:]*|execute [^:]*): (.*)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """
    A statement of a session: the earliest and the latest moment of its beginning and its end.

    In epoch seconds; `sql` is its first line.
    """

    backend_pid: int
    sql: str
    began_s: Span
    ended_s: Span

    def shares(self, ended: Ended) -> tuple[Span, Span]:
        """The same as shares of the clients' transactions that had ended by then."""
        began, done = (
            (ended.share(low), ended.share(high)) for low, high in (self.began_s, self.ended_s)
        )
        return began, done


def read_ran(log: Path, start_bytes: int, pids: Collection[int]) -> tuple[Ran, ...]:
    """
    Read what sessions ran.

    Args:
        log: The server's log, its times in UTC.
        start_bytes: Where the window begins in it.
        pids: The sessions' backends.
    """
    return ran_in(lines_from(log, start_bytes), pids)


def ran_in(lines: Iterable[str], pids: Collection[int]) -> tuple[Ran, ...]:
    """The same of the log's lines, in their order."""
    found = []
    for line in lines:
        read = log_line(line)
        if read is None or read.severity != "LOG" or read.pid not in pids:
            continue
        ran = _RAN.match(read.said)
        if ran is None:
            continue
        took_s = float(ran[1]) / 1000
        ended_s = read.at_s, read.at_s + TICK_S
        began_s = read.at_s - took_s, read.at_s + TICK_S - took_s
        found.append(Ran(backend_pid=read.pid, sql=ran[2], began_s=began_s, ended_s=ended_s))
    return tuple(found)
