"""
The doctor's two sides of order: the same rows in another order, or the same reads that miss it.
"""

from __future__ import annotations

from doctor_sides import DAY_S, INTERVAL_S, Scenario, near

from pgheadroom.doctor.values import Diagnosis, Finding

ROWS = 9_100
SCANS = 8
PER_PAGE = 7
"""24 + 4 + 4 + 1,004 bytes, on a multiple of 8, and a line pointer: 1,044."""
# VACUUM takes nothing for visible to all whose commit is not on disk yet.
MAKE = "SET synchronous_commit = on;\nCREATE TABLE t (k int, v int, pad text);\n"
INDEX = "CREATE INDEX t_k ON t (k);\nVACUUM ANALYZE t;\n"
BOTH = "sum(length(pad)), sum(v)"
BY_INDEX = "SET enable_seqscan = off;\nSET enable_bitmapscan = off;\n"


def ranges(what: str = BOTH, more: str = "999") -> str:
    """Eight, one behind the other."""
    return "".join(
        f"SELECT {what} FROM t WHERE k BETWEEN {begin} AND {begin} + {more};\n"
        for begin in range(1, 1000 * SCANS, 1000)
    )


def rows(order: str, count: int = ROWS) -> str:
    return (
        f"INSERT INTO t SELECT i, i, repeat('x', 1000) FROM generate_series(1, {count}) i "
        f"ORDER BY {order};\n"
    )


AT_RANDOM = rows("hashint4(i)")


def _order_right(finding: Finding, _diagnosis: Diagnosis) -> None:
    numbers = finding.numbers
    # A page has 7 of 9,100 rows: a range of 1,000 leaves out one with (1 - 1000/9100)^7.
    at_random = ROWS / PER_PAGE * (1 - (1 - 1000 / ROWS) ** PER_PAGE)
    fresh = 1 + 999 / PER_PAGE
    near(numbers["pages_per_range"], at_random, within=0.05)
    near(numbers["pages_fresh"], fresh, within=0.01)
    scans, each = numbers["scans"], numbers["rows_per_scan"]
    assert isinstance(scans, int)
    assert isinstance(each, float)
    # The planner looks up an end of the index now and then (get_actual_variable_range).
    assert SCANS <= scans <= 2 * SCANS
    near(scans * each, 1000 * SCANS, within=0.01)
    read = numbers["read_frac"]
    assert isinstance(read, float)
    assert 0.5 < read <= 1, "the cache has two fifths of the table's pages"
    saved = SCANS * (at_random - fresh) * read * 8192
    near(finding.price.amount, saved * DAY_S / INTERVAL_S, within=0.15)
    assert finding.remedy.sql == ('CLUSTER "public"."t" USING "t_k"', 'ANALYZE "public"."t"')


ORDER = (
    Scenario(
        rule="rows-out-of-order",
        about="t",
        severity="info",
        common=MAKE,
        fires=AT_RANDOM + INDEX,
        silent=rows("i") + INDEX,
        work=BY_INDEX + ranges(),
        check=_order_right,
    ),
    Scenario(
        # What is in the index is not looked up in the table, wherever its rows lie.
        rule="rows-out-of-order",
        name="index-only",
        about="t",
        severity="info",
        common=MAKE + AT_RANDOM,
        fires=INDEX,
        silent=INDEX.replace("(k)", "(k) INCLUDE (v)"),
        work=BY_INDEX + ranges("sum(v)"),
    ),
    Scenario(
        # Single rows are on one page each in any order. By bitmaps, which count otherwise.
        rule="rows-out-of-order",
        name="single-rows",
        about="t",
        severity="info",
        common=MAKE + AT_RANDOM + INDEX,
        fires="CREATE TABLE width AS SELECT 999 AS rows;\n",
        silent="CREATE TABLE width AS SELECT 0 AS rows;\n",
        work="SET enable_seqscan = off;\nSET enable_indexscan = off;\n"
        + ranges(more="(SELECT rows FROM width)"),
    ),
)
