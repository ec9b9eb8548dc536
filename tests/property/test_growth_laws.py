"""
What may be said of a heap that grows, over generated series.

A series that is on its way to a limit is never told to grow without bound, whatever the pace; a
straight line is, once its windows could tell it from such an approach.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pgheadroom.outcome import SUMMED, put_together
from pgheadroom.predict.growth import GROWS_FRAC, growth_of
from pgheadroom.predict.series import Series

ROWS = 1_000_000
UNSETTLED = ("slowing", "undecided", "without bound")


def _series(pages: Sequence[float], inserted: int = 0) -> Series:
    sums: dict[str, int | None] = dict.fromkeys(SUMMED, 0)
    sums |= {"n_tup_upd": 1000, "n_tup_hot_upd": 900, "n_tup_ins": inserted}
    whole = put_together({"t": sums}, {})
    table = whole.by_table["t"]
    windows = [
        replace(whole, by_table={"t": replace(table, heap_pages=round(size))}) for size in pages
    ]
    return Series(t_s=tuple(float(n + 1) for n in range(len(pages))), windows=tuple(windows))


def _verdict(
    pages: Sequence[float], rewritten: Sequence[float] | None = None, inserted: int = 0
) -> str:
    beside = None if rewritten is None else _series(rewritten)
    return growth_of(_series(pages, inserted), {"t": ROWS}, beside)["t"].verdict


counts = st.integers(min_value=4, max_value=120)
sizes = st.integers(min_value=1, max_value=1_000_000)
starts = st.floats(min_value=0.02, max_value=1.0)
"""Pages at the start, as a part of the limit."""
paces = st.floats(min_value=0.01, max_value=100.0)
"""Time in which what is left shrinks by e, or by half, in lengths of the run."""


@given(count=counts, limit=sizes, start=starts, pace=paces)
def test_an_approach_to_a_limit_is_never_without_bound(
    count: int, limit: int, start: float, pace: float
) -> None:
    """
    What is left shrinks by the same share each window.

    Judged where the limit is up to twice the heap at the end of the run: what lies further off
    than that, a run of this length cannot tell from a straight line.
    """
    pages = [limit * (1 - (1 - start) * math.exp(-(n + 1) / count / pace)) for n in range(count)]
    if limit <= 2 * round(pages[-1]):
        assert _verdict(pages) != "without bound"


@given(count=counts, limit=sizes, start=starts, pace=paces)
def test_a_slow_approach_to_a_limit_is_never_without_bound(
    count: int, limit: int, start: float, pace: float
) -> None:
    """What is left shrinks as 1 over time, for which no finite time is enough."""
    pages = [limit * (1 - (1 - start) / (1 + (n + 1) / count / pace)) for n in range(count)]
    if limit <= 2 * round(pages[-1]):
        assert _verdict(pages) != "without bound"


@given(
    count=st.integers(min_value=20, max_value=120),
    first=st.integers(min_value=1, max_value=1_000_000),
    grown=st.floats(min_value=0.5, max_value=100.0),
)
def test_a_straight_line_is_without_bound(count: int, first: int, grown: float) -> None:
    """From half of the heap, and a few hundred pages, a run: no doubling could hide in it."""
    added = max(400.0, grown * first)
    assert _verdict([first + added * (n + 1) / count for n in range(count)]) == "without bound"


@given(
    count=counts, first=st.integers(min_value=100, max_value=1_000_000), grown=st.floats(0.05, 10.0)
)
def test_a_straight_line_never_slows_down(count: int, first: int, grown: float) -> None:
    """However short the run: rounding to pages is no slowing down."""
    verdict = _verdict([first * (1 + grown * (n + 1) / count) for n in range(count)])
    assert verdict in ("undecided", "without bound", "steady")
    last_quarter = first * grown * (count - math.floor(0.75 * count)) / count
    if last_quarter > 2 + 2 * GROWS_FRAC * first * (1 + grown):
        assert verdict != "steady"


@given(
    count=st.integers(min_value=8, max_value=120),
    per_window=st.integers(min_value=20_000, max_value=1_000_000),
)
def test_a_heap_that_grows_as_its_rows_do(count: int, per_window: int) -> None:
    """The same pages a row all the time: it ends with the inserts, so it is not without bound."""
    pages = [(ROWS + per_window * (n + 1)) / 50 for n in range(count)]
    assert _verdict(pages, inserted=per_window) in ("with its rows", "steady")


@given(
    pages=st.lists(st.integers(min_value=1, max_value=10_000), min_size=4, max_size=80).map(sorted),
    above=st.integers(min_value=0, max_value=1000),
)
def test_on_the_way_to_the_size_of_a_rewrite(pages: list[int], above: int) -> None:
    """Below what the rewritten table has and keeps, a heap converges, however it gets there."""
    limit = pages[-1] + above
    alone, beside = _verdict(pages), _verdict(pages, [limit] * len(pages))
    assert beside == ("converging" if alone in UNSETTLED else alone)


@given(grown=st.floats(min_value=0.5, max_value=3.0), above=st.floats(1.02, 5.0))
def test_a_size_that_was_passed_or_does_not_hold_is_no_limit(grown: float, above: float) -> None:
    """Beyond the rewritten table, or beside one that grows itself, the heap is judged by itself."""
    line = [1000 * (1 + grown * (n + 1) / 60) for n in range(60)]
    assert _verdict(line, [line[-1] / above] * 60) == "without bound"
    assert _verdict(line, [size * above for size in line]) == "without bound"
