"""
Whether a table's heap has found its size by the end of a run, or goes on growing.

A heap grows for two reasons: it has more rows, or its rows take more room (versions that nobody
can remove yet, room that nobody finds again). Rows are counted, so the first is told apart; of the
second it matters whether it slows down.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pgheadroom.outcome import Value
from pgheadroom.predict.series import Series
from pgheadroom.profile import Profile
from pgheadroom.types import Interval

GROWS_FRAC = 0.01
"""A heap grows when the last quarter of the run adds more than this part of its pages."""
SLOWS_BELOW = 0.5
"""Growth slows down when the last quarter adds less than this share of what the one before did."""
ROWS_EXPLAIN = 0.75
"""It is the rows' when they explain this share of it: what is inserted may lie less densely than
what was loaded (at a low fillfactor the first update of a fresh row takes room there)."""
_QUARTERS = 4

Verdict = Literal["steady", "with its rows", "slowing", "without bound"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """
    How a table's heap changes in the last quarter of a run.

    Attributes:
        verdict: `steady`; `with its rows`: as its rows do, and for as long; `slowing`: more than
            those, but less than in the quarter before; `without bound`: more than rows explain,
            and no slower than before.
        pages_added: Pages that the last quarter added.
        pages_added_frac: The same as a part of the heap before it.
        by_rows_frac: What of it more rows explain, at the pages a row that the heap had.
    """

    verdict: Verdict
    pages_added: float
    pages_added_frac: float
    by_rows_frac: float

    def to_json(self) -> dict[str, Any]:
        """The file's form."""
        return {
            "verdict": self.verdict,
            "pages_added": self.pages_added,
            "pages_added_frac": self.pages_added_frac,
            "by_rows_frac": self.by_rows_frac,
            "grows_above_frac": GROWS_FRAC,
        }


def growth_of(series: Series, rows: Mapping[str, int]) -> dict[str, Growth]:
    """
    Judge each table of a run.

    Args:
        series: Its windows; nothing is said of fewer than four.
        rows: Rows that each table has at the start.
    """
    if len(series.windows) < _QUARTERS:
        return {}
    return {name: _growth(series, name, rows.get(name, 0)) for name in series.windows[0].by_table}


def rows_by_table(profile: Profile) -> dict[str, int]:
    """Rows of each table when the run begins."""
    builtin = profile.workload.builtin
    if builtin is None:
        return {table.name: table.rows for table in profile.tables}
    per_scale = {"pgbench_accounts": 100_000, "pgbench_tellers": 10, "pgbench_branches": 1}
    return {name: per_scale.get(name, 0) * builtin.scale for name in profile.table_names}


def _growth(series: Series, table: str, rows: int) -> Growth:
    pages = _numbers(series.column("heap_pages", table))
    inserted = _numbers(series.column("n_tup_ins", table))
    deleted = _numbers(series.column("n_tup_del", table))
    net = [one - other for one, other in zip(inserted, deleted, strict=True)]
    last = math.floor(len(pages) * (_QUARTERS - 1) / _QUARTERS) - 1
    before = max(0, 2 * last - (len(pages) - 1))
    recent = _added(pages, net, rows, (last, len(pages) - 1))
    earlier = _added(pages, net, rows, (before, last))
    verdict: Verdict
    if recent.pages <= GROWS_FRAC * max(1.0, pages[last]):
        verdict = "steady"
    elif recent.by_rows >= ROWS_EXPLAIN * recent.pages:
        verdict = "with its rows"
    elif earlier.beyond > 0 and recent.beyond < SLOWS_BELOW * earlier.beyond:
        verdict = "slowing"
    else:
        verdict = "without bound"
    base = pages[last] or 1.0
    return Growth(
        verdict=verdict,
        pages_added=recent.pages,
        pages_added_frac=recent.pages / base,
        by_rows_frac=recent.by_rows / base,
    )


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


def _numbers(values: Sequence[Value]) -> list[float]:
    return [value.mid if isinstance(value, Interval) else float(value or 0.0) for value in values]
