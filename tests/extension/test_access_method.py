"""The access method `clustered_heap`: COPY's batches, and index builds beside other sessions."""

from __future__ import annotations

import threading

import psycopg
import pytest

from pgheadroom.clustering import order_and_plan
from pgheadroom.order import live
from pgheadroom.order.live import OrderWish
from pgheadroom.servers import Cluster

Session = psycopg.Connection[tuple[object, ...]]

TABLE = """
CREATE TABLE t (k int, v text) USING clustered_heap WITH (autovacuum_enabled = off);
INSERT INTO t SELECT 10 * g, repeat('x', 360) FROM generate_series(1, 20000) g;
CREATE INDEX t_k ON t (k);
ALTER TABLE t CLUSTER ON t_k;
"""

WAITING = """
CREATE TABLE other (k int);
CREATE FUNCTION waits(k int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF k = 100000 THEN
        PERFORM pg_advisory_xact_lock(1);
        PERFORM count(*) FROM public.other;
    END IF;
    RETURN k;
END $$
"""
"""In the middle of a build an index over it waits for lock 1, and then opens a table."""
ADVISORY = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'advisory'"


def test_copy_is_placed(session: Session) -> None:
    """
    Rows of COPY go to their neighbours, and a batch takes one page for each leaf's latecomers.

    The rows of a batch get their index entries together at its end. A row that asks the index alone
    does not see that the row before it took an empty page: it took one more, 3.65 GB in all.
    """
    session.execute(TABLE)
    found = session.execute("SELECT pages_per_1000 FROM cluster_quality('t')").fetchone()
    assert found is not None
    (fresh,) = found
    assert isinstance(fresh, float)
    with session.cursor().copy("COPY t FROM STDIN") as copy:
        for n in range(4000):
            copy.write_row((n * 7919 % 200_003, "y" * 360))
    after = session.execute(
        "SELECT pages_per_1000, heap_pages, heap_pages_ideal, leaf_count FROM cluster_quality('t')"
    ).fetchone()
    assert after is not None
    placed, pages, ideal, leaves = after
    assert isinstance(leaves, int)
    assert isinstance(placed, float)
    assert isinstance(pages, int)
    assert isinstance(ideal, int)
    assert placed < 1.5 * fresh
    # 73 rows for each leaf, 21 on a page: no leaf has more than one page that is not full.
    assert pages <= ideal + leaves + 5


def test_copy_in_order_is_heaps_own(session: Session) -> None:
    """Ascending COPY fills as many pages as plain heap, which inserts whole batches."""
    session.execute(TABLE)
    session.execute("CREATE TABLE plain (LIKE t)")
    session.execute("INSERT INTO plain SELECT * FROM t")
    for table in ("t", "plain"):
        with session.cursor().copy(f"COPY {table} FROM STDIN") as copy:
            for n in range(5000):
                copy.write_row((300_000 + n, "y" * 360))
    sizes = "SELECT pg_relation_size('t') - pg_relation_size('plain')"
    assert session.execute(sizes).fetchone() == (0,)


def test_built_while_the_relation_cache_is_rebuilt(
    cluster: Cluster, database: str, session: Session
) -> None:
    """
    GRANT in another session in the middle of an index build does not end it.

    heap's functions read such a table by `heap_getnext`, which refuses any routine but heap's
    ("only heap AM is supported"). So it is put in its place while an index is built; the rebuild of
    the cache entry, which GRANT brings about, put ours back, and the build failed.
    """
    session.execute(TABLE)
    session.execute(WAITING)
    for build in ("CREATE INDEX t_waits ON t (waits(k))", "REINDEX INDEX CONCURRENTLY t_waits"):
        errors: list[BaseException] = []

        def run(build: str = build, errors: list[BaseException] = errors) -> None:
            try:
                with cluster.connect(database) as builder:
                    builder.execute(build)
            except psycopg.Error as error:
                errors.append(error)

        with cluster.connect(database) as other:
            other.execute("SELECT pg_advisory_lock(1)")
            thread = threading.Thread(target=run)
            thread.start()
            while session.execute(ADVISORY).fetchone() == (0,) and thread.is_alive():
                pass
            session.execute("GRANT SELECT ON t TO PUBLIC")
            session.execute("REVOKE SELECT ON t FROM PUBLIC")
            other.execute("SELECT pg_advisory_unlock(1)")
            thread.join()
        assert errors == []
    session.execute("SET enable_seqscan = off")
    found = session.execute("SELECT count(*) FROM t WHERE waits(k) > 100000").fetchone()
    assert found == (10_000,)
    session.execute("INSERT INTO t VALUES (5, 'after it')")


@pytest.mark.parametrize(
    "build",
    [
        "CREATE INDEX t_waits ON t (waits(k))",
        "BEGIN; CREATE TEMPORARY TABLE gone (k int PRIMARY KEY) USING clustered_heap;"
        " CREATE TABLE made (k int) USING clustered_heap; INSERT INTO made VALUES (100000);"
        " CREATE INDEX made_waits ON made (waits(k))",
    ],
    ids=["plain", "of a table that is gone with it"],
)
def test_a_session_that_dies_in_a_build(
    cluster: Cluster, database: str, session: Session, build: str
) -> None:
    """
    pg_terminate_backend in the middle of an index build ends that session alone.

    It goes without unwinding: the table stays in the list of those that are read as heap, and is
    given back (freed, if the session had made it) before the last invalidations come, which look
    through the list.
    """
    session.execute(TABLE)
    session.execute(WAITING)
    builder = cluster.connect(database)
    errors: list[psycopg.Error] = []

    def run() -> None:
        try:
            builder.execute(build.encode())
        except psycopg.Error as error:
            errors.append(error)

    session.execute("SELECT pg_advisory_lock(1)")
    thread = threading.Thread(target=run)
    thread.start()
    while session.execute(ADVISORY).fetchone() == (0,) and thread.is_alive():
        pass
    ended = session.execute("SELECT pg_terminate_backend(%s, 60000)", (builder.info.backend_pid,))
    assert ended.fetchone() == (True,)
    thread.join()
    builder.close()
    assert [type(error) for error in errors] == [psycopg.errors.AdminShutdown]
    # A crash of the session would have ended all others, this one too.
    session.execute("SELECT pg_advisory_unlock(1)")
    session.execute("DROP INDEX IF EXISTS t_waits")
    session.execute("CREATE INDEX t_waits ON t (waits(k))")
    session.execute("SET enable_seqscan = off")
    found = session.execute("SELECT count(*) FROM t WHERE waits(k) > 100000").fetchone()
    assert found == (10_000,)


def test_order_looks_at_it(
    cluster: Cluster, database: str, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`order` samples what cluster_quality counts; only CLUSTER is known to put it in order."""
    session.execute(TABLE)
    session.execute("ALTER TABLE t ADD r int")
    session.execute("UPDATE t SET r = hashint4(k)")
    session.execute("CREATE INDEX t_r ON t (r)")
    session.execute("ALTER TABLE t SET WITHOUT CLUSTER")  # half of its pages are empty now
    session.execute("VACUUM ANALYZE t")
    environment = cluster.client_env()
    target = f"host={environment['PGHOST']} port={cluster.port} user=postgres dbname={database}"
    monkeypatch.setattr(live, "_TABLE_S", live._ALL_S)  # a busy machine has time enough
    wish = OrderWish(tables=("t",), pages=12_000, index="t_r")
    report, plan = order_and_plan(target, {}, wish, "cluster")
    (found,) = (one for one in report.tables[0].indexes if one.name == "t_r")
    counted = session.execute("SELECT pages_per_1000 FROM cluster_quality('t', 't_r')").fetchone()
    assert counted is not None
    assert found.ranges > 5
    assert found.pages_per_range.mid == pytest.approx(counted[0], rel=0.1)
    assert [step.tool for step in plan.remedies or ()] == ["CLUSTER"]
    _, plan = order_and_plan(target, {}, wish, "auto")
    assert plan.remedies == ()
    assert any("access method clustered_heap" in note for note in plan.notes)
