"""Verdicts on forecasts: intervals that know of clusters, and each way to be wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_plan import MEASURED

from pgheadroom.advise.foreseen import Point
from pgheadroom.plan.measured import UpdateShare
from pgheadroom.types import Interval
from pgheadroom.verify.comparing import (
    ON_THE_WAY,
    judge_again,
    judge_heap,
    judge_share,
    judge_wal,
    judge_way,
    leaves_its_course,
    likenesses,
    wal_ratio,
)
from pgheadroom.verify.windows import share_before, share_of


def around(mid: float, half: float) -> Interval:
    return Interval(low=mid - half, mid=mid, high=mid + half, level=0.95)


def test_intervals_cover_clustered_shares() -> None:
    """
    At least 90 of a claimed 95 %, where a binomial interval misses a third and more.

    True shares of the windows differ by 5 points around 80 %; 20,000 independent draws would have
    half a point.
    """
    draw = np.random.default_rng(7)
    covered = plain = 0
    for _ in range(400):
        shares = np.clip(draw.normal(0.8, 0.05, size=20), 0, 1)
        hot = draw.binomial(1000, shares)
        found = share_of(hot.tolist(), [1000] * 20)
        assert found is not None
        assert found.interval is not None
        covered += not found.interval.excludes(0.8)
        alone = share_before(int(hot.sum()), 20_000, 1.0)
        assert alone is not None
        plain += not alone.excludes(0.8)
    assert covered >= 360
    assert plain < 280


def test_intervals_cover_a_share_that_drifts() -> None:
    """Neighbouring windows that are alike make the interval wider, not narrower."""
    steps = [800] * 10 + [900] * 10
    mixed = [800, 900] * 10
    drifting, alternating = share_of(steps, [1000] * 20), share_of(mixed, [1000] * 20)
    assert drifting is not None
    assert alternating is not None
    assert drifting.interval is not None
    assert alternating.interval is not None
    assert drifting.value == alternating.value == 0.85
    assert drifting.interval.high - drifting.interval.low > 1.5 * (
        alternating.interval.high - alternating.interval.low
    )


def test_too_few_windows_have_no_interval() -> None:
    """Four windows do not show how windows differ; no window is no share."""
    found = share_of([1, 2, 3, 4], [10] * 4)
    assert found is not None
    assert found.interval is None
    assert share_of([], []) is None
    full = share_of([50] * 6, [50] * 6)
    assert full is not None
    assert full.interval is not None
    assert full.interval.high == 1.0
    assert full.interval.low < 0.99, "300 of 300 is not certainty"


@pytest.mark.parametrize(
    ("now", "before", "foreseen", "verdict"),
    [
        (around(0.90, 0.01), around(0.5, 0.01), around(0.91, 0.02), "held"),
        (around(0.90, 0.01), None, around(0.91, 0.02), "held"),
        (around(0.70, 0.01), around(0.5, 0.01), around(0.91, 0.02), "failed"),
        (around(0.99, 0.005), around(0.5, 0.01), around(0.91, 0.02), "failed"),
        (around(0.505, 0.01), around(0.5, 0.01), around(0.91, 0.02), "no effect"),
        # The forecast reaches as far as "nothing happens", and nothing has happened.
        (around(0.505, 0.01), around(0.5, 0.01), around(0.6, 0.15), "no effect"),
        # The same forecast, and the effect is there.
        (around(0.60, 0.01), around(0.5, 0.01), around(0.6, 0.15), "held"),
        (around(0.70, 0.25), around(0.5, 0.01), around(0.91, 0.02), "undecided"),
        (None, around(0.5, 0.01), around(0.91, 0.02), "undecided"),
        # The state before is known too roughly to say that nothing has moved.
        (around(0.90, 0.01), around(0.7, 0.25), around(0.91, 0.02), "undecided"),
        # No effect was foreseen.
        (around(0.90, 0.01), around(0.9, 0.01), around(0.905, 0.01), "held"),
        (around(0.80, 0.01), around(0.9, 0.01), around(0.905, 0.01), "failed"),
        (around(0.90, 0.01), around(0.9, 0.01), around(0.905, 0.09), "failed"),
    ],
)
def test_a_share_is_judged(
    now: Interval | None, before: Interval | None, foreseen: Interval, verdict: str
) -> None:
    """Held only where it could have failed."""
    assert judge_share(now, before, foreseen)[0] == verdict


@pytest.mark.parametrize(
    ("now", "final", "verdict"),
    [
        (around(0.6, 0.01), 0.9, "undecided"),
        (around(0.4, 0.01), 0.9, "failed"),
        (around(0.95, 0.01), 0.9, "failed"),
        (around(0.5, 0.01), 0.51, "held"),
        (None, 0.9, "undecided"),
    ],
)
def test_a_table_on_its_way_is_between_the_ends(
    now: Interval | None, final: float, verdict: str
) -> None:
    """Without a rewrite the steady state is no measure of today."""
    assert judge_way(now, around(0.5, 0.01), final, "half way")[0] == verdict


def test_a_size_is_judged_with_what_a_lived_table_has_beside() -> None:
    """5 % and 8 pages; on the way anything between before and after."""
    foreseen = around(1e8, 1e6)
    assert judge_heap(1.05e8, 0.8e8, foreseen, on_the_way=False)[0] == "held"
    assert judge_heap(1.2e8, 0.8e8, foreseen, on_the_way=False)[0] == "failed"
    assert judge_heap(0.85e8, 0.8e8, foreseen, on_the_way=False)[0] == "failed"
    assert judge_heap(0.85e8, 0.8e8, foreseen, on_the_way=True) == ("held", ON_THE_WAY)
    assert judge_heap(1e8, 0.8e8, foreseen, on_the_way=True) == ("held", "inside the forecast")
    assert judge_heap(90_000, 81_920, around(81_920, 0), on_the_way=False)[0] == "held"


def test_what_is_held_beside_the_forecast_is_not_said_to_be_inside() -> None:
    """The limit that it keeps is named."""
    size = around(1e8, 1e6)
    assert judge_heap(1.005e8, None, size, on_the_way=False) == ("held", "inside the forecast")
    above, below = (judge_heap(one, None, size, on_the_way=False) for one in (1.04e8, 0.96e8))
    assert above == ("held", "2.86 MiB above the forecast, 4.77 MiB may be")
    assert below == ("held", "2.86 MiB below the forecast, 4.77 MiB may be")
    share = around(0.95, 0.01)
    assert judge_share(around(0.955, 0.001), None, share) == ("held", "inside the forecast")
    for now, said in ((0.968, "+0.70"), (0.932, "-0.70")):
        verdict, note = judge_share(around(now, 0.001), None, share)
        assert (verdict, note) == ("held", f"{said} points beside the forecast, 1.0 points may be")


def test_a_changed_workload_is_named() -> None:
    """Each property by itself, with its limit; what one side lacks is not compared."""

    def odd(**changes: object) -> list[str]:
        found = likenesses(MEASURED, replace(MEASURED, **changes))  # type: ignore[arg-type]
        return [like.name for like in found if not like.is_alike]

    assert odd() == []
    assert odd(updates=300) == []
    assert odd(updates=200) == ["updates_per_s"]
    assert odd(updates=1100) == ["updates_per_s"]
    assert odd(inserts=400) == ["inserts_per_update"]
    assert odd(tuple_bytes=120.0) == ["tuple_bytes"]
    assert odd(tuple_bytes=None) == []
    assert odd(rows=1400) == ["rows"]
    assert odd(held_frac=0.5) == ["horizon_held_frac"]
    other = (UpdateShare(columns=("state",), frac=0.7), UpdateShare(columns=("id",), frac=0.3))
    assert odd(classes=other) == ["other_columns_frac"]
    assert odd(classes=other, classes_source="statements") == []


def test_a_wide_forecast_for_now_is_no_failure() -> None:
    """What was foreseen again is as wide as it is: inside says nothing, outside has failed."""
    before = around(0.7, 0.01)
    assert judge_again(around(0.9, 0.01), before, around(0.91, 0.01))[0] == "held"
    assert judge_again(around(0.75, 0.01), before, around(0.91, 0.01))[0] == "failed"
    assert judge_again(around(0.7, 0.01), before, around(0.91, 0.01))[0] == "no effect"
    assert judge_again(around(0.7, 0.01), before, around(0.71, 0.2))[0] == "undecided"
    assert judge_share(around(0.7, 0.01), before, around(0.71, 0.2))[0] == "failed"
    assert judge_again(None, before, around(0.91, 0.01))[0] == "undecided"


def test_what_was_foreseen_for_now_is_no_measure_before_the_table_has_arrived() -> None:
    """
    Orders had 0.06 of the 0.42 updates a row that its plan announced, and was said to have failed.

    A share between where it was and where it is to arrive fails nothing until then; one that goes
    the other way does.
    """
    before, forecast = around(0.76, 0.01), around(0.976, 0.005)
    assert judge_again(around(0.83, 0.01), before, forecast)[0] == "failed"
    assert judge_again(around(0.83, 0.01), before, forecast, way="half way")[0] == "undecided"
    assert judge_again(around(0.76, 0.01), before, forecast, way="half way")[0] == "undecided"
    assert judge_again(around(0.60, 0.01), before, forecast, way="half way")[0] == "failed"
    assert judge_again(around(0.975, 0.01), before, forecast, way="half way")[0] == "held"


def wal_point(fillfactor: int, wal_bytes: float) -> Point:
    wal = Interval(low=wal_bytes * 0.98, mid=wal_bytes, high=wal_bytes * 1.02, level=0.9)
    return Point(
        fillfactor=fillfactor,
        hot_frac=None,
        newpage_frac=None,
        heap_bytes=None,
        index_bytes=None,
        wal_bytes_per_update=wal,
        pages_modified_per_update=None,
        seq_scan_pages=None,
    )


def test_wal_is_held_against_what_was_measured_before() -> None:
    """By the ratio of the curve; what only checkpoints can tell apart is shown."""
    ratio = wal_ratio(wal_point(100, 1000.0), wal_point(85, 500.0))
    assert ratio is not None
    assert ratio.mid == pytest.approx(0.5)
    foreseen = ratio.scaled(400.0)  # without what the curve's figure has beside updates
    assert judge_wal(210.0, 400.0, foreseen)[0] == "held"
    assert judge_wal(300.0, 400.0, foreseen)[0] is None
    assert judge_wal(600.0, 400.0, foreseen)[0] == "failed"
    assert wal_ratio(None, wal_point(85, 500.0)) is None
    assert wal_ratio(wal_point(100, 0.0), wal_point(85, 500.0)) is None


def test_a_table_left_as_it_is_stays_on_its_course() -> None:
    """TPC-C's order_line: 74.9 % measured, 75.7 in the long run, 92.8 when played until now."""
    planned = Interval(low=0.644, mid=0.757, high=0.806, level=0.9)
    assert leaves_its_course(Interval(low=0.841, mid=0.928, high=0.991, level=0.9), 0.749, planned)
    for again in (around(0.7, 0.1), around(0.749, 0.0), around(0.8, 0.02), planned):
        assert not leaves_its_course(again, 0.749, planned)
    # On its way from what it had to its long run, in either direction.
    for before in (0.2, 0.95):
        assert not leaves_its_course(around((before + 0.757) / 2, 0.0), before, planned)
    assert leaves_its_course(around(0.1, 0.05), 0.2, planned)


def test_what_a_heap_has_grown_by_has_the_servers_steps() -> None:
    """A heap is extended by many pages at once; what shrank did not grow."""
    foreseen = around(1e6, 1e4)
    assert judge_heap(1.4e6, None, foreseen, on_the_way=False, slack_bytes=64 * 8192)[0] == "held"
    assert judge_heap(1.4e6, None, foreseen, on_the_way=False)[0] == "failed"
    none = around(0.0, 0.0)
    assert judge_heap(-1e6, None, none, on_the_way=False)[0] == "failed"
