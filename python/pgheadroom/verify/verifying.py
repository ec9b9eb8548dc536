"""
Plan, record and a new observation become a verification: a verdict a table.

A table that was not rewritten is held against the way to its new state, by the updates that have
happened since the change; one that was rewritten against the steady state.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pgheadroom
from pgheadroom.errors import InputError
from pgheadroom.outcome import Value, as_interval
from pgheadroom.plan.marks import mark_of, target_of
from pgheadroom.plan.measured import Measured, measure
from pgheadroom.plan.record import Record, StepRecord
from pgheadroom.plan.statements import one_line
from pgheadroom.plan.values import Forecast, Mark, Plan
from pgheadroom.profile import Profile
from pgheadroom.profile.tables import TableProfile
from pgheadroom.progress import Say
from pgheadroom.sources.recording import Recording
from pgheadroom.types import Interval
from pgheadroom.units import show_duration, show_shares
from pgheadroom.verify.comparing import (
    ForecastVerdict,
    Likeness,
    judge_again,
    judge_heap,
    judge_share,
    judge_wal,
    judge_way,
    leaves_its_course,
    likenesses,
    wal_ratio,
)
from pgheadroom.verify.foreseeing import Again
from pgheadroom.verify.since import Since, Unforeseen
from pgheadroom.verify.sizes import heap_again, is_unseen
from pgheadroom.verify.state import UPDATES_MIN, Foreseer, seconds_since
from pgheadroom.verify.values import MeasureOutcome, TableOutcome, Verification
from pgheadroom.verify.windows import Share, Window, share_before, share_of, windows_of

SETTLED_UPDATES_PER_ROW = 1.0
"""Until then a rewritten table may have more HOT than in its steady state (arbitrary)."""

_NET_INSERTS_FRAC = 0.2
"""Part of the inserts that no delete makes up for, from which on a table is one that grows
(arbitrary)."""

_ROWS_MOVED_FRAC = 0.1
"""Part of the rows that came or went, from which on a forecast is made for those that there are."""

_FORESEEN_FOR = {"rows": "foreseen again for them", "updates_per_s": "foreseen again for it"}
"""What a forecast for the state of now is played with: what was counted since, in its time."""

_RANK: tuple[ForecastVerdict, ...] = ("not comparable", "failed", "no effect", "undecided", "held")


def verify(
    plan: Plan,
    record: Record | None,
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
            _Table(
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


class _Table:
    def __init__(
        self,
        forecast: Forecast,
        plan: Plan,
        record: Record | None,
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
        self._applied = _applied(forecast, plan, record)
        self._now: Measured | None = None if table is None else measure(profile, table)
        oid = forecast.table.oid
        self._windows: tuple[Window, ...] = windows_of(recording, oid)
        observed = None if table is None else table.observed
        totals = None if observed is None else observed.totals
        self._updates_total: int | None = None if totals is None else totals.n_tup_upd

    def outcome(self) -> TableOutcome:
        workload: tuple[Likeness, ...] = ()
        outcomes: tuple[MeasureOutcome, ...] = ()
        verdict, reason = self._fits()
        progress = None
        if self._now is not None:
            if verdict is None:
                self._foresee_again(self._now)
            workload = tuple(map(self._alike, likenesses(self._forecast.measured, self._now)))
            progress, arrived = self._progress()
            outcomes = self._outcomes(self._now, arrived=arrived, progress=progress)
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

    def _foresee_again(self, now: Measured) -> None:
        """Where rows have come or gone, what the plan foresees of the table that it is now."""
        before, table = self._forecast.measured, self._table
        assert table is not None, "what was measured was observed"
        moved = before.rows and now.rows and abs(now.rows / before.rows - 1) > _ROWS_MOVED_FRAC
        if not moved and not _grows(before):
            return
        try:
            since, again = self._foreseer.foresee(self._forecast, self._applied, now, table)
        except Unforeseen as why:
            self._unforeseen = str(why)
            return
        planned, share = self._hot_forecast(), before.hot_frac
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
    def _mark(self) -> Mark | None:
        return None if self._table is None else mark_of(self._table)

    @property
    def _rewritten(self) -> bool:
        mark = self._mark
        return mark is not None and mark.relfilenode != self._forecast.table.relfilenode

    def _fits(self) -> tuple[ForecastVerdict | None, str]:
        """A verdict where the table itself forbids comparing, or the window is too short."""
        mark, now, server = self._mark, self._now, self._profile.server.observed
        if mark is None or now is None:
            return "not comparable", "the table is gone, or could not be observed"
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
        """Since the plan was applied to the table; None where the record does not say."""
        known, rows = self._applied, self._forecast.measured.rows
        if known is None or known.after is None or not rows:
            return None
        then, total = known.after.updates, self._updates_total
        if then is None or total is None or total < then:
            return None
        return (total - then) / rows

    def _outcomes(
        self, now: Measured, *, arrived: bool | None, progress: str | None
    ) -> tuple[MeasureOutcome, ...]:
        found, before = self._forecast, self._forecast.measured
        after = found.after
        updates = [window.updates for window in self._windows]
        hot = share_of([window.hot for window in self._windows], updates)
        effect = 1.0 if hot is None else hot.design_effect
        hot_before = share_before(before.hot_updates, before.updates, effect)
        made = [self._hot(hot, hot_before, arrived=arrived, progress=progress)]
        newpage = None
        if all(window.newpage is not None for window in self._windows):
            newpage = share_of([window.newpage or 0 for window in self._windows], updates)
        made.append(
            MeasureOutcome(
                name="newpage_frac",
                unit="frac",
                before=share_before(before.newpage_updates, before.updates, effect),
                planned=None if after is None else after.newpage_frac,
                forecast=self._newpage_forecast(arrived=arrived),
                now=None if newpage is None else newpage.interval or newpage.value,
                verdict=None,
                note="shown only"
                if now.newpage_updates is not None
                else "PostgreSQL 15 does not count it",
            )
        )
        made += self._heap(now, arrived=arrived)
        made.append(self._wal(now, arrived=arrived))
        return tuple(made)

    def _wal(self, now: Measured, *, arrived: bool | None) -> MeasureOutcome:
        """What updates wrote, where the log, or pg_stat_statements, says it both times."""
        found, before = self._forecast, self._forecast.measured
        planned = None if found.after is None else found.after.wal_bytes_per_update
        measured = before.wal_bytes_per_update, now.wal_bytes_per_update
        forecast: Interval | None = None
        verdict: ForecastVerdict | None = None
        note = (
            "not attributed: neither the log of both intervals was read, nor has "
            "pg_stat_statements counted these statements both times"
        )
        if None not in measured and before.wal_by_log != now.wal_by_log:
            note = "shown only: one time it is by the log, the other time by statements"
        elif None not in measured:
            note = "shown only: the curve has no figure at the setting before"
            ratio = wal_ratio(found.before, found.after, images=not now.wal_by_log)
            if self._again is not None or not arrived:
                note = "shown only: the forecast is for the state at which the table arrives"
            elif ratio is not None and measured[0] is not None and measured[1] is not None:
                forecast = ratio.scaled(measured[0])
                verdict, note = judge_wal(
                    measured[1], measured[0], forecast, images=not now.wal_by_log
                )
        return MeasureOutcome(
            name="wal_bytes_per_update",
            unit="bytes",
            before=measured[0],
            planned=planned,
            forecast=forecast,
            now=measured[1],
            verdict=verdict,
            note=note,
        )

    def _newpage_forecast(self, *, arrived: bool | None) -> Value:
        if self._again is not None:
            return self._again.newpage_frac
        after = self._forecast.after
        return None if after is None or not arrived else after.newpage_frac

    def _hot(
        self,
        hot: Share | None,
        before: Interval | None,
        *,
        arrived: bool | None,
        progress: str | None,
    ) -> MeasureOutcome:
        measured = None if hot is None else hot.interval
        planned = self._hot_forecast()
        forecast = planned if self._again is None else self._again.hot_frac
        verdict: ForecastVerdict
        if self._again is not None:
            way = None if arrived else progress or ""
            verdict, note = judge_again(measured, before, self._again.hot_frac, way=way)
            note += f"; {_populations(self._again, self._since)}"
        elif forecast is None:
            verdict, note = "undecided", "the plan has no forecast of it"
        elif arrived:
            verdict, note = judge_share(measured, before, forecast)
            done = self._updates_per_row()
            fresh = self._rewritten and done is not None and done < SETTLED_UPDATES_PER_ROW
            if fresh and verdict == "failed" and measured and measured.low > forecast.high:
                verdict, note = (
                    "undecided",
                    (
                        f"freshly rewritten, its room not yet used: {done:.2g} of "
                        f"{SETTLED_UPDATES_PER_ROW:g} updates a row"
                    ),
                )
        else:
            verdict, note = judge_way(measured, before, forecast.mid, progress or "")
        return MeasureOutcome(
            name="hot_frac",
            unit="frac",
            before=before,
            planned=planned,
            forecast=forecast,
            now=measured if measured is not None else None if hot is None else hot.value,
            verdict=verdict,
            note=note,
        )

    def _hot_forecast(self) -> Interval | None:
        """The steady state; without a rewrite, where the table arrives, as uncertain as that."""
        found = self._forecast
        steady = as_interval(None if found.after is None else found.after.hot_frac)
        way = found.transition
        if way is None or self._rewritten or way.final_hot_frac is None:
            return steady
        final = way.final_hot_frac
        if steady is None:
            return as_interval(final)
        return Interval(
            low=max(0.0, min(final, final - (steady.mid - steady.low))),
            mid=final,
            high=min(1.0, max(final, final + (steady.high - steady.mid))),
            level=steady.level,
        )

    def _was_off(self, before: Measured, planned: Interval | None) -> bool:
        """Whether a kept table's size was not the foreseen one from the beginning."""
        if self._forecast.transition is not None or self._rewritten:
            return False
        if before.heap_bytes is None or planned is None:
            return False
        verdict, _ = judge_heap(float(before.heap_bytes), None, planned, on_the_way=False)
        return verdict == "failed"

    def _heap(self, now: Measured, *, arrived: bool | None) -> tuple[MeasureOutcome, ...]:
        found, before = self._forecast, self._forecast.measured
        way = found.transition
        planned = as_interval(None if found.after is None else found.after.heap_bytes)
        if way is not None and not self._rewritten:
            planned = as_interval(way.final_heap_bytes)
        if self._again is not None and self._since is not None:
            return heap_again(before, planned, now, self._again, self._since)
        grown = now.rows / before.rows if before.rows and now.rows else 1.0
        verdict: ForecastVerdict | None = None
        note, forecast = "not known", planned
        if forecast is not None and _grows(before):
            # The forecast is for the end of the simulated time, which is not today.
            forecast, note = None, "rows only come: its size in the long run is not today's"
        if forecast is not None and now.heap_bytes is not None:
            forecast = forecast.scaled(grown)
            verdict, note = judge_heap(
                float(now.heap_bytes),
                None if before.heap_bytes is None else before.heap_bytes * grown,
                forecast,
                on_the_way=not arrived,
            )
            if verdict == "failed" and is_unseen(now, forecast):
                verdict, note = None, "shown only: versions of ten seconds may make as much"
            if verdict == "failed" and self._was_off(before, planned):
                verdict, note = None, "shown only: the twin had another size when it was planned"
            elif abs(grown - 1) >= 0.01:
                note += f"; forecast scaled by the rows ({grown - 1:+.1%})"
        return (
            MeasureOutcome(
                name="heap_bytes",
                unit="bytes",
                before=before.heap_bytes,
                planned=planned,
                forecast=forecast,
                now=now.heap_bytes,
                verdict=verdict,
                note=note,
            ),
        )


def _populations(again: Again, since: Since | None) -> str:
    """Old pages and new ones by themselves, in words."""
    assert since is not None, "what was foreseen again was foreseen for something"
    said = f"{again.new_rows_frac:.0%} of the rows came since"
    parts = again.by_page
    if parts is None:
        return said
    old, new = parts.hot_old_frac, parts.hot_new_frac
    if old is None or new is None:
        pages = f"since, filled at {since.fillfactor}" if old is None else "that were there"
        return f"{said}; foreseen are updates on pages {pages} alone"
    hot_old, hot_new = show_shares(old, new)
    return (
        f"{said}; foreseen: {parts.old_pages_frac:.0%} of the updates on pages that were there, "
        f"{hot_old} of these HOT, and {hot_new} of those on pages filled at {since.fillfactor} "
        "since"
    )


def _grows(before: Measured) -> bool:
    """Whether so many more rows come than go that the table has no size to stay at."""
    net = (before.inserts or 0) - (before.deletes or 0)
    return net > _NET_INSERTS_FRAC * max(before.inserts or 0, 1)


def _applied(forecast: Forecast, plan: Plan, record: Record | None) -> StepRecord | None:
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
