"""
How pages of a range become more: rows leave their places, and new ones lie where there is room.

    s = exp(-left / N)           share of the rows that are still where they lie
    y = 1 - N s / N'             share of the rows by then that are written since
    pages = T(s)  +  1000 y a

`T(s)` are pages of the range of today's rows over which 1,000 rows reach by then, each of which
stays with the probability s: a page with m of them stays one with 1 - (1 - s)^m. `a` are the pages
that a new row adds: in key order one by the rows of a page, at random 1. How it was is read from
the youngest rows of the ranges: the pages with none but such rows, by these rows.

On the document's churn program this is the twin's own outcome (`tests/unit/test_order_decay.py`).

Source of the places: `RelationGetBufferForTuple`, hio.c: a row goes to the last page, or to one
that the free space map has, whatever its key.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain

from pgheadroom.order.pages import LEVEL, random_pages
from pgheadroom.order.ranges import ReadRange
from pgheadroom.order.values import RANGE_ROWS
from pgheadroom.stats import t_quantile
from pgheadroom.types import Interval

_YOUNG_MIN = 100
"""So many of the youngest rows, and those of the same transaction, tell how new rows are placed."""
_YOUNG_FRAC_MAX = 0.5
"""A table of which half is so young was loaded, which says nothing of what comes later."""
_RANGES_MIN = 3
MODEL_FRAC = 0.03
"""By how much the model is off beside what ranges leave open (measured, see docs/order.md)."""
_IN_ORDER_TIMES = 1.5
"""New rows that add no more than so many times what they do in order are taken to lie in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChanges:
    """
    Rows changed.

    Attributes:
        inserts: Of them.
        moved: Updates whose new version went to another page.
        stayed: Other updates.
        deletes: Of them.
    """

    inserts: float
    moved: float
    stayed: float
    deletes: float

    def times(self, factor: float) -> RowChanges:
        """So many times of it."""
        return RowChanges(
            inserts=self.inserts * factor,
            moved=self.moved * factor,
            stayed=self.stayed * factor,
            deletes=self.deletes * factor,
        )

    @property
    def any_place(self) -> bool:
        """Whether rows are written or taken away somewhere."""
        return self.inserts + self.moved + self.deletes > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Laid:
    """
    A table's size, now.

    Attributes:
        rows: Live ones.
        pages: Of its heap.
        per_page: Rows of a page that is full.
    """

    rows: float
    pages: float
    per_page: float


def new_row_pages(ranges: Sequence[ReadRange], changes: RowChanges) -> float | None:
    """
    Pages that a row which is written elsewhere adds to a range, by the youngest; None: unknown.

    Args:
        ranges: That were read.
        changes: What was counted: updates that stay on their page are young as well.
    """
    rows = sum(len(one.ages) for one in ranges)
    if rows < 2 * _YOUNG_MIN:
        return None
    ages = sorted(chain.from_iterable(map(_youngest_ages, ranges)))
    oldest = ages[_YOUNG_MIN - 1]
    found_of = [_young_of(one, oldest) for one in ranges]
    young = sum(rows_of for rows_of, _ in found_of)
    added = sum(pages for _, pages in found_of)
    alone = sum(_rows_of_pages(one)[1] for one in ranges)
    if young > _YOUNG_FRAC_MAX * rows:
        return None
    # Of those that were updated where they lie, so many were alone before.
    written = changes.inserts + changes.moved + changes.stayed
    stayed = changes.stayed / written if written > 0 else 0.0
    if stayed > 0.9:
        return None
    found = (added / young - stayed * alone / rows) / (1 - stayed)
    return min(max(found, 0.0), 1.0)


# A jackknife asks the same of each range as often as there are ranges.
@lru_cache(maxsize=256)
def _youngest_ages(one: ReadRange) -> tuple[int, ...]:
    """As many as may be among the youngest of all ranges."""
    return tuple(sorted(one.ages)[:_YOUNG_MIN])


@lru_cache(maxsize=256)
def _rows_of_pages(one: ReadRange) -> Counter[int]:
    """How many pages have so many of the rows, by that number."""
    return Counter(Counter(one.blocks).values())


@lru_cache(maxsize=256)
def _young_of(one: ReadRange, oldest: int) -> tuple[int, int]:
    """Rows of a range that are no older, and pages that no others of it lie on."""
    of_young = Counter(b for b, age in zip(one.blocks, one.ages, strict=True) if age <= oldest)
    if not of_young:
        return 0, 0
    on_page = Counter(one.blocks)
    alone = sum(1 for block, count in of_young.items() if on_page[block] == count)
    return of_young.total(), alone


def new_row_interval(ranges: Sequence[ReadRange], changes: RowChanges) -> Interval | None:
    """The same with what ranges leave open; None likewise, and of fewer than three ranges."""
    if len(ranges) < _RANGES_MIN or new_row_pages(ranges, changes) is None:
        return None

    def each(some: Sequence[ReadRange]) -> float:
        found = new_row_pages(some, changes)
        return 1.0 if found is None else found

    found = _jackknife(ranges, each, least=0.0)
    return Interval(
        low=max(found.low, 0.0), mid=found.mid, high=min(found.high, 1.0), level=found.level
    )


def tells_of_places(added: float | None, laid: Laid, *, was_rewritten: bool) -> bool:
    """
    Whether the youngest rows tell where new ones go.

    Those that lie as after CLUSTER may have been put there by it.

    Args:
        added: Pages that they add; None: not known.
        laid: Their table.
        was_rewritten: It has another file than it was made with.
    """
    if added is None:
        return False
    return not was_rewritten or added > _IN_ORDER_TIMES / laid.per_page


def later_pages(
    ranges: Sequence[ReadRange], laid: Laid, changes: RowChanges, added: float
) -> float:
    """
    Pages of a range of 1,000 rows after further changes.

    Args:
        ranges: As it is now.
        laid: Likewise.
        changes: That come.
        added: Pages that each new row adds.
    """
    course = _course(laid, changes)
    some = _shorter(ranges, course)
    total = sum(one.weight for one in some)
    pages = math.fsum(
        one.weight
        * math.fsum(
            pages * (1 - (1 - course.stay) ** count) for count, pages in _rows_of_pages(one).items()
        )
        for one in some
    )
    later = pages / total * max(course.span / RANGE_ROWS, 1.0)
    later += RANGE_ROWS * course.written * added
    return course.within(max(later, _least(ranges, laid)), RANGE_ROWS)


def _least(ranges: Sequence[ReadRange], laid: Laid) -> float:
    """Rows that come beside others need room too: full pages, or where there are fewer, these."""
    now = math.fsum(one.weight * one.pages for one in ranges)
    return min(RANGE_ROWS / laid.per_page, now / sum(one.weight for one in ranges))


def later_fresh_pages(rows: int, laid: Laid, changes: RowChanges, added: float) -> float:
    """
    Pages of a range so long after the table was clustered.

    Args:
        rows: Of the range.
        laid: The table as CLUSTER leaves it.
        changes: Since then.
        added: Pages that each new row adds.
    """
    course = _course(laid, changes)
    span = max(course.span * rows / RANGE_ROWS, 1.0)
    pages = 1 + (span - 1) / laid.per_page
    pages *= 1 - (1 - course.stay) ** min(laid.per_page, span)
    new = rows * course.written * added
    # Some of the pages are those of other rows of the range, of a small table more of them.
    new = max(course.pages - pages, 0.0) * -math.expm1(-new / course.pages)
    return course.within(pages + new, rows)


def kept_frac(laid: Laid, changes: RowChanges) -> float:
    """
    Share of a range's rows that lie where they did, after changes.

    Args:
        laid: The table.
        changes: That come.
    """
    return 1 - _course(laid, changes).written


@dataclass(frozen=True, slots=True, kw_only=True)
class _Course:
    """
    What changes make of a table.

    Attributes:
        stay: Share of today's rows that stay where they lie.
        written: Share of the rows by then that are written since.
        rows, pages: Of the table by then.
    """

    stay: float
    written: float
    rows: float
    pages: float

    @property
    def span(self) -> float:
        """Over how many of today's rows a range reaches by then."""
        return RANGE_ROWS * (1 - self.written) / max(self.stay, 1e-9)

    def within(self, pages: float, rows: int) -> float:
        """No more than at random, and a page at least."""
        return min(max(pages, 1.0), random_pages(rows, self.rows, self.pages), float(rows))


def _course(laid: Laid, changes: RowChanges) -> _Course:
    total = max(laid.rows + changes.inserts - changes.deletes, 1.0)
    stay = math.exp(-(changes.deletes + changes.moved) / max(laid.rows, 1.0))
    return _Course(
        stay=stay,
        written=min(max(1 - laid.rows * stay / total, 0.0), 1.0),
        rows=total,
        pages=max(laid.pages, total / laid.per_page),
    )


def _shorter(ranges: Sequence[ReadRange], course: _Course) -> Sequence[ReadRange]:
    """Ranges of as many of today's rows as one reaches over by then, where these are fewer."""
    rows = max(round(course.span), 1)
    if rows >= RANGE_ROWS:
        return ranges
    return [_first(one, rows) for one in ranges]


@lru_cache(maxsize=256)
def _first(one: ReadRange, rows: int) -> ReadRange:
    return ReadRange(one.blocks[:rows], one.ages[:rows], one.weight, one.is_cut)


def foreseen(
    ranges: Sequence[ReadRange],
    laid: Laid,
    counted: RowChanges,
    coming: RowChanges,
    *,
    was_rewritten: bool = False,
) -> tuple[Interval, bool]:
    """
    Pages of a range of 1,000 rows after further changes, and whether it is known where new rows go.

    Student's t of a jackknife over ranges, and what the model is off by. Where it is not known
    where new rows go, the ends are those of rows that come in order, and at random. Updates may
    move the same few rows again and again, which moves no others: that is the low end.

    Args:
        ranges: As it is now: whole ones.
        laid: Likewise.
        counted: What was counted until now.
        coming: What comes.
        was_rewritten: The table has another file than it was made with: CLUSTER or another rewrite
            may have put its youngest rows where they are.
    """
    in_order = 1 / laid.per_page
    placed = new_row_pages(ranges, counted)
    is_known = len(ranges) >= _RANGES_MIN and (
        not coming.any_place or tells_of_places(placed, laid, was_rewritten=was_rewritten)
    )

    def of(some: Sequence[ReadRange], changes: RowChanges, least: float | None) -> float:
        added = least
        if added is None:
            added = new_row_pages(_shorter(some, _course(laid, changes)), counted)
        if added is None:
            added = new_row_pages(some, counted)
        return later_pages(some, laid, changes, in_order if added is None else added)

    def around(changes: RowChanges, least: float | None) -> Interval:
        return _jackknife(ranges, lambda some: of(some, changes, least))

    few = replace(coming, moved=0.0)
    if is_known:
        known = None if coming.any_place else in_order
        found = [around(coming, known), around(few, known)]
        mid = found[0].mid
    else:
        found = [around(coming, 1.0), around(few, in_order)]
        mid = (found[0].mid + found[1].mid) / 2
    return (
        Interval(
            low=max(min(one.low for one in found), _least(ranges, laid)) * (1 - MODEL_FRAC),
            mid=mid,
            high=min(max(one.high for one in found) * (1 + MODEL_FRAC), float(RANGE_ROWS)),
            level=LEVEL,
        ),
        is_known,
    )


def _jackknife(
    ranges: Sequence[ReadRange],
    figure: Callable[[Sequence[ReadRange]], float],
    least: float = 1.0,
) -> Interval:
    mid = figure(ranges)
    count = len(ranges)
    if count < _RANGES_MIN:
        return Interval(low=1.0, mid=mid, high=float(RANGE_ROWS), level=1.0)
    without = [figure([*ranges[:n], *ranges[n + 1 :]]) for n in range(count)]
    mean = math.fsum(without) / count
    deviation = math.sqrt((count - 1) / count * math.fsum((one - mean) ** 2 for one in without))
    half = t_quantile(LEVEL, count - 1) * deviation
    return Interval(
        low=min(max(mid - half, least), mid),
        mid=mid,
        high=max(min(mid + half, float(RANGE_ROWS)), mid),
        level=LEVEL,
    )
