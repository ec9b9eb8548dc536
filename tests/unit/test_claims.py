"""
Claims of a doctor's plan without a server: what a measured number makes of one.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgheadroom.doctor.remedy_steps import unmade
from pgheadroom.doctor.values import Finding, Remedy, no_price
from pgheadroom.plan.record import StepRecord
from pgheadroom.plan.remedies import Claim, PlannedRelation, RemedyState
from pgheadroom.plan.remedy_look import Seen
from pgheadroom.types import Interval
from pgheadroom.verify.claims import ClaimCase, DeadSeen, judged

FINDING = Finding(
    rule="autovacuum-late",
    severity="info",
    object="t",
    text="It comes late.",
    numbers={},
    price=no_price("none"),
    remedy=Remedy(text="VACUUM."),
)
TABLE = PlannedRelation(schema="public", name="t", oid=16400, relfilenode=16400)
CLAIM = Claim(
    measure="n_dead_tup",
    unit="rows",
    before=5000.0,
    foreseen=Interval(low=0.0, mid=1000.0, high=1000.0, level=0.9),
    basis="one",
    how="two",
    of={},
)
DONE = StepRecord(
    number=1,
    state="done",
    finished_at="2026-11-27T00:00:00Z",
    found_before=RemedyState(oid=16400, vacuums=3),
)
CASE = ClaimCase(
    step=unmade(FINDING, "vacuum", "VACUUM", TABLE, "found", (CLAIM,)),
    known=DONE,
    seen=Seen(state=RemedyState(oid=16400)),
    begin=(DeadSeen(dead=0, vacuums=4, died=10_000, naptime_s=60.0, changed=0), None),
    end=(None, None),
)


def verdict(dead: int, died: int, vacuums: int = 4) -> str:
    begin = CASE.begin[0]
    assert begin is not None
    end = replace(begin, dead=dead, died=begin.died + died, vacuums=vacuums)
    of_table = judged(replace(CASE, end=(end, None)), CLAIM)[1]
    # Of its TOAST table it is the same, by that one's counters.
    known = replace(DONE, found_before=RemedyState(oid=16400, vacuums=99, toast_vacuums=3))
    toast = replace(CASE, known=known, begin=(None, begin), end=(None, end))
    assert judged(toast, replace(CLAIM, measure="toast_n_dead_tup"))[1] == of_table
    return of_table


@given(dead=st.integers(0, 100_000), died=st.integers(0, 100_000), vacuums=st.integers(3, 9))
def test_dead_rows_are_held_where_they_are_few(dead: int, died: int, vacuums: int) -> None:
    """However many come and go: what is measured lies in the interval, or it is not held."""
    found = verdict(dead, died, vacuums)
    assert (found == "held") == (dead <= 1000)
    assert (found == "failed") == (dead - died > 1000)


@pytest.mark.parametrize("state", ["pending", "running", "failed", "undone", "yours", "gone"])
def test_what_was_not_done_is_not_judged(state: str) -> None:
    """Nor what nobody knows of."""
    left = replace(CASE, known=replace(DONE, state=state))  # type: ignore[arg-type]
    assert judged(left, CLAIM)[1] == "not comparable"
    assert judged(replace(CASE, known=None), CLAIM)[1] == "not comparable"
    assert judged(replace(CASE, end=(None, None)), CLAIM)[1] == "not comparable"


@pytest.mark.parametrize(
    ("changed", "came", "wanted"),
    [(1000, 0, "held"), (1001, 0, "failed"), (1500, 500, "undecided"), (1501, 500, "failed")],
)
def test_rows_that_changed_since_analyze(changed: int, came: int, wanted: str) -> None:
    """At most those at which autovacuum analyzes; what came in the interval may be those."""
    begin = CASE.begin[0]
    assert begin is not None
    was = replace(begin, changed=changed - came)
    case = replace(CASE, begin=(was, None), end=(replace(begin, changed=changed), None))
    assert judged(case, replace(CLAIM, measure="n_mod_since_analyze"))[1] == wanted


@pytest.mark.parametrize(
    ("before", "now", "wanted"), [(3, 4, "held"), (3, 3, "failed"), (3, 0, "not comparable")]
)
def test_an_analyze_is_counted(before: int, now: int, wanted: str) -> None:
    """One more than before the step; fewer are counters that were reset."""
    claim = replace(CLAIM, measure="is_analyzed", foreseen=Interval.exactly(1.0))
    case = replace(
        CASE,
        known=replace(DONE, found_before=RemedyState(oid=16400, analyzes=before)),
        seen=Seen(state=RemedyState(oid=16400, analyzes=now)),
    )
    assert judged(case, claim)[1] == wanted
