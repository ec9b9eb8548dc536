"""Which rows may be updated where nobody saw it: what a sample rules out, and what is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curve_points import point_of
from lengths import examples
from pgheadroom.advise import Options, advise
from pgheadroom.advise.calibrate import Fits, Fitted, calibrate
from pgheadroom.advise.curve import Costed
from pgheadroom.advise.decide import against, decide
from pgheadroom.advise.foreseen import Calibration
from pgheadroom.advise.knobs import Knobs
from pgheadroom.advise.parting import Weighed, Weighing, weigh_others
from pgheadroom.advise.picks import readings
from pgheadroom.advise.policy import DEFAULT_POLICY, make_policy
from pgheadroom.advise.runs import Runner, ScenarioPiece
from pgheadroom.advise.scenario import SAMPLE_PAGES, make_scenario
from pgheadroom.advise.shares import observed_shares
from pgheadroom.profile import Profile, read_profile
from pgheadroom.profile.tables import TableProfile
from pgheadroom.types import Interval

RECORD = Path(__file__).parents[2] / "experiments" / "advice" / "record" / "observed"


def recorded(name: str) -> Profile:
    """An observation of the advice benchmark."""
    (path,) = RECORD.glob(f"{name}-????????.json")
    return read_profile(path)


def changed(profile: Profile, **observed: Any) -> Profile:
    """The same with other things observed of its table."""
    (table,) = profile.tables
    assert table.observed is not None
    table = replace(table, observed=replace(table.observed, **observed))
    return replace(profile, tables=(table,))


def told(profile: Profile) -> list[str]:
    """The picks left open."""
    return [one.told for one in readings(profile, profile.tables[0])]


# What a sample rules out


def sampled(written: int, *, rows: int, inserts: int, updates: int, drawn: float = 1.0) -> Profile:
    """A table of which so many rows were written in the interval, drawn in part."""
    profile = recorded("once-now400")
    seen = profile.tables[0].observed
    assert seen is not None
    assert seen.sample is not None
    profile = changed(
        profile,
        counters=replace(seen.counters, n_tup_upd=updates, n_tup_ins=inserts),
        sample=replace(seen.sample, rows=round(rows * drawn), recent_rows=round(written * drawn)),
    )
    return replace(profile, tables=(replace(profile.tables[0], rows=rows),))


@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(
    st.integers(1000, 40_000),
    st.floats(0.02, 3.0),
    st.floats(0.0, 0.4),
    st.sampled_from(["any", "last", "80 %", "95 %"]),
    st.sampled_from([1.0, 0.3]),
    st.integers(0, 9),
)
def test_the_pick_that_was_is_not_ruled_out(
    rows: int, turns: float, inserted: float, which: str, drawn: float, seed: int
) -> None:
    """Rows are written as the pick says; a sample of the table has that many young ones."""
    draw = np.random.default_rng(seed)
    inserts, updates = round(inserted * rows), max(50, round(turns * rows))
    old = rows - inserts
    chosen = draw.integers(0, rows, updates)
    if which == "last":
        inserts = max(inserts, 1)
        chosen = draw.integers(rows - inserts, rows, updates)
    elif which != "any":
        frac, weight = {"80 %": (0.2, 0.8), "95 %": (0.05, 0.95)}[which]
        hot = max(1, round(frac * rows))
        places = draw.permutation(rows)  # the hot ones lie anywhere, young and old
        is_hot = draw.random(updates) < weight
        ranks = np.where(is_hot, draw.integers(0, hot, updates), draw.integers(hot, rows, updates))
        chosen = places[ranks]
    written = inserts + len(np.unique(chosen[chosen < old]))
    profile = sampled(written, rows=rows, inserts=inserts, updates=updates, drawn=drawn)
    assert any(one.startswith(("the " if which == "last" else "") + which) for one in told(profile))


def test_one_row_has_no_hot_rows_beside_others() -> None:
    """The twin was asked for `hot rows: found 1, expected 1 to 0`, of graphile's only queue."""
    alone, two = (
        told(changed(sampled(1, rows=rows, inserts=0, updates=500), sample=None)) for rows in (1, 2)
    )
    assert alone == ["any, each as likely", "the last inserted"]
    assert two == [
        *alone,
        "80 % of the updates on 20 % of the rows",
        "95 % of the updates on 5 % of the rows",
    ]


def test_rows_that_were_written_tell_picks_apart() -> None:
    """2,007 of 18,006 rows are young after 1,986 inserts and as many updates: of these."""
    profile = recorded("once-now400")
    assert told(profile) == ["the last inserted"]
    assert "any, each as likely" in told(changed(profile, sample=None)), "nobody looked"
    assert told(recorded("fine-counters")) == ["the same 12 rows"], "5,901 updates of twelve rows"
    assert told(recorded("inserts-70")) == ["any, each as likely"]


def test_a_pick_that_was_seen_is_not_asked_for_again() -> None:
    """Neither where ages of a sample gave it, nor where statements follow the rows."""
    profile = recorded("once-now400")
    seen = profile.tables[0].observed
    assert seen is not None
    known = replace(seen.updates, pick=replace(seen.updates.pick, evidence="sampled"))
    assert told(changed(profile, updates=known, sample=None)) == []


# What is played


def _fitted(profile: Profile) -> tuple[Fitted, list[ScenarioPiece]]:
    (table,) = profile.tables
    shares = observed_shares(table)
    assert shares is not None
    asked: list[ScenarioPiece] = []

    class Counting(Runner):
        def play(self, pieces: Any) -> Any:
            found = list(pieces)
            asked.extend(found)
            return super().play(found)

    with Counting() as runner:
        found = calibrate(profile, table, shares, "18.4", runner, sample_pages=SAMPLE_PAGES)
    assert found is not None
    return found, asked


def test_all_picks_that_repeat_an_interval_are_kept() -> None:
    """89 % for 91 % with any rows; at another age the last inserted have 91 % too."""
    profile = changed(recorded("once-now400"), sample=None)
    found, _ = _fitted(profile)
    assert found.reading is not None
    assert found.reading.told == "any, each as likely"
    assert "the last inserted" in [other.reading.told for other in found.others]
    assert "other rows updated would give it too: " in found.calibration.note


def test_a_pick_that_is_known_costs_no_more_runs() -> None:
    """Three: two to compare, and the third of the curve."""
    profile = recorded("uniform-90")
    found, asked = _fitted(profile)
    assert found.calibration.agrees
    assert (found.reading, found.others) == (None, ())
    assert len(asked) == 3


def test_an_advice_follows_the_rows_that_were_updated() -> None:
    """
    Each row was updated once, at its insert: 90 was advised, which costs 5 and 11 % more.

    Any rows repeat the interval (89.2 % for 90.7 % HOT) and would have 84 % in the long run; the
    last inserted ones had 94.1 % in the window that was measured.
    """
    profile = recorded("once-now400")
    for policy in (DEFAULT_POLICY, make_policy("balanced", {"kept_gb": 10_000.0})):
        (table,) = advise(profile, Options(budget_s=600, policy=policy)).tables
        assert (table.verdict, table.advised_fillfactor) == ("KEEP", 100), table.reason


def test_two_answers_are_none() -> None:
    """Without the sample nothing tells the picks apart, and they part."""
    profile = changed(recorded("once-now400"), sample=None)
    (table,) = advise(profile, Options(budget_s=600)).tables
    assert table.verdict == "ABSTAIN", table.reason
    assert "any, each as likely" in table.reason
    assert "the last inserted" in table.reason
    assert "observe for longer" in table.reason


# How the answers of several picks become one


def _table() -> TableProfile:
    return recorded("uniform-90").tables[0]


def _curve(costs: dict[int, tuple[float, float]]) -> tuple[Costed, ...]:
    """By fillfactor: HOT share and cost."""
    return tuple(
        Costed(
            point=replace(
                point_of(f, heap_bytes=1e9 * 100 / f),
                hot_frac=Interval(low=hot - 0.01, mid=hot, high=hot + 0.01, level=0.9),
            ),
            costs=(cost,) * 3,
        )
        for f, (hot, cost) in costs.items()
    )


def _weighed(first: tuple[Costed, ...], *others: tuple[Costed, ...]) -> Weighed:
    table = _table()
    calibration = Calibration(
        observed_hot_frac=0.8,
        predicted_hot_frac=0.8,
        observed_newpage_frac=0.2,
        predicted_newpage_frac=0.2,
        agrees=True,
        fitted=(),
        note="",
    )
    policy = make_policy()
    profile = recorded("once-now400")
    scenario = make_scenario(profile, profile.tables[0], Knobs(), sample_pages=10)
    assert scenario is not None
    unseen = changed(profile, sample=None)
    picks = readings(unseen, unseen.tables[0])
    curves = {pick.told: curve for pick, curve in zip(picks[1:], others, strict=False)}

    def decided(curve: Sequence[Costed]) -> Any:
        return decide(table, calibration, 0.0, curve, policy)

    return weigh_others(
        picks[0].told,
        table.fillfactor,
        first,
        decided(first),
        [Fits(reading=pick, scenario=scenario) for pick in picks[1 : 1 + len(others)]],
        Weighing(
            play=lambda other, fillfactors: tuple(
                one for one in curves[other.reading.told] if one.point.fillfactor in fillfactors
            ),
            whole=lambda other: curves[other.reading.told],
            decide=decided,
            against=lambda curve, f: against(table, calibration, 0.0, curve, policy, f),
        ),
    )


STAYS = _curve({100: (0.98, 10.0), 90: (0.99, 9.95)})
TO_90 = _curve({100: (0.8, 10.0), 90: (0.99, 8.0), 80: (0.99, 8.1)})
TO_80 = _curve({100: (0.7, 10.0), 90: (0.85, 8.0), 80: (0.99, 6.0)})
ONLY_80 = _curve({100: (0.7, 10.0), 90: (0.71, 9.99), 80: (0.99, 6.0)})


def test_picks_that_stay_together_leave_the_answer() -> None:
    """A point apart in the long run: shares reach over both, nothing else is played or said."""
    near = _curve({100: (0.79, 10.0), 90: (0.98, 8.0)})
    found = _weighed(TO_90, near)
    assert (found.decision.verdict, found.decision.fillfactor, found.said) == ("CHANGE", 90, "")
    share = found.curve[0].point.hot_frac
    assert isinstance(share, Interval)
    assert (share.low, share.mid, share.high) == pytest.approx((0.78, 0.80, 0.81))


def test_one_answer_of_picks_that_part_is_as_wide_as_they_are() -> None:
    """20 and 40 % are saved: both say 80, and the gain reaches over both."""
    found = _weighed(TO_80, _curve({100: (0.9, 10.0), 90: (0.9, 10.0), 80: (0.99, 8.0)}))
    assert (found.decision.verdict, found.decision.fillfactor) == ("CHANGE", 80)
    assert isinstance(found.decision.gain_frac, Interval)
    assert found.decision.gain_frac.low < 0.2
    assert found.decision.gain_frac.high > 0.4
    assert found.apart == pytest.approx(0.2)
    assert "repeat the interval alike" in found.said


def test_settings_that_part_give_the_highest_that_pays_for_all() -> None:
    """By one 90, by the other 80; 90 saves by both, or only 80 does."""
    for first, second in ((TO_90, TO_80), (TO_80, TO_90)):
        found = _weighed(first, second)
        assert (found.decision.verdict, found.decision.fillfactor) == ("CHANGE", 90)
    assert _weighed(TO_90, ONLY_80).decision.fillfactor == 80


def test_a_change_and_none_are_no_answer() -> None:
    """Whichever was followed first; three picks: the two that are farthest apart are named."""
    for first, *others in ((TO_90, STAYS), (STAYS, TO_90), (STAYS, TO_90, TO_80)):
        found = _weighed(first, *others)
        assert found.decision.verdict == "ABSTAIN"
        assert found.decision.fillfactor is None
        assert "HOT in the long run at 100: then it stays" in found.decision.reason
        assert "observe for longer" in found.decision.reason
