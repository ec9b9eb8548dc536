"""
Tables whose order is known: loaded in order, churned, streams; and pages of all ranges, counted.
"""

from __future__ import annotations

from typing import Any

import psycopg

_ALL_RANGES = """
WITH placed AS MATERIALIZED (
    SELECT ((ctid::text::point)[0])::int8 AS block,
           row_number() OVER (ORDER BY {order}, ctid) - 1 AS n
    FROM {table}
), counted AS (SELECT max(n) + 1 AS rows FROM placed)
SELECT avg(pages)::float8 FROM (
    SELECT count(DISTINCT block) AS pages
    FROM placed, counted, unnest(ARRAY[0, 137, 291, 433, 571, 713, 877]) begins
    WHERE n >= begins AND n - begins < (rows - begins) / 1000 * 1000
    GROUP BY begins, (n - begins) / 1000) ranges
"""


def counted_pages(connection: psycopg.Connection[Any], table: str, order: str) -> float:
    """Mean distinct pages over ranges of 1,000 rows that begin everywhere, by reading all rows."""
    row = connection.execute(_ALL_RANGES.format(order=order, table=table).encode()).fetchone()
    assert row is not None
    return float(row[0])


def analyze(connection: psycopg.Connection[Any], table: str, *, vacuum: bool = False) -> None:
    """Behind what the session has counted: that would be added to what ANALYZE finds (pgstat)."""
    connection.execute("SELECT pg_stat_force_next_flush()")
    connection.execute("SELECT 1")
    connection.execute(f"{'VACUUM ' if vacuum else ''}ANALYZE {table}".encode())


def load_in_order(connection: psycopg.Connection[Any], rows: int) -> None:
    """The table of the document's churn program, clustered."""
    connection.execute("CREATE TABLE testtab (k int, d text)")
    connection.execute(
        f"INSERT INTO testtab SELECT x, repeat('x', 350) FROM generate_series(1, {rows}) x"
    )
    connection.execute("CREATE INDEX testtabi ON testtab (k)")
    connection.execute("CLUSTER testtab USING testtabi")
    analyze(connection, "testtab", vacuum=True)


def churn(
    connection: psycopg.Connection[Any],
    rows: int,
    rounds: int,
    *,
    begin: int = 0,
    in_order: bool = False,
) -> None:
    """Rounds of it: DELETE of 2 %, VACUUM, INSERT of 2 % with random keys."""
    last = " ORDER BY 1" if in_order else ""
    for number in range(begin, begin + rounds):
        connection.execute(f"SELECT setseed({number / 100})")
        connection.execute("DELETE FROM testtab WHERE random() < 1.0 / 50")
        connection.execute("VACUUM testtab")
        connection.execute(
            f"INSERT INTO testtab SELECT (random() * {rows})::int, repeat('x', 350) "
            f"FROM generate_series(1, {rows // 50}){last}"
        )
    analyze(connection, "testtab")


def load_streams(connection: psycopg.Connection[Any], devices: int, ticks: int) -> None:
    """Ascending streams, interleaved: each tick a row of each device."""
    connection.execute(
        "CREATE TABLE streams (device int, tick int, v text, PRIMARY KEY (device, tick))"
    )
    add_ticks(connection, devices, 1, ticks)
    analyze(connection, "streams", vacuum=True)


def add_ticks(connection: psycopg.Connection[Any], devices: int, first: int, last: int) -> None:
    """Further rows of each device."""
    connection.execute(
        "INSERT INTO streams SELECT d, t, repeat('y', 80) "
        f"FROM generate_series({first}, {last}) t, generate_series(1, {devices}) d ORDER BY t, d"
    )
