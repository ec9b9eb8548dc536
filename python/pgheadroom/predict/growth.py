"""
Whether a table's heap has found its size by the end of a run, or goes on growing.

A heap grows for two reasons: it has more rows, or its rows take more room (versions that nobody
can remove yet, room that nobody finds again). Rows are counted, so the first is told apart. Of the
second it is asked where it leads: to the size that a rewrite would have, more slowly than before,
or on for ever. The last is said only where the windows rule out that it comes to an end soon.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from pgheadroom.forms import in_file
from pgheadroom.predict.series import Series
from pgheadroom.profile import Profile

GROWS_FRAC = 0.01
"""A heap grows when the last quarter of the run adds more than this part of its pages."""
SLOWS_BELOW = 0.5
"""Growth slows down when the last quarter adds less than this share of what the one before did,
and begins when that one added less than this share of what the last does."""
ROWS_EXPLAIN = 0.75
"""It is the rows' when they explain this share of it: what is inserted may lie less densely than
what was loaded (at a low fillfactor the first update of a fresh row takes room there)."""
BOUND_FRAC = 1.0
"""Growth is without bound when the strongest slowing-down that the windows leave possible would
still add more than this part of the heap: it would double, at the least."""
_ERRORS = 2.0  # standard errors that a slope may be off by chance
_ROUNDING_PAGES = 0.5  # a heap has whole pages, so each window's end may be off by this much
_QUARTERS = 4

GrowthVerdict = Literal[
    "steady", "with its rows", "converging", "slowing", "undecided", "without bound"
]
VERDICTS: tuple[GrowthVerdict, ...] = (
    "steady",
    "with its rows",
    "converging",
    "slowing",
    "undecided",
    "without bound",
)
"""From what is settled to what is worst."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """
    How a table's heap changes in the last quarter of a run.

    Attributes:
        verdict: `steady`; `with its rows`: as its rows do, and for as long; `converging`: more than
            those, and on its way to the size that the table has when it is rewritten;
            `slowing`: more than rows explain, and more slowly than before; `undecided`: neither
            slower than before nor long or evenly enough to say that it goes on; `without bound`:
            as fast as before, and so evenly that it would at least double if it slowed down as
            much as the windows leave possible.
        pages_added: Pages that the last quarter added.
        pages_added_frac: The same as a part of the heap before it.
        by_rows_frac: What of it more rows explain, at the pages a row that the heap had.
        heap_pages: The heap at the end of the run.
        grows_above_frac: What of it is growth.
        limit_pages: The size of the rewritten table that a `converging` one is on its way to.
    """

    verdict: GrowthVerdict
    pages_added: float
    pages_added_frac: float
    by_rows_frac: float
    heap_pages: float
    grows_above_frac: float = GROWS_FRAC
    limit_pages: float | None = field(default=None, metadata=in_file(unless_none=True))


def part_by_rows(pages_added_frac: float, by_rows_frac: float) -> float:
    """Which part of what a heap has grown by more rows explain."""
    return by_rows_frac / pages_added_frac if pages_added_frac > 0 else 0.0


def growth_of(
    series: Series, rows: Mapping[str, int], rewritten: Series | None = None
) -> dict[str, Growth]:
    """
    Judge each table of a run.

    Args:
        series: Its windows; nothing is said of fewer than four.
        rows: Rows that each table has at the start.
        rewritten: The same run on tables that were rewritten at its start.
    """
    if len(series.windows) < _QUARTERS:
        return {}
    limits = {} if rewritten is None else growth_of(rewritten, rows)
    found = {}
    for name in series.tables:
        limit = None
        if rewritten is not None and limits[name].verdict in ("steady", "with its rows"):
            limit = rewritten.numbers("heap_pages", name)[-1]
        found[name] = _growth(series, name, rows.get(name, 0), limit)
    return found


def rows_by_table(profile: Profile) -> dict[str, int]:
    """Rows of each table when the run begins."""
    builtin = profile.workload.builtin
    if builtin is None:
        return {table.name: table.rows for table in profile.tables}
    per_scale = {"pgbench_accounts": 100_000, "pgbench_tellers": 10, "pgbench_branches": 1}
    return {name: per_scale.get(name, 0) * builtin.scale for name in profile.table_names}


def _growth(series: Series, table: str, rows: int, limit: float | None) -> Growth:
    pages = series.numbers("heap_pages", table)
    inserted = series.numbers("n_tup_ins", table)
    deleted = series.numbers("n_tup_del", table)
    net = [one - other for one, other in zip(inserted, deleted, strict=True)]
    last = math.floor(len(pages) * (_QUARTERS - 1) / _QUARTERS) - 1
    recent = _added(pages, net, rows, (last, len(pages) - 1))
    verdict: GrowthVerdict
    if recent.pages <= GROWS_FRAC * max(1.0, pages[last]):
        verdict = "steady"
    elif recent.by_rows >= ROWS_EXPLAIN * recent.pages:
        verdict = "with its rows"
    elif limit is not None and pages[-1] <= (1 + GROWS_FRAC) * limit:
        verdict = "converging"
    else:
        before = max(0, 2 * last - (len(pages) - 1))
        verdict = _beyond_rows(pages, net, rows, (before, last))
    base = pages[last] or 1.0
    return Growth(
        verdict=verdict,
        pages_added=recent.pages,
        pages_added_frac=recent.pages / base,
        by_rows_frac=recent.by_rows / base,
        heap_pages=pages[-1],
        limit_pages=limit if verdict == "converging" else None,
    )


def _beyond_rows(
    pages: Sequence[float], net: Sequence[float], rows: int, quarters: tuple[int, int]
) -> GrowthVerdict:
    """
    Where growth that rows do not explain leads.

    Args:
        pages: At the end of each window.
        net: Rows that each window added.
        rows: At the start.
        quarters: The windows at whose ends the last quarter but one, and the last, begin.
    """
    before, last = quarters
    end = len(pages) - 1
    earlier = _added(pages, net, rows, (before, last)).beyond
    recent = _added(pages, net, rows, (last, end)).beyond
    trend = _trend(_steps(pages, net, rows, before))
    if trend.slope < -trend.error or 0 < recent < SLOWS_BELOW * earlier:
        return "slowing"
    if earlier < SLOWS_BELOW * recent or trend.least_ahead <= BOUND_FRAC * pages[-1]:
        return "undecided"
    return "without bound"


def _steps(pages: Sequence[float], net: Sequence[float], rows: int, first: int) -> list[float]:
    """Pages that each window after `first` added beyond what more rows take at that one's size."""
    start = rows + math.fsum(net[: first + 1])
    per_row = pages[first] / start if start > 0 else 0.0
    more, beyond = 0.0, [pages[first]]
    for n in range(first + 1, len(pages)):
        more += net[n]
        beyond.append(pages[n] - per_row * max(0.0, more))
    return [after - before for before, after in pairwise(beyond)]


@dataclass(frozen=True, slots=True)
class _Trend:
    """
    Pages a window at the end, and how they change from window to window.

    `error` bounds what rounding to whole pages and chance do to the slope.
    """

    rate: float
    slope: float
    error: float

    @property
    def least_ahead(self) -> float:
        """
        Pages that come yet if growth slows down as strongly as the windows leave possible.

        What declines by the same share each window, from `rate`, by `slope` in the first, adds
        rate²/slope in all. Declines that themselves slow down add more.
        """
        steepest = self.slope - self.error
        if self.rate <= 0:
            return 0.0
        return math.inf if steepest >= 0 else self.rate**2 / -steepest


def _trend(steps: Sequence[float]) -> _Trend:
    """A straight line through the pages that each window added, by least squares."""
    count = len(steps)
    mean = math.fsum(steps) / count
    if count < 2:
        return _Trend(mean, 0.0, math.inf)
    centred = [n - (count - 1) / 2 for n in range(count)]
    spread = math.fsum(place**2 for place in centred)
    slope = math.fsum(place * step for place, step in zip(centred, steps, strict=True)) / spread
    off = math.fsum(
        (step - mean - slope * place) ** 2 for place, step in zip(centred, steps, strict=True)
    )
    # Two points lie on any line: of these, growth is taken to come page by page, by chance.
    chance = off / (count - 2) if count > 2 else abs(mean)
    # The slope weighs the first and the last window's end by (count - 1) / 2, those between by 1.
    rounding = _ROUNDING_PAGES * 2 * (count - 1) / spread
    error = rounding + _ERRORS * math.sqrt(max(0.0, chance - _ROUNDING_PAGES**2) / spread)
    return _Trend(mean + slope * centred[-1], slope, error)


@dataclass(frozen=True, slots=True)
class _Added:
    pages: float
    by_rows: float

    @property
    def beyond(self) -> float:
        return self.pages - self.by_rows


def _added(
    pages: Sequence[float], net: Sequence[float], rows: int, windows: tuple[int, int]
) -> _Added:
    """Pages that came between the ends of two windows, and how many of them rows explain."""
    first, last = windows
    added = pages[last] - pages[first]
    before = rows + math.fsum(net[: first + 1])
    more = math.fsum(net[first + 1 : last + 1])
    if more <= 0:
        return _Added(added, 0.0)
    if before <= 0:
        return _Added(added, added)
    return _Added(added, min(max(0.0, added), pages[first] * more / before))
