"""
Pages that a range lies on: by ranges that were read, freshly clustered, and at random.

Of a table with d rows on each page, in order, n neighbouring rows that begin anywhere on a page lie
on 1 + (n - 1) / d pages on average. Of rows at random, a page is missed by a range of n out of N
rows with the probability (1 - n / N)^d.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from pgheadroom.bloat.values import Estimate
from pgheadroom.order.ranges import ReadRange
from pgheadroom.order.values import RANGE_ROWS
from pgheadroom.stats import t_quantile
from pgheadroom.types import Interval

LEVEL = 0.9
_RANGES_MIN = 3
"""Below, how far ranges differ is not known, and the ends are what is possible."""


def fresh_pages(rows: int, per_page: float) -> float:
    """Pages of so many neighbouring rows where the table lies in order."""
    return 1 + (rows - 1) / max(per_page, 1.0)


def fresh_interval(rows: int, table_rows: float, rewritten: Estimate) -> Interval:
    """
    The same, for a table as CLUSTER would write it.

    Args:
        rows: Of the range.
        table_rows: Of the table.
        rewritten: Its pages then.
    """
    pages = rewritten.rewritten_pages
    low, mid, high = (
        min(fresh_pages(rows, table_rows / max(each, 1.0)), float(rows))
        for each in (pages.low, pages.mid, pages.high)
    )
    return Interval(low=low, mid=mid, high=high, level=pages.level)


def random_pages(rows: int, table_rows: float, table_pages: float) -> float:
    """Pages of so many rows that lie anywhere on the table's pages."""
    pages = max(table_pages, 1.0)
    if rows >= table_rows:
        return pages
    # Of all pages those that none of the rows is on: log, for few rows of many.
    missed = (table_rows / pages) * math.log1p(-rows / table_rows)
    return min(-pages * math.expm1(missed), float(rows))


def measured_pages(ranges: Sequence[ReadRange], least: float, most: float) -> Interval:
    """
    The mean over all ranges of the table, by those that were read.

    Args:
        ranges: They; none gives what is possible.
        least: Fewer pages cannot hold a range.
        most: A range has no more.
    """
    whole = [one for one in ranges if not one.is_cut]
    cut = [one for one in ranges if one.is_cut]
    if len(whole) < _RANGES_MIN:
        return _few(whole, cut, least, most)
    # Of a range that was cut each row that is left may be on a page of its own, or on none.
    ends = [weighted(ranges, lambda one: float(one.pages))]
    ends.append(weighted(ranges, lambda one: float(one.pages + RANGE_ROWS - len(one.blocks))))
    mid = weighted(whole, lambda one: float(one.pages)).mid if cut else ends[0].mid
    low = max(ends[0].low, min(least, mid))
    high = min(ends[1].high, max(most, mid))
    return Interval(low=min(low, mid), mid=mid, high=max(high, mid), level=LEVEL)


def weighted(ranges: Sequence[ReadRange], figure: Callable[[ReadRange], float]) -> Interval:
    """
    A mean over ranges that count by their weight, with Student's t of the ratio.

    Args:
        ranges: At least two.
        figure: Of one.
    """
    total = sum(one.weight for one in ranges)
    mean = math.fsum(one.weight * figure(one) for one in ranges) / total
    scale = len(ranges) / total
    squares = math.fsum((scale * one.weight * (figure(one) - mean)) ** 2 for one in ranges)
    count = len(ranges)
    half = t_quantile(LEVEL, count - 1) * math.sqrt(squares / (count * (count - 1)))
    return Interval(low=mean - half, mid=mean, high=mean + half, level=LEVEL)


def _few(
    whole: Sequence[ReadRange], cut: Sequence[ReadRange], least: float, most: float
) -> Interval:
    """Too few ranges, or one that the budget has cut: the middle by these, the ends as may be."""
    if not whole and not cut:
        return Interval(low=least, mid=(least + most) / 2, high=max(most, least), level=1.0)
    read = [(one, RANGE_ROWS / max(len(one.blocks), 1)) for one in (*whole, *cut)]
    mid = math.fsum(one.weight * one.pages * more for one, more in read)
    mid /= sum(one.weight for one, _ in read)
    mid = min(max(mid, least), max(most, least))
    return Interval(low=min(least, mid), mid=mid, high=max(most, mid), level=1.0)


def unseen_frac(ranges: Sequence[ReadRange]) -> float | None:
    """How large a part of the table ranges would have hit, with `LEVEL` of confidence."""
    return 1 - (1 - LEVEL) ** (1 / len(ranges)) if ranges else None


def range_pages(ranges: Sequence[ReadRange], rows: int) -> float | None:
    """
    Mean pages of the first so many rows of each range; None without ranges of that many.

    Args:
        ranges: That were read.
        rows: At most those of a range.
    """
    long = [one for one in ranges if len(one.blocks) >= rows > 0]
    if not long:
        return None
    total = sum(one.weight for one in long)
    return math.fsum(one.weight * len(set(one.blocks[:rows])) for one in long) / total
