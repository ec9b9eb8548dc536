"""Where chance decides between two settings, more runs do, and what is left of it is said."""

from __future__ import annotations

import pytest
from observed_table import counters, profile_of, seen_of_server
from test_advise_living import scenario_of
from test_advise_parts import observed

from curve_points import point_of
from pgheadroom.advise import decide
from pgheadroom.advise.counters import without_curve
from pgheadroom.advise.curve import SEEDS, SEEDS_NEAR, Costed, curve_of, with_more_runs
from pgheadroom.advise.decide import Decision
from pgheadroom.advise.foreseen import Calibration
from pgheadroom.advise.policy import make_policy
from pgheadroom.advise.runs import Runner


def _decided(*costs: tuple[float, ...], fillfactors: tuple[int, ...] = (100, 90)) -> Decision:
    calibration = Calibration(
        observed_hot_frac=0.9,
        predicted_hot_frac=0.9,
        observed_newpage_frac=0.1,
        predicted_newpage_frac=0.1,
        agrees=True,
        fitted=(),
        note="",
    )
    curve = [
        Costed(point=point_of(f, hot=1 - f / 1000, heap_bytes=1e9), costs=found)
        for f, found in zip(fillfactors, costs, strict=True)
    ]
    return decide.decide(observed().tables[0], calibration, 0.0, curve, make_policy())


@pytest.mark.parametrize(
    ("then", "verdict", "is_near"),
    [
        ((5.0, 5.1, 5.2), "CHANGE", False),
        ((4.2, 7.1, 4.4), "CHANGE", True),  # a vacuum between two checkpoints, in one of three
        ((4.2, 9.9, 4.4), "KEEP", True),
        ((9.9, 9.9, 9.9), "KEEP", False),
        ((9.5, 9.9, 10.1), "KEEP", True),
    ],
)
def test_a_verdict_says_that_chance_decides_it(
    then: tuple[float, ...], verdict: str, is_near: bool
) -> None:
    """One of five observations of a table was told KEEP: 32.5 [2.0, 47.7] % of three runs."""
    found = _decided((10.0,) * 3, then)
    assert (found.verdict, found.is_near) == (verdict, is_near)
    assert found.compared == 90 or not is_near
    assert ("near" in found.reason) == is_near


def test_settings_are_compared_over_the_runs_that_both_have() -> None:
    """Two have been played oftener than the rest: the same seeds stand beside each other."""
    few, more = (10.0, 11.0, 12.0), (10.0, 11.0, 12.0, 99.0, 99.0)
    half = tuple(cost / 2 for cost in more)
    found = _decided(more, half, few, fillfactors=(100, 90, 80))
    assert (found.verdict, found.fillfactor) == ("CHANGE", 90)
    same = _decided(more, few, half, fillfactors=(100, 90, 80))
    assert (same.verdict, same.fillfactor) == ("CHANGE", 80)


def test_more_runs_begin_with_those_that_there_were() -> None:
    """Common random numbers stay common, and nothing is played twice."""
    profile = observed()
    table, policy = profile.tables[0], make_policy()
    with Runner() as runner:
        scenario = scenario_of(profile)
        found, other = curve_of(table, scenario, (100, 90), "18.4", policy, runner, off=0.0)
        again = with_more_runs(found, table, "18.4", policy, runner)
    assert len(found.costs) == SEEDS < SEEDS_NEAR == len(again.costs)
    assert again.costs[:SEEDS] == found.costs
    assert len(set(again.costs)) > SEEDS, "each run is another one"
    assert again.point == found.point
    assert len(other.costs) == SEEDS


@pytest.mark.parametrize(
    ("fillfactor", "pages", "is_open"), [(80, 200, True), (80, 260, False), (100, 140, False)]
)
def test_pages_that_were_filled_before_a_setting_are_not_its_pages(
    fillfactor: int, pages: int, is_open: bool
) -> None:
    """
    A table that a plan had set to 80 was advised 50 twenty minutes later.

    Its old pages, filled at 100, had the updates, and the twin took them for pages of 80.
    """
    profile = profile_of(
        counters(1000, 500, 500), fillfactor=fillfactor, main_bytes=pages * 8192, rows=10_000
    )
    server = seen_of_server()
    found = without_curve(profile.tables[0], server, make_policy())
    assert (found is not None and "filled before" in found.reason) == is_open
