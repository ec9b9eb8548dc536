"""The doctor's prices, held against what following its findings gives."""

from __future__ import annotations

import doctor_planned
import pytest
from doctor_applied import CASES, Case, held

from pgheadroom.servers import Host, ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

QUICK = ("bloated-index", "column-padding", "foreign-key-without-index", "unused-index")


def all_held(programs: ServerPrograms, cases: list[Case]) -> None:
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start(doctor_planned.QUIET)
        for case in cases:
            if case.rule == "index-ends-hot" and programs.version.major < 16:
                continue  # 15 does not count updates that found no room
            found = held(cluster, case)
            assert found.is_right, (case.what, found.foreseen, found.measured)


def test_prices_hold(programs: ServerPrograms) -> None:
    """Pages, reads and the log: what is foreseen is what the remedy gives."""
    all_held(programs, [case for case in CASES if case.rule in QUICK])


@pytest.mark.long(reason="all cases; some of each kind are in the test above")
def test_all_prices_hold(programs: ServerPrograms) -> None:
    """At least ten findings, applied as they say."""
    assert len(CASES) >= 10
    all_held(programs, list(CASES))


@pytest.mark.long(reason="minutes; test_doctor_plan.py has the loop")
def test_plans_hold(programs: ServerPrograms) -> None:
    """At least ten findings, planned, applied and verified: each claim is inside its interval."""
    assert len(doctor_planned.CASES) >= 10
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start(doctor_planned.SETTINGS)
        for case in doctor_planned.CASES:
            found = doctor_planned.planned(cluster, case)
            assert found.is_right, (case.what, found.claims)
