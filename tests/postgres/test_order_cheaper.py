"""What `order` foresees of cheaper remedies, beside the same done on a server."""

from __future__ import annotations

from typing import Any

import observed
import psycopg
import pytest
from order_tables import analyze, churn, counted_pages, load_in_order

from pgheadroom.order import order_live
from pgheadroom.order.live import OrderWish
from pgheadroom.order.paying import DAY_S
from pgheadroom.order.values import OrderRemedy
from pgheadroom.servers import Cluster, Host, ServerPrograms

pytestmark = [pytest.mark.contrib, pytest.mark.usefixtures("run_parent")]

ROWS = 40_000
BATCH = 4000


def touched(connection: psycopg.Connection[Any], query: str) -> tuple[str, int, int]:
    """The node that reads the table, buffers that it touched, and lossy pages of a bitmap."""
    row = connection.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {query}".encode()).fetchone()
    assert row is not None
    node = row[0][0]["Plan"]
    while node["Node Type"] == "Aggregate":
        node = node["Plans"][0]
    buffers = node["Shared Hit Blocks"] + node["Shared Read Blocks"]
    return node["Node Type"], buffers, node.get("Lossy Heap Blocks", 0)


def remedies(cluster: Cluster, sorted_day: bool) -> dict[str, OrderRemedy]:
    """What is told of a day on which rows were inserted, so many by one statement."""

    def day(_: float) -> None:
        if sorted_day:
            with observed.session(cluster) as connection:
                grow(connection)
                connection.execute("SELECT pg_stat_force_next_flush()")
                connection.execute("SELECT 1")

    wish = OrderWish(tables=("testtab",), interval_s=30 * DAY_S)
    report = order_live(observed.conninfo(cluster), {}, wish, sleep=day)
    return {one.kind: one for one in report.tables[0].indexes[0].cheaper}


def grow(connection: psycopg.Connection[Any]) -> None:
    """One sorted INSERT of a tenth of the table."""
    connection.execute(
        f"INSERT INTO testtab SELECT (random() * {ROWS})::int, repeat('x', 350) "
        f"FROM generate_series(1, {BATCH}) ORDER BY 1"
    )


@pytest.mark.each
def test_cheaper_remedies(programs: ServerPrograms) -> None:
    """A range of an index-only scan, of BRIN, of sorted INSERTs: each inside what was foreseen."""
    with Host(programs, label="test") as host:
        cluster = host.cluster("order")
        has_statements = observed.start_with_contrib(
            cluster, {"fsync": "off", "autovacuum": "off", "shared_buffers": "64MB"}
        )
        if has_statements:
            observed.load(cluster, "CREATE EXTENSION pg_stat_statements")
        with observed.session(cluster) as connection:
            load_in_order(connection, ROWS)
            churn(connection, ROWS, 5)
            if has_statements:
                connection.execute("SELECT pg_stat_statements_reset()")
            found = remedies(cluster, sorted_day=True)
            assert {"covering_index", "brin", "sorted_insert"} <= found.keys()
            if has_statements:
                least = found["sorted_insert"].pages_per_range
                assert least is not None
                connection.execute("CLUSTER testtab USING testtabi")
                analyze(connection, "testtab", vacuum=True)
                grow(connection)
                truth = counted_pages(connection, "testtab", "k")
                assert least.low <= truth <= least.high
            else:
                assert found["sorted_insert"].pages_per_range is None
            churn(connection, ROWS, 5)
            connection.execute("SET enable_seqscan = off")
            connection.execute("SET max_parallel_workers_per_gather = 0")

            covering = found["covering_index"]
            assert covering.pages_per_range is not None
            assert covering.size_bytes is not None
            connection.execute("ALTER TABLE testtab ADD v bigint DEFAULT 7")
            connection.execute("CREATE INDEX covering ON testtab (k) INCLUDE (v)")
            connection.execute("VACUUM testtab")
            connection.execute("SET enable_bitmapscan = off")
            node, buffers, _ = touched(
                connection, "SELECT sum(v) FROM testtab WHERE k BETWEEN 9000 AND 9900"
            )
            connection.execute("RESET enable_bitmapscan")
            assert node == "Index Only Scan"
            # Beside the leaves a root, and the visibility map's page now and then.
            rows = connection.execute(
                "SELECT count(*), pg_relation_size('covering') FROM testtab "
                "WHERE k BETWEEN 9000 AND 9900"
            ).fetchone()
            assert rows is not None
            leaves = covering.pages_per_range
            assert leaves.low * rows[0] / 1000 - 1 <= buffers <= leaves.high + 3
            assert covering.size_bytes == pytest.approx(rows[1], rel=0.1)

            brin = found["brin"].pages_per_range
            assert brin is not None
            connection.execute("DROP INDEX covering, testtabi")
            connection.execute("CREATE INDEX summary ON testtab USING brin (k)")
            node, _, lossy = touched(
                connection, "SELECT sum(length(d)) FROM testtab WHERE k BETWEEN 9000 AND 9900"
            )
            assert node == "Bitmap Heap Scan"
            assert brin.low <= lossy <= brin.high * 1.01
            assert lossy > 0.9 * brin.mid, "a row of anywhere is in nearly each range of pages"
