"""
Snapshots that another session holds while the clients work.

When one is due is told by progress: the server's next transaction id where the profile writes,
else the time, or the transactions that pg_stat_database knows, which lag by up to a second.
By transaction ids alone a run whose transactions find no row seems to lag behind: where that turns
out, and in runs by duration, the clients' own log says which part of them had ended.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pgheadroom.play.scripts import transactions_each
from pgheadroom.profile import Profile

if TYPE_CHECKING:
    import psycopg


_XIDS_WITHIN = 0.01
"""As many transaction ids as transactions, about: autovacuum and others take some; arbitrary."""


class RunProgress:
    """How much of a run is done, as the server tells; from `start` on."""

    def __init__(self, profile: Profile, monitor: psycopg.Connection[Any]) -> None:
        self._run = profile.workload.run
        self._monitor = monitor
        self._started = time.monotonic()
        self._first = (0, 0)
        scripts = profile.workload.transactions()
        weights = [script[0].weight for script in scripts]
        writing = [
            script[0].weight
            for script in scripts
            if any(operation.kind != "select" for operation in script)
        ]
        self._writing_frac = sum(writing) / sum(weights) if weights else 1.0
        self._counted_each = transactions_each(profile)

    def start(self) -> None:
        """The run begins now."""
        if self._run.snapshots or self._run.maintenance:
            self._first = self._counts()
        self._started = time.monotonic()

    def _counts(self) -> tuple[int, int]:
        """Transaction ids given out, and transactions ended, both since the server exists."""
        row = self._monitor.execute(
            "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint, "
            "(SELECT sum(xact_commit + xact_rollback)::bigint FROM pg_stat_database "
            "WHERE datname = 'profile')"
        ).fetchone()
        assert row is not None, "a SELECT without FROM returns one row"
        return int(row[0]), int(row[1])

    def now(self) -> float:
        """How much of the run is done, from 0 to 1."""
        if self._run.duration_s is not None:
            done = (time.monotonic() - self._started) / self._run.duration_s
        else:
            xids, ended = self._counts()
            assert self._run.operations is not None, "a run has one of the two"
            ended_frac = (ended - self._first[1]) / self._counted_each / self._run.operations
            done = max(ended_frac, self.at(xids))
        return min(done, 1.0)

    def at(self, xid: int) -> float:
        """How much of a run of so many transactions is done when this id is the next."""
        if self._run.operations is None or self._writing_frac == 0:
            return 0.0
        return (xid - self._first[0]) / self._run.operations / self._writing_frac

    def is_told_by_xids(self) -> bool:
        """
        Whether, the run being over, as many transaction ids were given out as it has transactions.

        One that finds no row takes none, and by those of the others the run seems behind.
        """
        return abs(self.at(self._counts()[0]) - 1) <= _XIDS_WITHIN


class SnapshotHolder:
    """
    Holds a profile's snapshots; a context manager around the run, `step` moves it on.

    `held` has the fractions of the run at which each one really began and ended, by what could be
    told then; `held_s` the same moments in epoch seconds.
    """

    def __init__(
        self,
        profile: Profile,
        connect: Callable[[], psycopg.Connection[Any]],
        progress: RunProgress,
    ) -> None:
        self._wanted = profile.workload.run.snapshots
        self._connect = connect
        self._progress = progress
        self._idle: list[psycopg.Connection[Any]] = []
        self._open: dict[int, tuple[float, psycopg.Connection[Any]]] = {}
        self._done: dict[int, tuple[float, float]] = {}
        self._began_s: dict[int, float] = {}
        self._ended_s: dict[int, float] = {}

    @property
    def held(self) -> tuple[tuple[float, float], ...]:
        """Begin and end of each snapshot that was held, as fractions of the run."""
        return tuple(self._done[n] for n in sorted(self._done))

    @property
    def held_s(self) -> tuple[tuple[float, float], ...]:
        """The same in epoch seconds; endless where one was held to the end of the run."""
        return tuple((self._began_s[n], self._ended_s.get(n, math.inf)) for n in sorted(self._done))

    def __enter__(self) -> SnapshotHolder:
        # Connected before the clients begin: under load that takes hundredths of a second, in
        # which thousands of transactions pass.
        self._idle = [self._connect() for _ in self._wanted]
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._idle:
            connection.close()
        self._idle.clear()
        for n, (began, connection) in self._open.items():
            connection.close()
            self._done[n] = (began, 1.0)
        self._open.clear()

    def _hold(self, connection: psycopg.Connection[Any]) -> float:
        """Take a snapshot; how much of the run was done by then, from 0 to 1."""
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        row = connection.execute(
            "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint, count(*) FROM pg_class"
        ).fetchone()
        assert row is not None, "an aggregate returns one row"
        return min(self._progress.at(int(row[0])), 1.0) or self._progress.now()

    def step(self) -> None:
        """Take and release what is due; to be called often while the clients run."""
        if len(self._done) == len(self._wanted):
            return
        done = self._progress.now()
        for n, snapshot in enumerate(self._wanted):
            end = snapshot.start_frac + snapshot.length_frac
            if n in self._open and done >= end:
                began, connection = self._open.pop(n)
                connection.execute(
                    "ROLLBACK"
                )  # at once; a closed connection's backend takes its time
                self._ended_s[n] = time.time()
                self._done[n] = (began, self._progress.now())
                connection.close()
            elif n not in self._open and n not in self._done and done >= snapshot.start_frac:
                connection = self._idle.pop()
                self._open[n] = (self._hold(connection), connection)
                self._began_s[n] = time.time()
