"""
Snapshots that another session holds while the clients work.

When one is due is told by progress: the server's next transaction id where the profile writes,
else the time, or the transactions that pg_stat_database knows, which lag by up to a second.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pgheadroom.profile import Profile

if TYPE_CHECKING:
    import psycopg


class SnapshotHolder:
    """
    Holds a profile's snapshots; a context manager around the run, `step` moves it on.

    `held` has the fractions of the run at which each one really began and ended.
    """

    def __init__(
        self,
        profile: Profile,
        connect: Callable[[], psycopg.Connection[Any]],
        monitor: psycopg.Connection[Any],
    ) -> None:
        self._wanted = profile.workload.run.snapshots
        self._run = profile.workload.run
        self._connect = connect
        self._monitor = monitor
        self._open: dict[int, tuple[float, psycopg.Connection[Any]]] = {}
        self._done: dict[int, tuple[float, float]] = {}
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

    @property
    def held(self) -> tuple[tuple[float, float], ...]:
        """Begin and end of each snapshot that was held, as fractions of the run."""
        return tuple(self._done[n] for n in sorted(self._done))

    def __enter__(self) -> SnapshotHolder:
        self._started = time.monotonic()
        if self._wanted:
            self._first = self._counts()
        return self

    def __exit__(self, *_: object) -> None:
        for n, (began, connection) in self._open.items():
            connection.close()
            self._done[n] = (began, 1.0)
        self._open.clear()

    def _counts(self) -> tuple[int, int]:
        """Transaction ids given out, and transactions ended, both since the server exists."""
        row = self._monitor.execute(
            "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint, "
            "(SELECT sum(xact_commit + xact_rollback)::bigint FROM pg_stat_database "
            "WHERE datname = 'profile')"
        ).fetchone()
        assert row is not None, "a SELECT without FROM returns one row"
        return int(row[0]), int(row[1])

    def _progress(self) -> float:
        """How much of the run is done, from 0 to 1."""
        if self._run.duration_s is not None:
            return (time.monotonic() - self._started) / self._run.duration_s
        assert self._run.operations is not None, "a run has one of the two"
        xids, ended = self._counts()
        by_end = (ended - self._first[1]) / self._run.operations
        if self._writing_frac == 0:
            return by_end
        return max(by_end, (xids - self._first[0]) / self._run.operations / self._writing_frac)

    def step(self) -> None:
        """Take and release what is due; to be called often while the clients run."""
        if len(self._done) == len(self._wanted):
            return
        done = self._progress()
        for n, snapshot in enumerate(self._wanted):
            end = snapshot.start_frac + snapshot.length_frac
            if n in self._open and done >= end:
                began, connection = self._open.pop(n)
                connection.close()
                self._done[n] = (began, min(done, 1.0))
            elif n not in self._open and n not in self._done and done >= snapshot.start_frac:
                connection = self._connect()
                connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
                connection.execute("SELECT count(*) FROM pg_class")
                self._open[n] = (min(done, 1.0), connection)
