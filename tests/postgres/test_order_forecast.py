"""`order` foresees how order decays, and when clustering pays: beside what then happens."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import observed
import psycopg
import pytest
from order_tables import add_ticks, analyze, churn, counted_pages, load_in_order, load_streams

from pgheadroom.order import IndexOrder, order_live
from pgheadroom.order.live import OrderWish
from pgheadroom.order.paying import DAY_S
from pgheadroom.servers import Cluster, Host, ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

ROWS = 30_000
SCANS = 14
Work = Callable[[psycopg.Connection[Any]], None]


@pytest.fixture
def cluster(programs: ServerPrograms) -> Iterator[Cluster]:
    with Host(programs, label="test") as host:
        made = host.cluster("order")
        made.start({"fsync": "off", "autovacuum": "off", "shared_buffers": "64MB"})
        yield made


def after_a_day(cluster: Cluster, table: str, work: Work, seed: int = 1) -> IndexOrder:
    """What `order` says of a table's first index, where one piece of work is a day's."""

    def day(_: float) -> None:
        with observed.session(cluster) as connection:
            work(connection)
            connection.execute("SELECT pg_stat_force_next_flush()")
            connection.execute("SELECT 1")

    wish = OrderWish(tables=(table,), interval_s=DAY_S, seed=seed)
    report = order_live(observed.conninfo(cluster), {}, wish, sleep=day)
    return report.tables[0].indexes[0]


def nothing(_: psycopg.Connection[Any]) -> None:
    """A day without work."""


def test_rounds_of_churn(cluster: Cluster) -> None:
    """Seven further rounds of the document's program end inside the interval."""
    number = iter(range(100))

    def one(connection: psycopg.Connection[Any]) -> None:
        connection.execute("SET enable_seqscan = off; SET enable_bitmapscan = off")
        for start in range(0, SCANS * 2000, 2000):
            connection.execute(
                f"SELECT count(d) FROM testtab WHERE k BETWEEN {start} AND {start + 499}"
            )
        churn(connection, ROWS, 1, begin=next(number))

    with observed.session(cluster) as connection:
        load_in_order(connection, ROWS)
        fresh = after_a_day(cluster, "testtab", one)
        assert fresh.forecast is not None
        assert fresh.forecast.points[1].pages_per_range.high > 150, "if rows go anywhere"
        for _ in range(2):
            one(connection)
        look = after_a_day(cluster, "testtab", one)
        at = [counted_pages(connection, "testtab", "k")]
        for _ in range(7):
            one(connection)
        at.append(counted_pages(connection, "testtab", "k"))
    assert look.forecast is not None
    assert look.forecast.is_place_known
    week = look.forecast.points[1].pages_per_range
    assert week.mid == pytest.approx(at[1], rel=0.08)
    assert week.low <= at[1] <= week.high
    assert at[1] > 1.5 * at[0]
    pay = look.pay
    assert pay is not None
    # The planner looks for the key's end in the index, which counts as a scan of no rows.
    assert pay.scans_a_day in (SCANS, SCANS + 1)
    assert pay.rows_per_scan * pay.scans_a_day == pytest.approx(SCANS * 500, rel=0.05)
    # 2 % of the rows go each day: in all it saves what it saves at first in fifty.
    assert pay.pays_back_days is None
    assert pay.cost_s > 60 * pay.saved_s_a_day.high
    said = float(re.search(r"it has saved (\S+) s", pay.why)[1])  # type: ignore[index]
    assert said == pytest.approx(50 * pay.saved_s_a_day.high, rel=0.1)


@pytest.mark.long(reason="the churn above plays the same course; this is another shape of it")
def test_streams_and_what_stays(cluster: Cluster) -> None:
    """Interleaved streams after CLUSTER decay by a page a tick; what nobody writes stays."""
    tick = iter(range(101, 1000))

    def ticks(connection: psycopg.Connection[Any]) -> None:
        first = next(tick)
        add_ticks(connection, 300, first, first)

    with observed.session(cluster) as connection:
        load_streams(connection, 300, 100)
        connection.execute("CLUSTER streams USING streams_pkey")
        for _ in range(3):
            ticks(connection)
        analyze(connection, "streams", vacuum=True)
        look = after_a_day(cluster, "streams", ticks)
        for _ in range(7):
            ticks(connection)
        truth = counted_pages(connection, "streams", "device, tick")
        assert look.forecast is not None
        week = look.forecast.points[1].pages_per_range
        assert week.low <= truth <= week.high
        assert week.high < 2 * week.low
        still = after_a_day(cluster, "streams", nothing)
    assert still.forecast is not None
    assert still.forecast.points[2].pages_per_range.mid == pytest.approx(
        still.pages_per_range.mid, rel=0.001
    )
    assert still.pay is None, "no scan read a range"
