"""
How long autovacuum's workers hold a snapshot beside their VACUUMs, out of the server's log.

    InitPostgres      processing      recheck -> VACUUM -> its line    analyzing -> its line   exit
         |~~~~==========||==================|               |===============||===============||====|

    =: held    ~: held from some moment of it on    ||: another snapshot, which sees what has ended

A worker that finds nothing to do still reads the catalogue in a transaction, and nothing that is
removed meanwhile can be pruned: some milliseconds, more where processors are busy. VACUUM itself
holds nobody up. Only workers of the database under test count.

Source: `AutoVacWorkerMain`, `do_autovacuum` and `relation_needs_vacanalyze`,
src/backend/postmaster/autovacuum.c; `InitPostgres`, src/backend/utils/init/postinit.c;
`do_analyze_rel`, src/backend/commands/analyze.c; `ComputeXidHorizons`,
src/backend/storage/ipc/procarray.c (REL_15_STABLE, REL_18_STABLE).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pgheadroom.play.ended import Ended
from pgheadroom.play.events import CHECKED
from pgheadroom.servers.log_lines import TICK_S, lines_from, log_line
from pgheadroom.types import Span

LEVEL = "debug3"
"""The `log_min_messages` at which workers say what they are at."""

_EXIT = "shmem_exit("


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """
    A snapshot that a worker held: the earliest and the latest moment of its beginning and its end.

    In seconds since the clients started, or as shares of their transactions.
    """

    began: Span
    ended: Span


@dataclass(slots=True)
class _Worker:
    """
    A worker's lines so far.

    What happens between two lines has happened at one moment between them, so `since_s` waits for
    the next line where a snapshot is taken after one.
    """

    last_s: float
    is_ours: bool = False
    began: Span | None = None
    since_s: float | None = None
    checked_s: float | None = None
    holds: list[Hold] = field(default_factory=list)

    def read(self, at_s: float, said: str, database: str) -> None:
        """The next line."""
        between = self.last_s, at_s + TICK_S
        if self.since_s is not None:
            self._renew((self.since_s, between[1]))
            self.since_s = None
        if said == f'autovacuum: processing database "{database}"':
            self.is_ours = True
            self.began = between
            self._end((at_s, between[1]))
            self.since_s = at_s
        elif CHECKED.match(said):
            self.checked_s = at_s
        elif said.startswith("analyzing "):
            self._renew(between)
        elif said.startswith("automatic analyze "):
            self.since_s = at_s
        elif said.startswith("automatic "):
            # VACUUM has begun right after the table was looked at again.
            begun_s = at_s if self.checked_s is None else self.checked_s
            self._end((begun_s, begun_s + TICK_S))
            self.since_s = at_s
        elif said.startswith(_EXIT):
            self._end(between)
        self.last_s = at_s

    def go_on(self) -> None:
        """There is no further line: what it holds, it holds beyond the log's end."""
        if self.since_s is not None:
            self._renew((self.since_s, self.since_s + TICK_S))
        self._end((math.inf, math.inf))

    def _renew(self, moment: Span) -> None:
        self._end(moment)
        self.began = moment

    def _end(self, moment: Span) -> None:
        if self.is_ours and self.began is not None:
            self.holds.append(Hold(began=self.began, ended=moment))
        self.began = None


def read_holds(log: Path, start_bytes: int, began_at: float, database: str) -> tuple[Hold, ...]:
    """
    Read what the log tells of a database's workers.

    Args:
        log: The server's log at `LEVEL`, its times in UTC.
        start_bytes: Where the window begins in it.
        began_at: When the clients started, in epoch seconds.
        database: The database under test.
    """
    return holds_in(lines_from(log, start_bytes), began_at, database)


def holds_in(lines: Iterable[str], began_at: float, database: str) -> tuple[Hold, ...]:
    """The same of the log's lines."""
    workers: dict[int, _Worker] = {}
    ended: list[_Worker] = []
    for line in lines:
        read = log_line(line)
        if read is None:
            continue
        at_s, process, said = read.at_s - began_at, read.pid, read.said
        if said == "InitPostgres":
            workers[process] = _Worker(at_s)
        elif process in workers:
            workers[process].read(at_s, said, database)
            if said.startswith(_EXIT):
                ended.append(workers.pop(process))
    for worker in workers.values():
        worker.go_on()
    found = [hold for worker in [*ended, *workers.values()] for hold in worker.holds]
    return tuple(sorted(found, key=lambda hold: (hold.began, hold.ended)))


def place_holds(holds: Sequence[Hold], ended: Ended, began_at: float) -> tuple[Hold, ...]:
    """
    Say of each hold how many of the clients' transactions had ended by then, as a share of them.

    Those before the first transaction has ended or after the last one are left out.

    Args:
        holds: In seconds since the clients started.
        ended: When the transactions ended: all of them, as pgbench says.
        began_at: When the clients started, in epoch seconds.
    """

    def shares(times_s: Span) -> Span:
        low, high = (ended.share(began_at + time_s) for time_s in times_s)
        return low, high

    placed = (Hold(began=shares(hold.began), ended=shares(hold.ended)) for hold in holds if ended)
    return tuple(hold for hold in placed if hold.began[0] < 1 and hold.ended[1] > 0)
