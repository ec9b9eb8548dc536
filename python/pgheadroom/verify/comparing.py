"""
Whether two observations of a table may be compared, and a verdict on one measure.

    forecast and measured interval apart        failed, or "no effect" where nothing has moved
    measured interval too wide                  undecided
    an effect was forecast, nothing has moved   no effect: the forecast reaches as far as "none"
    no effect was forecast, by an interval
      wider than the effect it denies           failed: it could not have been wrong
    else                                        held
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pgheadroom.advise.foreseen import Point
from pgheadroom.outcome import Value, as_interval
from pgheadroom.plan.measured import MeasuredInterval
from pgheadroom.types import Interval
from pgheadroom.units import PAGE_BYTES, percent, show_bytes, show_shares

ForecastVerdict = Literal["held", "failed", "no effect", "undecided", "not comparable"]

RATE_FACTOR = 2.0
"""Updates a second may differ by this factor: HOT shares hardly depend on the rate, but vacuum and
the horizon do."""
CLASSES_DISTANCE = 0.2
"""Part of the updates that may assign other columns than before (total variation distance)."""
TUPLE_FRAC = 0.1
"""Rows may be this part longer or shorter."""
INSERTS_DIFFERENCE = 0.1
"""Inserts for each update may differ by this much, or by a factor of two."""
ROWS_FRAC = 0.25
"""The table may have this part more or fewer rows."""
HELD_DIFFERENCE = 0.25
"""Part of the interval in which the horizon stood still may differ by this much."""

EFFECT_MIN = 0.02
"""Shares that differ by less count as equal: two points."""
TOLERANCE = 0.01
"""What the twin errs by in any case (docs/accuracy.md): a point of the HOT share."""
HEAP_TOLERANCE = 0.05
"""Of heap bytes, and 8 pages: a table that has lived has room that no forecast knows."""
HEAP_TOLERANCE_BYTES = 8 * PAGE_BYTES
GROWN_TOLERANCE_BYTES = 64 * PAGE_BYTES
"""Of what a heap has grown by: it is extended by up to 64 pages at once (from 16)."""
WAL_TOLERANCE = 0.2
"""Of WAL bytes an update: images come with checkpoints, which differ between two windows."""
LONG_RUN_TOLERANCE = 0.05
"""Of the HOT share: so much less of it costs some 10 % of an update's WAL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """One property of the workload, then and now, and whether that is alike enough."""

    name: str
    before: float | None
    now: float | None
    limit: str
    is_alike: bool


def likenesses(before: MeasuredInterval, now: MeasuredInterval) -> tuple[Likeness, ...]:
    """What of the workload was compared; properties that one side lacks are left out."""
    made = []

    def add(name: str, then: float, new: float, limit: str, is_alike: bool) -> None:
        made.append(Likeness(name=name, before=then, now=new, limit=limit, is_alike=bool(is_alike)))

    if before.updates and now.updates is not None:
        ratio = now.updates_per_s / before.updates_per_s
        add(
            "updates_per_s",
            before.updates_per_s,
            now.updates_per_s,
            f"factor {RATE_FACTOR:g}",
            1 / RATE_FACTOR <= ratio <= RATE_FACTOR,
        )
    if before.updates and now.updates and None not in (before.inserts, now.inserts):
        then, new = (before.inserts or 0) / before.updates, (now.inserts or 0) / now.updates
        near = abs(new - then) <= INSERTS_DIFFERENCE
        add(
            "inserts_per_update",
            then,
            new,
            f"{INSERTS_DIFFERENCE:g}, or factor 2",
            near or (min(then, new) > 0 and 0.5 <= new / then <= 2),
        )
    if before.tuple_bytes and now.tuple_bytes:
        add(
            "tuple_bytes",
            before.tuple_bytes,
            now.tuple_bytes,
            percent(TUPLE_FRAC),
            abs(now.tuple_bytes / before.tuple_bytes - 1) <= TUPLE_FRAC,
        )
    if before.rows and now.rows:
        add(
            "rows",
            before.rows,
            now.rows,
            percent(ROWS_FRAC),
            1 / (1 + ROWS_FRAC) <= now.rows / before.rows <= 1 + ROWS_FRAC,
        )
    if before.classes and now.classes and before.classes_source == now.classes_source:
        distance = classes_distance(before, now)
        add(
            "other_columns_frac",
            0.0,
            distance,
            f"{CLASSES_DISTANCE:g}",
            distance <= CLASSES_DISTANCE,
        )
    add(
        "horizon_held_frac",
        before.held_frac,
        now.held_frac,
        f"{HELD_DIFFERENCE:g}",
        abs(now.held_frac - before.held_frac) <= HELD_DIFFERENCE,
    )
    return tuple(made)


def classes_distance(before: MeasuredInterval, now: MeasuredInterval) -> float:
    """Part of the updates that assign other columns: total variation distance of the classes."""
    shares: list[dict[tuple[str, ...], float]] = []
    for side in (before, now):
        sums: dict[tuple[str, ...], float] = {}
        for found in side.classes:
            sums[found.columns] = sums.get(found.columns, 0.0) + found.frac
        total = sum(sums.values()) or 1.0
        shares.append({columns: frac / total for columns, frac in sums.items()})
    first, second = shares
    return sum(abs(first.get(c, 0.0) - second.get(c, 0.0)) for c in {*first, *second}) / 2


def judge_share(
    now: Interval | None, before: Interval | None, forecast: Interval
) -> tuple[ForecastVerdict, str]:
    """
    A verdict on a share of updates.

    Args:
        now: Measured; None where there were too few windows.
        before: Measured before the change; None where there were no updates.
        forecast: For this moment.

    Returns:
        The verdict and its reason, one sentence.
    """
    if now is None:
        return "undecided", "too few windows with updates: watch longer"
    effect = 0.0 if before is None else forecast.mid - before.mid
    need = max(EFFECT_MIN, abs(effect) / 2)
    moved = before is None or not now.overlaps(before)
    expects = abs(effect) >= EFFECT_MIN
    if not now.overlaps(forecast, TOLERANCE):
        if expects and not moved:
            return "no effect", f"{_points(effect)} were foreseen, nothing has moved"
        off = now.mid - (forecast.high if now.mid > forecast.high else forecast.low)
        return "failed", f"{_points(off)} from the nearer end of the forecast"
    half = now.width / 2
    if half > need:
        return "undecided", (
            f"measured to {_points(half)} either way, {_points(need)} are needed: watch longer"
        )
    if expects and not moved:
        assert before is not None, "without a state before nothing can stand still"
        if before.width / 2 > need:
            return "undecided", "the state before is not known well enough: too few updates then"
        return "no effect", (
            f"nothing has moved, and the forecast's interval ({_points(_width(forecast))} wide) "
            f"reaches there beside its effect of {_points(effect)}"
        )
    if before is not None and not expects and _width(forecast) > 2 * EFFECT_MIN:
        return "failed", (
            f"no effect was foreseen, by an interval {_points(_width(forecast))} wide: "
            f"wider than an effect ({_points(EFFECT_MIN)}), so it could not have been wrong"
        )
    if not now.overlaps(forecast):
        off = now.beyond(forecast)
        return "held", f"{off * 100:+.2f} points beside the forecast, {_points(TOLERANCE)} may be"
    return "held", "inside the forecast"


def judge_again(
    now: Interval | None, before: Interval | None, forecast: Interval, *, way: str | None = None
) -> tuple[ForecastVerdict, str]:
    """
    A verdict on a share that was foreseen again for what has happened since.

    Such a forecast may be as wide as it is: a wide one that is met says nothing, and is no failure.

    Args:
        now: Measured.
        before: Measured before the change.
        forecast: For now.
        way: How far it is on a way that the plan announced; None: it has arrived. Until then a
            share between the ends of the way has failed nothing.
    """
    verdict, note = judge_share(now, before, forecast)
    if now is None or verdict in ("undecided", "held"):
        return verdict, note
    if way is not None:
        return judge_way(now, before, forecast.mid, way)
    if not now.overlaps(forecast, TOLERANCE):
        return verdict, note
    return "undecided", (
        f"inside the forecast for this state, which is {_points(_width(forecast))} wide: too wide "
        "to tell an effect from none"
    )


def wal_ratio(before: Point | None, after: Point | None, *, images: bool = True) -> Interval | None:
    """
    By what WAL over the updates changes, by the curve; None where it has no such figures.

    All of it, for statements are counted with their images; plans of earlier versions have it under
    the name that an update's own WAL has now. The log tells images apart: then it is the updates'
    own.
    """
    if before is None or after is None:
        return None
    if images:
        then, found = as_interval(_all_wal(before)), as_interval(_all_wal(after))
    else:
        then = as_interval(before.wal_bytes_per_update)
        found = as_interval(after.wal_bytes_per_update)
    return None if then is None or found is None or then.mid <= 0 else found.scaled(1 / then.mid)


def is_in_long_run(hot: Interval | None, point: Point) -> bool:
    """Whether a measured HOT share is about that of the curve; as if it were where nobody knows."""
    known = as_interval(point.hot_frac)
    return hot is None or known is None or hot.overlaps(known, LONG_RUN_TOLERANCE)


def _all_wal(point: Point) -> Value:
    known = point.all_wal_bytes_per_update
    return point.wal_bytes_per_update if known is None else known


def judge_wal(
    now: float, before: float, forecast: Interval, *, images: bool = True
) -> tuple[ForecastVerdict | None, str]:
    """
    A verdict on the WAL of an update, in bytes, from statements counted then and now.

    Images of pages come with checkpoints, more in one window than in the other. So what is near
    is held, what moved the other way has failed, and what lies between is shown. Without images, as
    the log has it, what lies between has failed too where it is beyond the forecast.
    """
    slack = WAL_TOLERANCE * forecast.mid
    if forecast.low - slack <= now <= forecast.high + slack:
        return "held", "within what was foreseen"
    foreseen, moved = forecast.mid / before - 1, now / before - 1
    if abs(foreseen) > WAL_TOLERANCE and abs(moved) > WAL_TOLERANCE and foreseen * moved < 0:
        return (
            "failed",
            f"{percent(foreseen, sign=True)} were foreseen, {percent(moved, sign=True)} were "
            "measured",
        )
    if not images:
        return (
            "failed",
            f"{percent(foreseen, sign=True)} were foreseen, {percent(moved, sign=True)} were "
            "measured in the log",
        )
    return None, (
        f"shown only: {percent(foreseen, sign=True)} were foreseen, {percent(moved, sign=True)} "
        "measured, which checkpoints may "
        "have done"
    )


def judge_way(
    now: Interval | None, before: Interval | None, final: float, what: str
) -> tuple[ForecastVerdict, str]:
    """
    A verdict on a share that is still on its way: it has to be between before and final.

    Args:
        now: Measured.
        before: Measured before the change.
        final: Where it is to arrive.
        what: How far it is, for the reason.
    """
    if now is None:
        return "undecided", "too few windows with updates: watch longer"
    start = final if before is None else before.mid
    shown = show_shares(start, final)
    if not now.overlaps(Interval.reaching([start], mid=final, level=now.level), TOLERANCE):
        return "failed", f"outside the way from {shown[0]} to {shown[1]}; {what}"
    if abs(final - start) < EFFECT_MIN:
        return "held", f"no more than {_points(EFFECT_MIN)} were foreseen; {what}"
    return "undecided", f"still on its way from {shown[0]} to {shown[1]}: {what}"


ON_THE_WAY = "on its way: between what it was and the forecast"
"""A size that is said so, since it stands beside a forecast that it has not reached."""


def judge_heap(
    now: float,
    before: float | None,
    forecast: Interval,
    *,
    on_the_way: bool,
    slack_bytes: float = HEAP_TOLERANCE_BYTES,
) -> tuple[ForecastVerdict, str]:
    """A verdict on the table's size, in bytes; a size is known exactly, its forecast is not."""
    low, high = forecast.low, forecast.high
    if on_the_way and before is not None:
        low, high = min(low, before), max(high, before)
    slack = max(HEAP_TOLERANCE * forecast.mid, slack_bytes, HEAP_TOLERANCE_BYTES)
    if forecast.low <= now <= forecast.high:
        return "held", "inside the forecast"
    if low <= now <= high:
        return "held", ON_THE_WAY
    end = high if now > high else low
    if low - slack <= now <= high + slack:
        apart, allowed = show_bytes(abs(now - end)), show_bytes(slack)
        where = "above" if now > high else "below"
        return "held", f"{apart} {where} the forecast, {allowed} may be"
    if end <= 0:
        return "failed", "it shrank, or grew where nothing was to come"
    return "failed", f"{percent(now / end - 1, 1, sign=True)} from the nearer end of the forecast"


def leaves_its_course(again: Interval, before: float, planned: Interval) -> bool:
    """
    Whether a table that nobody changed is foreseen outside of what it had and where it goes.

    Left as it is, a table is somewhere between the share that was measured and that of its long
    run. A run until now that ends elsewhere does not repeat the table, and what it says of the
    heap's growth is worth no more than its share.
    """
    return again.low > max(before, planned.high) or again.high < min(before, planned.low)


def _width(found: Interval) -> float:
    """Rounded, so that an interval of just the limit is not beyond it."""
    return round(found.width, 9)


def _points(share: float) -> str:
    return f"{100 * share:.1f} points"
