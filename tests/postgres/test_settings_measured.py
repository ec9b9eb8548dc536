"""Settings by what a real server counts, and what stands in the way of changing them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from doctor_sides import conninfo, near, run
from observed import reload
from test_doctor_standby import follow

from pgheadroom.report.settings import fragment, statements
from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.settings import ServerMachine, SettingsAdvice, settings_live
from pgheadroom.settings.arithmetic import GIB, cost_limit_for, work_per_s
from pgheadroom.settings.case import SettingsCase
from pgheadroom.settings.checkpoints import decide, knee_of
from pgheadroom.settings.live import Asking
from pgheadroom.settings.measured import CountedLoad
from pgheadroom.settings.values import SettingLine
from pgheadroom.sources.session import read_only_session
from pgheadroom.wal import wal_what_if
from pgheadroom.wal.other_checkpoints import Grid

pytestmark = pytest.mark.usefixtures("run_parent")

NOTHING = ServerMachine()
INTERVAL_S = 10.0
ROWS = 20_000
TABLE = (
    "CREATE TABLE t (id int8 PRIMARY KEY, v int8) WITH (fillfactor = 50);\n"
    "CREATE INDEX t_v ON t (v);\n"
    f"INSERT INTO t SELECT i, i FROM generate_series(1, {ROWS}) i;\nVACUUM ANALYZE t;\n"
    "CREATE TABLE aside (id int8) WITH (autovacuum_enabled = off);\n"
    "INSERT INTO aside SELECT i FROM generate_series(1, 1000) i;\n"
)


@contextmanager
def started(programs: ServerPrograms, **settings: str) -> Iterator[Cluster]:
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum_naptime": "2147483", "fsync": "on", **settings})
        yield cluster


def line_of(advice: SettingsAdvice, name: str) -> SettingLine:
    return next(line for line in advice.lines if line.name == name)


@pytest.mark.each
def test_rates_of_an_interval(programs: ServerPrograms) -> None:
    """
    Rows die and WAL is written inside it; the limit and the size follow by arithmetic.

    HOT updates leave nothing to autovacuum, and a table that it does not come to counts for nought.
    """
    with started(programs) as cluster:
        run(cluster, "postgres", TABLE)
        with (
            read_only_session(conninfo(cluster, "postgres"), {}) as connection,
            cluster.connect() as other,
        ):
            asking = Asking(connection, NOTHING)
            (before,) = other.execute("SELECT pg_current_wal_insert_lsn()").fetchall()[0]
            asking.start()
            run(
                cluster,
                "postgres",
                "UPDATE t SET v = v WHERE id <= 5000;\n"  # HOT
                "UPDATE t SET v = v + 1 WHERE id <= 4000;\nDELETE FROM t WHERE id > 19000;\n"
                "DELETE FROM aside;\n",
            )
            asking.reading.ahead_s = INTERVAL_S
            counted = asking.counted()
            (wal,) = other.execute(
                "SELECT (pg_current_wal_insert_lsn() - %s::pg_lsn)::float8", (before,)
            ).fetchall()[0]
    assert isinstance(counted, CountedLoad)
    assert counted.wal_length_s is not None
    assert counted.wal_bytes is not None
    assert INTERVAL_S <= counted.wal_length_s < INTERVAL_S + 60
    # Positions have page headers and padding beside what is counted.
    assert 0.9 * wal <= counted.wal_bytes <= wal
    assert counted.tables is not None
    dying = [table for table in counted.tables if table.dead_per_s > 0]
    near(sum(table.dead_per_s for table in dying), 5000 / counted.wal_length_s)
    (table,) = dying
    near(table.trigger_rows, 50 + 0.2 * ROWS)
    assert len(table.index_pages) == 2
    if programs.version.major >= 18:
        assert counted.vacuum_busy_workers == 0.0

    # At a thousand times that load its limit is too low, and 1 GB too small.
    dense = replace(table, dead_per_s=1000 * table.dead_per_s)
    busy = replace(
        counted, tables=(dense,), wal_bytes=1000 * counted.wal_bytes, wal_length_s=INTERVAL_S
    )
    advice = asking.answer(busy)
    limit = line_of(advice, "autovacuum_vacuum_cost_limit")
    work = work_per_s([dense], {f"vacuum_cost_page_{n}": c for n, c in PRICES.items()})
    assert limit.value == str(cost_limit_for(work, 0.002))
    assert f"{work.pages:,.0f} pages a second" in limit.reason
    assert limit.sql == f"ALTER SYSTEM SET autovacuum_vacuum_cost_limit = '{limit.value}'"
    assert limit.undo == "ALTER SYSTEM RESET autovacuum_vacuum_cost_limit"
    size = line_of(advice, "max_wal_size")
    assert size.basis == "measured"
    # Twice a timeout's WAL times 1.9, up to whole GB: 15 min, since 5 are fewer than the rule's.
    need = 2 * 900 * 1.9 * busy.wal_bytes / INTERVAL_S  # type: ignore[operator]
    assert need <= int(size.value.removesuffix("GB")) * GIB <= need * 1.05 + GIB


PRICES = {"hit": "1", "miss": "2", "dirty": "20"}


def test_since_the_statistics_began(newest: ServerPrograms) -> None:
    """Minutes tell no rate, and are named; hours do. Spilled sorts speak for more work_mem."""
    machine = ServerMachine(memory_bytes=64 * GIB)
    with started(newest) as cluster:
        run(
            cluster,
            "postgres",
            TABLE + "SELECT pg_stat_reset();\nSELECT pg_stat_reset_shared('wal');\n"
            "SET work_mem = '64kB';\n"
            "SELECT count(*) FROM (SELECT i FROM generate_series(1, 200000) i ORDER BY -i) s;\n"
            "UPDATE t SET v = v + 1;\n",
        )
        young = settings_live(conninfo(cluster, "postgres"), {}, machine)
        assert {"max_wal_size", "autovacuum_vacuum_cost_limit"} <= {
            each.name for each in young.asked
        }
        assert "rates need 1 h 00 min" in young.asked[-1].reason
        with read_only_session(conninfo(cluster, "postgres"), {}) as connection:
            asking = Asking(connection, machine, ahead_s=2 * 3600.0)
            old = asking.counted()
            assert isinstance(old, CountedLoad)
            assert old.tables is not None
            assert old.wal_length_s is not None
            near(sum(table.dead_per_s for table in old.tables), ROWS / 7200, within=0.05)
            # Some megabytes of temporary files are a fraction of 1 GiB a day: nothing to gain.
            quiet = asking.answer(old)
            assert "work_mem" in {kept.name for kept in quiet.kept}
            assert old.temp_bytes_a_day is not None
            spilling = asking.answer(replace(old, temp_bytes_a_day=200 * GIB))
    line = line_of(spilling, "work_mem")
    assert (line.basis, line.now) == ("measured", "4MB")
    assert "200 GiB a day went into temporary files" in line.reason


def test_checkpoints_by_the_log(newest: ServerPrograms) -> None:
    """With a log at hand the smallest setting that saves nearly all is told, with its bytes."""
    with started(newest, wal_compression="off", max_wal_size="10GB") as cluster:
        run(cluster, "postgres", TABLE)
        with cluster.connect() as connection:
            for _ in range(12):
                connection.execute("CHECKPOINT")
                connection.execute("UPDATE t SET v = v + 1 WHERE id % 50 = 0")
            connection.execute("SELECT pg_switch_wal()")
        grid = Grid(
            timeouts_s=(60.0, 900.0, 3600.0), timeout_in_force_s=300.0, size_in_force_bytes=GIB
        )
        found = wal_what_if([cluster.data_dir / "pg_wal"], grid=grid)
        with read_only_session(conninfo(cluster, "postgres"), {}) as connection:
            asking = Asking(connection, NOTHING)
        assert knee_of(found) is None, "of seconds no timeout is told"
        # As if the same had taken half an hour.
        log = replace(found, length_s=1800.0)
        knee = knee_of(log)
        assert knee is not None
        assert knee.timeout_s in (60.0, 900.0)
        case = SettingsCase(
            given=NOTHING, major=18, in_force=asking.in_force, is_live=True, log=log
        )
        lines = {each.name: each for each in decide(case) if isinstance(each, SettingLine)}
        said = lines["wal_compression"]
        images = next(one for one in log.compression if one.method == "pglz")
        assert (said.value, said.basis) == ("pglz", "measured"), "the wheel has no other"
        assert images.bytes < 0.9 * log.checkpoint[0].bytes  # type: ignore[operator]


def test_who_stands_before(newest: ServerPrograms) -> None:
    """A value of the database, of ALTER SYSTEM, one that waits, a role that may not: each told."""
    machine = ServerMachine(memory_bytes=16 * GIB, disk="ssd")
    with started(newest) as cluster:
        run(
            cluster,
            "postgres",
            "ALTER DATABASE postgres SET random_page_cost = 3;\n"
            "ALTER SYSTEM SET checkpoint_timeout = '3min';\n"
            "ALTER SYSTEM SET shared_buffers = '1GB';\nSELECT pg_reload_conf();\n"
            "CREATE ROLE looks LOGIN;\nGRANT pg_monitor TO looks;\n",
        )
        advice = settings_live(conninfo(cluster, "postgres"), {}, machine)
        seen = settings_live(conninfo(cluster, "postgres", "looks"), {}, machine)
        run(cluster, "postgres", "CREATE ROLE rds_superuser;\n")
        managed = settings_live(conninfo(cluster, "postgres", "looks"), {}, machine)
    cost = line_of(advice, "random_page_cost")
    assert (cost.now, cost.set_by) == ("3", "database")
    assert "ALTER DATABASE ... SET, which goes before" in (cost.note or "")
    timeout = line_of(advice, "checkpoint_timeout")
    assert timeout.undo == "ALTER SYSTEM SET checkpoint_timeout = '3min'"
    assert "goes before postgresql.conf" in (timeout.note or "")
    assert "postgresql.auto.conf" in timeout.set_by
    assert "shared_buffers" not in {line.name for line in advice.lines}
    assert any("another value waits for a restart" in each for each in advice.remarks)
    # pg_monitor has pg_read_all_settings, and no right to change one.
    assert "may not ALTER SYSTEM" in (line_of(seen, "checkpoint_timeout").note or "")
    assert managed.lines
    assert {line.sql for line in managed.lines} == {None}
    assert "parameter group" in fragment(managed)
    assert "\nALTER" not in statements(managed)


def test_a_role_that_sees_no_files(newest: ServerPrograms) -> None:
    """Where a setting stands is hidden from it: its undo puts the value back, wherever it was."""
    with started(newest) as cluster:
        run(
            cluster,
            "postgres",
            "ALTER SYSTEM SET checkpoint_timeout = '3min';\nCREATE ROLE looks LOGIN;\n",
        )
        reload(cluster)
        advice = settings_live(conninfo(cluster, "postgres", "looks"), {}, NOTHING)
    line = line_of(advice, "checkpoint_timeout")
    assert line.undo == "ALTER SYSTEM SET checkpoint_timeout = '3min'"
    assert line.set_by == "configuration file"


def test_a_standby_counts_nothing(newest: ServerPrograms) -> None:
    """It says so, still has its machine's lines, and what must not be less than the primary's."""
    with Host(newest) as host:
        primary = host.cluster("main")
        primary.start({})
        primary.stop()
        standby = host.copy(primary, "standby")
        (standby.data_dir / "standby.signal").touch()
        primary.start({})
        run(primary, "postgres", "SELECT pg_create_physical_replication_slot('s')")
        follow(primary, standby, "s")
        advice = settings_live(
            conninfo(standby, "postgres"), {}, ServerMachine(memory_bytes=8 * GIB)
        )
    assert line_of(advice, "shared_buffers").value == "2GB"
    reasons = {each.name: each.reason for each in advice.asked}
    assert "a standby counts neither" in reasons["autovacuum_vacuum_cost_limit"]
    assert any("than on the primary" in each for each in advice.remarks)
