"""
One table on its way to its advice: what is known at once, and what playing it adds.

At once: counters, layout and rules say what plainly stays, what an index or a held horizon has
done, which index by which column, and what it costs. That takes milliseconds, so every table has
it. Playing it adds the twin's figures: the calibration, the index what-ifs, the curve, the way.
"""

from __future__ import annotations

from dataclasses import replace

from pgheadroom.advise.by_rule import beside_index, by_rule, missed_of
from pgheadroom.advise.causes import causes_of
from pgheadroom.advise.counters import most, without_curve
from pgheadroom.advise.decide import Decision, abstain
from pgheadroom.advise.foreseen import Transition
from pgheadroom.advise.guard import measured_of
from pgheadroom.advise.index_finding import Findings, blamed_of, findings_of
from pgheadroom.advise.playing import Playing
from pgheadroom.advise.policy import Policy
from pgheadroom.advise.remark_index import reads_of, rule_remark
from pgheadroom.advise.remarks import table_remarks
from pgheadroom.advise.runs import BudgetSpent, Runner
from pgheadroom.advise.served_keys import served_text
from pgheadroom.advise.stake import stake_of
from pgheadroom.advise.table_advice import DecidedBy, Remark, TableAdvice
from pgheadroom.advise.updates import updates_of, updates_per_s
from pgheadroom.errors import TwinError
from pgheadroom.profile import Profile
from pgheadroom.profile.tables import TableProfile
from pgheadroom.types import PgVersion
from pgheadroom.units import percent, show_bytes, show_duration


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
        self._missed = missed_of(self._causes)
        found = findings_of(table, updates, self._causes, version.major, server)
        self.findings, self.together = found.each, found.together
        self.stake = stake_of(table, updates, self._causes, server)
        self.most = most(table, policy)
        self._decision = without_curve(table, server, policy)
        self._decided_by: DecidedBy = "counters"
        self._playing: Playing | None = None
        self._transition: Transition | None = None
        self._cut: BudgetSpent | None = None

    @property
    def name(self) -> str:
        """The table's, in the profile."""
        return self._table.name

    @property
    def updates_per_s(self) -> float:
        """As observed."""
        return updates_per_s(self._table)

    @property
    def is_played(self) -> bool:
        """Whether the twin has been asked, and came to its end."""
        return self._playing is not None

    @property
    def is_cut_off(self) -> bool:
        """Whether it was begun, and the budget was spent before it came to its end."""
        return self._cut is not None

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
        """Decide without playing it to its end, for the budget was spent."""
        allowed = f"{show_duration(budget_s)} of processor time"
        share = "" if self._cut is None or self._cut.part == 1 else f"{percent(self._cut.part)} of "
        ruled = self._by_rule()
        if ruled is not None:
            if self._cut is not None and ruled.verdict == "KEEP":  # by HOT: pages were not weighed
                unseen = (
                    "pages and WAL at others are not foreseen: its runs were cut off after "
                    f"{share}{allowed}, and a larger budget lets them come to their end"
                )
                ruled = replace(ruled, reason=f"{ruled.reason}; {unseen}")
            self._decision, self._decided_by = ruled, "rule"
            return
        at_stake = show_bytes(self.stake.wal_bytes_per_day)
        if self._cut is not None:
            alone = f"advising on {self.name} alone gives it all of them, " if worth > 1 else ""
            self._decision = abstain(
                f"not weighed: its runs were cut off after {share}{allowed} (here {at_stake} a day "
                f"are at stake, {self.stake.evidence})",
                settled_by=f"{alone}a larger budget lets it come to its end",
            )
            return
        self._decision = abstain(
            f"not weighed: {played} of {worth} tables were played in {allowed}, those with more "
            f"WAL at stake first (here {at_stake} a day, {self.stake.evidence})",
            settled_by=f"advising on {self.name} alone plays it, a larger budget more of them",
        )

    def play(self, runner: Runner) -> None:
        """
        Play the table to its end: calibration, indexes, curve, and the way to a change.

        Where the budget is spent before, nothing of it stays but that it was cut off.
        """
        findings = self.findings, self.together
        try:
            self._play(runner)
        except BudgetSpent as spent:
            self._playing, self._decision, self._decided_by = None, None, "counters"
            (self.findings, self.together), self._cut = findings, spent

    def _play(self, runner: Runner) -> None:
        self._decided_by = "twin"
        playing = self._playing = Playing(
            self._profile,
            self._table,
            self._causes,
            Findings(each=self.findings, together=self.together),
            version=self._version,
            policy=self._policy,
            sample_pages=self._sample_pages,
            runner=runner,
        )
        try:
            decision = playing.decision()
        except TwinError as error:
            decision = abstain(
                f"the twin cannot play it ({error})",
                settled_by="take what that names out of the profile, which is then advised on",
            )
        self.findings, self.together = playing.findings.each, playing.findings.together
        decision = beside_index(decision, self._table, self._missed, self.findings, playing.curve)
        ruled = self._by_rule() if decision.verdict == "ABSTAIN" else None
        if ruled is not None:
            if ruled.verdict == "KEEP":  # by HOT; images and pages only a play can weigh
                unseen = f"its WAL at others is not foreseen: {decision.reason}"
                ruled = replace(ruled, reason=f"{ruled.reason}; {unseen}")
            decision, self._decided_by = ruled, "rule"
        self._decision = decision
        if decision.verdict == "CHANGE":
            assert decision.fillfactor is not None, "a change has a setting"
            self._transition = playing.transition(decision.fillfactor)

    def _by_rule(self) -> Decision | None:
        server = self._profile.server.observed
        return by_rule(self._table, self._missed, self.findings, server)

    def advice(self) -> TableAdvice:
        """What has been found out."""
        table, facts, decision = self._table, self._facts, self._decision
        playing = self._playing
        fitted = None if playing is None else playing.fitted
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
            calibration=None if fitted is None else fitted.calibration,
            curve=() if playing is None else tuple(found.point for found in playing.curve),
            transition=self._transition,
            remarks=(*self._remarks_on_indexes(), *table_remarks(table, self._profile)),
            missing=self._missing(),
            decided_by=self._decided_by,
            wal_bytes_per_update=measured_of(self._profile, table).wal_bytes_per_update,
        )

    def _missing(self) -> tuple[str, ...]:
        hint = self._facts.updates.unattributed_hint
        found = () if self._playing is None else tuple(self._playing.missing)
        return found if hint is None else (hint, *found)

    def _remarks_on_indexes(self) -> tuple[Remark, ...]:
        """Of each finding, the one that costs most first."""
        made = []
        played = {} if self._playing is None else self._playing.index_remarks
        for finding in self.findings:
            remark = played.get(finding.name)
            reads = reads_of(self._table, finding.name)
            if remark is None and reads is not None:
                blamed = blamed_of(finding, self._causes)
                whole = {finding.name, *finding.only_with}
                remark = rule_remark(
                    finding,
                    blamed,
                    reads,
                    major=self._version.major,
                    together=next((one for one in self.together if whole == {*one.names}), None),
                )
            if remark is not None and finding.enforces is None:
                served = served_text(self._profile, self._table, finding.name)
                remark = replace(remark, text=remark.text + served)
            if remark is not None:
                made.append(remark)
        return tuple(made)
