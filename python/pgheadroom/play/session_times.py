"""
What the clients' sessions of a run spent their time on.

    client 0   |=statement=|..pause..|=statement~~~~~|..pause..|=COMMIT=|.....between.....|=...
                 at work                       waits for another

`pg_stat_database` has how long its sessions were at work and idle in transactions, each to the
microsecond; what is left of the clients' time lies between transactions. How much of the time at
work goes into waits for others it does not tell: pg_stat_activity is looked at now and then, from
another database, so that nobody's snapshot holds the horizon.

Source: `pgstat_report_activity`, src/backend/utils/activity/backend_status.c (REL_15_STABLE,
REL_18_STABLE).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg

    from pgheadroom.servers.pgbench import TransactionLog

_LOOK_EVERY_S = 0.02
_LOOKS_LEAST = 20
"""So many that found a session at work tell what part of the time was none of waits; arbitrary."""
_TOTALS = """
SELECT active_time, idle_in_transaction_time FROM pg_stat_database WHERE datname = %s
"""
# Ages are as of the beginning of the look: one that loses its processor makes none older.
_NOW = """
SELECT pid, state = 'active', wait_event_type IS NOT DISTINCT FROM 'Lock',
       extract(epoch FROM query_start)::float8,
       extract(epoch FROM statement_timestamp() - query_start)::float8
FROM pg_stat_activity WHERE datname = %s AND backend_type = 'client backend'
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTimes:
    """
    The time of all clients together, in seconds.

    `at_work_s` is without waits for others, None where too few looks tell how long these were;
    `in_transaction_s` lies between two statements of a transaction, `between_s` between two
    transactions, None where the others are longer than the clients were there.
    """

    at_work_s: float | None
    in_transaction_s: float
    between_s: float | None


@dataclass(slots=True)
class Looks:
    """
    What looks at the sessions found, all together.

    Attributes:
        sessions: How many sessions there were.
        waiting: Of them, those that waited for others.
        at_work: And those that were at work.
        at_work_for_s: Since when each of these had been at its statement; without those that had
            been seen to wait in it.
    """

    sessions: int = 0
    waiting: int = 0
    at_work: int = 0
    at_work_for_s: list[float] = field(default_factory=list)
    _waited: dict[int, float] = field(default_factory=dict)

    def see(self, pid: int, began: float, age_s: float, *, is_active: bool, waits: bool) -> None:
        """
        One session.

        Args:
            pid: Whose.
            began: When its statement did.
            age_s: How long ago that was.
            is_active: Whether it is at its statement.
            waits: For another session.
        """
        self.sessions += 1
        if not is_active:
            return
        if waits:
            self.waiting += 1
            self._waited[pid] = began
            return
        self.at_work += 1
        if self._waited.get(pid) != began:
            self.at_work_for_s.append(age_s)

    def share_at_work(self) -> float | None:
        """Which part of the time at work was none of waits; None where too little was seen."""
        if self.waiting == 0:
            return 1.0
        if self.at_work < _LOOKS_LEAST:
            return None
        return self.at_work / (self.at_work + self.waiting)


class SessionClock:
    """The sessions of one run: `start` before it, `step` often while it lasts, `stop` after it."""

    def __init__(self, monitor: psycopg.Connection[Any], database: str) -> None:
        """
        Look at nothing yet.

        Args:
            monitor: A session in another database.
            database: That of the clients.
        """
        self._monitor = monitor
        self._database = database
        self._before = self._after = (0.0, 0.0)
        self.looks = Looks()
        self._looked = time.monotonic()

    def start(self) -> None:
        """No client is there yet."""
        self._before = self._totals()

    def step(self) -> None:
        """Look who waits, now and then."""
        now = time.monotonic()
        if now - self._looked < _LOOK_EVERY_S:
            return
        for pid, is_active, waits, began, age_s in self._monitor.execute(_NOW, (self._database,)):
            if began is not None:  # of one that has just connected
                self.looks.see(pid, began, age_s, is_active=is_active, waits=waits)
        # Looking takes its time where processors are busy, and is not to take more than its share.
        self._looked = time.monotonic()

    def stop(self) -> None:
        """All clients have left; each has reported its times by then."""
        self._after = self._totals()

    def times(self, log: TransactionLog) -> SessionTimes | None:
        """
        What the time went into; None where nothing was at work.

        Args:
            log: Every transaction of the run.
        """
        active_s, in_transaction_s = (
            after - before for before, after in zip(self._before, self._after, strict=True)
        )
        return session_times(active_s, in_transaction_s, self.looks, log)

    def _totals(self) -> tuple[float, float]:
        row = self._monitor.execute(_TOTALS, (self._database,)).fetchone()
        assert row is not None, "the clients' database is there"
        return row[0] / 1000, row[1] / 1000


def session_times(
    active_s: float, in_transaction_s: float, looks: Looks, log: TransactionLog
) -> SessionTimes | None:
    """
    What the time of a run's clients went into; None where nothing was at work.

    Args:
        active_s: How long their sessions were at statements, waits among it.
        in_transaction_s: How long idle in transactions.
        looks: What was seen of them.
        log: Every transaction of the run.
    """
    if active_s <= 0:
        return None
    part = looks.share_at_work()
    between_s = present_s(log) - active_s - in_transaction_s
    return SessionTimes(
        at_work_s=None if part is None else active_s * part,
        in_transaction_s=in_transaction_s,
        between_s=between_s if between_s > 0 else None,
    )


def present_s(log: TransactionLog) -> float:
    """
    From the beginning of each client's first transaction to the end of its last, added.

    One that failed has no latency in the log: where it was the first, from its end.
    """
    import numpy as np  # noqa: PLC0415 - slow to import; only a run needs it

    found = 0.0
    for client in np.union1d(log.client, log.failed_client):
        ends = log.ends_s[log.client == client]
        begins = ends - log.latency_ms[log.client == client] / 1000
        failed = log.failed_ends_s[log.failed_client == client]
        found += max([*ends[-1:], *failed[-1:]]) - min([*begins[:1], *failed[:1]])
    return float(found)
