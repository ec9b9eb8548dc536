"""
Pictures of an advice: small multiples of a table's curve over fillfactor.

SVG made of numbers and of words of ours, in the colours of the page's style sheet, so that it
follows dark screens and paper. No script takes part; a point says its values as a title.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pgheadroom.advise.foreseen import Point
from pgheadroom.advise.table_advice import TableAdvice
from pgheadroom.outcome import Value, middle
from pgheadroom.report.advice import tables as advice_tables
from pgheadroom.report.axes import Axes, amounts, of_bytes, shares, stairs, word
from pgheadroom.types import Interval
from pgheadroom.units import PAGE_BYTES, show_bytes

_WIDTH, _HEIGHT = 300, 172
_FEW_ROWS = 6
"""Of a page, up to which a curve has steps: another row is a sixth more. Arbitrary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallMultiple:
    """
    One of the small multiples.

    Attributes:
        title: What it shows, with its unit.
        picture: The SVG.
    """

    title: str
    picture: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveMeasure:
    """
    What a picture shows.

    Attributes:
        title: With its unit.
        of: A point's value.
        write: A number as it is said.
        share: Whether it is one, of a whole.
        binary: Whether it is bytes, in KiB and so on.
    """

    title: str
    of: Callable[[Point], Value]
    write: Callable[[float], str]
    share: bool = False
    binary: bool = False


def _percent(found: float) -> str:
    return f"{found * 100:.4g} %"


def _number(found: float) -> str:
    return f"{found:.4g}"


HOT = CurveMeasure(title="HOT updates", of=lambda point: point.hot_frac, write=_percent, share=True)
HEAP = CurveMeasure(
    title="Heap, after as long", of=lambda point: point.heap_bytes, write=show_bytes, binary=True
)
WAL = CurveMeasure(
    title="WAL bytes per update", of=lambda point: point.wal_bytes_per_update, write=_number
)
_COST = CurveMeasure(title="Cost a day, in GB kept", of=lambda point: point.cost, write=_number)


def panels(table: TableAdvice) -> list[SmallMultiple]:
    """The curve's pictures; none for a table that was not simulated at several settings."""
    if len(table.curve) < 2:
        return []
    found = []
    for measure in (HOT, HEAP, WAL, _COST):
        known = played(table, measure)
        if len(known) > 1:
            found.append(
                SmallMultiple(title=measure.title, picture=_picture(table, measure, known))
            )
    return found


def played(table: TableAdvice, measure: CurveMeasure) -> list[tuple[Point, Value]]:
    """The settings that have a value, by rising fillfactor."""
    known = [(point, value) for point in table.curve if (value := measure.of(point)) is not None]
    return sorted(known, key=lambda item: item[0].fillfactor)


def _picture(
    table: TableAdvice, measure: CurveMeasure, known: Sequence[tuple[Point, Value]]
) -> str:
    axes = axes_of(measure, known)
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{_words(table, measure, known)}">',
        *axes.drawn(),
        *curve(axes, known, is_stepped=is_stepped(table)),
    ]
    for point, value in known:
        parts += _point(table, measure, (point, value), axes)
    return "".join([*parts, "</svg>"])


def curve(axes: Axes, known: Sequence[tuple[Point, Value]], *, is_stepped: bool) -> Iterable[str]:
    """A line through the settings that were played, with a band where values are uncertain."""
    if any(isinstance(value, Interval) and value.low < value.high for _, value in known):
        edges = [
            stairs(
                [
                    (axes.across(point.fillfactor), axes.up(end(value, which)))
                    for point, value in known
                ],
                is_stepped=is_stepped,
            )
            for which in ("high", "low")
        ]
        yield f'<polygon class="band" points="{_corners([*edges[0], *reversed(edges[1])])}"/>'
    line = curve_line(axes, known, is_stepped=is_stepped)
    yield f'<polyline class="line" points="{_corners(line)}"/>'


def curve_line(
    axes: Axes, known: Sequence[tuple[Point, Value]], *, is_stepped: bool
) -> list[tuple[float, float]]:
    """The corners of the curve's line, in the picture's own units."""
    line = [(axes.across(point.fillfactor), axes.up(_mid(value))) for point, value in known]
    return list(stairs(line, is_stepped=is_stepped))


def is_stepped(table: TableAdvice) -> bool:
    """Whether rows are so wide that a page has a few more or less, and nothing between."""
    point = table.point(table.fillfactor)
    heap = None if point is None else middle(point.heap_bytes)
    return heap is not None and table.rows * PAGE_BYTES <= _FEW_ROWS * heap


def _corners(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def axes_of(
    measure: CurveMeasure,
    known: Sequence[tuple[Point, Value]],
    *,
    beside: Iterable[Value] = (),
    size: tuple[int, int] = (_WIDTH, _HEIGHT),
) -> Axes:
    """Axes with room for the points of a curve, and for further values."""
    values = [value for value in (*(value for _, value in known), *beside) if value is not None]
    reached = [end(value, which) for value in values for which in ("low", "high")]
    unit, name = of_bytes(max(reached)) if measure.binary else (1.0, "")
    span, step = shares() if measure.share else amounts(reached, unit)
    return Axes(
        width=size[0],
        height=size[1],
        fillfactors=(known[0][0].fillfactor, known[-1][0].fillfactor),
        values=span,
        step=step,
        unit=unit,
        word=name,
        is_share=measure.share,
    )


def _point(
    table: TableAdvice, measure: CurveMeasure, known: tuple[Point, Value], axes: Axes
) -> Iterable[str]:
    point, value = known
    x, y = axes.across(point.fillfactor), axes.up(_mid(value))
    mark = advice_tables.mark(table, point)
    words = f"fillfactor {point.fillfactor}: {said(measure, value)}"
    yield f"<g><title>{words}{f' ({mark})' if mark else ''}</title>"
    if "advised" in mark:
        yield f'<path class="advised" d="M{x:.1f},{y - 6:.1f}l6,6l-6,6l-6,-6z"/>'
    elif mark:
        yield f'<circle class="now" cx="{x:.1f}" cy="{y:.1f}" r="5"/>'
    else:
        yield f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="2"/>'
    yield f'<circle class="hit" cx="{x:.1f}" cy="{y:.1f}" r="9"/>'
    if mark:
        # Above the point, or below where the heading is; to the left, where curves are flat.
        dy = -10 if y > axes.top + 14 else 18
        anchor = "start" if x < axes.left + 50 else "end"
        x += 6 if anchor == "end" else -6
        yield word("mark", (x, y + dy), mark, anchor)
    yield "</g>"


def _words(table: TableAdvice, measure: CurveMeasure, known: Sequence[tuple[Point, Value]]) -> str:
    """The picture in words of ours: no name of the database is among them."""
    marked = [
        f"{mark} at {point.fillfactor}: {said(measure, value)}"
        for point, value in known
        if (mark := advice_tables.mark(table, point))
    ]
    ends = f"from fillfactor {known[0][0].fillfactor} to {known[-1][0].fillfactor}"
    return "; ".join([f"{measure.title} {ends}", *marked])


def said(measure: CurveMeasure, value: Value) -> str:
    """A value in words, with its interval."""
    text = measure.write(_mid(value))
    if isinstance(value, Interval) and value.low < value.high:
        text += f" [{measure.write(value.low)}, {measure.write(value.high)}]"
    return text


def _mid(value: Value) -> float:
    found = middle(value)
    assert found is not None, "unknown values are left out"
    return float(found)


def end(value: Value, which: str) -> float:
    """One end of its interval, or itself."""
    return float(getattr(value, which)) if isinstance(value, Interval) else _mid(value)
