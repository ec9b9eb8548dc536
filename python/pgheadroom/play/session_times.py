"""
What the clients' sessions of a run spent their time on.

    client 0   |=statement=|..pause..|=statement~~~~~|..pause..|=COMMIT=|.....between.....|=...
                 at work                       waits for another's row

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
_TOTALS = """
SELECT active_time, idle_in_transaction_time FROM pg_stat_database WHERE datname = %s
"""
_NOW = """
SELECT count(*),
       count(*) FILTER (WHERE state = 'active' AND wait_event_type = 'Lock'),
       array_agg(extract(epoch FROM clock_timestamp() - query_start)::float8)
           FILTER (WHERE state = 'active' AND wait_event_type IS DISTINCT FROM 'Lock')
FROM pg_stat_activity WHERE datname = %s AND backend_type = 'client backend'
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTimes:
    """
    The time of all clients together, in seconds.

    `at_work_s` is without `waiting_s`, for rows and keys that others hold; `in_transaction_s` lies
    between two statements of a transaction, `between_s` between two transactions.
    """

    at_work_s: float
    waiting_s: float
    in_transaction_s: float
    between_s: float


@dataclass(slots=True)
class Looks:
    """
    What looks at the sessions found, all together: so many sessions, of which some waited.

    `at_work_for_s` has since when each of the others that was at work was so.
    """

    sessions: int = 0
    waiting: int = 0
    at_work_for_s: list[float] = field(default_factory=list)


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
        row = self._monitor.execute(_NOW, (self._database,)).fetchone()
        assert row is not None, "an aggregate returns one row"
        self.looks.sessions += row[0]
        self.looks.waiting += row[1]
        self.looks.at_work_for_s += row[2] or ()
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
        if active_s <= 0:
            return None
        waiting = self.looks.waiting
        active = waiting + len(self.looks.at_work_for_s)
        waiting_s = active_s * waiting / active if active else 0.0
        return SessionTimes(
            at_work_s=active_s - waiting_s,
            waiting_s=waiting_s,
            in_transaction_s=in_transaction_s,
            between_s=max(0.0, present_s(log) - active_s - in_transaction_s),
        )

    def _totals(self) -> tuple[float, float]:
        row = self._monitor.execute(_TOTALS, (self._database,)).fetchone()
        assert row is not None, "the clients' database is there"
        return row[0] / 1000, row[1] / 1000


def present_s(log: TransactionLog) -> float:
    """From the beginning of each client's first transaction to the end of its last, added."""
    import numpy as np  # noqa: PLC0415 - slow to import; only a run needs it

    found = 0.0
    for client in np.unique(log.client):
        ends = log.ends_s[log.client == client]
        first = int(np.argmin(ends))
        begin = ends[first] - log.latency_ms[log.client == client][first] / 1000
        found += float(ends.max() - begin)
    return found
