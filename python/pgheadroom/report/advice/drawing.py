"""
Pictures of an advice: small multiples of a table's curve over fillfactor.

SVG made of numbers and of words of ours, in the colours of the page's style sheet, so that it
follows dark screens and paper. No script takes part; a point says its values as a title.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pgheadroom.advise.foreseen import Point
from pgheadroom.advise.table_advice import TableAdvice
from pgheadroom.outcome import Value, middle
from pgheadroom.report.advice import tables as advice_tables
from pgheadroom.types import Interval
from pgheadroom.units import show_bytes

_WIDTH, _HEIGHT = 300, 172
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 10, 20, 26
_TICKS_Y = 4
_MOST_TICKS_X = 6


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
class _Measure:
    title: str
    of: Callable[[Point], Value]
    write: Callable[[float], str]
    share: bool = False
    binary: bool = False


def _percent(found: float) -> str:
    return f"{found * 100:.4g} %"


def _number(found: float) -> str:
    return f"{found:.4g}"


_MEASURES = (
    _Measure(title="HOT updates", of=lambda point: point.hot_frac, write=_percent, share=True),
    _Measure(
        title="Heap, after as long",
        of=lambda point: point.heap_bytes,
        write=show_bytes,
        binary=True,
    ),
    _Measure(
        title="WAL bytes per update", of=lambda point: point.wal_bytes_per_update, write=_number
    ),
    _Measure(title="Cost a day, in GB kept", of=lambda point: point.cost, write=_number),
)


def panels(table: TableAdvice) -> list[SmallMultiple]:
    """The curve's pictures; none for a table that was not simulated at several settings."""
    if len(table.curve) < 2:
        return []
    found = []
    for measure in _MEASURES:
        known = sorted(
            ((point, value) for point in table.curve if (value := measure.of(point)) is not None),
            key=lambda item: item[0].fillfactor,
        )
        if len(known) > 1:
            found.append(
                SmallMultiple(title=measure.title, picture=_picture(table, measure, known))
            )
    return found


def _picture(table: TableAdvice, measure: _Measure, known: Sequence[tuple[Point, Value]]) -> str:
    low, high, step = _scale(measure, [value for _, value in known])
    first, last = known[0][0].fillfactor, known[-1][0].fillfactor

    def across(fillfactor: float) -> float:
        return _LEFT + 8 + (fillfactor - first) * (_WIDTH - _LEFT - _RIGHT - 16) / (last - first)

    def up(value: float) -> float:
        room = _HEIGHT - _TOP - _BOTTOM
        return _TOP + (1 - (min(max(value, low), high) - low) / (high - low)) * room

    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{_words(table, measure, known)}">',
        *_grid(measure, (low, high, step), up),
        *_ticks((first, last), across),
    ]
    band = [
        (across(point.fillfactor), up(_end(value, "high")), up(_end(value, "low")))
        for point, value in known
    ]
    if any(isinstance(value, Interval) and value.low < value.high for _, value in known):
        edge = [f"{x:.1f},{top:.1f}" for x, top, _ in band]
        edge += [f"{x:.1f},{bottom:.1f}" for x, _, bottom in reversed(band)]
        parts.append(f'<polygon class="band" points="{" ".join(edge)}"/>')
    line = [f"{across(point.fillfactor):.1f},{up(_mid(value)):.1f}" for point, value in known]
    parts.append(f'<polyline class="line" points="{" ".join(line)}"/>')
    for point, value in known:
        parts += _point(table, measure, point, value, (across(point.fillfactor), up(_mid(value))))
    return "".join([*parts, "</svg>"])


def _point(
    table: TableAdvice, measure: _Measure, point: Point, value: Value, at: tuple[float, float]
) -> Iterable[str]:
    x, y = at
    mark = advice_tables.mark(table, point)
    said = f"fillfactor {point.fillfactor}: {_said(measure, value)}"
    yield f"<g><title>{said}{f' ({mark})' if mark else ''}</title>"
    if "advised" in mark:
        yield f'<path class="advised" d="M{x:.1f},{y - 6:.1f}l6,6l-6,6l-6,-6z"/>'
    elif mark:
        yield f'<circle class="now" cx="{x:.1f}" cy="{y:.1f}" r="5"/>'
    else:
        yield f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="2"/>'
    yield f'<circle class="hit" cx="{x:.1f}" cy="{y:.1f}" r="9"/>'
    if mark:
        # Above the point, or below where the heading is; to the left, where curves are flat.
        dy = -10 if y > _TOP + 14 else 18
        anchor = "start" if x < _LEFT + 50 else "end"
        x += 6 if anchor == "end" else -6
        yield _word("mark", (x, y + dy), mark, anchor)
    yield "</g>"


def _grid(
    measure: _Measure, scale: tuple[float, float, float], up: Callable[[float], float]
) -> Iterable[str]:
    low, high, step = scale
    unit, word = _unit(high) if measure.binary else (1.0, "")
    for place in range(round((high - low) / step) + 1):
        value = low + place * step
        y = up(value)
        yield f'<path class="grid" d="M{_LEFT},{y:.1f}H{_WIDTH - _RIGHT}"/>'
        label = f"{value * 100:.4g} %" if measure.share else f"{value / unit:.4g}"
        yield _word("tick", (_LEFT - 5, y + 3.5), label, "end")
    if word:
        yield _word("tick", (_LEFT - 5, _TOP - 9), word, "end")


def _ticks(span: tuple[int, int], across: Callable[[float], float]) -> Iterable[str]:
    first, last = span
    step = next(step for step in (1, 2, 5, 10, 20, 50) if (last - first) / step <= _MOST_TICKS_X)
    for fillfactor in range(-(-first // step) * step, last + 1, step):
        yield _word("tick", (across(fillfactor), _HEIGHT - _BOTTOM + 15), f"{fillfactor}", "middle")


def _word(css: str, at: tuple[float, float], word: str, anchor: str) -> str:
    x, y = at
    return f'<text class="{css}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{word}</text>'


def _scale(measure: _Measure, values: Sequence[Value]) -> tuple[float, float, float]:
    """Low, high and step of the vertical axis: whole steps of 1, 2 or 5, from 0 for amounts."""
    reached = [_end(value, end) for value in values for end in ("low", "high")]
    if measure.share:
        return 0.0, 1.0, 0.25
    high = max(reached)
    unit, _ = _unit(high) if measure.binary else (1.0, "")
    high = high / unit or 1.0
    power = 10.0 ** math.floor(math.log10(high / _TICKS_Y))
    step = next(digit * power for digit in (1, 2, 2.5, 5, 10) if high / (digit * power) <= _TICKS_Y)
    return 0.0, math.ceil(high / step - 1e-9) * step * unit, step * unit


def _unit(high: float) -> tuple[float, str]:
    for scale, word in ((1024.0**4, "TiB"), (1024.0**3, "GiB"), (1024.0**2, "MiB")):
        if high >= scale:
            return scale, word
    return 1024.0, "KiB"


def _words(table: TableAdvice, measure: _Measure, known: Sequence[tuple[Point, Value]]) -> str:
    """The picture in words of ours: no name of the database is among them."""
    marked = [
        f"{mark} at {point.fillfactor}: {_said(measure, value)}"
        for point, value in known
        if (mark := advice_tables.mark(table, point))
    ]
    ends = f"from fillfactor {known[0][0].fillfactor} to {known[-1][0].fillfactor}"
    return "; ".join([f"{measure.title} {ends}", *marked])


def _said(measure: _Measure, value: Value) -> str:
    text = measure.write(_mid(value))
    if isinstance(value, Interval) and value.low < value.high:
        text += f" [{measure.write(value.low)}, {measure.write(value.high)}]"
    return text


def _mid(value: Value) -> float:
    found = middle(value)
    assert found is not None, "unknown values are left out"
    return float(found)


def _end(value: Value, end: str) -> float:
    return float(getattr(value, end)) if isinstance(value, Interval) else _mid(value)
