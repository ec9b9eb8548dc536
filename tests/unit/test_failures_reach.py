"""Failures to serialize, of which servers have others than the twin's runs, and what follows."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgheadroom.outcome import KEYS, Outcome, ends, mid, outcome_of
from pgheadroom.predict.failing import Failures
from pgheadroom.types import Interval

REPEATABLE = "repeatable read"


def _failures(numbers: list[int], isolation: str = REPEATABLE) -> Failures:
    runs: Any = [SimpleNamespace(failed_transactions=number) for number in numbers]
    return Failures.of(runs, 1.0, 2.0, isolation)


def _outcome(upd: float, records: float) -> Outcome:
    figures = dict.fromkeys(KEYS, 0.0) | {"n_tup_upd": upd, "wal_records": records}
    whole = outcome_of(figures)
    return replace(whole, by_table={"t": whole})


def test_what_follows_from_failures_reaches_as_far() -> None:
    numbers = [900, 1000, 1100]
    failures = _failures(numbers)
    runs = [_outcome(8000 - number, 500.0) for number in numbers]
    spread = Interval(low=6950.0, mid=7000.0, high=7050.0, level=0.9)
    whole = replace(runs[1], n_tup_upd=spread, by_table={})
    found = failures.within(replace(whole, by_table={"t": whole}), runs)
    assert isinstance(failures.value, Interval)
    assert failures.value.ends == pytest.approx((200, 1000, 1250))
    for outcome in (found, found.by_table["t"]):
        assert ends(outcome.n_tup_upd) == pytest.approx((6750, 7000, 7800))
        assert outcome.wal_records == 500.0  # certain stays certain


@given(numbers=st.lists(st.integers(0, 10_000), min_size=2, max_size=8), slope=st.floats(-9, 9))
def test_no_interval_becomes_narrower(numbers: list[int], slope: float) -> None:
    failures = _failures(numbers)
    runs = [_outcome(max(0.0, 50_000 + slope * number), 1.0) for number in numbers]
    middle = mid(runs[0].n_tup_upd)
    before = Interval(low=middle * 0.9, mid=middle, high=middle * 1.1, level=0.9)
    found = failures.within(replace(runs[0], n_tup_upd=before, by_table={}), runs).n_tup_upd
    low, at, high = ends(found or 0.0)
    assert 0 <= low <= before.low
    assert high >= before.high
    assert at == middle


def test_no_page_that_was_loaded_is_lost() -> None:
    """Fewer failures let fewer pages grow, but none of those that are there for certain goes."""
    numbers = [900, 1000, 1100]
    runs = [replace(_outcome(1.0, 1.0), heap_pages=number / 10, by_table={}) for number in numbers]
    spread = replace(runs[1], heap_pages=Interval(low=90.0, mid=100.0, high=110.0, level=0.9))
    whole = replace(spread, by_table={"t": spread})
    of_runs = [replace(run, by_table={"t": run}) for run in runs]
    found = _failures(numbers).within(whole, of_runs, {"t": {"heap_pages": 60}})
    for outcome in (found, found.by_table["t"]):
        assert ends(outcome.heap_pages or 0.0) == pytest.approx((60, 100, 125))


def test_read_committed_reaches_no_further() -> None:
    failures = _failures([3, 5], "read committed")
    runs = [_outcome(7.0, 1.0), _outcome(5.0, 1.0)]
    spread = replace(runs[0], n_tup_upd=Interval(low=5.0, mid=6.0, high=7.0, level=0.9))
    assert failures.within(spread, runs) == spread
