"""
The doctor's two sides of bloat: tables, TOAST, B-trees, and what their rewrites leave.
"""

from __future__ import annotations

from doctor_sides import Scenario, a_day, near

from pgheadroom import _core
from pgheadroom.doctor.values import Diagnosis, Finding

_PAGE = 8192
_FILLED = (
    "CREATE TABLE t (id int8 NOT NULL, v char(500) NOT NULL);\n"
    "INSERT INTO t SELECT i, 'v' FROM generate_series(1, 42000) i;\n"
)
_TOASTED = (
    "CREATE TABLE t (id int8 PRIMARY KEY, v text NOT NULL);\n"
    "ALTER TABLE t ALTER COLUMN v SET STORAGE EXTERNAL;\n"
    "INSERT INTO t SELECT i, repeat(md5(i::text), 3120) FROM generate_series(1, 220) i;\n"
)
_KEYS = (
    "CREATE TABLE t (v text NOT NULL, n int8 NOT NULL);\n"
    "INSERT INTO t SELECT repeat(md5(i::text), 6), i FROM generate_series(1, 85000) i;\n"
    "CREATE INDEX t_v ON t (v);\n"
)


def _ended(share: str) -> str:
    return f"DELETE FROM t WHERE {share};\nVACUUM t;\nANALYZE t;\n"


def table_right(finding: Finding, _: Diagnosis) -> None:
    # Rows of one length, none NULL: the pages of a copy are exact.
    after = _core.heap_pages(16_800, _core.heap_tuple_bytes([("int8", 8), ("text", 500)]), 100)
    before = _core.heap_pages(42_000, _core.heap_tuple_bytes([("int8", 8), ("text", 500)]), 100)
    given = (before - after) * _PAGE
    assert finding.numbers["size_bytes"] == before * _PAGE
    assert finding.numbers["given_back_bytes_low"] == given
    assert finding.numbers["given_back_bytes_high"] == given
    assert finding.price.amount == given
    assert finding.remedy.sql == ('VACUUM (FULL, ANALYZE) "public"."t"',)
    assert str(finding.remedy.lock).startswith("ACCESS EXCLUSIVE")


def toast_right(finding: Finding, _: Diagnosis) -> None:
    # 99,840 bytes each: 50 chunks of 1,996 and one of 40, four on a page.
    size, chunks = finding.numbers["size_bytes"], 88 * 51
    assert isinstance(size, int)
    low = size - chunks / 4 * _PAGE
    high = size - (chunks - 88) / 4 * _PAGE
    near(finding.numbers["given_back_bytes_low"], low, within=0.001)
    near(finding.numbers["given_back_bytes_high"], high, within=0.001)


def index_right(finding: Finding, _: Diagnosis) -> None:
    # 192 bytes of text with a header of 4: entries of 208.
    built = _core.btree_build_pages(34_000, 208) * _PAGE
    size = finding.numbers["size_bytes"]
    assert isinstance(size, int)
    low, high = (finding.numbers[f"given_back_bytes_{end}"] for end in ("low", "high"))
    assert isinstance(low, int)
    assert isinstance(high, int)
    assert low <= size - built <= high
    near(low, size - built, within=0.01)
    near(high, size - built, within=0.03)  # ANALYZE has not read all: some may have one key
    assert finding.remedy.sql == ('REINDEX INDEX CONCURRENTLY "public"."t_v"',)


def rewritten_right(finding: Finding, diagnosis: Diagnosis) -> None:
    # 19,968 bytes are ten chunks of 1,996 and one of 8.
    assert finding.numbers["n_tup_upd"] == 100
    assert finding.numbers["chunks"] == 1100
    near(finding.price.amount, a_day(1100 * 1996, diagnosis))


BLOAT = (
    Scenario(
        rule="toast-rewritten",
        about="t",
        severity="info",
        common="CREATE TABLE t (n int NOT NULL, is_other bool NOT NULL, v text NOT NULL);\n"
        "ALTER TABLE t ALTER COLUMN v SET STORAGE EXTERNAL;\n",
        fires="INSERT INTO t SELECT i, true, repeat(md5(i::text), 624)"
        " FROM generate_series(1, 100) i;\n",
        # The same update, which leaves the value as it is: its chunks stay.
        silent="INSERT INTO t SELECT i, false, repeat(md5(i::text), 624)"
        " FROM generate_series(1, 100) i;\n",
        work="UPDATE t SET n = n + 1, v = CASE WHEN is_other THEN reverse(v) ELSE v END;\n",
        check=rewritten_right,
    ),
    Scenario(
        rule="bloated-table",
        about="t",
        severity="info",
        common=_FILLED,
        fires=_ended("id % 5 < 3"),
        silent=_ended("id % 5 < 1"),
        check=table_right,
    ),
    Scenario(
        rule="bloated-table",
        name="fillfactor",
        about="t",
        severity="info",
        common=_FILLED + _ended("id % 5 < 3"),
        # What a copy would leave free again is not given back.
        silent="ALTER TABLE t SET (fillfactor = 40);\n",
        check=table_right,
    ),
    Scenario(
        rule="bloated-table",
        name="toast",
        about="TOAST of t",
        severity="info",
        common=_TOASTED,
        fires=_ended("id % 5 < 3"),
        silent=_ended("id % 5 < 1"),
        check=toast_right,
    ),
    Scenario(
        rule="bloated-index",
        about="t_v",
        severity="info",
        common=_KEYS,
        fires=_ended("n % 5 < 3"),
        silent=_ended("n % 5 < 1"),
        check=index_right,
    ),
    Scenario(
        rule="bloated-index",
        name="statistics",
        about="t_v",
        severity="info",
        common=_KEYS + _ended("n % 5 < 3"),
        # Twelve thousand rows of which ANALYZE knows nothing: not told, but named.
        silent="UPDATE t SET v = v || 'x' WHERE n % 5 = 3;\n",
        check=index_right,
    ),
)
