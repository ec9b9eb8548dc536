"""What the twin foresees of a table at other settings of autovacuum."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_advise_parts import observed

from pgheadroom.doctor import foreseeing
from pgheadroom.doctor.foreseeing import AS_IT_IS, Foreseen, Way, WaysAsked, foresee, raised_limit
from pgheadroom.profile import Profile
from pgheadroom.profile.observed_server import StoodStill

SLOW = {"autovacuum_vacuum_cost_limit": "2", "autovacuum_vacuum_cost_delay": "100ms"}
"""A page of some twenty that a VACUUM of the table looks at takes a second and more."""


@pytest.fixture(autouse=True)
def short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A twelfth of the work that a doctor's answer takes."""
    monkeypatch.setattr(foreseeing, "_OPERATIONS_MAX", 20_000)


def watched(rows: int = 2000, **settings: str) -> Profile:
    """200 updates a second, none of them HOT; autovacuum comes at 50 and a fifth of the rows."""
    profile = observed(
        rows=rows, indexed=True, sets="state", updates=4000, hot=0, newpage=0, fillfactor=70
    )
    server = replace(
        profile.server, autovacuum=True, autovacuum_naptime_s=1.0, settings=dict(settings)
    )
    return replace(profile, server=server)


def both(profile: Profile, other: Way) -> tuple[Foreseen, Foreseen]:
    """As it is set, and otherwise."""
    (answer,) = foresee(profile, [WaysAsked(table="t", ways=(AS_IT_IS, other))], budget_s=600.0)
    assert not isinstance(answer, str), answer
    now, then = answer
    return now, then


def most(foreseen: Foreseen) -> int:
    low, middle, high = foreseen.dead_rows
    assert 0 <= low <= middle <= high
    return middle


def test_a_smaller_scale_factor_leaves_fewer_dead_rows() -> None:
    """The trigger, and what dies in a naptime before autovacuum looks and while it works."""
    now, then = both(watched(), Way(options={"autovacuum_vacuum_scale_factor": "0.05"}))
    assert 450 <= most(now) <= 450 + 3 * 200
    assert 150 <= most(then) <= 150 + 3 * 200
    low, _, high = now.dead_rows
    assert (low, high) == pytest.approx((0.75 * most(now) - 200, 1.25 * most(now) + 200), rel=0.1)
    assert then.vacuums_per_day[0] > 1.5 * now.vacuums_per_day[1]


def test_the_pace_decides_where_the_limit_is_low() -> None:
    """More at once: the same trigger, and a VACUUM that takes no longer than a moment."""
    profile = watched(**SLOW)
    limit = raised_limit(profile.server, profile.tables[0])
    assert limit == 20
    now, then = both(profile, Way(settings={"autovacuum_vacuum_cost_limit": "10000"}))
    assert most(now) > 2 * most(then)
    assert most(then) <= 450 + 3 * 200


def test_who_holds_the_horizon_keeps_dead_rows() -> None:
    """What was held in the interval is held again, and what nobody holds goes."""
    profile = watched()
    server = profile.server
    assert server.observed is not None
    held = replace(
        server.observed.horizon, stood_still=(StoodStill(start_frac=0.0, length_frac=0.9),)
    )
    profile = replace(
        profile, server=replace(server, observed=replace(server.observed, horizon=held))
    )
    now, then = both(profile, Way(is_held=False))
    assert most(now) > 2 * most(then)


def test_dead_rows_that_pruning_leaves_are_counted() -> None:
    """Updates that are HOT leave none to VACUUM, and some of them wait for the next one all day."""
    profile = observed(rows=2000, updates=4000, hot=4000, newpage=0, fillfactor=50)
    server = replace(profile.server, autovacuum=True, autovacuum_naptime_s=1.0, settings={})
    now, then = both(
        replace(profile, server=server), Way(options={"autovacuum_vacuum_scale_factor": "10"})
    )
    assert now.vacuums_per_day == then.vacuums_per_day == (0.0, 0.0)
    assert 0 < most(now) < 450
    assert most(now) == most(then)


def test_what_wal_contradicts_is_foreseen_all_the_same() -> None:
    """Which column changes nobody saw; that updates are not HOT is what leaves dead rows."""
    profile = watched()
    server = profile.server
    assert server.observed is not None
    counters = replace(server.observed.counters, wal_position_bytes=4000 * 50)
    short = replace(
        profile, server=replace(server, observed=replace(server.observed, counters=counters))
    )
    now, _ = both(short, AS_IT_IS)
    assert 450 <= most(now) <= 450 + 3 * 200


def test_nothing_is_foreseen_without_time_or_work() -> None:
    """It is said why, and no figure is shown."""
    question = WaysAsked(table="t", ways=(AS_IT_IS,))
    (answer,) = foresee(watched(), [question], budget_s=0.0)
    assert answer == "its 0 s of processor time were spent"
    profile = watched()
    idle = replace(profile, workload=replace(profile.workload, operations=()))
    (answer,) = foresee(idle, [question], budget_s=600.0)
    assert isinstance(answer, str)
    assert "nothing that changes it" in answer
