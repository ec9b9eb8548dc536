"""
`watch` on real servers: what it counts is what was done, and nothing is told that cannot be.

Statements wait until what they count is in the statistics (`run`), so that counts are exact.
"""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest
from doctor_sides import conninfo, run
from pooler import pooled
from prometheus_client.parser import text_string_to_metric_families
from test_doctor_rules import asked, until
from test_doctor_standby import follow

from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.watch import Order, TableRate, Tick, Watcher, chosen, exposition

pytestmark = pytest.mark.usefixtures("run_parent")

QUIET = {"autovacuum": "off"}
# Five rows a page at most, three by fillfactor: two of the versions of each page's rows find room.
MAKE = (
    "CREATE TABLE roomy (id int8 PRIMARY KEY, v int8, w int8, filler char(1500)) "
    "WITH (fillfactor = 60);\n"
    "CREATE INDEX roomy_w ON roomy (w);\n"
    "INSERT INTO roomy SELECT i, i, i, 'x' FROM generate_series(1, 300) i;\n"
    "CREATE TABLE full_up (id int8 PRIMARY KEY, v int8, filler char(1500));\n"
    "INSERT INTO full_up SELECT i, i, 'x' FROM generate_series(1, 300) i;\n"
)


def table(tick: Tick, name: str) -> TableRate:
    (found,) = (one for one in tick.tables if one.name == name)
    return found


def watching(cluster: Cluster, user: str = "postgres") -> Watcher:
    return Watcher(conninfo(cluster, "postgres", user), {})


@pytest.mark.each
def test_counts_are_what_was_done(programs: ServerPrograms) -> None:
    """
    HOT updates, updates of an indexed column, and updates of full pages, to the unit.

    The rows of `roomy` lie three a page with room for two more: of each page one is updated HOT,
    one not, for its index, and both stay. A page of `full_up` has no room: all updates leave it.
    """
    counts_newpage = programs.version.major >= 16
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start(QUIET)
        run(cluster, "postgres", MAKE)
        with watching(cluster) as watcher:
            first = watcher.tick()
            assert first.interval_s is None
            assert first.tables == ()
            assert watcher.whole() is None
            run(
                cluster,
                "postgres",
                "UPDATE roomy SET v = v + 1 WHERE id % 3 = 0;\n"
                "UPDATE roomy SET w = w + 1 WHERE id % 3 = 1;\n"
                "UPDATE full_up SET v = v + 1 WHERE id % 5 = 0;\n"
                "DELETE FROM full_up WHERE id % 5 = 1;\n"
                "CREATE TABLE young (v int);\n"
                "INSERT INTO young SELECT generate_series(1, 7);\n",
            )
            second = watcher.tick()
            assert second.notes == ()
            assert second.interval_s is not None
            roomy = table(second, "roomy")
            assert (roomy.n_tup_upd, roomy.n_tup_hot_upd) == (200, 100)
            assert roomy.n_tup_newpage_upd == (0 if counts_newpage else None)
            assert roomy.hot_frac == 0.5
            assert roomy.newpage_frac == (0.0 if counts_newpage else None)
            assert roomy.updates_per_s == 200 / second.interval_s
            dead = "SELECT n_dead_tup FROM pg_stat_all_tables WHERE relname = 'roomy'"
            assert roomy.n_dead_tup == int(asked(cluster, dead)) > 0
            full = table(second, "full_up")
            assert (full.n_tup_upd, full.n_tup_hot_upd, full.n_tup_del) == (60, 0, 60)
            assert full.newpage_frac == (1.0 if counts_newpage else None)
            # It was not there before: all of it is of this interval.
            assert table(second, "young").n_tup_ins == 7
            assert (second.wal_bytes_per_s or 0) > 0

            run(cluster, "postgres", "DROP TABLE young;\nCHECKPOINT")
            until(lambda: checkpoints(cluster) == 1, "the checkpoint is counted")
            third = watcher.tick()
            assert (third.checkpoints_timed, third.checkpoints_requested) == (0, 1)
            assert [one.n_tup_upd for one in third.tables] == [0, 0]
            assert third.tables[0].hot_frac is None
            whole = watcher.whole()
            assert whole is not None
            assert table(whole, "roomy").n_tup_hot_upd == 100
            assert [one.name for one in chosen(third.tables, Order(only="ROOM"))] == ["roomy"]


def checkpoints(cluster: Cluster) -> int:
    query = "SELECT num_requested FROM pg_stat_checkpointer"
    if cluster.version.major < 17:
        query = "SELECT checkpoints_req FROM pg_stat_bgwriter"
    return int(asked(cluster, query))


@pytest.mark.each
def test_a_reset_is_no_rate(programs: ServerPrograms) -> None:
    """Of a table, the database, the log, all: what was counted before is no part of any rate."""
    more = "UPDATE full_up SET v = v + 1 WHERE id <= 10"
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start(QUIET)
        run(cluster, "postgres", MAKE)
        with watching(cluster) as watcher:
            watcher.tick()
            for reset in (
                "SELECT pg_stat_reset_single_table_counters('full_up'::regclass)",
                "SELECT pg_stat_reset()",
            ):
                # More is done after it than was counted before: no counter has gone back.
                run(cluster, "postgres", f"{reset};\n" + f"{more};\n" * 40)
                tick = watcher.tick()
                assert tick.interval_s is None
                assert tick.tables == ()
                assert tick.notes == ("statistics of this database were reset: rates begin anew",)
                assert (tick.wal_bytes_per_s or 0) > 0
                run(cluster, "postgres", more)
                assert table(watcher.tick(), "full_up").n_tup_upd == 10
                whole = watcher.whole()
                assert whole is not None
                assert table(whole, "full_up").n_tup_upd == 10
            run(cluster, "postgres", f"SELECT pg_stat_reset_shared('wal');\n{more}")
            tick = watcher.tick()
            assert tick.wal_fpi_per_s is None
            assert table(tick, "full_up").n_tup_upd == 10


def test_a_restart_in_between(programs: ServerPrograms) -> None:
    """It says so, connects again, and tells rates of the new life alone; after a crash as well."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start(QUIET)
        run(cluster, "postgres", MAKE)
        with watching(cluster) as watcher:
            watcher.tick()
            cluster.stop()
            away = watcher.tick()
            assert away.now is None
            assert away.tables == ()
            assert away.notes[0].startswith("the connection ended: ")
            again = watcher.tick()
            assert "no connection" in again.notes[0]
            assert watcher.name in exposition([(watcher.name, again.now)])
            cluster.start(QUIET)
            run(cluster, "postgres", "UPDATE full_up SET v = v + 1")
            back = watcher.tick()
            assert back.notes[0] == "connected again"
            assert back.notes[1].startswith("the server was started again (")
            assert back.interval_s is None
            run(cluster, "postgres", "UPDATE full_up SET v = v + 1 WHERE id <= 10")
            assert table(watcher.tick(), "full_up").n_tup_upd == 10

            # One process that crashes takes all statistics with it, and the postmaster stays.
            before = asked(cluster, "SELECT pg_postmaster_start_time()")
            counted_from = asked(cluster, COUNTED_FROM)
            with cluster.connect() as victim:
                os.kill(victim.info.backend_pid, signal.SIGKILL)
                with pytest.raises(psycopg.OperationalError):
                    victim.execute("SELECT 1")
            until(lambda: answer(cluster) not in (None, counted_from), "it has recovered")
            assert asked(cluster, "SELECT pg_postmaster_start_time()") == before
            run(cluster, "postgres", "UPDATE full_up SET v = v + 1;\n" * 5)
            ticks = [watcher.tick()]
            while ticks[-1].now is None:
                ticks.append(watcher.tick())
            assert all(not tick.counts for tick in ticks)
            assert ticks[-1].notes[-1].startswith("all statistics were reset, as after a crash")


COUNTED_FROM = "SELECT stats_reset::text FROM pg_stat_wal"


def answer(cluster: Cluster) -> str | None:
    """Since when the server counts; None while it is down."""
    try:
        return str(asked(cluster, COUNTED_FROM))
    except psycopg.OperationalError:
        return None


@pytest.mark.each
def test_vacuums_and_the_horizon(programs: ServerPrograms) -> None:
    """A VACUUM that is at work, and the session whose snapshot is in its way."""
    slow = "SET vacuum_cost_delay = 100; SET vacuum_cost_limit = 1; VACUUM full_up"
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start(QUIET)
        run(cluster, "postgres", f"{MAKE}DELETE FROM full_up WHERE id % 2 = 0")
        with (
            cluster.connect(autocommit=False, application_name="a report") as reader,
            cluster.connect() as cleaner,
            watching(cluster) as watcher,
        ):
            reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            reader.execute("SELECT 1")
            run(cluster, "postgres", "SELECT txid_current();\n" * 3)
            work = threading.Thread(target=cancelled, args=(cleaner, slow))
            work.start()
            try:
                found: list[Any] = []

                def at_work() -> bool:
                    found[:] = [watcher.tick().now]
                    return bool(found[0].vacuums)

                until(at_work, "VACUUM shows its progress")
            finally:
                cleaner.cancel()
                work.join()
            (vacuum,) = found[0].vacuums
            assert (vacuum.schema, vacuum.name) == ("public", "full_up")
            assert vacuum.is_auto is False
            assert vacuum.heap_blks_total == 60
            (holder,) = (
                one for one in found[0].holders if one.name == str(reader.info.backend_pid)
            )
            assert holder.kind == "session"
            assert holder.what == "idle in transaction a report"
            assert holder.age_xids >= 3


def cancelled(connection: psycopg.Connection[Any], statements: str) -> None:
    *settings, last = statements.split("; ")
    for statement in settings:
        connection.execute(statement.encode())
    with pytest.raises(psycopg.errors.QueryCanceled):
        connection.execute(last.encode())


def test_with_few_rights(programs: ServerPrograms) -> None:
    """Pg_monitor sees all; a role without sees tables, and is told what it does not see."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start(QUIET)
        run(
            cluster,
            "postgres",
            f"{MAKE}CREATE ROLE watcher LOGIN;\nGRANT pg_monitor TO watcher;\n"
            "CREATE ROLE nobody LOGIN",
        )
        with watching(cluster, "watcher") as watcher, watching(cluster, "nobody") as poor:
            for one in (watcher, poor):
                one.tick()
            run(cluster, "postgres", "UPDATE full_up SET v = v + 1 WHERE id <= 10")
            rich, few = watcher.tick(), poor.tick()
        assert table(rich, "full_up").n_tup_upd == table(few, "full_up").n_tup_upd == 10
        assert rich.now is not None
        assert few.now is not None
        assert (rich.now.monitors, few.now.monitors) == (True, False)
        assert rich.now.is_checkpointing is False
        assert few.now.is_checkpointing is None


def test_over_a_pooler(newest: ServerPrograms) -> None:
    """In transaction mode nothing of the session is its own, and counts are the same."""
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start(QUIET)
        run(cluster, "postgres", MAKE)
        with pooled(host, cluster, "transaction") as through, Watcher(through, {}) as pool:
            pool.tick()
            run(cluster, "postgres", "UPDATE full_up SET v = v + 1 WHERE id <= 10")
            assert table(pool.tick(), "full_up").n_tup_upd == 10


def test_on_a_standby(newest: ServerPrograms) -> None:
    """It says what is replayed; updates are the primary's, and none is invented."""
    with Host(newest) as host:
        primary = host.cluster("primary")
        standby = host.copy(primary, "standby")
        (standby.data_dir / "standby.signal").touch()
        primary.start(QUIET)
        run(primary, "postgres", "SELECT pg_create_physical_replication_slot('of_standby', true)")
        follow(primary, standby, "of_standby")
        with watching(standby) as watcher:
            first = watcher.tick()
            run(primary, "postgres", MAKE)
            written = asked(primary, "SELECT pg_current_wal_lsn()::text")
            replayed = f"SELECT pg_last_wal_replay_lsn() >= '{written}'::pg_lsn"
            until(lambda: bool(asked(standby, replayed)), "it is replayed")
            second = watcher.tick()
        assert first.now is not None
        assert first.now.in_recovery
        assert second.tables == ()
        assert (second.wal_bytes_per_s or 0) > 0


def test_a_table_that_is_held_is_not_waited_for(newest: ServerPrograms) -> None:
    """Neither for DDL nor behind it, and nothing that changes anything could run."""
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start(QUIET)
        run(cluster, "postgres", MAKE)
        with cluster.connect(autocommit=False) as holder, watching(cluster) as watcher:
            holder.execute("LOCK TABLE full_up IN ACCESS EXCLUSIVE MODE")
            tick = watcher.tick()
            assert tick.notes == ()
            assert tick.now is not None
            seen = holder.execute(
                "SELECT query FROM pg_stat_activity WHERE application_name = 'pgheadroom watch'"
            ).fetchall()
            assert len(seen) == 1
            connection = watcher._connection
            assert connection is not None
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                connection.execute("CREATE TABLE x (v int)")
            (timeouts,) = connection.execute(
                "SELECT current_setting('statement_timeout'), current_setting('lock_timeout')"
            ).fetchall()
            assert timeouts == ("5s", "1s")


TICK_S_MAX = 0.25
"""Of the server's processor time, with 2,000 tables; it takes a tenth of that (docs/watch.md)."""


def test_two_thousand_tables(newest: ServerPrograms) -> None:
    """A tick has a bounded cost."""
    make = (
        "DO $$ BEGIN FOR i IN 1..2000 LOOP EXECUTE format('CREATE TABLE t%s (id int8 PRIMARY KEY, "
        "v int)', i); EXECUTE format('INSERT INTO t%s VALUES (1, 1)', i); "
        "IF i % 200 = 0 THEN COMMIT; END IF; END LOOP; END $$"
    )
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({**QUIET, "max_locks_per_transaction": "512"})
        run(cluster, "postgres", make)
        with watching(cluster) as watcher:
            watcher.tick()
            connection = watcher._connection
            assert connection is not None
            stat = Path(f"/proc/{connection.info.backend_pid}/schedstat")
            before = int(stat.read_text().split()[0])
            count = 5
            for _ in range(count):
                tick = watcher.tick()
            used_s = (int(stat.read_text().split()[0]) - before) / 1e9 / count
        assert len(tick.tables) == 2000
        print(f"a tick: {used_s * 1000:.1f} ms")
        assert used_s < TICK_S_MAX
        (left_out,) = (
            family.samples[0].value
            for family in text_string_to_metric_families(exposition([("a", tick.now)]))
            if family.name == "pgheadroom_tables_left_out"
        )
        assert left_out == 1000


@pytest.mark.each
def test_what_prometheus_reads(programs: ServerPrograms) -> None:
    """Its own parser reads every name, label and value as they are on the server."""
    name = 'a "b" \\ c\nd {e="f"} Größe'
    quoted = name.replace('"', '""')
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start(QUIET)
        run(
            cluster,
            "postgres",
            f'CREATE TABLE "{quoted}" (v int);\nINSERT INTO "{quoted}" SELECT 1;\n'
            f'UPDATE "{quoted}" SET v = 2;\n{MAKE}',
        )
        with watching(cluster) as watcher:
            now = watcher.tick().now
        assert now is not None
        text = exposition([("db:5432", now), ("other:5432", None)])
        families = {one.name: one for one in text_string_to_metric_families(text)}
        for family in families.values():
            assert family.documentation
            is_counter = all(one.name.endswith("_total") for one in family.samples)
            assert is_counter is (family.type == "counter"), family.name
        up = {one.labels["server"]: one.value for one in families["pgheadroom_up"].samples}
        assert up == {"db:5432": 1.0, "other:5432": 0.0}
        updated = {
            one.labels["relname"]: one.value
            for one in families["pgheadroom_table_n_tup_upd"].samples
        }
        assert updated == {name: 1.0, "roomy": 0.0, "full_up": 0.0}
        assert ("pgheadroom_table_n_tup_newpage_upd" in families) is (programs.version.major >= 16)
        labels = families["pgheadroom_table_n_dead_tup"].samples[0].labels
        assert set(labels) == {"server", "datname", "schemaname", "relname"}
