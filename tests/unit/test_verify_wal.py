"""How much WAL an update writes, held against a curve that is of the long run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_plan import MEASURED, forecast, point

from pgheadroom.types import Interval
from pgheadroom.verify.measures import Case, outcomes_of
from pgheadroom.verify.values import MeasureOutcome
from pgheadroom.verify.windows import Window

CURVE = {100: 100.0, 90: 97.0}
"""Bytes an update in the long run: 96 % HOT at 100, 99 % at 90."""


def _wal(
    hot_updates: int, before: float, now: float, *, by_log: bool | None = True, hot_now: int = 49
) -> MeasureOutcome:
    """A rewritten table that had so many HOT ones of 500 updates when it was planned."""
    return _measures(hot_updates, before, now, by_log, hot_now)["wal_bytes_per_update"]


def _measures(
    hot_updates: int,
    before: float,
    now: float,
    by_log: bool | None,
    hot_now: int,
    foreseen: tuple[float, float] = (0.96, 0.99),
) -> dict[str, MeasureOutcome]:
    then, after = (
        replace(
            point(setting, hot),
            wal_bytes_per_update=Interval(low=wal - 1, mid=wal, high=wal + 1, level=0.9),
        )
        for (setting, wal), hot in zip(CURVE.items(), foreseen, strict=True)
    )
    measured = replace(MEASURED, hot_updates=hot_updates, wal_by_log=by_log)
    case = Case(
        forecast=replace(
            forecast(),
            before=then,
            after=after,
            transition=None,
            measured=replace(measured, wal_bytes_per_update=before),
        ),
        now=replace(measured, hot_updates=10 * hot_now, wal_bytes_per_update=now),
        windows=(Window(updates=50, hot=hot_now, newpage=None),) * 10,
        is_rewritten=True,
        has_arrived=True,
        progress=None,
        updates_per_row=2.0,
        again=None,
        since=None,
    )
    return {one.name: one for one in outcomes_of(case)}


def test_a_table_that_was_loaded_just_now_is_held_against_the_curve() -> None:
    """
    Half the WAL was foreseen, in bytes, and written; by the curve's ratio it was to be 3 % less.

    The table had 54 % HOT when it was planned, since its pages were full, and 96 in the long run.
    """
    found = _wal(270, 203.0, 99.0)
    assert found.verdict == "held"
    assert isinstance(found.forecast, Interval)
    assert found.forecast.mid == pytest.approx(97.0)
    assert _wal(270, 203.0, 180.0).verdict == "failed"


def test_a_table_in_its_long_run_changes_by_the_curves_ratio() -> None:
    """Whatever the twin is off by: it has two thirds of what was measured."""
    found = _wal(480, 150.0, 146.0)
    assert found.verdict == "held"
    assert isinstance(found.forecast, Interval)
    assert found.forecast.mid == pytest.approx(145.5)
    assert _wal(480, 150.0, 97.0).verdict == "failed"


def test_statements_have_images_that_the_curve_has_not() -> None:
    """Of a table that was on its way nothing is said by them."""
    found = _wal(270, 203.0, 99.0, by_log=None)
    assert (found.verdict, found.forecast) == (None, None)
    assert "not yet in the long run" in found.note
    assert _wal(480, 150.0, 146.0, by_log=None).verdict == "held"


@pytest.mark.parametrize("hot_updates", [270, 480])
def test_bytes_of_a_table_whose_hot_share_was_missed_are_not_judged(hot_updates: int) -> None:
    """They follow from it: the share has failed, and says so alone; bytes that came are held."""
    found = _measures(hot_updates, 203.0, 250.0, by_log=True, hot_now=10)
    assert found["hot_frac"].verdict == "failed"
    bytes_now = found["wal_bytes_per_update"]
    assert bytes_now.verdict is None
    assert "more than 5 points beside" in bytes_now.note
    assert "bytes follow from it" in bytes_now.note
    assert _wal(480, 150.0, 146.0, hot_now=10).verdict == "held"


def test_a_hot_share_better_than_foreseen_explains_no_more_bytes() -> None:
    """60 % foreseen and 98 % found: bytes that are more than foreseen have failed."""
    found = _measures(250, 150.0, 400.0, by_log=True, hot_now=49, foreseen=(0.5, 0.6))
    assert found["wal_bytes_per_update"].verdict == "failed"
