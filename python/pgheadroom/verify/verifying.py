"""
Plan, record and a new observation become a verification: a verdict a table.
"""

from __future__ import annotations

from typing import Any

import pgheadroom
from pgheadroom.errors import InputError
from pgheadroom.plan.marks import target_of
from pgheadroom.plan.record import AppliedRecord
from pgheadroom.plan.statements import one_line
from pgheadroom.plan.values import Plan
from pgheadroom.profile import Profile
from pgheadroom.progress import Say
from pgheadroom.sources.recording import Recording
from pgheadroom.units import show_duration
from pgheadroom.verify.state import Foreseer
from pgheadroom.verify.table import VerifiedTable
from pgheadroom.verify.values import Verification


def verify(
    plan: Plan,
    record: AppliedRecord | None,
    profile: Profile,
    recording: Recording,
    *,
    say: Say = lambda _: None,
) -> Verification:
    """
    Hold the forecasts of a plan against a new observation.

    Args:
        plan: With its forecasts.
        record: Of `apply`; None where it was not applied from here.
        profile: Of the recording, unmasked.
        recording: With the tables' counters at each tick.
        say: Told what takes a while.

    Raises:
        InputError: Another database than the plan's, or its profile is none.
    """
    different = plan.target.differs(target_of(profile))
    if different:
        raise InputError(
            f"the plan is for another database ({'; '.join(map(one_line, different))}): expected "
            "the one that was observed"
        )
    server: Any = profile.server.observed
    tables = {int(t.observed.oid): t for t in profile.tables if t.observed is not None}
    notes = [one_line(line) for line in (*server.broken, *server.changed)]
    if record is None and plan.steps:
        notes.append(
            "no record of pgheadroom apply beside the plan: when it was applied, and how far "
            "tables are on their way, is not known"
        )
    length_s = float(server.interval_s)
    then_s = max((f.measured.interval_s for f in plan.forecasts), default=length_s)
    if not 0.5 <= length_s / then_s <= 2:
        notes.append(
            f"this window is {show_duration(length_s)} long, the observation before was "
            f"{show_duration(then_s)}: windows of one length compare best"
        )
    with Foreseer(plan, say) as foreseer:
        outcomes = [
            VerifiedTable(
                forecast,
                plan,
                record,
                tables.get(forecast.table.oid),
                profile,
                recording,
                foreseer,
            ).outcome()
            for forecast in plan.forecasts
        ]
    return Verification(
        tool_version=pgheadroom.__version__,
        server_version=str(profile.server.version),
        database=plan.target.database,
        planned_at=plan.created_at,
        observed_at=str(server.observed_at),
        interval_s=length_s,
        tables=tuple(outcomes),
        notes=tuple(notes),
    )
