"""Settings of shared memory on real servers: sizes that are foretold, buffers that were too few."""

from __future__ import annotations

import math

import pytest
from doctor_sides import conninfo, run
from test_doctor_rules import until
from test_settings_fragment import COMPLAINTS

from pgheadroom.report.settings import fragment
from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.settings import ServerMachine, SettingsAdvice, settings_for, settings_live
from pgheadroom.settings.arithmetic import GIB, MIB
from pgheadroom.settings.live import Asking
from pgheadroom.sources.session import read_only_session

pytestmark = [pytest.mark.usefixtures("run_parent"), pytest.mark.each]

MACHINES = (
    ServerMachine(memory_bytes=4 * GIB, cores=4, disk="ssd", connections=300, workload="oltp"),
    ServerMachine(memory_bytes=16 * GIB, cores=64, disk="ssd", connections=900, workload="mixed"),
)
SLACK_FRAC = 0.02


def reserved(advice: SettingsAdvice) -> int:
    """The number of huge pages that is told."""
    (said,) = [each for each in advice.remarks if each.startswith("Huge pages")]
    return int(said.split("vm.nr_hugepages = ")[1].split(" ")[0])


def shown(cluster: Cluster, name: str) -> str:
    with cluster.connect() as connection:
        row = connection.execute("SELECT current_setting(%s)", (name,)).fetchone()
    assert row is not None
    return str(row[0])


@pytest.mark.parametrize("machine", MACHINES, ids=("small", "large"))
def test_huge_pages_that_it_needs(programs: ServerPrograms, machine: ServerMachine) -> None:
    """
    The server starts with the fragment, and asks for as many pages as were foretold or 2 % fewer.

    Foretold from the version's defaults, and from another server's settings; the server itself then
    has what is told, or has the pages.
    """
    advice = settings_for(machine, programs.version.major)
    with Host(programs) as host:
        before = host.cluster("before")
        before.start({"shared_buffers": "300MB", "max_connections": "50"})
        moved = reserved(settings_live(conninfo(before, "postgres"), {}, machine))
        before.stop("immediate")
        cluster = host.cluster("main")
        with (cluster.data_dir / "postgresql.conf").open("a") as file:
            file.write(fragment(advice))
        cluster.start({"fsync": "on"})
        pages = int(shown(cluster, "shared_memory_size_in_huge_pages"))
        for told in (reserved(advice), moved):
            assert pages <= told <= math.ceil(pages * (1 + SLACK_FRAC))
        again = settings_live(conninfo(cluster, "postgres"), {}, machine)
        assert again.lines == ()
        if programs.version.major < 17 or shown(cluster, "huge_pages_status") == "off":
            assert reserved(again) == pages
        assert [line for line in cluster.log_tail(1000) if COMPLAINTS.search(line)] == []


def test_buffers_of_the_log(programs: ServerPrograms) -> None:
    """Found full again and again they are told more; so they are set below their own size."""
    machine = ServerMachine(memory_bytes=1 * GIB)
    with Host(programs) as host:
        cluster = host.cluster("main")
        settings = {"autovacuum": "off", "shared_buffers": "256MB", "max_wal_size": "4GB"}
        cluster.start({**settings, "wal_buffers": "64kB", "synchronous_commit": "off"})
        run(cluster, "postgres", "CREATE TABLE t (v text)")
        with read_only_session(conninfo(cluster, "postgres"), {}) as connection:
            asking = Asking(connection, machine)
            asking.start()
            run(
                cluster,
                "postgres",
                "INSERT INTO t SELECT repeat('x', 1000) FROM generate_series(1, 60000)",
            )
            asking.reading.ahead_s = 600.0
            loaded = asking.answer(asking.counted())
        (line,) = [each for each in loaded.lines if each.name == "wal_buffers"]
        assert line.basis == "measured"
        assert line.value == "32MB"  # four times what it has by itself
        quiet = settings_live(conninfo(cluster, "postgres"), {}, machine)
        assert ("wal_buffers", "-1") in [(each.name, each.value) for each in quiet.lines]
        cluster.stop()
        cluster.start({**settings, "wal_buffers": line.value})
        with read_only_session(conninfo(cluster, "postgres"), {}) as connection:
            asking = Asking(connection, machine)
            asking.start()
            run(cluster, "postgres", "INSERT INTO t SELECT 'x' FROM generate_series(1, 10)")
            asking.reading.ahead_s = 600.0
            after = asking.answer(asking.counted())
        assert "wal_buffers" not in [each.name for each in after.lines]
        assert "wal_buffers" in [each.name for each in after.kept]


def test_huge_pages_switched_off(programs: ServerPrograms) -> None:
    """Off where page tables take much it is a line, on a small server none."""
    machine = ServerMachine(memory_bytes=4 * GIB, connections=300)
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"huge_pages": "off"})
        lines = {
            each.name: each.value
            for each in settings_live(conninfo(cluster, "postgres"), {}, machine).lines
        }
        small = ServerMachine(memory_bytes=512 * MIB)
        fewer = settings_live(conninfo(cluster, "postgres"), {}, small)
        assert lines["huge_pages"] == "try"
        assert "huge_pages" in {each.name for each in fewer.kept}
        assert [each for each in fewer.remarks if "Huge" in each] == []


@pytest.mark.pg(">= 19")
def test_parallel_autovacuum(programs: ServerPrograms) -> None:
    """As many helpers as are told come, by that setting alone: an index each."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        settings = {"autovacuum_naptime": "1s", "log_autovacuum_min_duration": "0"}
        cluster.start({**settings, "autovacuum_max_parallel_workers": "2"})
        run(
            cluster,
            "postgres",
            "CREATE TABLE t (a int, b int, c int) WITH (autovacuum_vacuum_threshold = 1,"
            " autovacuum_vacuum_scale_factor = 0);\n"
            "INSERT INTO t SELECT i, i, i FROM generate_series(1, 60000) i;\n"
            "CREATE INDEX t_a ON t (a);\nCREATE INDEX t_b ON t (b);\nCREATE INDEX t_c ON t (c);\n"
            "UPDATE t SET a = -a, b = -b WHERE a % 20 = 0;\n",
        )
        until(
            lambda: "2 planned, 2 launched" in cluster.log_path.read_text(),
            "autovacuum has vacuumed three indexes side by side",
        )
