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
from itertools import pairwise

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
    curve_line,
    end,
    is_stepped,
    played,
    said,
)
from pgheadroom.report.advice.statements import hot_moves
from pgheadroom.report.axes import Axes, word

_SIZE = (420, 230)
_LINE = 14  # between two labels that stand below each other
_ABOVE, _BELOW = 10, 3  # of a label, from the line that it stands on
_NEAR_LINES = 4
_CHARACTER = 6.4  # of a label's width, rather more than less
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
    line = curve_line(axes, known, is_stepped=is_stepped(table))
    parts = [
        f'<svg viewBox="0 0 {_SIZE[0]} {_SIZE[1]}" role="img" aria-label="{label}">',
        *(_zone(axes, zone) if zone is not None else ()),
        *axes.drawn(),
        *curve(axes, known, is_stepped=is_stepped(table)),
        *_marks(axes, _labels(measure, marked), measure, marked, line),
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
    line: Sequence[tuple[float, float]],
) -> Iterable[str]:
    for label, (state, value) in zip(_placed(axes, labels, marked, line), marked, strict=True):
        x, y = axes.across(state.fillfactor), axes.up(float(middle(value) or 0.0))
        words = f"{state.name}, fillfactor {state.fillfactor}: {said(measure, value)}"
        yield f"<g><title>{words}</title>"
        low, high = axes.up(end(value, "low")), axes.up(end(value, "high"))
        if low - high > 1:
            yield f'<path class="whisker" d="M{x:.1f},{high:.1f}V{low:.1f}"/>'
        yield _mark(_MARKS[state.name], x, y)
        yield label
        yield "</g>"


def _placed(
    axes: Axes,
    labels: Sequence[str],
    marked: Sequence[tuple[ComparedState, Value]],
    line: Sequence[tuple[float, float]],
) -> list[str]:
    """The labels: those of the lowest fillfactor take their places first, as they matter most."""
    taken: list[tuple[float, float, float]] = []
    found: dict[int, str] = {}
    for place in sorted(range(len(marked)), key=lambda place: marked[place][0].fillfactor):
        state, value = marked[place]
        x, y = axes.across(state.fillfactor), axes.up(float(middle(value) or 0.0))
        anchor = "start" if x < (axes.left + axes.right) / 2 else "end"
        beside = x + (9 if anchor == "start" else -9)
        width = _CHARACTER * len(labels[place])
        left = beside if anchor == "start" else beside - width
        height = _height(axes, y, (left, left + width), taken, line)
        taken.append((left, left + width, height))
        found[place] = word("mark", (beside, height), labels[place], anchor)
    return [found[place] for place in range(len(marked))]


def _mark(kind: str, x: float, y: float) -> str:
    if kind == "advised":
        return f'<path class="advised" d="M{x:.1f},{y - 6:.1f}l6,6l-6,6l-6,-6z"/>'
    if kind == "square":
        return f'<rect class="outcome" x="{x - 5:.1f}" y="{y - 5:.1f}" width="10" height="10"/>'
    css, radius = ("now", 5.5) if kind == "ring" else ("dot", 4)
    return f'<circle class="{css}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}"/>'


def _height(
    axes: Axes,
    y: float,
    span: tuple[float, float],
    taken: Sequence[tuple[float, float, float]],
    line: Sequence[tuple[float, float]],
) -> float:
    """
    Where a label stands: as near to its mark as no other label is in its span.

    And as the curve does not cross it, if that is within some lines.
    """
    beside = [at for left, right, at in taken if left < span[1] and span[0] < right]
    low, high = axes.top + 10, axes.bottom - 6
    wanted = min(max(y - 9, low), high)
    steps = [wanted + sign * _LINE * number / 2 for number in range(40) for sign in (-1, 1)]
    free = [
        place
        for place in steps
        if low <= place <= high and all(abs(place - at) >= _LINE for at in beside)
    ]
    clear = (
        place
        for place in free
        if abs(place - wanted) <= _NEAR_LINES * _LINE and not _crosses(line, span, place)
    )
    return next(clear, next(iter(free), wanted))


def _crosses(line: Sequence[tuple[float, float]], span: tuple[float, float], place: float) -> bool:
    """Whether the line goes through a label of this span, whose writing stands at that height."""
    for (x0, y0), (x1, y1) in pairwise(line):
        left, right = max(x0, span[0]), min(x1, span[1])
        if left > right:
            continue
        ends = (
            [y0, y1] if x0 == x1 else [y0 + (y1 - y0) * (x - x0) / (x1 - x0) for x in (left, right)]
        )
        if min(ends) < place + _BELOW and max(ends) > place - _ABOVE:
            return True
    return False


def _of(state: ComparedState, measure: CurveMeasure) -> Value:
    of = {HOT: state.hot_frac, HEAP: state.heap_bytes, WAL: state.wal_bytes_per_update}
    return of[measure]
