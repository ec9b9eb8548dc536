"""The statement that writes most of the log, where pg_stat_statements counts them."""

from __future__ import annotations

import pytest
from doctor_order import AT_RANDOM, BY_INDEX, INDEX, MAKE, ranges
from doctor_sides import DAY_S, examined, near, run
from test_doctor_rules import asked

from pgheadroom.doctor import Diagnosis
from pgheadroom.servers import Cluster, Host, ServerPrograms

pytestmark = [pytest.mark.usefixtures("run_parent"), pytest.mark.contrib]

CHANGE = "UPDATE t SET v = v + 1 WHERE id <= 10000"
OTHER = (
    "INSERT INTO u SELECT i, repeat('x', 2000) FROM generate_series(1, 3000) i;\n"
    "INSERT INTO u (w, id) SELECT repeat('x', 2000), i FROM generate_series(1, 3000) i"
)
AHEAD_S = 4000.0


def looked(cluster: Cluster) -> Diagnosis:
    return examined(cluster, "postgres", "dear-statement", ahead_s=AHEAD_S)


def test_the_dearest_statement(programs: ServerPrograms) -> None:
    """Told with what was counted of it; silent when young, and beside two that write as much."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        available = "SELECT count(*) FROM pg_available_extensions WHERE name = '{}'"
        if not asked(cluster, available.format("pg_stat_statements")):
            pytest.skip("the server has no pg_stat_statements")
        run(cluster, "postgres", "CREATE EXTENSION pg_stat_statements")
        # Not loaded at the start it would fail: nothing is asked.
        assert (looked(cluster).findings, looked(cluster).blind) == ((), ())
        cluster.stop()
        cluster.start(
            {
                "autovacuum": "off",
                "shared_preload_libraries": "pg_stat_statements",
                "shared_buffers": "4MB",
            }
        )
        run(
            cluster,
            "postgres",
            "CREATE TABLE t (id int PRIMARY KEY, v int, w text);\n"
            "CREATE TABLE u (id int, w text);\n"
            "INSERT INTO t SELECT i, 0, repeat('x', 1000) FROM generate_series(1, 10000) i;\n"
            "SELECT pg_stat_statements_reset();\n" + f"{CHANGE};\n" * 8,
        )
        (found,) = looked(cluster).findings
        counted = asked(
            cluster,
            "SELECT sum(wal_bytes)::float8 FROM pg_stat_statements WHERE query LIKE 'UPDATE t%'",
        )
        assert found.numbers["wal_bytes"] == counted
        assert (found.numbers["calls"], found.numbers["rows"]) == (8, 80_000)
        assert "UPDATE t SET v = v + $1" in found.text
        assert "8 calls" in found.text
        near(found.price.amount, counted * DAY_S / AHEAD_S, within=0.02)
        young = examined(cluster, "postgres", "dear-statement")
        assert young.findings == ()
        assert "reaches back" in young.blind[0].why
        before = float(counted)
        while asked(cluster, OTHERS) < before:
            run(cluster, "postgres", OTHER)
        assert looked(cluster).findings == ()
        _ranges_are_named(cluster)


def _ranges_are_named(cluster: Cluster) -> None:
    """`rows-out-of-order` says which statements read the ranges."""
    run(cluster, "postgres", "DROP TABLE t;\n" + MAKE + AT_RANDOM + INDEX)
    (found,) = examined(
        cluster,
        "postgres",
        "rows-out-of-order",
        work=lambda: run(cluster, "postgres", BY_INDEX + ranges()),
    ).findings
    assert "(SELECT sum(length(pad)), sum(v) FROM t WHERE k BETWEEN $1 AND $2" in found.text


OTHERS = (
    "SELECT coalesce(sum(wal_bytes), 0)::float8 FROM pg_stat_statements WHERE query ~ '^INSERT'"
)
