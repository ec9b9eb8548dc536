"""
The measures of one table: what was foreseen of each beside what was measured.

HOT, heap and WAL have a verdict where they can be compared; updates that went to another page are
shown only.
"""

from __future__ import annotations

from dataclasses import dataclass

from pgheadroom.advise.foreseen import Point
from pgheadroom.outcome import Value, as_interval
from pgheadroom.plan.measured import MeasuredInterval
from pgheadroom.plan.values import Forecast
from pgheadroom.types import Interval
from pgheadroom.units import percent, show_shares
from pgheadroom.verify.comparing import (
    LONG_RUN_TOLERANCE,
    TOLERANCE,
    ForecastVerdict,
    is_in_long_run,
    judge_again,
    judge_heap,
    judge_share,
    judge_wal,
    judge_way,
    wal_ratio,
)
from pgheadroom.verify.foreseeing import Again
from pgheadroom.verify.since import Since
from pgheadroom.verify.sizes import heap_again, is_cut_off, is_unseen
from pgheadroom.verify.values import MeasureOutcome
from pgheadroom.verify.windows import Share, Window, share_before, share_of

SETTLED_UPDATES_PER_ROW = 1.0
"""Until then a rewritten table may have more HOT than in its steady state (arbitrary)."""

_HOT_MISSED = (
    f"shown only: the HOT share is more than {LONG_RUN_TOLERANCE * 100:g} points beside what was "
    "foreseen, and an update's bytes follow from it"
)

_NET_INSERTS_FRAC = 0.2
"""Part of the inserts that no delete makes up for, from which on a table is one that grows
(arbitrary)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """
    One table as it is found, for its measures.

    Attributes:
        forecast: The plan's.
        now: What was measured.
        windows: Of the interval.
        is_rewritten: The table has another file than when it was planned.
        has_arrived: It is where a setting without a rewrite leads to; None: nobody knows.
        progress: How far on the way, for people; None: there is none.
        updates_per_row: Since the plan was applied, of a table that was kept since it was planned;
            None where nothing says it.
        again: What is foreseen of the table as it is by now; None where the plan's holds.
        since: What `again` was played with.
    """

    forecast: Forecast
    now: MeasuredInterval
    windows: tuple[Window, ...]
    is_rewritten: bool
    has_arrived: bool | None
    progress: str | None
    updates_per_row: float | None
    again: Again | None
    since: Since | None


def outcomes_of(case: Case) -> tuple[MeasureOutcome, ...]:
    """Each measure before, as planned, as foreseen and now, with a verdict where it has one."""
    found, before, now = case.forecast, case.forecast.measured, case.now
    after = found.after
    updates = [window.updates for window in case.windows]
    hot = share_of([window.hot for window in case.windows], updates)
    effect = 1.0 if hot is None else hot.design_effect
    hot_before = share_before(before.hot_updates, before.updates, effect)
    made = [_hot(case, hot, hot_before)]
    newpage = None
    if all(window.newpage is not None for window in case.windows):
        newpage = share_of([window.newpage or 0 for window in case.windows], updates)
    made.append(
        MeasureOutcome(
            name="newpage_frac",
            unit="frac",
            before=share_before(before.newpage_updates, before.updates, effect),
            planned=None if after is None else after.newpage_frac,
            forecast=_newpage_forecast(case),
            now=None if newpage is None else newpage.interval or newpage.value,
            verdict=None,
            note="shown only"
            if now.newpage_updates is not None
            else "PostgreSQL 15 does not count it",
        )
    )
    made += _heap(case)
    made.append(_wal(case, hot_before, made[0]))
    return tuple(made)


def _wal(case: Case, hot_before: Interval | None, hot: MeasureOutcome) -> MeasureOutcome:
    """
    What updates wrote, where the log, or pg_stat_statements, says it both times.

    Bytes follow from the HOT share: of fewer HOT updates than foreseen more, of more fewer. Where
    the share has failed so, its verdict alone says it.
    """
    after, by_log = case.forecast.after, bool(case.now.wal_by_log)
    before, now = case.forecast.measured.wal_bytes_per_update, case.now.wal_bytes_per_update
    forecast = _wal_forecast(case, hot_before)
    verdict: ForecastVerdict | None = None
    note = forecast if isinstance(forecast, str) else ""
    if isinstance(forecast, Interval) and before is not None and now is not None:
        verdict, note = judge_wal(now, before, forecast, images=not by_log)
        if verdict == "failed" and _explains(hot, after, is_more=now > forecast.mid):
            verdict, note = None, f"{_HOT_MISSED} ({note})"
    return MeasureOutcome(
        name="wal_bytes_per_update",
        unit="bytes",
        before=before,
        planned=None if after is None else after.wal_bytes_per_update,
        forecast=None if isinstance(forecast, str) else forecast,
        now=now,
        verdict=verdict,
        note=note,
    )


def _explains(hot: MeasureOutcome, after: Point | None, *, is_more: bool) -> bool:
    """Whether a HOT share that has failed makes an update write more, or less, than foreseen."""
    if after is None or hot.verdict != "failed":
        return False
    found, foreseen = as_interval(hot.now), as_interval(after.hot_frac)
    if found is None or foreseen is None or is_in_long_run(found, after):
        return False
    return (found.mid < foreseen.mid) == is_more


def _wal_forecast(case: Case, hot_before: Interval | None) -> Interval | str:
    """
    What an update is to write, in bytes; else why that is not judged.

    The curve is of the long run. A table that was in it changes by the curve's ratio, whatever the
    twin is off by. One that was still on its way there when it was planned does not: by the log,
    which has images apart as the curve has, it is held against the curve itself.
    """
    found, before, now = case.forecast, case.forecast.measured, case.now
    if before.wal_bytes_per_update is None or now.wal_bytes_per_update is None:
        return (
            "not attributed: neither the log of both intervals was read, nor has "
            "pg_stat_statements counted these statements both times"
        )
    if before.wal_by_log != now.wal_by_log:
        return "shown only: one time it is by the log, the other time by statements"
    if case.again is not None or not case.has_arrived:
        return "shown only: the forecast is for the state at which the table arrives"
    ratio = wal_ratio(found.before, found.after, images=not now.wal_by_log)
    if ratio is None or found.before is None or found.after is None:
        return "shown only: the curve has no figure at the setting before"
    if is_in_long_run(hot_before, found.before):
        return ratio.scaled(before.wal_bytes_per_update)
    planned = as_interval(found.after.wal_bytes_per_update)
    if planned is None or not now.wal_by_log:
        return "shown only: the table was not yet in the long run when it was planned"
    return planned


def _newpage_forecast(case: Case) -> Value:
    if case.again is not None:
        return case.again.newpage_frac
    after = case.forecast.after
    return None if after is None or not case.has_arrived else after.newpage_frac


def _hot(case: Case, hot: Share | None, before: Interval | None) -> MeasureOutcome:
    measured = None if hot is None else hot.interval
    planned = hot_forecast(case.forecast, is_rewritten=case.is_rewritten)
    forecast = planned if case.again is None else case.again.hot_frac
    verdict: ForecastVerdict
    if case.again is not None:
        way = None if case.has_arrived else case.progress or ""
        verdict, note = judge_again(measured, before, case.again.hot_frac, way=way)
        note += f"; {_populations(case.again, case.since)}"
    elif forecast is None:
        verdict, note = "undecided", "the plan has no forecast of it"
    elif case.has_arrived:
        verdict, note = judge_share(measured, before, forecast)
        done = case.updates_per_row
        if case.forecast.verdict == "KEEP" and not case.is_rewritten:
            verdict, note = _of_kept(case, (verdict, note), measured, before, forecast)
        fresh = case.is_rewritten and done is not None and done < SETTLED_UPDATES_PER_ROW
        if fresh and verdict == "failed" and measured and measured.low > forecast.high:
            verdict, note = (
                "undecided",
                (
                    f"freshly rewritten, its room not yet used: {done:.2g} of "
                    f"{SETTLED_UPDATES_PER_ROW:g} updates a row"
                ),
            )
    else:
        verdict, note = judge_way(measured, before, forecast.mid, case.progress or "")
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


def _of_kept(
    case: Case,
    found: tuple[ForecastVerdict, str],
    measured: Interval | None,
    before: Interval | None,
    forecast: Interval,
) -> tuple[ForecastVerdict, str]:
    """
    A verdict on a table that was left as it is: whatever moves, it is no effect of a plan.

    One that was not yet in its long run when it was planned may still be on its way there.
    """
    verdict, note = found
    if verdict not in ("no effect", "failed") or measured is None or before is None:
        return found
    done = case.updates_per_row
    if not before.overlaps(forecast, TOLERANCE) and (
        done is None or done < SETTLED_UPDATES_PER_ROW
    ):
        since = "" if done is None else f", {done:.2g} updates a row since"
        what = f"nothing was changed, and it had not arrived when it was planned{since}"
        return judge_way(measured, before, forecast.mid, what)
    is_inside = measured.overlaps(forecast, TOLERANCE)
    if verdict == "failed":
        return verdict, (
            f"nothing was changed, and it is inside the forecast, yet {note}" if is_inside else note
        )
    return ("undecided" if is_inside else "failed"), f"nothing was changed; {note}"


def _was_off(case: Case, planned: Interval | None) -> bool:
    """Whether a kept table's size was not the foreseen one from the beginning."""
    before = case.forecast.measured
    if case.forecast.transition is not None or case.is_rewritten:
        return False
    if before.heap_bytes is None or planned is None:
        return False
    verdict, _ = judge_heap(float(before.heap_bytes), None, planned, on_the_way=False)
    return verdict == "failed"


def _heap(case: Case) -> tuple[MeasureOutcome, ...]:
    found, before, now = case.forecast, case.forecast.measured, case.now
    way = found.transition
    planned = as_interval(None if found.after is None else found.after.heap_bytes)
    if way is not None and not case.is_rewritten:
        planned = as_interval(way.final_heap_bytes)
    if case.again is not None and case.since is not None:
        return heap_again(before, planned, now, case.again, case.since)
    grown = now.rows / before.rows if before.rows and now.rows else 1.0
    verdict: ForecastVerdict | None = None
    note, forecast = "not known", planned
    if forecast is not None and grows(before):
        # The forecast is for the end of the simulated time, which is not today.
        forecast, note = None, "rows only come: its size in the long run is not today's"
    if forecast is not None and now.heap_bytes is not None:
        forecast = forecast.scaled(grown)
        verdict, note = judge_heap(
            float(now.heap_bytes),
            None if before.heap_bytes is None else before.heap_bytes * grown,
            forecast,
            on_the_way=not case.has_arrived,
        )
        if verdict == "failed" and is_unseen(now, forecast):
            verdict, note = None, "shown only: versions of ten seconds may make as much"
        if verdict == "failed" and is_cut_off(now, forecast):
            verdict, note = None, "shown only: a queue's heap is cut off by VACUUM and grows again"
        if verdict == "failed" and _was_off(case, planned):
            verdict, note = None, "shown only: the twin had another size when it was planned"
        elif abs(grown - 1) >= 0.01:
            note += f"; forecast scaled by the rows ({percent(grown - 1, 1, sign=True)})"
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


def hot_forecast(found: Forecast, *, is_rewritten: bool) -> Interval | None:
    """The steady state; without a rewrite, where the table arrives, as uncertain as that."""
    steady = as_interval(None if found.after is None else found.after.hot_frac)
    way = found.transition
    if way is None or is_rewritten or way.final_hot_frac is None:
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


def grows(before: MeasuredInterval) -> bool:
    """Whether so many more rows come than go that the table has no size to stay at."""
    net = (before.inserts or 0) - (before.deletes or 0)
    return net > _NET_INSERTS_FRAC * max(before.inserts or 0, 1)


def _populations(again: Again, since: Since | None) -> str:
    """Old pages and new ones by themselves, in words."""
    assert since is not None, "what was foreseen again was foreseen for something"
    said = f"{percent(again.new_rows_frac)} of the rows came since"
    parts = again.by_page
    if parts is None:
        return said
    old, new = parts.hot_old_frac, parts.hot_new_frac
    if old is None or new is None:
        pages = f"since, filled at {since.fillfactor}" if old is None else "that were there"
        return f"{said}; foreseen are updates on pages {pages} alone"
    hot_old, hot_new = show_shares(old, new)
    return (
        f"{said}; foreseen: {percent(parts.old_pages_frac)} of the updates on pages that were "
        "there, "
        f"{hot_old} of these HOT, and {hot_new} of those on pages filled at {since.fillfactor} "
        "since"
    )
