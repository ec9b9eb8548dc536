"""Ratios in words: which way, how far, and never another verdict than the interval's."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgheadroom.lab import measure_titles, ratio_words
from pgheadroom.types import Interval


def _ratio(low: float, mid: float, high: float) -> Interval:
    return Interval(low=low, mid=mid, high=high, level=0.95)


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        ((0.260, 0.264, 0.270), "73.6 % lower [73.0, 74.0]"),
        ((1.2, 1.25, 1.3), "25 % higher [20, 30]"),
        ((187.053, 282.285, 426.001), "about 280 times [190, 430]"),
        ((95.363, 102.015, 109.132), "102 times [95, 109]"),
        ((2.994, 3.122, 3.255), "3.12 times [2.99, 3.25]"),
        ((1.823, 1.823, 1.823), "82.3 % higher, exactly"),
        ((2.3651, 2.3651, 2.3651), "2.365 times as much, exactly"),
        ((0.264580, 0.264583, 0.264590), "73.5 % lower"),
        ((0.99910, 0.99950, 0.99996), "0.050 % lower [0.004, 0.090]"),
    ],
)
def test_a_change_is_said_as_people_say_it(ratio: tuple[float, float, float], said: str) -> None:
    """Per cent up to twice, times beyond, digits by the width, exact where it has none."""
    assert ratio_words.changed(_ratio(*ratio)) == said


def test_shares_are_said_in_times() -> None:
    """9 % more HOT could be 9 points of it."""
    assert ratio_words.changed(_ratio(1.085, 1.092, 1.101), of_share=True).startswith("1.09 times")


ENDS = st.floats(min_value=1e-6, max_value=1e6).filter(lambda end: abs(end - 1) > 1e-7)


@given(st.lists(ENDS, min_size=3, max_size=3), st.booleans())
def test_no_end_is_rounded_onto_no_difference(ends: list[float], of_share: bool) -> None:
    """What excludes 1 is shown to exclude it, on its side, and is in order."""
    low, mid, high = sorted(ends)
    if not (high < 1 or low > 1):
        return
    said = ratio_words.changed(_ratio(low, mid, high), of_share=of_share)
    shown = [float(part.replace(",", "")) for part in re.findall(r"[\d,]*\.?\d+", said)]
    if "times" in said:
        assert all(end > 1 for end in shown) if low > 1 else all(end < 1 for end in shown)
    else:
        assert ("lower" in said) == (high < 1)
        assert all(end > 0 for end in shown)
    first, *bracket = shown
    assert not bracket or bracket[0] <= first <= bracket[1]


def test_measures_have_titles() -> None:
    """Compound names go by their parts; what nobody knows keeps its name, safe to print."""
    assert measure_titles.title("predicted_hot_frac") == "HOT share, predicted"
    assert measure_titles.title("stock_newpage_frac") == "new-page share of stock"
    assert measure_titles.title("wal_fpi_per_update") == "number of full-page images per update"
    assert measure_titles.title("heap_pages_before") == "heap size before"
    assert measure_titles.title("new_order_ms_p99") == "latency of new_order, 99th percentile"
    assert measure_titles.title("my_own\x1b") == "my_own\\x1b"
