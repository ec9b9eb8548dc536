"""
What bad order costs, and after which time it pays to cluster a table again.

A cycle of T days costs one CLUSTER and what range scans read above the freshly clustered table in
that time; the best T has the least mean cost of a day (the rule of periodic replacement, as the
experiment `cluster-decay` has it). Prices are given: seconds of work, and how many of these each
second counts for in which the table is locked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pgheadroom.order.decay import (
    Laid,
    RowChanges,
    kept_frac,
    later_fresh_pages,
    new_row_interval,
    tells_of_places,
)
from pgheadroom.order.pages import fresh_pages, range_pages
from pgheadroom.order.ranges import ReadRange
from pgheadroom.order.values import RANGE_ROWS, ClusterPay, OrderPrices
from pgheadroom.types import Interval

DAY_S = 86_400.0
ROWS_MIN = 2.0
"""Scans of fewer rows find one row each: no order helps them."""
_DAYS_MIN, _DAYS_MAX, _STEPS = 1 / 24, 3650.0, 240
_MOMENT_DAYS = 1e-5
"""A second, about: order may be lost within minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexReading:
    """
    How an index is read, and what a rewrite of its table moves.

    Attributes:
        scans_a_day: Of the index.
        rows_per_scan: Entries that a scan gives.
        read_frac: Share of the table's pages that were not in shared buffers.
        moved_pages: That CLUSTER reads.
        written_pages: Of the table and its indexes afterwards.
    """

    scans_a_day: float
    rows_per_scan: float
    read_frac: float
    moved_pages: float
    written_pages: float


def cluster_pay(
    ranges: Sequence[ReadRange],
    now: Interval,
    laid: Laid,
    changes: RowChanges | None,
    reading: IndexReading,
    prices: OrderPrices,
    *,
    was_rewritten: bool,
) -> ClusterPay | None:
    """
    What clustering saves, and how often it pays; None where scans read no ranges.

    Args:
        ranges: Whole ones, that were read.
        now: Pages of a range of 1,000 rows.
        laid: The table as CLUSTER leaves it.
        changes: Of a day; None: they are not known.
        reading: Of the index.
        prices: As they were given.
        was_rewritten: The table has another file than it was made with.
    """
    rows = max(round(reading.rows_per_scan), 1)
    part = min(rows, RANGE_ROWS)
    measured = range_pages(ranges, part)
    if reading.rows_per_scan < ROWS_MIN or measured is None:
        return None
    more = max(rows / RANGE_ROWS, 1.0)
    fresh = fresh_pages(rows, laid.per_page)
    ends = [measured * more * end / now.mid for end in (now.low, now.mid, now.high)]
    low, mid, high = (max(end - fresh, 0.0) for end in ends)
    saved = Interval(low=min(low, mid), mid=mid, high=max(high, mid), level=now.level)
    page_s = (
        reading.read_frac * prices.page_read_ms + (1 - reading.read_frac) * prices.page_hit_ms
    ) / 1000
    a_day = reading.scans_a_day * page_s
    work_s = reading.moved_pages * prices.page_read_ms / 1000
    work_s += reading.written_pages * prices.page_write_ms / 1000
    cost_s = work_s * (1 + prices.lock_cost)
    saved_s = Interval(
        low=saved.low * a_day, mid=saved.mid * a_day, high=saved.high * a_day, level=saved.level
    )
    days = None
    if saved_s.low > 0:
        days = Interval(
            low=cost_s / saved_s.high,
            mid=cost_s / saved_s.mid,
            high=cost_s / saved_s.low,
            level=saved.level,
        )
    every, why = None, "how often rows change is not known"
    if changes is not None:
        added = new_row_interval(ranges, changes)
        if added is None or not tells_of_places(added.mid, laid, was_rewritten=was_rewritten):
            in_order = 1 / laid.per_page
            added = Interval(low=in_order, mid=in_order, high=1.0, level=1.0)
        every, why = _every(laid, changes, added, rows, a_day, cost_s)
        most_s = saved_s.high * kept_days(laid, changes)
        if every is None and days is not None and most_s < cost_s:
            days = None
            why = (
                "it does not pay back at these prices: once the order is lost again it has saved "
                f"{most_s:.2g} s"
            )
    return ClusterPay(
        scans_a_day=reading.scans_a_day,
        rows_per_scan=reading.rows_per_scan,
        read_frac=reading.read_frac,
        saved_pages_per_scan=saved,
        saved_s_a_day=saved_s,
        work_s=work_s,
        cost_s=cost_s,
        pays_back_days=days,
        every_days=every,
        why=why,
    )


def _every(
    laid: Laid, changes: RowChanges, added: Interval, rows: int, a_day: float, cost_s: float
) -> tuple[Interval | None, str]:
    """After how many days to cluster again, and why there is no such time."""
    if not changes.any_place:
        return None, "no row is written elsewhere or deleted: the order stays"

    def days(course: RowChanges, each: float) -> float | None:
        return best_days(
            lambda after: later_fresh_pages(rows, laid, course.times(after), each), a_day, cost_s
        )

    fast, middle = days(changes, added.high), days(changes, added.mid)
    slow = days(replace(changes, moved=0.0), added.low)
    known = [days for days in (fast, middle, slow) if days is not None]
    if not known:
        return None, "to cluster again and again never pays at these prices"
    if fast is None:
        return None, (
            f"after {min(known):.3g} days where rows change near their places, and never where "
            "they go anywhere: which of both is not known well enough"
        )
    if slow is None:
        return None, (
            f"after {fast:.3g} days at the earliest; where new rows go, or how often the same row "
            "moves, is not known well enough for the latest"
        )
    ends = sorted((fast, slow, slow if middle is None else middle))
    return Interval(low=ends[0], mid=ends[1], high=ends[2], level=added.level), ""


def best_days(pages_after: Callable[[float], float], a_day: float, cost_s: float) -> float | None:
    """
    The cycle of least mean cost.

    Args:
        pages_after: Pages of a scan so many days after clustering.
        a_day: Seconds that a page more of each scan costs in a day.
        cost_s: Of clustering.

    Returns:
        Days; None where no cycle of up to ten years is cheaper than none.
    """
    fresh = pages_after(0.0)
    ratio = (_DAYS_MAX / _DAYS_MIN) ** (1 / _STEPS)
    days, paid, before, extra = 0.0, 0.0, 0.0, 0.0
    best: tuple[float, float] | None = None
    for step in range(_STEPS + 1):
        days = _DAYS_MIN * ratio**step
        extra_now = max(pages_after(days) - fresh, 0.0) * a_day
        paid += (days - before) * (extra + extra_now) / 2
        before, extra = days, extra_now
        mean = (cost_s + paid) / days
        if best is None or mean < best[0]:
            best = mean, days
    assert best is not None, "there are steps"
    # Not to cluster costs in the end what it costs after ten years.
    if best[1] >= days or best[0] >= extra or not math.isfinite(best[0]):
        return None
    return best[1]


def kept_days(laid: Laid, changes: RowChanges) -> float:
    """
    For how many days clustering once saves what it saves at first, in all, within ten years.

    Rows that are written later lie where they would have lain anyway, so it saves by the others
    alone. Updates may move the same rows again and again, so they are left out: it is no more.

    Args:
        laid: The table.
        changes: Of a day.
    """
    slow = replace(changes, moved=0.0)
    ratio = (_DAYS_MAX / _MOMENT_DAYS) ** (1 / _STEPS)
    all_days, before, kept = 0.0, 0.0, 1.0
    for step in range(_STEPS + 1):
        days = _MOMENT_DAYS * ratio**step
        kept_now = kept_frac(laid, slow.times(days))
        all_days += (days - before) * (kept + kept_now) / 2
        before, kept = days, kept_now
    return all_days
