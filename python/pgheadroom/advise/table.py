"""
One table on its way to its advice: what is known at once, and what playing it adds.

At once: counters, layout and rules say what plainly stays, what an index or a held horizon has
done, which index by which column, and what it costs. That takes milliseconds, so every table has
it. Playing it adds the twin's figures: the calibration, the index what-ifs, the curve, the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pgheadroom.advise.advice import (
    HOT_MOVES,
    Blamed,
    DecidedBy,
    IndexFinding,
    Remark,
    TableAdvice,
    Transition,
    mid,
)
from pgheadroom.advise.calibrate import Fitted, calibrate
from pgheadroom.advise.causes import causes_of
from pgheadroom.advise.curve import (
    Costed,
    beside,
    candidates,
    curve_of,
    transition_of,
    with_more_runs,
    without_index,
)
from pgheadroom.advise.decide import (
    Decision,
    abstain,
    decide,
    keep,
    most,
    not_repeated,
    why_pages,
    without_curve,
)
from pgheadroom.advise.decide import (
    against as hold_against,
)
from pgheadroom.advise.guard import Guard, measured_of
from pgheadroom.advise.index_finding import findings_of, predicted
from pgheadroom.advise.parting import Weighing, weigh_others
from pgheadroom.advise.policy import Policy
from pgheadroom.advise.remark_index import index_remark, reads_of, rule_remark
from pgheadroom.advise.remarks import table_remarks
from pgheadroom.advise.room import held_frac
from pgheadroom.advise.runs import Runner
from pgheadroom.advise.scenario import Scenario
from pgheadroom.advise.shares import observed_shares
from pgheadroom.advise.stake import stake_of
from pgheadroom.advise.updates import updates_of
from pgheadroom.advise.width import width_of
from pgheadroom.errors import TwinError
from pgheadroom.profile import Profile
from pgheadroom.profile.tables import TableProfile
from pgheadroom.types import PgVersion
from pgheadroom.units import show_bytes, show_duration, show_share

_INDEXES_MAX = 3  # of a table, that are played
_BY_INDEX = 0.9  # of the updates that missed HOT: then it is an index, and hardly anything else
_BY_INDEX_TOO = 0.5  # the same: then room alone must show that it helps
_COLD_MIN = 0.05  # of the updates: fewer that miss HOT are not what a table's advice is about
_PLENTY_OF_HOT = 0.02  # of the updates miss HOT: less is not worth more room
_HELD_MIN = 0.5  # of the interval: then the horizon explains what missed HOT


class TableCase:
    """
    A table and what has been found out about it so far.

    Args:
        profile: Observed.
        table: Of it.
        version: That the twin follows.
        policy: What things cost.
        sample_pages: Heap pages that are simulated.
    """

    def __init__(
        self,
        profile: Profile,
        table: TableProfile,
        version: PgVersion,
        policy: Policy,
        sample_pages: int,
    ) -> None:
        assert profile.server.observed is not None, "checked by the caller"
        assert table.observed is not None, "checked by the caller"
        self._profile = profile
        self._table = table
        self._facts = table.observed
        self._version = version
        self._policy = policy
        self._sample_pages = sample_pages
        server = profile.server.observed
        updates = updates_of(table, version.major)
        self._causes = causes_of(table, version.major, server)
        self.findings = findings_of(table, updates, self._causes, version.major, server)
        self.stake = stake_of(table, updates, self._causes, server)
        self.most = most(table, policy)
        self._decision = without_curve(table, server, policy)
        self._decided_by: DecidedBy = "counters"
        self.is_played = False
        self._fitted: Fitted | None = None
        self._curve: tuple[Costed, ...] = ()
        self._transition: Transition | None = None
        self._index_remarks: dict[str, Remark] = {}
        self._missing: list[str] = []

    @property
    def name(self) -> str:
        """The table's, in the profile."""
        return self._table.name

    @property
    def updates_per_s(self) -> float:
        """As observed."""
        return float(self._facts.per_s.n_tup_upd or 0.0)

    @property
    def is_worth_playing(self) -> bool:
        """Whether counters alone do not decide."""
        return self._decision is None

    @property
    def is_not_weighed(self) -> bool:
        """Whether it was worth playing and not reached, and no rule decided instead."""
        decision = self._decision
        left = not self.is_played and self._decided_by == "counters"
        return decision is not None and left and decision.verdict == "ABSTAIN"

    def leave(self, *, budget_s: float, played: int, worth: int) -> None:
        """Decide without playing it, for the budget was spent on others."""
        ruled = self._by_rule()
        if ruled is not None:
            self._decision, self._decided_by = ruled, "rule"
            return
        at_stake = show_bytes(self.stake.wal_bytes_per_day)
        self._decision = abstain(
            f"not weighed: {played} of {worth} tables were played in {show_duration(budget_s)} of "
            f"processor time, those with more WAL at stake first (here {at_stake} a day, "
            f"{self.stake.evidence})",
            settled_by=f"--table {self.name} plays this one, --budget more of them",
        )

    def play(self, runner: Runner) -> None:
        """Play the table to its end: calibration, indexes, curve, and the way to a change."""
        self.is_played = True
        self._decided_by = "twin"
        try:
            decision = self._played(runner)
        except TwinError as error:
            decision = abstain(
                f"the twin cannot play it ({error})",
                settled_by="take what that names out of the profile, which is then advised on",
            )
        decision = self._not_for_hot(decision)
        ruled = self._by_rule() if decision.verdict == "ABSTAIN" else None
        if ruled is not None:
            if ruled.verdict == "KEEP":  # by HOT; images and pages only a play can weigh
                unseen = f"its WAL at others is not foreseen: {decision.reason}"
                ruled = replace(ruled, reason=f"{ruled.reason}; {unseen}")
            decision, self._decided_by = ruled, "rule"
        self._decision = decision
        if decision.verdict == "CHANGE" and self._fitted is not None:
            assert decision.fillfactor is not None, "a change has a setting"
            wanted = {self._table.fillfactor, decision.fillfactor}
            played = [
                found.scenario
                for found in self._curve
                if found.scenario is not None and found.point.fillfactor in wanted
            ]
            longest = max(played, key=lambda scenario: scenario.duration_s)
            self._transition = transition_of(
                self._table,
                longest,
                decision.fillfactor,
                str(self._version),
                runner,
            )

    def _played(self, runner: Runner) -> Decision:
        table, version = self._table, str(self._version)
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
        self._fitted = fitted
        if fitted.guard.reason is not None:
            return self._contradicted(fitted.guard)
        unlike = not_repeated(table, fitted.calibration, fitted.off)
        if unlike is not None:  # nor is its curve what the table would do
            return unlike
        width = width_of(self._profile, table)
        self._missing += [text for text in (width.text, fitted.guard.missing) if text]

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
            )
            return tuple(replace(one, point=fitted.guard.shown(one.point)) for one in found)

        self._weigh_indexes(fitted.scenario, play)
        self._curve = _whole(fitted.scenario, table, play)
        decision = self._decided(fitted, self._curve, width.half)
        if decision.is_near and runner.in_time:
            pair = (table.fillfactor, decision.compared)
            self._curve = tuple(
                with_more_runs(one, table, version, self._policy, runner)
                if one.point.fillfactor in pair
                else one
                for one in self._curve
            )
            decision = self._decided(fitted, self._curve, width.half)
        decision = self._whatever_is_picked(fitted, decision, play, width.half)
        hidden = [one for one in self._curve if one.point.cost is None]
        if decision.verdict == "CHANGE" and any(
            one.point.fillfactor in (table.fillfactor, decision.fillfactor) for one in hidden
        ):
            return abstain(
                "in the long run the twin has more WAL of an update than the server can have "
                "written, so nothing is compared",
                settled_by="try another fillfactor and observe again",
            )
        return decision

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
        self, fitted: Fitted, decision: Decision, play: Any, width: float
    ) -> Decision:
        """The answer that holds for all picks of rows that agree with the interval."""
        if fitted.reading is None:
            return decision
        table, calibration = self._table, fitted.calibration

        def against(curve: Sequence[Costed], fillfactor: int) -> Decision:
            return hold_against(
                table, calibration, fitted.off, curve, self._policy, fillfactor, width=width
            )

        weighed = weigh_others(
            fitted.reading.told,
            table.fillfactor,
            self._curve,
            decision,
            fitted.others,
            Weighing(
                play=lambda other, fillfactors: play(other.scenario, fillfactors),
                whole=lambda other: _whole(other.scenario, table, play),
                decide=lambda curve: self._decided(fitted, curve, width),
                against=against,
            ),
        )
        self._curve = weighed.curve
        if weighed.said and calibration.fit is not None:  # `verify` foresees by it
            fit = replace(calibration.fit, off=max(calibration.fit.off, weighed.apart))
            self._fitted = replace(fitted, calibration=replace(calibration, fit=fit))
        self._missing += [text for text in (weighed.said,) if text]
        return weighed.decision

    def _contradicted(self, guard: Guard) -> Decision:
        """No answer of the twin: neither its verdict nor a figure of it is shown."""
        assert guard.reason is not None, "the caller has looked"
        self._missing += [text for text in (guard.missing,) if text]
        return abstain(guard.reason, settled_by="try another fillfactor and observe again")

    def _weigh_indexes(self, scenario: Scenario, play: Any) -> None:
        """Each index that ends HOT: the table without it, before its curve."""
        made = list(self.findings)
        for n, finding in enumerate(made[:_INDEXES_MAX]):
            without = without_index(scenario, finding.name)
            reads = reads_of(self._table, finding.name)
            if without is None or reads is None or finding.enforces is not None:
                continue
            (now,) = play(scenario, (self._table.fillfactor,))
            (then,) = play(without, (self._table.fillfactor,))
            made[n] = predicted(finding, self._table, now.point, then.point, self.updates_per_s)
            remark = index_remark(
                self._blamed(finding),
                reads,
                now.point,
                then.point,
                major=self._version.major,
                finding=finding,
            )
            if remark is not None:
                self._index_remarks[finding.name] = remark
        self.findings = tuple(made)

    def _blamed(self, finding: IndexFinding) -> Blamed:
        return next(
            one for cause in self._causes for one in cause.indexes if one.name == finding.name
        )

    @property
    def _missed(self) -> tuple[float, float]:
        """Updates that missed HOT over all, and those of them whose indexed columns changed."""
        parts: dict[str, float] = {cause.kind: mid(cause.updates) for cause in self._causes}
        total = sum(parts.values())
        cold = total - parts.get("hot", 0.0)
        if not total or not cold:
            return 0.0, 0.0
        return cold / total, parts.get("indexed_column", 0.0) / cold

    def _by_rule(self) -> Decision | None:
        """What needs no play: an index that ends HOT, a horizon that is held."""
        cold, indexed = self._missed
        if cold < _PLENTY_OF_HOT:
            most = f"no more than {100 * cold:.1f}" if cold >= 0.0005 else "less than 0.1"
            return keep(
                self._table,
                f"{show_share(1 - cold)} of its updates are HOT at this fillfactor: another can "
                f"add {most} points",
            )
        if cold < _COLD_MIN:
            return None
        if indexed >= _BY_INDEX:
            return keep(self._table, self._why_index())
        held = held_frac(self._profile.server.observed)
        if held >= _HELD_MIN:
            return abstain(
                f"the cleanup horizon stood still for {held:.0%} of the interval, so versions that "
                "nobody needs keep the room, and no fillfactor helps",
                settled_by="end what holds it, then observe again",
            )
        return None

    def _why_index(self) -> str:
        cold, indexed = self._missed
        named = [f"{found.name} by {found.by}" for found in self.findings if found.by]
        named = named or [found.name for found in self.findings] or ["one of its indexes"]
        return (
            f"{cold * indexed:.0%} of its updates change an indexed column ({'; '.join(named)}): "
            "no fillfactor makes these HOT, and room is not what the others lack"
            if indexed >= _BY_INDEX
            else f"{cold * indexed:.0%} of its updates change an indexed column "
            f"({'; '.join(named)}), and no fillfactor makes these HOT"
        )

    def _not_for_hot(self, decision: Decision) -> Decision:
        """
        Say of a fillfactor beside an index that ends HOT what it is for.

        Where it gives no HOT, it may still pay, by fewer updates that need another page and their
        WAL: then it is advised for that, after the index, and never for HOT.
        """
        cold, indexed = self._missed
        if decision.verdict == "KEEP" and indexed >= _BY_INDEX and cold >= _COLD_MIN:
            return replace(decision, reason=f"{self._why_index()}; {decision.reason}")
        if decision.verdict != "CHANGE" or indexed < _BY_INDEX_TOO:
            return decision
        points = {found.point.fillfactor: found for found in self._curve}
        assert decision.fillfactor is not None, "a change has a setting"
        now, then = points[self._table.fillfactor], points[decision.fillfactor]
        if mid(then.point.hot_frac) - mid(now.point.hot_frac) >= HOT_MOVES:
            return decision
        return replace(
            decision,
            reason=f"{self._why_index()}; {why_pages(now, then, decision.gain_frac)}",
        )

    def advice(self) -> TableAdvice:
        """What has been found out."""
        table, facts, decision = self._table, self._facts, self._decision
        assert decision is not None, "played, left, or decided by counters"
        counters = facts.counters
        updates = int(counters.n_tup_upd or 0)
        hot = counters.n_tup_hot_upd
        return TableAdvice(
            table=table.name,
            schema=facts.schema,
            name=facts.name,
            oid=facts.oid,
            relfilenode=facts.relfilenode,
            parent=facts.parent,
            rows=table.rows,
            heap_bytes=facts.main_bytes,
            fillfactor=table.fillfactor,
            updates_per_s=self.updates_per_s,
            updates=updates,
            hot_frac=hot / updates if updates and hot is not None else None,
            verdict=decision.verdict,
            reason=decision.reason,
            advised_fillfactor=decision.fillfactor,
            gain_frac=decision.gain_frac,
            causes=self._causes,
            calibration=None if self._fitted is None else self._fitted.calibration,
            curve=tuple(found.point for found in self._curve),
            transition=self._transition,
            remarks=(*self._remarks_on_indexes(), *table_remarks(table, self._profile)),
            missing=tuple(self._missing),
            decided_by=self._decided_by,
            wal_bytes_per_update=measured_of(self._profile, table).wal_bytes_per_update,
        )

    def _remarks_on_indexes(self) -> tuple[Remark, ...]:
        """Of each finding, the one that costs most first."""
        made = []
        for finding in self.findings:
            remark = self._index_remarks.get(finding.name)
            reads = reads_of(self._table, finding.name)
            if remark is None and reads is not None:
                blamed = self._blamed(finding)
                remark = rule_remark(finding, blamed, reads, major=self._version.major)
            if remark is not None:
                made.append(remark)
        return tuple(made)


def _whole(scenario: Scenario, table: TableProfile, play: Any) -> tuple[Costed, ...]:
    """All fillfactors that are tried, by falling fillfactor."""
    found = play(scenario, candidates(table))
    found += play(scenario, beside(found))
    return tuple(sorted(found, key=lambda one: -one.point.fillfactor))
