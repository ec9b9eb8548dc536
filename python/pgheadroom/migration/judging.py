"""
One table that a migration changes: what becomes of HOT by rule, and what that costs.

The verdict follows from the set of updates that can be HOT (`pgheadroom.advise.hot`), before and
after: `loses HOT` if a real share of the updates leaves it, `gains HOT` only if a real share joins
it or the fillfactor falls. The twin is asked for figures alone, and for a fillfactor; a figure that
contradicts the rule is not given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pgheadroom.advise.hot import HotChange, Part, outcome, parts_of
from pgheadroom.advise.runs import Runner
from pgheadroom.advise.updates import Assigning, Updates, updates_of, updates_per_s
from pgheadroom.migration.answer import (
    AssigningClass,
    CheckEvidence,
    CheckVerdict,
    HotEnd,
    OpenMatter,
    ReadTable,
    TableCheck,
    Worked,
)
from pgheadroom.migration.effect import DOES, Effect
from pgheadroom.migration.figures import Figures, figures
from pgheadroom.migration.said import NONE_IS_LOST, REAL_SHARE, edits_said, figures_said, rule_said
from pgheadroom.migration.shape import Altered, ColumnSet, edited
from pgheadroom.outcome import middle, scaled
from pgheadroom.predict import minor_version
from pgheadroom.profile import Profile
from pgheadroom.quoting import called
from pgheadroom.units import show_share, show_shares

HOT_CHANGE_MIN = 0.01
"""A played HOT share that changes by less than a point has not changed."""

PLAYED_MAX = 8
"""Tables for which figures are played, those with the most updates: an answer is bounded so."""

_PLAYED_NOISE = 0.02  # of the updates: a play draws which of its statements come
_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What the rule says of a table, and what it leaves open, each with its line if it has one."""

    verdict: CheckVerdict
    open: tuple[tuple[int | None, str], ...] = ()

    @property
    def why(self) -> str:
        """What is left open, as a sentence's part."""
        return "; ".join(
            text if line is None else f"line {line}: {text}" for line, text in self.open
        )


def judge(updates: Updates, altered: Altered, found: HotChange) -> Judged:
    """
    The rule's verdict, without a fillfactor.

    Args:
        updates: Of the table.
        altered: What is done to it.
        found: The set of updates that can be HOT, before and after.
    """
    left = tuple(dict.fromkeys((*altered.open, *_unread_triggers(updates, altered))))
    if found.lost_frac >= REAL_SHARE:
        return Judged(verdict="loses HOT", open=left)
    if left:
        return Judged(verdict="not judged", open=left)
    unknown = updates.unknown / updates.count
    if unknown >= REAL_SHARE and newly_blocking(altered):
        why = "no statement is known that would tell what its updates assign"
        if updates.classes:
            share = show_share(unknown)
            why = f"{share} of its updates are known to no statement, and may assign any"
        observed = altered.table.observed
        hint = None if observed is None else observed.updates.unattributed_hint
        why += f" ({hint})" if hint else ""
        return Judged(verdict="not judged", open=((None, why),))
    if found.gained_frac >= REAL_SHARE:
        return Judged(verdict="gains HOT")
    return Judged(verdict="as before")


def _unread_triggers(updates: Updates, altered: Altered) -> Iterator[tuple[None, str]]:
    """Triggers that may change a column which ends HOT from now on, and nobody knows whether."""
    observed = altered.table.observed
    if observed is None or not newly_blocking(altered):
        return
    named = {name for found in observed.updates.classes for name in found.columns}
    for trigger in observed.triggers or ():
        runs = not trigger.of_columns or named & set(trigger.of_columns) or updates.unknown
        if trigger.assigns is None and runs:
            yield None, f"trigger {trigger.name} may change any column before it is written"


def newly_blocking(altered: Altered) -> frozenset[str]:
    """Columns that were there when the table was observed and end HOT only from now on."""
    found = altered.after.blocking - altered.before.blocking
    if any(index.whole_row for index in altered.after.indexes):
        found |= {"*"}
    observed = altered.table.observed
    names = set() if observed is None else {column.name for column in observed.columns}
    computed = {
        name
        for column in found
        for name in altered.after.generated.get(column, frozenset())
        if name in names
    }
    return (found & (names | {"*"})) | computed


class TableJudging:
    """One table on its way."""

    def __init__(
        self, profile: Profile, altered: Altered, runner: Runner, rewrite_over_bytes: int
    ) -> None:
        self._profile = profile
        self._altered = altered
        self._table = altered.table
        self._runner = runner
        self._over = rewrite_over_bytes
        self._version = minor_version(profile).version
        self._updates = updates_of(self._table, self._version.major)
        self._after = edited(self._table, altered.edits)

    def check(self, *, is_playing: bool = True) -> TableCheck:
        """
        The verdict with its reasons, what is locked, and figures where they were played.

        Args:
            is_playing: The table may be played.
        """
        updates = self._updates
        altered = self._altered
        if not altered.edits and not altered.open:
            return self._made("as before", "Nothing changes that HOT depends on.", "by rule")
        if updates is None:
            observed = self._table.observed
            assert observed is not None, "the caller has checked that tables are observed"
            if observed.counters.n_tup_upd == 0:
                text = "Nothing updated it inside the interval, so no HOT is lost."
                return self._made("as before", text, "measured")
            why = "its updates were not counted"
            return self._made("not judged", f"{why.capitalize()}.", None, ((None, why),))
        parts = parts_of(updates, altered.before)
        found = _named(outcome(parts, altered.before, altered.after), altered)
        judged = judge(updates, altered, found)
        said = [edits_said(altered, updates, newly_blocking(altered))]
        figured = self._figures(judged.verdict, parts, is_playing=is_playing)
        if judged.verdict == "as before" and self._after.fillfactor != self._table.fillfactor:
            judged = self._by_room(figured)
        said.append(rule_said(judged.verdict, judged.why, found))
        assigned = sum(one.rows for one in self._assigning()) / updates.count
        if found.lost_frac < REAL_SHARE <= assigned and not judged.why:
            said.append(NONE_IS_LOST)
        return self._with_figures(judged, said, updates, found, figured)

    def _figures(
        self, verdict: CheckVerdict, parts: Sequence[Part], *, is_playing: bool
    ) -> Figures | str | None:
        """Played where the verdict leaves something to ask."""
        is_room = self._after.fillfactor != self._table.fillfactor
        if (
            verdict == "not judged"
            or self._altered.open
            or (verdict == "as before" and not is_room)
        ):
            return None
        # The processor time is for figures; a verdict that hangs on them has its own.
        if not is_playing or not (is_room or self._runner.in_time):
            return "tables that are updated more often were played, and took the time for it"
        return figures(self._profile, self._altered, parts, str(self._version), self._runner)

    def _by_room(self, figured: Figures | str | None) -> Judged:
        """What another fillfactor does, as played: less room never gains, more never loses."""
        if not isinstance(figured, Figures):
            why = f"room on pages is played, and {figured}"
            return Judged(verdict="not judged", open=((None, why),))
        now, then = middle(figured.hot_now), middle(figured.hot_then)
        assert now is not None and then is not None, "shares of a table with updates"  # noqa: PT018
        more = self._after.fillfactor < self._table.fillfactor
        if abs(then - now) < HOT_CHANGE_MIN or (then > now) != more:
            return Judged(verdict="as before")
        return Judged(verdict="gains HOT" if more else "loses HOT")

    def _with_figures(
        self,
        judged: Judged,
        said: list[str],
        updates: Updates,
        found: HotChange,
        figured: Figures | str | None,
    ) -> TableCheck:
        verdict = judged.verdict
        hot = updates.hot / updates.count
        known = bool(updates.classes)
        # What is open may change the rest: nothing is said of then, but what is lost is lost.
        is_known = known and not judged.open
        lost = dict.fromkeys(blocker for _, blocking in found.lost for blocker in blocking)

        def made(evidence: CheckEvidence | None, played: Figures | None = None) -> TableCheck:
            check = self._made(verdict, _sentences(said), evidence, judged.open, played)
            return replace(
                check,
                hot_frac_measured=hot,
                # Of what no statement is known of, that much was HOT.
                can_be_hot_now=max(found.before, hot) if known else None,
                can_be_hot_then=found.after if is_known else None,
                lost_frac=found.lost_frac if is_known or verdict == "loses HOT" else None,
                gained_frac=found.gained_frac if is_known else None,
                lost_by=tuple(
                    HotEnd(index=b.index, column=b.column, reads=b.reads, assigned=b.assigned)
                    for b in lost
                ),
            )

        most = found.after if is_known else 1.0
        if isinstance(figured, Figures) and _agrees(verdict, figured, most):
            per_day = updates_per_s(self._table) * _DAY_S
            said.append(figures_said(figured, per_day))
            return replace(
                made("predicted", figured),
                hot_frac_now=figured.hot_now,
                hot_frac_then=figured.hot_then,
                wal_bytes_per_update_now=figured.wal_now,
                wal_bytes_per_update_then=figured.wal_then,
                wal_bytes_per_day_now=scaled(figured.wal_now, per_day),
                wal_bytes_per_day_then=scaled(figured.wal_then, per_day),
            )
        if verdict in ("loses HOT", "gains HOT") and found.before > 0 and not self._altered.open:
            then = min(hot * found.after / found.before, 1.0)
            shown = show_shares(hot, then)
            said.append(f"HOT {shown[0]} measured, {shown[1]} then as estimated from that.")
            said.append(f"WAL is not foreseen: {figured}." if isinstance(figured, str) else "")
            return replace(made("estimated"), hot_frac_estimated_then=then)
        return made(None if verdict == "not judged" else "by rule")

    def _made(
        self,
        verdict: CheckVerdict,
        text: str,
        evidence: CheckEvidence | None,
        left: Sequence[tuple[int | None, str]] = (),
        played: Figures | None = None,
    ) -> TableCheck:
        """The answer without shares and figures; what is taken for granted of those, if played."""
        observed, updates, altered = self._table.observed, self._updates, self._altered
        assert observed is not None, "the caller has checked that tables are observed"
        columns = [edit for edit in altered.edits if isinstance(edit, ColumnSet)]
        assumed: list[str] = []
        if played is not None:
            assumed += [f"{edit.name} is filled in every row" for edit in columns if edit.is_new]
            assumed += [edit.assumed for edit in columns if edit.assumed]
            assumed += [played.missing] if played.missing else []
        classes = () if updates is None else updates.classes
        assigning = self._assigning()
        lines = {edit.line for edit in altered.edits} | {line for line, _ in altered.effects}
        return TableCheck(
            table=self._table.name,
            schema=observed.schema,
            name=observed.name,
            lines=tuple(sorted(lines | {line for line, _ in altered.open})),
            verdict=verdict,
            text=text,
            evidence=evidence,
            updates_per_s=updates_per_s(self._table),
            assigned_frac=(
                None
                if updates is None or not classes
                else min(sum(c.rows for c in assigning) / updates.count, 1.0)
            ),
            unknown_frac=None if updates is None else updates.unknown / updates.count,
            fillfactor_now=self._table.fillfactor,
            fillfactor_then=self._after.fillfactor,
            assigning=tuple(
                AssigningClass(
                    columns=tuple(sorted(altered.spelled(column) for column in c.columns)),
                    frac=c.rows / updates.count,
                )
                for c in assigning
                if updates is not None
            ),
            assumed=tuple(assumed),
            not_judged=tuple(OpenMatter(line=line, text=why) for line, why in left),
            work=tuple(self._worked(line, effect) for line, effect in altered.effects),
        )

    def _assigning(self) -> list[Assigning]:
        """Classes of updates that assign a column that ends HOT only from now on."""
        new, after = newly_blocking(self._altered), self._altered.after
        classes = () if self._updates is None else self._updates.classes
        return [c for c in classes if (c.columns | set(after.computed(c.columns))) & new]

    def _worked(self, line: int, effect: Effect) -> Worked:
        observed = self._table.observed
        size = None if observed is None else observed.main_bytes
        own = None if size is None else int(size)
        other = effect.waits_for
        read = own if other is None else effect.read_bytes
        named = effect.called
        waits_for = None if other is None else ReadTable(table=str(other), main_bytes=read)
        return Worked(
            line=line,
            lock=effect.lock,
            lock_since=effect.lock_since,
            effort=effect.effort,
            stops_writers=effect.stops_writers,
            what=effect.what,
            does=effect.does or DOES[effect.effort],
            beside=effect.beside,
            waits_for=waits_for,
            unless=effect.unless,
            main_bytes=own,
            is_over=effect.is_long and read is not None and read > self._over,
            called=None if named is None else called(str(named.schema), named.name),
        )


def _named(found: HotChange, altered: Altered) -> HotChange:
    """With the names that columns have in the end."""
    lost = tuple(
        (part, tuple(altered.named(blocker) for blocker in blocking))
        for part, blocking in found.lost
    )
    return replace(found, lost=lost)


def _sentences(said: Sequence[str]) -> str:
    return " ".join(sentence for sentence in said if sentence)


def _agrees(verdict: CheckVerdict, figured: Figures, most: float) -> bool:
    """
    Whether the played figures say what the rule says; else the rule stands alone.

    No more updates are HOT than `most`, which can be: a NULL that an update fills stays one in a
    play, and an index over it as it is.
    """
    now, then = middle(figured.hot_now), middle(figured.hot_then)
    if now is None or then is None or then > most + _PLAYED_NOISE:
        return False
    if verdict == "loses HOT":
        return then < now
    if verdict == "gains HOT":
        return then > now
    return abs(then - now) < HOT_CHANGE_MIN
