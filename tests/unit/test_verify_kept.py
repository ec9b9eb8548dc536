"""The HOT share of a table that was kept as it is, held against its long run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_plan import MEASURED, forecast, point

from pgheadroom.types import Interval
from pgheadroom.verify.comparing import ForecastVerdict
from pgheadroom.verify.measures import Case, outcomes_of
from pgheadroom.verify.values import MeasureOutcome
from pgheadroom.verify.windows import Window


def _hot(
    before: int, foreseen: Interval, now: int, updates_per_row: float | None, *, times: int = 1
) -> MeasureOutcome:
    """So many HOT ones of 500 updates when it was planned, and of 50 in each window now."""
    measured = replace(MEASURED, hot_updates=before * times, updates=500 * times)
    kept = replace(
        forecast(),
        verdict="KEEP",
        fillfactor=100,
        after=replace(point(100, 0.96), hot_frac=foreseen),
        transition=None,
        measured=measured,
    )
    case = Case(
        forecast=kept,
        now=replace(measured, hot_updates=10 * now * times),
        windows=(Window(updates=50 * times, hot=now * times, newpage=None),) * 10,
        is_rewritten=False,
        has_arrived=True,
        progress=None,
        updates_per_row=updates_per_row,
        again=None,
        since=None,
    )
    return next(one for one in outcomes_of(case) if one.name == "hot_frac")


NEAR = Interval(low=0.95, mid=0.96, high=0.97, level=0.9)
WIDE = Interval(low=0.55, mid=0.96, high=1.0, level=0.9)


@pytest.mark.parametrize(
    ("before", "foreseen", "now", "updates_per_row", "verdict"),
    [
        (270, NEAR, 28, 0.2, "undecided"),  # 54 % then, 56 % now
        (270, NEAR, 40, 0.2, "undecided"),  # 80 % now: on its way
        (270, NEAR, 40, None, "undecided"),
        (270, NEAR, 48, 0.2, "held"),
        (270, NEAR, 20, 0.2, "failed"),  # the other way
        (270, NEAR, 40, 2.0, "failed"),  # it has had the time
        (270, NEAR, 28, 2.0, "failed"),
        (270, WIDE, 28, 2.0, "undecided"),  # inside a forecast that says nothing
        (480, NEAR, 40, 0.2, "failed"),  # it had arrived
    ],
)
def test_a_table_that_nobody_changed_has_no_effect_to_miss(
    before: int,
    foreseen: Interval,
    now: int,
    updates_per_row: float | None,
    verdict: ForecastVerdict,
) -> None:
    """
    A table that was kept, and filled up since it was loaded, was told "no effect", as a failure.

    Its long run was foreseen, nothing was done to it, and 0.2 updates a row had come since.
    """
    found = _hot(before, foreseen, now, updates_per_row)
    assert found.verdict == verdict, found.note


def test_a_forecast_that_could_not_be_wrong_says_so_of_a_table_that_was_kept() -> None:
    """It fails as any such forecast does, in words that do not blame a change: there was none."""
    vague = Interval(low=0.3, mid=0.54, high=0.8, level=0.9)
    found = _hot(270, vague, 27, 2.0, times=100)
    assert found.verdict == "failed"
    assert found.note.startswith(
        "nothing was changed, and it is inside the forecast, yet no effect"
    )
