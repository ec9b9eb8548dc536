"""A fragment of settings on real servers: taken without a word, in force, and then nothing more."""

from __future__ import annotations

import re

import pytest
from doctor_sides import conninfo
from observed import reload

from pgheadroom.doctor import all_rules, examine
from pgheadroom.report.settings import fragment, statements
from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.settings import ServerMachine, settings_for, settings_live
from pgheadroom.settings.arithmetic import GIB, MIB, DyingTable, work_of_one
from pgheadroom.settings.in_force import defaults_of
from pgheadroom.sources.session import read_only_session

pytestmark = pytest.mark.usefixtures("run_parent")

MACHINE = ServerMachine(
    memory_bytes=2 * GIB, cores=20, disk="ssd", connections=120, workload="oltp"
)
NAMES = {
    "shared_buffers",
    "effective_cache_size",
    "maintenance_work_mem",
    "work_mem",
    "max_connections",
    "max_worker_processes",
    "max_parallel_workers",
    "max_parallel_maintenance_workers",
    "random_page_cost",
    "checkpoint_timeout",
    "max_wal_size",
}
"""What every version would have changed there."""
COMPLAINTS = re.compile(r"WARNING|ERROR|FATAL|PANIC|invalid|unrecognized|could not")


@pytest.mark.each
def test_defaults_are_the_servers(programs: ServerPrograms) -> None:
    """What stands for a version where there is no server is what a server of it has."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({})
        with cluster.connect() as connection:
            rows = connection.execute(
                "SELECT name, boot_val, unit, context FROM pg_settings"
            ).fetchall()
    found = {name: (value, unit, context) for name, value, unit, context in rows}
    for name, setting in defaults_of(programs.version.major).items():
        assert found[name] == (setting.value, setting.unit, setting.context), name


@pytest.mark.each
def test_a_server_takes_it(programs: ServerPrograms) -> None:
    """
    The text itself, at the end of postgresql.conf: no complaint, in force, and all is well.

    Settings asked again would change nothing, and the doctor warns of nothing.
    """
    major = programs.version.major
    advice = settings_for(MACHINE, major)
    assert {line.name for line in advice.lines} >= NAMES
    with Host(programs) as host:
        cluster = host.cluster("main")
        with (cluster.data_dir / "postgresql.conf").open("a") as file:
            file.write(fragment(advice))
        cluster.start({"fsync": "on"})
        with cluster.connect() as connection:
            for line in advice.lines:
                shown = connection.execute("SELECT current_setting(%s)", (line.name,)).fetchone()
                assert shown == (line.value,), line.name
        again = settings_live(conninfo(cluster, "postgres"), {}, MACHINE)
        assert again.lines == ()
        assert {kept.name for kept in again.kept} >= NAMES
        with read_only_session(conninfo(cluster, "postgres"), {}) as connection:
            found = examine(connection, all_rules()).findings
        assert [each for each in found if each.severity != "info"] == []
        assert [line for line in cluster.log_tail(1000) if COMPLAINTS.search(line)] == []


@pytest.mark.each
def test_statements_and_their_undo(programs: ServerPrograms) -> None:
    """ALTER SYSTEM as printed brings it into force, and its undo leaves what was there."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"fsync": "on", "maintenance_work_mem": "16MB"})
        with cluster.connect() as connection:
            connection.execute("ALTER SYSTEM SET checkpoint_timeout = '2min'")
            # A cluster's statistics may be as old as what it was copied from.
            connection.execute("SELECT pg_stat_reset_shared('wal')")
        reload(cluster)
        before = _all(cluster)
        advice = settings_live(conninfo(cluster, "postgres"), {}, MACHINE)
        # Where somebody can have chosen it, 4 MB of work_mem are within reason.
        assert {line.name for line in advice.lines} >= NAMES - {"work_mem"}
        script = statements(advice)
        _run(cluster, [line for line in script.splitlines() if not line.startswith("--")])
        _restart(cluster)
        assert settings_live(conninfo(cluster, "postgres"), {}, MACHINE).lines == ()
        undo = script.split("-- Undo:\n")[1].splitlines()
        _run(cluster, [line.removeprefix("-- ") for line in undo if line.startswith("-- ALTER")])
        _restart(cluster)
        assert _all(cluster) == before


def _run(cluster: Cluster, script: list[str]) -> None:
    with cluster.connect() as connection:
        for statement in filter(str.strip, script):
            connection.execute(statement.encode())


def _restart(cluster: Cluster) -> None:
    cluster.stop()
    cluster.start({"fsync": "on", "maintenance_work_mem": "16MB"})


def _all(cluster: Cluster) -> dict[str, str]:
    with cluster.connect() as connection:
        return dict(
            connection.execute(
                "SELECT name, reset_val FROM pg_settings WHERE context <> 'internal'"
            ).fetchall()
        )


COSTS = {"vacuum_cost_page_hit": "1", "vacuum_cost_page_miss": "2", "vacuum_cost_page_dirty": "20"}
USAGE = re.compile(r"buffer usage: (\d+) hits, (\d+) (?:misses|reads), (\d+) dirtied")


@pytest.mark.parametrize("dead", [500, 8_000])
def test_what_a_vacuum_costs(programs: ServerPrograms, dead: int) -> None:
    """
    The pages of a VACUUM by arithmetic, beside those that a server counts with an empty cache.

    Dead rows lie anywhere; few leave pages out, and many touch every page.
    """
    with Host(programs) as host:
        cluster = host.cluster("main")
        settings = {"autovacuum": "off", "shared_buffers": "64MB"}
        cluster.start(settings)
        _run(
            cluster,
            [
                "CREATE TABLE t (id int8 PRIMARY KEY, v int8, w text)",
                "CREATE INDEX ON t (v)",
                "INSERT INTO t SELECT i, (i * 7919::int8) % 1000003, repeat('x', 60) "
                "FROM generate_series(1, 80000) i",
                "VACUUM (FREEZE, ANALYZE) t",
                f"DELETE FROM t WHERE id IN (SELECT id FROM t ORDER BY md5(id::text) LIMIT {dead})",
                "CHECKPOINT",
            ],
        )
        cluster.stop()
        cluster.start(settings)
        said: list[str] = []
        with cluster.connect() as connection:
            heap, indexes = connection.execute(
                "SELECT relpages, ARRAY(SELECT ic.relpages FROM pg_index i JOIN pg_class ic "
                "ON ic.oid = i.indexrelid WHERE i.indrelid = 't'::regclass) "
                "FROM pg_class WHERE oid = 't'::regclass"
            ).fetchall()[0]
            connection.add_notice_handler(
                lambda notice: said.append(f"{notice.message_primary}\n{notice.message_detail}")
            )
            connection.execute("VACUUM (VERBOSE, TRUNCATE off, PROCESS_TOAST off) t")
    hits, misses, dirtied = map(int, next(filter(None, map(USAGE.search, said))).groups())
    table = DyingTable(
        dead_per_s=1.0, trigger_rows=dead, heap_pages=heap, index_pages=tuple(indexes)
    )
    work = work_of_one(table, COSTS)
    assert work.pages == pytest.approx(misses, rel=0.03)
    assert work.dirty_pages == pytest.approx(dirtied, rel=0.03)
    assert work.cost == pytest.approx(hits + 2 * misses + 20 * dirtied, rel=0.03)
    assert heap * 8192 > 8 * MIB, "more than VACUUM's ring of buffers holds"
