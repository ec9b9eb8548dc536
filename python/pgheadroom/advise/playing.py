"""
Playing one table: the calibration, what an index costs, the curve, and the answer by these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from pgheadroom.advise.calibrate import Fitted, calibrate
from pgheadroom.advise.cold_updates import Cause
from pgheadroom.advise.curve import (
    Costed,
    beside,
    candidates,
    curve_of,
    transition_of,
    with_more_runs,
    without_indexes,
)
from pgheadroom.advise.decide import Decision, abstain, against, decide, not_repeated
from pgheadroom.advise.foreseen import Transition
from pgheadroom.advise.guard import Guard
from pgheadroom.advise.index_finding import Findings, blamed_of, predicted
from pgheadroom.advise.parting import Weighing, weigh_others
from pgheadroom.advise.policy import Policy
from pgheadroom.advise.remark_index import index_remark, reads_of
from pgheadroom.advise.runs import Runner
from pgheadroom.advise.scenario import Scenario
from pgheadroom.advise.shares import observed_shares
from pgheadroom.advise.table_advice import Remark
from pgheadroom.advise.updates import updates_per_s
from pgheadroom.advise.width import width_of
from pgheadroom.profile import Profile
from pgheadroom.profile.tables import TableProfile
from pgheadroom.profile.unpriced import unpriced_of
from pgheadroom.types import PgVersion

_INDEXES_MAX = 3  # of a table, that are played


class Play(Protocol):
    """Plays a scenario at some fillfactors, for points of the curve."""

    def __call__(self, scenario: Scenario, fillfactors: Sequence[int]) -> tuple[Costed, ...]:
        """Play it."""


class Playing:
    """
    One table's runs, as far as they have come: they stay where a later one fails.

    Args:
        profile: Observed.
        table: Of it, with counted updates.
        causes: Those updates by cause.
        findings: Indexes of it that end HOT, by rule.
        version: That the twin follows.
        policy: What things cost.
        sample_pages: Heap pages that are simulated.
        runner: Where the twin runs.

    Attributes:
        fitted: The calibration; None where the table has no operations.
        curve: The points, with their costs.
        findings: The same, with the twin's figures where it has played the table without them.
        index_remarks: What is said of these, by the index's name.
        missing: What was not known and would have helped.
    """

    def __init__(
        self,
        profile: Profile,
        table: TableProfile,
        causes: Sequence[Cause],
        findings: Findings,
        *,
        version: PgVersion,
        policy: Policy,
        sample_pages: int,
        runner: Runner,
    ) -> None:
        self.fitted: Fitted | None = None
        self.curve: tuple[Costed, ...] = ()
        self.findings = findings
        self.index_remarks: dict[str, Remark] = {}
        self.missing: list[str] = []
        self._profile = profile
        self._table = table
        self._causes = causes
        self._version = version
        self._policy = policy
        self._sample_pages = sample_pages
        self._runner = runner

    def decision(self) -> Decision:
        """
        Play the table to its end.

        Raises:
            TwinError: The twin cannot play it.
        """
        table, version, runner = self._table, str(self._version), self._runner
        shares = observed_shares(table)
        assert shares is not None, "a table without counted updates is not worth playing"
        fitted = calibrate(
            self._profile, table, shares, version, runner, sample_pages=self._sample_pages
        )
        if fitted is None:
            return abstain(
                "no operation of it could be made out, for rows are found by a unique index and it "
                "has none",
                settled_by="observe again with one over a column that never changes",
            )
        self.fitted = fitted
        if fitted.guard.reason is not None:
            return self._contradicted(fitted.guard)
        unlike = not_repeated(table, fitted.calibration, fitted.off)
        if unlike is not None:  # nor is its curve what the table would do
            return unlike
        width = width_of(self._profile, table)
        self.missing += [text for text in (width.text, fitted.guard.missing) if text]

        def play(scenario: Scenario, fillfactors: Sequence[int]) -> tuple[Costed, ...]:
            found = curve_of(
                table,
                scenario,
                fillfactors,
                version,
                self._policy,
                runner,
                off=fitted.off,
                width=width.half,
                unplayed=fitted.guard.unplayed,
            )
            return tuple(replace(one, point=fitted.guard.shown(one.point)) for one in found)

        self._weigh_indexes(fitted.scenario, play)
        self.curve = _whole(fitted.scenario, table, play)
        decision = self._decided(fitted, self.curve, width.half)
        if decision.is_near and runner.in_time:
            pair = (table.fillfactor, decision.compared)
            self.curve = tuple(
                with_more_runs(
                    one, table, version, self._policy, runner, unplayed=fitted.guard.unplayed
                )
                if one.point.fillfactor in pair
                else one
                for one in self.curve
            )
            decision = self._decided(fitted, self.curve, width.half)
        decision = self._whatever_is_picked(fitted, decision, play, width.half)
        hidden = [one for one in self.curve if one.point.cost is None]
        if decision.verdict == "CHANGE" and any(
            one.point.fillfactor in (table.fillfactor, decision.fillfactor) for one in hidden
        ):
            return abstain(
                "in the long run the twin has more WAL of an update than the server can have "
                "written, so nothing is compared",
                settled_by="try another fillfactor and observe again",
            )
        return decision

    def transition(self, fillfactor: int) -> Transition | None:
        """The way to a setting of the curve, over the longest run of it and of the one in force."""
        wanted = {self._table.fillfactor, fillfactor}
        played = [
            found.scenario
            for found in self.curve
            if found.scenario is not None and found.point.fillfactor in wanted
        ]
        longest = max(played, key=lambda scenario: scenario.duration_s)
        return transition_of(self._table, longest, fillfactor, str(self._version), self._runner)

    def _decided(self, fitted: Fitted, curve: Sequence[Costed], width: float) -> Decision:
        return decide(
            self._table,
            fitted.calibration,
            fitted.off,
            curve,
            self._policy,
            growth_bytes=fitted.growth_bytes,
            width=width,
        )

    def _whatever_is_picked(
        self, fitted: Fitted, decision: Decision, play: Play, width: float
    ) -> Decision:
        """The answer that holds for all picks of rows that agree with the interval."""
        if fitted.reading is None:
            return decision
        table, calibration = self._table, fitted.calibration

        def held_against(curve: Sequence[Costed], fillfactor: int) -> Decision:
            return against(
                table, calibration, fitted.off, curve, self._policy, fillfactor, width=width
            )

        weighed = weigh_others(
            fitted.reading.told,
            table.fillfactor,
            self.curve,
            decision,
            fitted.others,
            Weighing(
                play=lambda other, fillfactors: play(other.scenario, fillfactors),
                whole=lambda other: _whole(other.scenario, table, play),
                decide=lambda curve: self._decided(fitted, curve, width),
                against=held_against,
            ),
        )
        self.curve = weighed.curve
        if weighed.said and calibration.fit is not None:  # `verify` foresees by it
            fit = replace(calibration.fit, off=max(calibration.fit.off, weighed.apart))
            self.fitted = replace(fitted, calibration=replace(calibration, fit=fit))
        self.missing += [text for text in (weighed.said,) if text]
        return weighed.decision

    def _contradicted(self, guard: Guard) -> Decision:
        """No answer of the twin: neither its verdict nor a figure of it is shown."""
        assert guard.reason is not None, "the caller has looked"
        self.missing += [text for text in (guard.missing,) if text]
        return abstain(guard.reason, settled_by="try another fillfactor and observe again")

    def _weigh_indexes(self, scenario: Scenario, play: Play) -> None:
        """Each index that ends HOT: the table without it, before its curve."""
        made = list(self.findings.each)
        out = self.fitted.guard.left_out if self.fitted is not None else ()
        is_priced = not (out or unpriced_of(self._table))
        for n, finding in enumerate(made[:_INDEXES_MAX]):
            without = without_indexes(scenario, (finding.name,))
            reads = reads_of(self._table, finding.name)
            if without is None or reads is None or finding.enforces is not None:
                continue
            (now,) = play(scenario, (self._table.fillfactor,))
            (then,) = play(without, (self._table.fillfactor,))
            made[n] = predicted(
                finding,
                now.point,
                then.point,
                updates_per_s(self._table),
                is_priced=is_priced,
            )
            if f"{finding.name} ({reads.method})" in out:
                reads = replace(reads, is_priced=False)
            remark = index_remark(
                blamed_of(finding, self._causes),
                reads,
                now.point,
                then.point,
                major=self._version.major,
                finding=finding,
            )
            if remark is not None:
                self.index_remarks[finding.name] = remark
        together = list(self.findings.together)
        for n, several in enumerate(together):
            without = without_indexes(scenario, several.names)
            if without is None:
                continue
            (now,) = play(scenario, (self._table.fillfactor,))
            (then,) = play(without, (self._table.fillfactor,))
            together[n] = predicted(
                several,
                now.point,
                then.point,
                updates_per_s(self._table),
                is_priced=is_priced,
            )
        self.findings = Findings(each=tuple(made), together=tuple(together))


def _whole(scenario: Scenario, table: TableProfile, play: Play) -> tuple[Costed, ...]:
    """All fillfactors that are tried, by falling fillfactor."""
    found = play(scenario, candidates(table))
    found += play(scenario, beside(found))
    return tuple(sorted(found, key=lambda one: -one.point.fillfactor))
