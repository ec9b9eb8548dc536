"""
One index of one table: what ranges tell of it, how that goes on, and what it costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pgheadroom.bloat.values import Estimate
from pgheadroom.defaults import RATES_FROM_S
from pgheadroom.order.cheaper import CheaperCase, brin_pages, cheaper, covering_entry_bytes
from pgheadroom.order.decay import Laid, RowChanges, foreseen, new_row_pages
from pgheadroom.order.pages import fresh_interval, measured_pages, random_pages, unseen_frac
from pgheadroom.order.paying import DAY_S, ROWS_MIN, IndexReading, cluster_pay
from pgheadroom.order.ranges import Ranges
from pgheadroom.order.values import (
    RANGE_ROWS,
    ClusterPay,
    ForecastPoint,
    IndexOrder,
    OrderForecast,
    OrderPrices,
    OrderRemedy,
    RangeStatement,
    TableChanges,
)
from pgheadroom.types import Interval

_AFTER_DAYS = (1.0, 7.0, 30.0)
_RANGES_MIN = 3
_CHEAPER_FROM = 1.5
_ASSUMED = (
    "rows change as often as they did, and any row as likely as another",
    "new rows go where the youngest ones of the ranges went",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedTable:
    """
    What is known of a table beside its ranges.

    Attributes:
        rows: Live ones.
        pages: Of its heap.
        estimate: What CLUSTER leaves.
        changes: That were counted.
        written_pages: That CLUSTER writes, indexes among them.
        batch_rows: Of an INSERT on average; None: not known.
    """

    rows: int
    pages: int
    estimate: Estimate
    changes: TableChanges
    written_pages: float
    batch_rows: float | None


def index_order(
    row: Mapping[str, Any],
    table: OrderedTable,
    ranges: Ranges,
    scans: tuple[int, int],
    statements: tuple[RangeStatement, ...],
    prices: OrderPrices,
) -> IndexOrder:
    """
    What is said of an index.

    Args:
        row: Of `INDEXES_SQL`.
        table: Its table.
        ranges: That were read.
        scans: How many there were, and entries that they gave.
        statements: Which read ranges of it.
        prices: Of pages and locks.
    """
    fresh = fresh_interval(RANGE_ROWS, table.rows, table.estimate)
    most = random_pages(RANGE_ROWS, table.rows, table.pages)
    now = measured_pages(ranges.read, min(fresh.low, most), min(RANGE_ROWS, max(table.pages, 1)))
    forecast, pay = _course(row, table, ranges, now, scans, prices)
    remedies: tuple[OrderRemedy, ...] = ()
    number, entries = scans
    finds_single_rows = 0 < entries < ROWS_MIN * number
    if ranges.read and now.low >= _CHEAPER_FROM * fresh.high and not finds_single_rows:
        remedies = _cheaper(row, table, ranges, now, fresh.mid)
    return IndexOrder(
        name=str(row["name"]),
        columns=tuple(str(key["name"]) for key in row["keys"]),
        is_marked=bool(row["is_marked"]),
        is_unique=bool(row["is_unique"]),
        pages=int(row["pages"]),
        correlation=row["keys"][0]["correlation"],
        scans=number,
        rows_per_scan=entries / number if number else None,
        evidence="sampled" if ranges.read else "bounds",
        pages_per_range=now,
        pages_fresh=fresh,
        pages_random=most,
        ranges=len(ranges.read),
        unseen_frac=unseen_frac(ranges.read),
        not_sampled=ranges.why_not,
        statements=statements,
        forecast=forecast,
        pay=pay,
        cheaper=remedies,
    )


def _cheaper(
    row: Mapping[str, Any], table: OrderedTable, ranges: Ranges, now: Interval, fresh: float
) -> tuple[OrderRemedy, ...]:
    whole = [one for one in ranges.read if not one.is_cut]
    laid, after = _laid(table)
    a_day = _a_day(table.changes)
    counted = row_changes(table.changes)
    return cheaper(
        CheaperCase(
            laid=laid,
            fresh=replace(laid, pages=after),
            now=now,
            pages_fresh=fresh,
            daily=None if a_day is None else counted.times(a_day),
            added=new_row_pages(whole, counted),
            batch_rows=table.batch_rows,
            entry_bytes=covering_entry_bytes(row["keys"]),
            opened_pages=min(map(brin_pages, ranges.read)),
            has_one_column=len(row["keys"]) == 1,
        )
    )


def _laid(table: OrderedTable) -> tuple[Laid, float]:
    """As it is now, and pages that CLUSTER would leave."""
    after = max(table.estimate.rewritten_pages.mid, 1.0)
    per_page = max(table.rows / after, 1.0)
    return Laid(rows=table.rows, pages=table.pages, per_page=per_page), after


def _a_day(changes: TableChanges) -> float | None:
    """By how much counters are multiplied for a day; None: they tell no rate."""
    if changes.over_s is None or not (changes.is_watched or changes.over_s >= RATES_FROM_S):
        return None
    return DAY_S / max(changes.over_s, 1e-3)


def _course(
    row: Mapping[str, Any],
    table: OrderedTable,
    ranges: Ranges,
    now: Interval,
    scans: tuple[int, int],
    prices: OrderPrices,
) -> tuple[OrderForecast | None, ClusterPay | None]:
    """How it goes on, and when clustering pays; None where nothing tells it."""
    whole = [one for one in ranges.read if not one.is_cut]
    a_day = _a_day(table.changes)
    if a_day is None or len(whole) < _RANGES_MIN:
        return None, None
    laid, after = _laid(table)
    counted = row_changes(table.changes)
    was_rewritten = bool(row["was_rewritten"])
    found = [
        foreseen(whole, laid, counted, counted.times(a_day * days), was_rewritten=was_rewritten)
        for days in _AFTER_DAYS
    ]
    is_known = all(known for _, known in found)
    forecast = OrderForecast(
        points=tuple(
            ForecastPoint(after_days=days, pages_per_range=pages)
            for days, (pages, _) in zip(_AFTER_DAYS, found, strict=True)
        ),
        pages_per_new_row=new_row_pages(whole, counted) if is_known else None,
        is_place_known=is_known,
        assumed=_ASSUMED if is_known else _ASSUMED[:1],
    )
    number, entries = scans
    fetched = table.changes.blocks_hit + table.changes.blocks_read
    reading = IndexReading(
        scans_a_day=number * a_day,
        rows_per_scan=entries / number if number else 0.0,
        read_frac=table.changes.blocks_read / fetched if fetched else 0.0,
        moved_pages=table.pages,
        written_pages=table.written_pages,
    )
    pay = cluster_pay(
        whole,
        now,
        replace(laid, pages=after),
        counted.times(a_day),
        reading,
        prices,
        was_rewritten=was_rewritten,
    )
    return forecast, pay


def row_changes(changes: TableChanges) -> RowChanges:
    """As the forecast takes them; before 16 each update that was not HOT counts as moved."""
    moved = changes.newpage_updates
    if moved is None:
        moved = changes.updates - changes.hot_updates
    return RowChanges(
        inserts=changes.inserts,
        moved=moved,
        stayed=max(changes.updates - moved, 0),
        deletes=changes.deletes,
    )
