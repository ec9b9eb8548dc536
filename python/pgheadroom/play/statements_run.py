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
from datetime import UTC, datetime
from pathlib import Path

from pgheadroom.play.ended import Ended, lines_from
from pgheadroom.types import Span

LOGS_ITSELF = "SET log_min_duration_statement = 0"
"""What a session says first whose statements are to be found."""

_LINE = re.compile(
    r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) UTC \[(\d+)\] LOG:  "
    r"duration: (\d+\.\d+) ms  (?:statement|parse [^:]*|bind [^:]*|execute [^:]*): (.*)"
)
_TICK_S = 0.001  # %m cuts times off at milliseconds


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
        match = _LINE.match(line)
        if match is None or int(match[2]) not in pids:
            continue
        low = datetime.fromisoformat(match[1]).replace(tzinfo=UTC).timestamp()
        took_s = float(match[3]) / 1000
        ended_s = low, low + _TICK_S
        began_s = low - took_s, low + _TICK_S - took_s
        ran = Ran(backend_pid=int(match[2]), sql=match[4], began_s=began_s, ended_s=ended_s)
        found.append(ran)
    return tuple(found)
