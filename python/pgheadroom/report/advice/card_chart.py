"""
The picture of a card: the twin's curve over fillfactor, and on it the states that are compared.

    grey zone   settings at which the heap grows beyond the policy's limit
    ring        measured before, at the setting in force
    disc        the long run there, if nothing is changed
    diamond     the long run at the advised setting
    square      measured after the change
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pgheadroom.advise.table_advice import TableAdvice
from pgheadroom.outcome import Value, middle
from pgheadroom.report.advice import values as advice_values
from pgheadroom.report.advice.cards import ComparedState
from pgheadroom.report.advice.drawing import (
    HEAP,
    HOT,
    WAL,
    CurveMeasure,
    axes_of,
    curve,
    end,
    is_stepped,
    played,
    said,
)
from pgheadroom.report.advice.statements import hot_moves
from pgheadroom.report.axes import Axes, word

_SIZE = (420, 230)
_LINE = 14  # between two labels that stand below each other
_MARKS = {"measured": "ring", "if unchanged": "disc", "foreseen": "advised", "outcome": "square"}


def shown(table: TableAdvice) -> CurveMeasure:
    """What the change is for: HOT, or where that stays, what moves most."""
    if hot_moves(table):
        return HOT
    now, then = table.point(table.fillfactor), table.point(table.advised_fillfactor)

    def moved(measure: CurveMeasure) -> float:
        before = middle(measure.of(now)) if now else None
        after = middle(measure.of(then)) if then else None
        return abs(after / before - 1) if before and after is not None else 0.0

    return max((WAL, HEAP), key=moved)


def picture(
    table: TableAdvice, states: Sequence[ComparedState], max_growth_frac: float | None
) -> tuple[str, str] | None:
    """
    The picture's title and its SVG; None of a table that was not played at several settings.

    Args:
        table: One to change.
        states: What is compared.
        max_growth_frac: The policy's limit to the heap's growth, if it has one.
    """
    measure = shown(table)
    known = played(table, measure)
    if len(known) < 2:
        return None
    marked = [(state, value) for state in states if (value := _of(state, measure)) is not None]
    axes = axes_of(measure, known, beside=[value for _, value in marked], size=_SIZE)
    words = "; ".join(
        f"{state.name} at {state.fillfactor}: {said(measure, value)}" for state, value in marked
    )
    zone = excluded(table, max_growth_frac)
    label = f"{measure.title} over fillfactor; {words}"
    if zone is not None:
        label += f"; below {zone} the heap grows beyond the limit"
    parts = [
        f'<svg viewBox="0 0 {_SIZE[0]} {_SIZE[1]}" role="img" aria-label="{label}">',
        *(_zone(axes, zone) if zone is not None else ()),
        *axes.drawn(),
        *curve(axes, known, is_stepped=is_stepped(table)),
        *_marks(axes, _labels(measure, marked), measure, marked),
    ]
    return measure.title, "".join([*parts, "</svg>"])


def excluded(table: TableAdvice, max_growth_frac: float | None) -> int | None:
    """
    The lowest setting whose heap is within the policy's limit; None where all are.

    Growth is against the long run at the setting in force, as the policy counts it.
    """
    now = table.point(table.fillfactor)
    before = None if now is None else middle(now.heap_bytes)
    if max_growth_frac is None or not before:
        return None
    within = [
        point.fillfactor
        for point in table.curve
        if (heap := middle(point.heap_bytes)) is not None and heap <= (1 + max_growth_frac) * before
    ]
    lowest = min((point.fillfactor for point in table.curve), default=0)
    return min(within) if within and min(within) > lowest else None


def _zone(axes: Axes, until: int) -> Iterable[str]:
    right = axes.across(until) - 4
    width, height = right - axes.left, axes.bottom - axes.top
    yield (
        f'<rect class="zone" x="{axes.left:.1f}" y="{axes.top:.1f}" width="{width:.1f}" '
        f'height="{height:.1f}"><title>the heap grows beyond the limit</title></rect>'
    )
    yield word("tick", (axes.left + 4, axes.bottom - 6), "heap limit", "start")


def _labels(measure: CurveMeasure, marked: Sequence[tuple[ComparedState, Value]]) -> list[str]:
    """A label for each mark, its value with the digits that the card's table has."""
    values = [value for _, value in marked]
    if not measure.share:
        written = [measure.write(float(middle(value) or 0.0)) for value in values]
    else:
        written = [
            f"{advice_values.share(value, ranged=False, beside=values)} %" for value in values
        ]
    return [f"{state.name} {text}" for (state, _), text in zip(marked, written, strict=True)]


def _marks(
    axes: Axes,
    labels: Sequence[str],
    measure: CurveMeasure,
    marked: Sequence[tuple[ComparedState, Value]],
) -> Iterable[str]:
    taken: list[tuple[float, float]] = []
    for label, (state, value) in zip(labels, marked, strict=True):
        at = middle(value)
        assert at is not None, "states without a value have no mark"
        x, y = axes.across(state.fillfactor), axes.up(at)
        words = f"{state.name}, fillfactor {state.fillfactor}: {said(measure, value)}"
        yield f"<g><title>{words}</title>"
        low, high = axes.up(end(value, "low")), axes.up(end(value, "high"))
        if low - high > 1:
            yield f'<path class="whisker" d="M{x:.1f},{high:.1f}V{low:.1f}"/>'
        yield _mark(_MARKS[state.name], x, y)
        place = _place(axes, (x, y), taken)
        taken.append(place)
        anchor = "start" if x < (axes.left + axes.right) / 2 else "end"
        aside = 9 if anchor == "start" else -9
        yield word("mark", (x + aside, place[1]), label, anchor)
        yield "</g>"


def _mark(kind: str, x: float, y: float) -> str:
    if kind == "advised":
        return f'<path class="advised" d="M{x:.1f},{y - 6:.1f}l6,6l-6,6l-6,-6z"/>'
    if kind == "square":
        return f'<rect class="outcome" x="{x - 5:.1f}" y="{y - 5:.1f}" width="10" height="10"/>'
    css, radius = ("now", 5.5) if kind == "ring" else ("dot", 4)
    return f'<circle class="{css}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}"/>'


def _place(
    axes: Axes, at: tuple[float, float], taken: Sequence[tuple[float, float]]
) -> tuple[float, float]:
    """Where a mark's label stands: beside it, else as near as no other label is."""
    x, y = at
    middle_of_all = (axes.left + axes.right) / 2

    def is_free(place: float) -> bool:
        same_side = [
            other for left, other in taken if (left < middle_of_all) == (x < middle_of_all)
        ]
        return all(abs(place - other) >= _LINE for other in same_side)

    low, high = axes.top + 10, axes.bottom - 6
    wanted = min(max(y - 9, low), high)
    steps = [wanted + sign * _LINE * number / 2 for number in range(40) for sign in (-1, 1)]
    free = [place for place in steps if low <= place <= high and is_free(place)]
    return x, free[0] if free else wanted


def _of(state: ComparedState, measure: CurveMeasure) -> Value:
    of = {HOT: state.hot_frac, HEAP: state.heap_bytes, WAL: state.wal_bytes_per_update}
    return of[measure]
