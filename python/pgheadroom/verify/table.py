"""
One table of a plan: whether it can be compared, how far it is on its way, and its verdict.

A table that was not rewritten is held against the way to its new state, by the updates that have
happened since the change; one that was rewritten against the steady state.
"""

from __future__ import annotations

from dataclasses import replace

from pgheadroom.plan.checking import said_gone
from pgheadroom.plan.marks import mark_of
from pgheadroom.plan.measured import MeasuredInterval, measure
from pgheadroom.plan.record import AppliedRecord, StepRecord
from pgheadroom.plan.statements import one_line
from pgheadroom.plan.values import Forecast, Plan, TableMark
from pgheadroom.profile import Profile
from pgheadroom.profile.tables import TableProfile
from pgheadroom.sources.recording import Recording
from pgheadroom.units import show_duration, show_shares
from pgheadroom.verify.comparing import ForecastVerdict, Likeness, leaves_its_course, likenesses
from pgheadroom.verify.foreseeing import Again
from pgheadroom.verify.measures import Case, grows, hot_forecast, outcomes_of
from pgheadroom.verify.since import Since, Unforeseen
from pgheadroom.verify.state import UPDATES_MIN, Foreseer, seconds_since
from pgheadroom.verify.values import MeasureOutcome, TableOutcome
from pgheadroom.verify.windows import Window, windows_of

_ROWS_MOVED_FRAC = 0.1
"""Part of the rows that came or went, from which on a forecast is made for those that there are."""

_FORESEEN_FOR = {"rows": "foreseen again for them", "updates_per_s": "foreseen again for it"}
"""What a forecast for the state of now is played with: what was counted since, in its time."""

_RANK: tuple[ForecastVerdict, ...] = ("not comparable", "failed", "no effect", "undecided", "held")


class VerifiedTable:
    """
    One table of a plan, and what has become of it.

    Args:
        forecast: Of the plan.
        plan: That it is of.
        record: Of `apply`; None where it was not applied from here.
        table: As it is observed now; None: it is gone, or could not be.
        profile: Of the new observation.
        recording: With the tables' counters at each tick.
        foreseer: Foresees again what the plan did.
    """

    def __init__(
        self,
        forecast: Forecast,
        plan: Plan,
        record: AppliedRecord | None,
        table: TableProfile | None,
        profile: Profile,
        recording: Recording,
        foreseer: Foreseer,
    ) -> None:
        self._forecast = forecast
        self._foreseer = foreseer
        self._since: Since | None = None
        self._again: Again | None = None
        self._unforeseen = ""
        self._table = table
        self._profile = profile
        self._recording = recording
        self._applied = _applied(forecast, plan, record)
        self._now: MeasuredInterval | None = None if table is None else measure(profile, table)
        oid = forecast.table.oid
        self._windows: tuple[Window, ...] = windows_of(recording, oid)
        observed = None if table is None else table.observed
        totals = None if observed is None else observed.totals
        self._updates_total: int | None = None if totals is None else totals.n_tup_upd

    def outcome(self) -> TableOutcome:
        """The verdict, with all measures."""
        workload: tuple[Likeness, ...] = ()
        outcomes: tuple[MeasureOutcome, ...] = ()
        verdict, reason = self._fits()
        progress = None
        if self._now is not None:
            if verdict is None:
                self._foresee_again(self._now)
            workload = tuple(map(self._alike, likenesses(self._forecast.measured, self._now)))
            progress, arrived = self._progress()
            outcomes = outcomes_of(
                Case(
                    forecast=self._forecast,
                    now=self._now,
                    windows=self._windows,
                    is_rewritten=self._rewritten,
                    has_arrived=arrived,
                    progress=progress,
                    updates_per_row=self._updates_per_row(),
                    again=self._again,
                    since=self._since,
                )
            )
        if verdict is None:
            verdict, reason = _worst(outcomes)
            odd = [like for like in workload if not like.is_alike]
            if odd:
                verdict = "not comparable"
                reason = "the workload has changed: " + "; ".join(map(_said, odd))
                if self._unforeseen and any(like.name == "rows" for like in odd):
                    reason += f"; it could not be foreseen again for these: {self._unforeseen}"
        if verdict == "not comparable":
            outcomes = tuple(_shown(found) for found in outcomes)
        mark = self._forecast.table
        return TableOutcome(
            schema=mark.schema,
            name=mark.name,
            oid=mark.oid,
            planned=self._forecast.verdict,
            fillfactor=self._forecast.fillfactor,
            fillfactor_now=None if self._now is None else self._now.fillfactor,
            rewritten=self._rewritten,
            verdict=verdict,
            reason=reason,
            progress=progress,
            updates=None if self._now is None else self._now.updates,
            windows=len(self._windows),
            outcomes=outcomes,
            workload=workload,
            by_page=None if self._again is None else self._again.by_page,
        )

    def _foresee_again(self, now: MeasuredInterval) -> None:
        """Where rows have come or gone, what the plan foresees of the table that it is now."""
        before, table = self._forecast.measured, self._table
        assert table is not None, "what was measured was observed"
        moved = before.rows and now.rows and abs(now.rows / before.rows - 1) > _ROWS_MOVED_FRAC
        if not moved and not grows(before):
            return
        try:
            since, again = self._foreseer.foresee(self._forecast, self._applied, now, table)
        except Unforeseen as why:
            self._unforeseen = str(why)
            return
        planned, share = hot_forecast(self._forecast, is_rewritten=self._rewritten), before.hot_frac
        is_left = since.fillfactor_before == since.fillfactor and not self._rewritten
        if (
            is_left
            and planned is not None
            and share is not None
            and leaves_its_course(again.hot_frac, share, planned)
        ):
            played, measured, steady = show_shares(again.hot_frac.mid, share, planned.mid)
            self._unforeseen = (
                f"played until now it has {played} HOT, though nothing was changed, {measured} "
                f"was measured before and the long run has {steady}"
            )
            return
        self._since, self._again = since, again

    def _alike(self, like: Likeness) -> Likeness:
        """Rows, and how fast they were updated, may be others where the forecast is for these."""
        if self._again is None or like.name not in _FORESEEN_FOR:
            return like
        return replace(like, limit=_FORESEEN_FOR[like.name], is_alike=True)

    @property
    def _mark(self) -> TableMark | None:
        return None if self._table is None else mark_of(self._table)

    @property
    def _rewritten(self) -> bool:
        mark = self._mark
        return mark is not None and mark.relfilenode != self._forecast.table.relfilenode

    def _fits(self) -> tuple[ForecastVerdict | None, str]:
        """A verdict where the table itself forbids comparing, or the window is too short."""
        mark, now, server = self._mark, self._now, self._profile.server.observed
        if mark is None or now is None:
            return "not comparable", self._absent()
        if now.fillfactor != self._forecast.fillfactor:
            return "not comparable", (
                f"fillfactor is {now.fillfactor}, the plan's is {self._forecast.fillfactor}: it "
                "was not applied, or changed since"
            )
        others = [
            line
            for line in self._forecast.table.differs(mark)
            if not line.startswith(("storage parameter fillfactor", "relfilenode"))
        ]
        if others:
            return "not comparable", "the table has changed: " + "; ".join(map(one_line, others))
        if now.updates is None or (server is not None and server.broken):
            return "not comparable", "the server restarted, or statistics were reset, meanwhile"
        if now.updates < UPDATES_MIN:
            return "undecided", f"{now.updates} updates in the window, {UPDATES_MIN} are needed"
        return None, ""

    def _absent(self) -> str:
        """Why there is nothing to compare with: it is gone, or the profile could not take it."""
        mark = self._forecast.table
        rows = self._recording.rows("tables", "end")
        if any(row["oid"] == mark.oid for row in rows):
            return "it could not be observed: the profile does not have it"
        return said_gone(mark, {(row["schema"], row["name"]): row["oid"] for row in rows})

    def _progress(self) -> tuple[str | None, bool | None]:
        """How far the table is on its way, and whether it has arrived; None: not known."""
        way = self._forecast.transition
        if way is None or self._rewritten or way.verdict == "at once":
            return None, True
        if way.verdict != "converges":
            return "no time was foreseen in which it arrives", None
        known = self._applied
        if known is None or known.after is None or known.finished_at is None:
            return "when the setting was applied is not known", None
        done, need = self._updates_per_row(), way.after_updates_per_row
        if done is not None and need is not None:
            return f"{done:.2g} of {need:.2g} updates a row", done >= need
        if way.after_s is None:
            return "no time was foreseen in which it arrives", None
        done_s = seconds_since(known.finished_at)
        if done_s is None:
            return "the record's time is not understood", None
        return f"{show_duration(done_s)} of {show_duration(way.after_s)}", done_s >= way.after_s

    def _updates_per_row(self) -> float | None:
        """Since the plan was applied, or made for a table that is kept; None: nothing says it."""
        known, rows = self._applied, self._forecast.measured.rows
        if self._forecast.verdict == "KEEP":
            then = self._foreseer.updates_then(self._forecast)
        else:
            then = None if known is None or known.after is None else known.after.updates
        total = self._updates_total
        if not rows:
            return None
        if then is None or total is None or total < then:
            return None
        return (total - then) / rows


def _applied(forecast: Forecast, plan: Plan, record: AppliedRecord | None) -> StepRecord | None:
    """The record of the table's last step that was carried out."""
    if record is None:
        return None
    known = [record.step(s.number) for s in plan.steps if s.table.oid == forecast.table.oid]
    return next((step for step in reversed(known) if step.state == "done"), None)


def _shown(found: MeasureOutcome) -> MeasureOutcome:
    """Without its verdict: what cannot be compared is not judged."""
    return replace(found, verdict=None)


def _worst(outcomes: tuple[MeasureOutcome, ...]) -> tuple[ForecastVerdict, str]:
    judged = [found for found in outcomes if found.verdict is not None]
    for verdict in _RANK:
        same = [found for found in judged if found.verdict == verdict]
        if same:
            return verdict, "; ".join(f"{found.name}: {found.note}" for found in same)
    return "undecided", "nothing was foreseen that can be measured"


def _said(like: Likeness) -> str:
    return f"{like.name} {like.before:.4g} then, {like.now:.4g} now (limit: {like.limit})"
