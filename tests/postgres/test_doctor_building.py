"""An index that is being built is no invalid one; who else holds its table does not hide one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from doctor_sides import conninfo, run
from test_doctor_rules import asked, until

from pgheadroom.doctor import examine, rule_named
from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.sources.session import read_only_session

pytestmark = [pytest.mark.usefixtures("run_parent"), pytest.mark.each]

INVALID = "SELECT count(*) FROM pg_index WHERE NOT indisvalid"
BUILDING = "SELECT count(*) FROM pg_stat_progress_create_index"


def told(cluster: Cluster, user: str = "postgres") -> dict[str, tuple[str, ...]]:
    with read_only_session(conninfo(cluster, "postgres", user), {}) as connection:
        diagnosis = examine(connection, [rule_named("invalid-index")])
    assert not [each for each in diagnosis.blind if each.cut_off]
    return {each.object: each.remedy.sql for each in diagnosis.findings}


@contextmanager
def building(cluster: Cluster, statement: str, invalid: int) -> Iterator[None]:
    """While the statement waits for a transaction of ours; so many indexes are invalid by then."""
    with cluster.connect(autocommit=False) as holder:
        holder.execute("INSERT INTO t VALUES (-1, -1)")
        thread = threading.Thread(target=run, args=(cluster, "postgres", statement))
        thread.start()
        try:
            until(lambda: asked(cluster, INVALID) == invalid, "the build waits")
            yield
        finally:
            holder.rollback()
            thread.join()


def test_being_built(programs: ServerPrograms) -> None:
    """CREATE and REINDEX CONCURRENTLY at work are silent; cancelled, what they left is told."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        run(
            cluster,
            "postgres",
            "CREATE ROLE nobody LOGIN;\nCREATE TABLE t (a int, b int);\n"
            "CREATE TABLE other (a int);\nCREATE INDEX other_a ON other (a);\n"
            "INSERT INTO t SELECT i, i FROM generate_series(1, 100) i;\n"
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'other_a'::regclass;\n",
        )
        only_other = {"other_a": ('REINDEX INDEX CONCURRENTLY "public"."other_a"',)}
        with building(cluster, "CREATE INDEX CONCURRENTLY t_a ON t (a)", 2):
            assert told(cluster) == only_other
            assert told(cluster, "nobody") == only_other
        run(cluster, "postgres", "CREATE INDEX t_b ON t (b)")
        with building(cluster, "REINDEX TABLE CONCURRENTLY t", 3):
            assert told(cluster) == only_other
            assert told(cluster, "nobody") == only_other
        with building(cluster, "!REINDEX TABLE CONCURRENTLY t", 3):
            asked(
                cluster,
                "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query ~ '^REINDEX'",
            )
            until(lambda: asked(cluster, BUILDING) == 0, "it is cancelled")
        assert told(cluster) == {
            **only_other,
            "t_a_ccnew": ('DROP INDEX CONCURRENTLY "public"."t_a_ccnew"',),
            "t_b_ccnew": ('DROP INDEX CONCURRENTLY "public"."t_b_ccnew"',),
        }
        # A lock of the same strength that builds nothing.
        with cluster.connect(autocommit=False) as holder:
            holder.execute("ALTER TABLE other ALTER a SET STATISTICS 100")
            assert "other_a" in told(cluster)
            assert "other_a" in told(cluster, "nobody")
            holder.rollback()
