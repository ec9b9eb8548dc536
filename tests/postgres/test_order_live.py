"""`order` on real servers: pages of a range beside all ranges counted, access, what is not read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import observed
import psycopg
import pytest
from order_tables import churn, counted_pages, load_in_order, load_streams

from pgheadroom.errors import InputError
from pgheadroom.order import IndexOrder, OrderReport, live, order_live
from pgheadroom.order.live import OrderWish
from pgheadroom.servers import Cluster, Host, ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

ROWS = 30_000
LOOKS = 10
HELD_MIN = 6
"""Of intervals of 90 %, ten looks at one table: fewer hold by chance once in a thousand."""
SETTINGS = {"fsync": "off", "autovacuum": "off", "shared_buffers": "64MB"}


@pytest.fixture
def cluster(programs: ServerPrograms) -> Iterator[Cluster]:
    with Host(programs, label="test") as host:
        made = host.cluster("order")
        made.start(SETTINGS)
        yield made


@pytest.fixture(autouse=True)
def _time_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine with other work ten seconds may be over; no test here is about them."""
    monkeypatch.setattr(live, "_TABLE_S", live._ALL_S)


def look(cluster: Cluster, wish: OrderWish, user: str = "postgres") -> OrderReport:
    return order_live(observed.conninfo(cluster, user), {}, wish)


def index_of(report: OrderReport, name: str) -> IndexOrder:
    (found,) = [index for table in report.tables for index in table.indexes if index.name == name]
    return found


def holds(cluster: Cluster, table: str, index: str, truth: float) -> int:
    """How many of ten looks hold what was counted; their middles are near it."""
    found = [
        index_of(look(cluster, OrderWish(tables=(table,), seed=seed)), index)
        for seed in range(LOOKS)
    ]
    mids = [one.pages_per_range.mid for one in found]
    assert sum(mids) / LOOKS == pytest.approx(truth, rel=0.04)
    ends = [one.pages_per_range for one in found]
    return sum(one.low <= truth <= one.high for one in ends)


def test_pages_of_ranges_are_those_of_all_ranges(cluster: Cluster) -> None:
    """Fresh, churned, and streams: as counted over the whole table; fresh is exact by layout."""
    with observed.session(cluster) as connection:
        load_in_order(connection, ROWS)
        truth = counted_pages(connection, "testtab", "k")
        fresh = index_of(look(cluster, OrderWish(tables=("testtab",))), "testtabi").pages_fresh
        assert (fresh.low, fresh.high) == (fresh.mid, fresh.mid)
        assert truth == pytest.approx(fresh.mid, rel=0.005)
        churn(connection, ROWS, 4)
        truth = counted_pages(connection, "testtab", "k")
        assert truth > 2 * fresh.mid
        assert holds(cluster, "testtab", "testtabi", truth) >= HELD_MIN
        load_streams(connection, 300, 100)
        truth = counted_pages(connection, "streams", "device, tick")
        assert holds(cluster, "streams", "streams_pkey", truth) >= HELD_MIN
        report = look(cluster, OrderWish())
    assert [table.name for table in report.tables] == ["testtab", "streams"], "by size"
    assert all(0 < table.pages_read <= 1000 for table in report.tables)
    pkey = index_of(report, "streams_pkey")
    assert pkey.correlation is not None
    assert abs(pkey.correlation) < 0.1, "which says nothing of its ranges"


KINDS = """
CREATE TYPE mood AS ENUM ('bad', 'so', 'good');
CREATE DOMAIN whole AS int;
CREATE TABLE "Odd ""kinds"" t" (id whole PRIMARY KEY, "T""x'\\" text, m mood, at timestamptz,
    n int, f float8, pad text);
INSERT INTO "Odd ""kinds"" t" SELECT x, 'it''s \\ "' || x % 97, (enum_range(NULL::mood))[1 + x % 3],
    '2026-01-01'::timestamptz + x * interval '7 s', nullif(x % 1000, 5), sqrt(x), repeat('z', 60)
  FROM generate_series(1, 20000) x;
CREATE INDEX by_text ON "Odd ""kinds"" t" ("T""x'\\", id);
CREATE INDEX by_mood ON "Odd ""kinds"" t" (m, id);
CREATE INDEX by_time ON "Odd ""kinds"" t" (at DESC);
CREATE INDEX by_two ON "Odd ""kinds"" t" (n DESC, id DESC);
CREATE INDEX by_mixed ON "Odd ""kinds"" t" (id, n DESC);
CREATE INDEX by_float ON "Odd ""kinds"" t" (f);
CREATE INDEX by_expression ON "Odd ""kinds"" t" (lower(pad));
CREATE INDEX by_part ON "Odd ""kinds"" t" (n) WHERE n > 5;
CREATE INDEX by_pattern ON "Odd ""kinds"" t" ("T""x'\\" text_pattern_ops);
CREATE INDEX by_collation ON "Odd ""kinds"" t" (pad COLLATE "C");
CREATE INDEX nulls_first ON "Odd ""kinds"" t" (n NULLS FIRST);
VACUUM ANALYZE "Odd ""kinds"" t"
"""


def test_keys_of_many_kinds(cluster: Cluster) -> None:
    """What has a plain order is read whatever its type and name; the rest is named, with why."""
    with observed.session(cluster) as connection:
        observed.load(cluster, KINDS)
        found = {
            index.name: index for index in look(cluster, OrderWish(pages=20_000)).tables[0].indexes
        }
        orders = {
            "by_text": '"T""x\'\\", id',
            "by_mood": "m, id",
            "by_time": "at",
            "by_two": "n, id",
            "by_mixed": "id",
            "by_float": "f",
        }
        for name, order in orders.items():
            truth = counted_pages(connection, '"Odd ""kinds"" t"', order)
            now = found[name].pages_per_range
            assert found[name].ranges >= 10, f"{name}: {found[name].not_sampled}"
            assert now.mid == pytest.approx(truth, rel=0.06), name
    whys = {name: one.not_sampled for name, one in found.items() if one.evidence == "bounds"}
    assert whys == {
        "by_expression": "the index begins with an expression",
        "by_part": "the index is partial",
        "by_pattern": "the index has an operator class that is not the default of its type",
        "by_collation": "the index has another collation than its column",
        "nulls_first": "the index puts NULLs where an ORDER BY of its direction does not",
    }
    for name in whys:
        one = found[name]
        assert one.pages_per_range.low <= one.pages_fresh.low < one.pages_random
        assert one.pages_per_range.high >= one.pages_random


ROLES = """
CREATE ROLE monitor LOGIN; GRANT pg_monitor TO monitor;
CREATE ROLE reader LOGIN; GRANT pg_read_all_data TO reader;
CREATE TABLE guarded (id int PRIMARY KEY, pad text);
INSERT INTO guarded SELECT x, repeat('x', 100) FROM generate_series(1, 20000) x;
ALTER TABLE guarded ENABLE ROW LEVEL SECURITY; ANALYZE guarded
"""


@pytest.mark.each
def test_access(cluster: Cluster) -> None:
    """A role reads what it may; what it may not is named, with what would help."""
    observed.load(cluster, ROLES)
    with observed.session(cluster) as connection:
        load_in_order(connection, 20_000)
        monitor = look(cluster, OrderWish(), "monitor")
        one = index_of(monitor, "testtabi")
        assert (one.evidence, one.correlation) == ("bounds", None)
        assert one.not_sampled == "the role may not SELECT from the table"
        assert any("without SELECT" in line for line in monitor.missing)
        assert "GRANT pg_read_all_data TO monitor;" in monitor.would_help
        reader = look(cluster, OrderWish(), "reader")
        assert index_of(reader, "testtabi").evidence == "sampled"
        guarded = index_of(reader, "guarded_pkey")
        assert guarded.not_sampled == "row security hides rows of the table from the role"
        assert index_of(look(cluster, OrderWish()), "guarded_pkey").evidence == "sampled"

        with connection.transaction():
            connection.execute("LOCK TABLE testtab")
            held = look(cluster, OrderWish())
        assert [table.name for table in held.tables] == ["guarded"]
        assert any(line == "testtab: somebody holds it" for line in held.missing)
        with pytest.raises(InputError, match="no table 'nowhere'"):
            look(cluster, OrderWish(tables=("nowhere",)))


@pytest.mark.each
def test_without_samples_no_row_is_read(cluster: Cluster) -> None:
    """
    Statistics and counters alone: not a page of a table or an index is fetched.

    What is read with samples is not counted where the role may say so: after three looks a plan
    had clustered a table by an index that `order` alone had read ranges of.
    """
    observed.load(cluster, ROLES)
    with observed.session(cluster) as connection:
        load_in_order(connection, 20_000)
        connection.execute("SELECT pg_stat_force_next_flush()")
        before = fetched(connection)
        # A session tells what it did before it is gone from there.
        there = "FROM pg_stat_activity WHERE application_name = 'pgheadroom order'"

        def counted_after(wish: OrderWish, role: str) -> tuple[OrderReport, int]:
            report = look(cluster, wish, role)
            observed.wait_until(cluster, f"SELECT count(*) = 0 {there}", "its session is gone")
            return report, fetched(connection)

        blind, after = counted_after(OrderWish(samples=False), "reader")
        assert after == before > 0
        sampled, after = counted_after(OrderWish(), "postgres")
        assert after == before
        assert index_of(sampled, "testtabi").ranges > 3
        assert counted_after(OrderWish(), "reader")[1] > before
    assert {index.evidence for table in blind.tables for index in table.indexes} == {"bounds"}


def fetched(connection: psycopg.Connection[Any]) -> int:
    row = connection.execute(
        "SELECT sum(pg_stat_get_blocks_fetched(oid))::int8 FROM pg_class WHERE relname IN "
        "('testtab', 'guarded', 'testtabi', 'guarded_pkey')"
    ).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.contrib
@pytest.mark.each
def test_statements_that_read_ranges(programs: ServerPrograms) -> None:
    """They are found by their text, with what they touched; others are not."""
    with Host(programs, label="test") as host:
        cluster = host.cluster("order")
        if not observed.start_with_contrib(cluster, SETTINGS):
            with observed.session(cluster) as connection:
                load_in_order(connection, 20_000)
            report = look(cluster, OrderWish())
            assert any("pg_stat_statements" in line for line in report.missing)
            return
        observed.load(cluster, "CREATE EXTENSION pg_stat_statements")
        with observed.session(cluster) as connection:
            load_in_order(connection, 20_000)
            connection.execute("SELECT pg_stat_statements_reset()")
            connection.execute("SET enable_bitmapscan = off; SET enable_seqscan = off")
            for start in (10, 2000, 9000, 12000):
                connection.execute(
                    f"SELECT sum(length(d)) FROM testtab WHERE k BETWEEN {start} AND {start + 999}"
                )
                connection.execute(f"SELECT d FROM testtab WHERE k = {start}")
            connection.execute("SELECT * FROM testtab t WHERE t.k > 7 ORDER BY t.k LIMIT 20")
        index = index_of(look(cluster, OrderWish(samples=False)), "testtabi")
    texts = [one.text for one in index.statements]
    assert texts == [
        "SELECT sum(length(d)) FROM testtab WHERE k BETWEEN $1 AND $2",
        "SELECT * FROM testtab t WHERE t.k > $1 ORDER BY t.k LIMIT $2",
    ]
    first = index.statements[0]
    assert (first.calls, first.rows_per_call, first.reads_by) == (4, 1.0, ("k",))
    # 48.6 pages of the table and 3 to 5 of the index.
    assert 50 <= first.blocks_per_call <= 60
