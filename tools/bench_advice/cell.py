"""
One workload at one fillfactor on a real server: load, settle, measure a window.

    load      every row anew at the candidate fillfactor, as a rewrite would leave the table
    settle    the workload's transactions for about as long as the window, not measured
    window    one checkpoint cycle: CHECKPOINT, transactions, then counters, sizes, WAL

One client and no background work: autovacuum's rule is asked after every tenth of a cycle
(`player.py`), so that a cell gives the same figures whatever else the machine does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from bench_advice.player import Player
from bench_advice.workloads import Workload
from pgheadroom.errors import LabError
from pgheadroom.play import DATABASE
from pgheadroom.play.load import load
from pgheadroom.play.measured import (
    measured,
    read_counters,
    read_relations,
    read_sizes,
    reset_statistics,
)
from pgheadroom.play.plans import check_plans
from pgheadroom.play.settings import start_settings
from pgheadroom.play.wal_source import WalSource
from pgheadroom.profile import Profile
from pgheadroom.servers import Cluster, Host, ServerPrograms

if TYPE_CHECKING:
    import psycopg

_KEPT = (
    "n_tup_ins",
    "n_tup_upd",
    "n_tup_del",
    "n_tup_hot_upd",
    "n_tup_newpage_upd",
    "heap_pages",
    "index_pages",
    "wal_records",
    "wal_bytes",
    "wal_fpi_bytes",
    "wal_fpi",
    "pages_modified",
)


class Place:
    """
    A running server for cells, all one after another in it.

    Args:
        host: Of the run.
        cluster: Started with `settings_for_cells`.
        monitor: A session outside the database under test.
    """

    def __init__(self, host: Host, cluster: Cluster, monitor: psycopg.Connection[Any]) -> None:
        self.host = host
        self.cluster = cluster
        self.monitor = monitor
        self._wal = WalSource(host, cluster, monitor)

    def measure(self, workload: Workload, fillfactor: int) -> dict[str, Any]:
        """
        Play a workload at a fillfactor.

        Returns:
            The window's figures under the names of `pgheadroom.outcome`, the pages at its begin
            as `heap_pages_begin` and `index_pages_begin`, the VACUUMs in it.
        """
        profile = workload.profile.with_fillfactor({"t": fillfactor})
        player = self.loaded(profile)
        player.turn(workload.settle)
        names, vacuums = profile.table_names, player.vacuums
        with self.cluster.connect(DATABASE) as connection:
            before = read_counters(connection, names)
            begin = read_sizes(connection, names)
            relations = read_relations(connection, names)
        player.wait_until_alone()
        self.monitor.execute("CHECKPOINT")
        start = self._position()
        player.turn(workload.window)
        end = self._position()
        with self.cluster.connect(DATABASE) as connection:
            after = read_counters(connection, names)
            sizes = read_sizes(connection, names)
        # A commit after a record of its own flushes the WAL before it; one without does not wait.
        self.monitor.execute("SELECT pg_logical_emit_message(true, 'end of window', '')")
        wal = self._wal.read(start, end, relations.table_of)
        found = measured(before, after, sizes, wal)
        return {
            **{key: found.value(key) for key in _KEPT},
            "heap_pages_begin": sum(pages[0] for pages in begin.values()),
            "index_pages_begin": sum(pages[1] for pages in begin.values()),
            "vacuums": player.vacuums - vacuums,
        }

    def loaded(self, profile: Profile) -> Player:
        """A new database with the profile's tables, and a player for it."""
        self.monitor.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)".encode())
        self.monitor.execute(f"CREATE DATABASE {DATABASE}".encode())
        with self.cluster.connect(DATABASE) as connection:
            load(connection, profile)
        with self.cluster.connect(DATABASE) as connection:
            check_plans(connection, profile)
        player = Player(self.host, self.cluster, profile, self.monitor)
        player.wait_until_alone()
        with self.cluster.connect(DATABASE) as connection:
            reset_statistics(connection, profile.table_names)
        player.wait_until_alone()
        return player

    def _position(self) -> str:
        row = self.monitor.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
        assert row is not None, "a SELECT without FROM returns one row"
        return str(row[0])


@contextmanager
def place(host: Host, name: str, settings: dict[str, str]) -> Iterator[Place]:
    """A cluster of the host that runs meanwhile."""
    import psycopg  # noqa: PLC0415 - loads libpq

    cluster = host.cluster(name)
    cluster.start(settings)
    try:
        with cluster.connect() as monitor:
            yield Place(host, cluster, monitor)
    except psycopg.Error as error:
        said = "\n".join(f"  | {line}" for line in cluster.log_tail(8))
        raise LabError(f"the server failed: {error}\nIts log ends with:\n{said}") from error
    finally:
        cluster.remove()


def settings_for_cells(workload: Workload) -> dict[str, str]:
    """As `play` starts a server; WAL goes at the next checkpoint, for it is read before."""
    return start_settings(workload.profile) | {"wal_keep_size": "0"}


def host_for(programs: ServerPrograms) -> Host:
    """A run folder for the benchmark."""
    return Host(programs, label="bench-advice")
