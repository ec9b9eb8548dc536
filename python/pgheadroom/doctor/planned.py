"""
What was found and what is to be done about it, as programs have both: a value with its file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgheadroom.doctor.live_plan import examine_and_plan
from pgheadroom.doctor.planning import PlanWish
from pgheadroom.doctor.values import Diagnosis
from pgheadroom.errors import SourceError
from pgheadroom.files import write_atomically
from pgheadroom.plan.reading import digest, plan_text
from pgheadroom.plan.remedies import RemedyStep
from pgheadroom.plan.statements import check_rewrite
from pgheadroom.plan.values import Plan
from pgheadroom.progress import Say
from pgheadroom.tabular import Row, Tabular


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorPlan(Tabular):
    """
    Findings, and the plan of their remedies.

    Attributes:
        found: What was found; what is no step of the plan is among it.
        plan: The steps in their order, each with statement, lock, undo and claims; `notes` say why
            a finding is no step.
    """

    found: Diagnosis
    plan: Plan

    @property
    def steps(self) -> tuple[RemedyStep, ...]:
        """Those of the plan."""
        return self.plan.remedies or ()

    def to_json(self) -> Mapping[str, Any]:
        """The plan as its file has it, with its digest."""
        return {**self.plan.to_json(), "digest": digest(self.plan)}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """
        Write the plan for `pgheadroom apply`.

        Raises:
            InputError: The file could not be written.
        """
        to = Path(path)
        write_atomically(to, plan_text(self.plan))
        return to

    def rows(self) -> list[Row]:
        """A row a step."""
        return [
            {
                "step": step.number,
                "kind": step.kind,
                "rule": step.rule,
                "object": step.about,
                "sql": step.sql or step.command,
                "undo": step.undo,
                "lock": step.lock,
                "claims": "; ".join(claim.measure for claim in step.claims),
            }
            for step in self.steps
        ]

    def summary(self) -> str:
        """What it is, in a line."""
        count = len(self.steps)
        return f"{count} step{'' if count == 1 else 's'} for {self.found.summary()}"


def plan_live(
    target: str,
    *,
    interval_s: float | None,
    standbys: Sequence[str],
    rewrite: str,
    settings: bool,
    say: Say,
) -> DoctorPlan:
    """
    Examine a live database and plan.

    Args:
        target: A connection, as libpq takes it.
        interval_s: Between two readings of counters; None: one reading.
        standbys: A connection to each.
        rewrite: How tables are rewritten.
        settings: The server's settings too.
        say: Told what happens.

    Raises:
        InputError: A standby, or no such way to rewrite.
        ConnectionFailed: A server does not answer.
        SourceError: The connection ended before a plan could be made.
    """
    check_rewrite(rewrite)
    said: list[str] = []

    def telling(text: str) -> None:
        said.append(text)
        say(text)

    wish = PlanWish(rewrite=rewrite, settings=settings)
    found, plan = examine_and_plan(
        target, {}, wish, standbys=standbys, interval_s=interval_s, say=telling
    )
    if plan is None:
        raise SourceError(said[-1])
    return DoctorPlan(found=found, plan=plan)
