"""
Charts over time: per-second series with checkpoints and autovacuums marked.

One panel per cell below each other, on the same axes, so that cells can be compared; a figure for
each group of cells that share everything but the compared factor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import altair as alt

from pgheadroom.lab import reading
from pgheadroom.lab.reading import Result
from pgheadroom.lab.record import SecondsColumn, SecondsSeries
from pgheadroom.lab.thinned import Join, thinned
from pgheadroom.report.charts import (
    TOLD,
    Canvas,
    Chart,
    ChartRow,
    View,
    axis_format,
    layered,
    without_time,
)

_MOST_FIGURES = 12
_MOST_PANELS = 8
_MOST_POINTS = 300
"""Points of a line: about one per pixel; beyond, a point stands for several seconds."""

_MIB = 1024**2

_LEGEND = alt.Legend(title=None, symbolType="stroke", symbolOpacity=1, symbolStrokeWidth=2)

_EVENTS = {
    "checkpoint": ("var(--c2)", [1, 0]),
    "autovacuum": ("var(--c3)", [4, 3]),
    "autoanalyze": ("var(--c4)", [1, 3]),
}


@dataclass(frozen=True)
class _Kind:
    """A series that is drawn: its column, heading, divisor and how seconds are joined."""

    column: Callable[[SecondsSeries], SecondsColumn | None]
    title: str
    unit: str
    divisor: float = 1.0
    join: Join = "mean"
    growth: bool = False


_KINDS = (
    _Kind(lambda it: it.tps, "Transactions per second", "1/s"),
    _Kind(lambda it: it.wal_bytes_per_s, "WAL written", "MiB/s", _MIB),
    _Kind(lambda it: it.latency_ms_max, "Longest transaction in each second", "ms", join="max"),
    _Kind(
        lambda it: it.heap_bytes,
        "Growth of the heap since the start",
        "MiB",
        _MIB,
        "last",
        growth=True,
    ),
)


def charts(result: Result, series: Sequence[SecondsSeries], below: str | None) -> list[Chart]:
    """
    The figures over time; of each cell, the first repetition that has a series.

    Args:
        result: Of an experiment.
        series: Its series files.
        below: The factor whose levels stand below each other; the first that varies where it is
            None or does not vary.
    """
    firsts = _first_repetitions(series)
    if not firsts:
        return []
    compared = _compared(result, firsts, below)
    varying = {factor.name for factor in reading.varying(result)}
    groups: dict[str, list[SecondsSeries]] = {}
    for item in firsts:
        cell = item.cell
        rest = reading.at(cell, [name for name in cell if name != compared and name in varying])
        groups.setdefault(rest, []).append(item)
    found = []
    for rest, items in groups.items():
        for kind in _KINDS:
            chart = _figure(kind, rest, items, compared)
            if chart is not None:
                found.append(chart)
    return found[:_MOST_FIGURES]


def _first_repetitions(series: Sequence[SecondsSeries]) -> list[SecondsSeries]:
    firsts: dict[str, SecondsSeries] = {}
    for item in series:
        place = reading.at(item.cell, list(item.cell))
        best = firsts.get(place)
        if best is None or item.repetition < best.repetition:
            firsts[place] = item
    return list(firsts.values())


def _compared(result: Result, series: Sequence[SecondsSeries], below: str | None) -> str | None:
    """The factor whose levels stand below each other."""
    names = [factor.name for factor in reading.varying(result)]
    if below in names:
        return below
    return next((name for name in names if any(name in item.cell for item in series)), None)


def _figure(
    kind: _Kind, rest: str, items: Sequence[SecondsSeries], compared: str | None
) -> Chart | None:
    lines = [(item, points) for item in items if (points := _points(kind, item))]
    if not lines:
        return None
    top = max(point["y"] for _, points in lines for point in points)
    bottom = min(0.0, *(point["y"] for _, points in lines for point in points))
    end = max(point["t"] for _, points in lines for point in points)
    kinds = [
        name
        for name in _EVENTS
        if any(_events(item, name, end) for item, _ in lines[:_MOST_PANELS])
    ]
    canvas = Canvas()
    panels = [
        _panel(canvas, kind, item, points, compared, (bottom, top or 1.0), end, kinds)
        for item, points in lines[:_MOST_PANELS]
    ]
    for panel in panels[:-1]:
        without_time(panel)
    step = lines[0][1][0]["step"]
    title = f"{kind.title}, {kind.unit}" + (f": {rest}" if rest else "")
    caption = "Measured; the first repetition of each cell"
    caption += f"; each point joins {step} s ({kind.join})." if step > 1 else "."
    if kinds:
        caption += f" Upright lines: {', '.join(kinds)}; shaded while it lasts."
    if len(lines) > _MOST_PANELS:
        caption += f" {len(lines) - _MOST_PANELS} further cells are in the record."
    marked = sum(len(_events(item, name, end)) for item, _ in lines for name in kinds)
    words = (
        f"{title}. {len(panels)} lines over {end:.0f} s, from {bottom:.4g} to {top:.4g}; "
        f"{marked} events marked."
    )
    spec = canvas.finish(panels, spacing=6)
    return Chart(title, caption, spec, words, "time")


def _points(kind: _Kind, item: SecondsSeries) -> list[ChartRow]:
    pairs = [
        (float(t), float(y) / kind.divisor)
        for t, y in zip(item.t_s, kind.column(item) or (), strict=False)
        if y is not None
    ]
    if not pairs:
        return []
    start = pairs[0][1] if kind.growth else 0.0
    points, step = thinned(pairs, _MOST_POINTS, kind.join)
    return [{"t": t, "y": round(y - start, 6), "step": step} for t, y in points]


def _events(item: SecondsSeries, kind: str, end: float) -> list[ChartRow]:
    found = []
    for event in item.events:
        if event.kind != kind:
            continue
        at, lasted = event.t_s, event.duration_s or 0
        until = at + max(0.0, float(lasted))
        if until < 0 or at > end:
            continue
        took = f", {lasted:.1f} s long" if lasted else ""
        found.append(
            {
                "t": at,
                "begin": max(0.0, float(at)),
                "until": min(until, end),
                "kind": kind,
                "told": f"{kind} at {at:.1f} s{took}: {reading.text(event.text) or kind}",
            }
        )
    return found


def _panel(
    canvas: Canvas,
    kind: _Kind,
    item: SecondsSeries,
    points: list[ChartRow],
    compared: str | None,
    domain: tuple[float, float],
    end: float,
    kinds: Sequence[str],
) -> View:
    heading = reading.at(item.cell, [compared] if compared else list(item.cell))
    seconds = alt.Axis(title="seconds since the start", grid=False, tickCount=8)
    window = alt.Scale(domain=[0, end], nice=False)
    time = alt.X("t:Q", axis=seconds, scale=window)
    height = alt.Y(
        "y:Q",
        axis=alt.Axis(title=None, tickCount=3, format=axis_format(domain[1])),
        scale=alt.Scale(domain=list(domain), nice=True),
    )
    events = [event for name in kinds for event in _events(item, name, end)]
    layers: list[alt.Chart] = []
    if events:
        shade = alt.Color(
            "kind:N",
            scale=alt.Scale(domain=list(kinds), range=[_EVENTS[name][0] for name in kinds]),
            legend=_LEGEND,
        )
        dash = alt.StrokeDash(
            "kind:N",
            scale=alt.Scale(domain=list(kinds), range=[_EVENTS[name][1] for name in kinds]),
            legend=_LEGEND,
        )
        base = alt.Chart(canvas.data(events))
        begin = alt.X("begin:Q", axis=seconds, scale=window)
        layers += [
            base.mark_rect(opacity=0.16).encode(x=begin, x2=alt.X2("until"), color=shade),
            base.mark_rule(strokeWidth=1.4, clip=True).encode(
                x=time, color=shade, strokeDash=dash, description=TOLD
            ),
        ]
    line = alt.Chart(canvas.data(points)).mark_line(
        strokeWidth=1.1, color="var(--c1)", interpolate="linear"
    )
    layers.append(line.encode(x=time, y=height))
    return layered(layers, heading or kind.title, 76, fontWeight=500)
