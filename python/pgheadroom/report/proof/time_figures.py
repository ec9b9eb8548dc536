"""
Charts of a prediction over simulated time: lines by fillfactor, and what the server did meanwhile.

Panels share their axis. What autovacuum and the checkpointer did is drawn for one run as an
example; its times differ from run to run, since nobody knows how long autovacuum has slept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import altair as alt

from pgheadroom.lab import reading
from pgheadroom.predict.rewriting import RewrittenLater
from pgheadroom.predict.values import PredictedCell, Prediction, Rewritten
from pgheadroom.report.charts import (
    PALETTE,
    TOLD,
    Canvas,
    Chart,
    ChartRow,
    Panel,
    View,
    alternative,
    axis_format,
    layered,
    row,
    title_text,
    without_time,
)
from pgheadroom.report.proof.time_tables import FIGURES, chosen, moment
from pgheadroom.report.proof.words import column_of, labels

_MOST_BANDS = 2
"""Cells with which bands can still be told apart."""
_MOST_PAIRS = 3
"""Cells that are drawn twice, altered and rewritten."""
_HEIGHT = 120
_EVENT_HEIGHT = 18
_EVENT_COLOURS = {
    "autovacuum": "var(--c3)",
    "autoanalyze": "var(--c4)",
    "checkpoint": "var(--c2)",
}


def charts(result: Prediction, *, section: Literal["key", "time"] = "time") -> list[Chart]:
    """HOT share, heap, WAL and modified pages over time; none without a series."""
    cells = [cell for cell in result.cells if cell.series is not None]
    if not cells or cells[0].series is None:
        return []
    names = labels(cells)
    pairs = any(cell.rewritten is not None for cell in cells)
    places = chosen(cells, _MOST_PAIRS) if pairs else chosen(cells)
    end = round(cells[0].series.t_s[-1], 3)
    canvas, views, panels = Canvas(), [], []
    groups = [f"fillfactor {reading.label(names[place])}" for place in places]
    for key, heading in FIGURES:
        rows = [
            item
            for place, group in zip(places, groups, strict=True)
            for item in _rows(cells[place], group, key)
        ]
        if not any(item["mid"] for item in rows):
            continue
        view = _panel(canvas, rows, groups, (key, heading), end, paired=pairs)
        _mark(canvas, view, cells[places[0]], end)
        views.append(view)
        panels.append(Panel(title=heading, rows=rows))
    if not panels:
        return []
    shown = places[len(places) // 2] if len(places) > 2 else places[-1]
    example = _events(cells[shown], end)
    caption = _caption(cells, places, pairs=pairs)
    where = f" at fillfactor {reading.label(names[shown])}" if len(cells) > 1 else ""
    if example:
        views.append(_strip(canvas, example, end))
        caption += f" Below: what the server does by itself{where}, in one of the runs."
    for view in views[:-1]:
        without_time(view)
    words = alternative("Over simulated time", panels)
    return [Chart("Over simulated time", caption, canvas.finish(views, spacing=10), words, section)]


def _caption(cells: Sequence[PredictedCell], places: Sequence[int], *, pairs: bool) -> str:
    said = "Predicted by the twin; each point is a window's own, sizes are those at its end."
    if pairs:
        start = reading.label(cells[0].from_fillfactor)
        said += f" Full lines: loaded at {start} and altered at 0 s. Dashed: rewritten at 0 s."
        later = cells[0].rewritten_later
        if later is not None:
            said += f" Dotted, upright line: rewritten {moment(later)}."
    if len(places) < len(cells):
        said += f" {len(places)} of {len(cells)} fillfactors; the JSON has all."
    if len(places) <= _MOST_BANDS and not pairs:
        said += " Bands: the twin's 90 % intervals."
    return said


def _rows(cell: PredictedCell, group: str, key: str) -> list[ChartRow]:
    found = []
    sides: dict[str, PredictedCell | Rewritten | RewrittenLater | None] = {
        "altered" if cell.rewritten is not None else "": cell,
        "rewritten": cell.rewritten,
        "rewritten later": cell.rewritten_later,
    }
    for side, part in sides.items():
        if part is None or part.series is None:
            continue
        start = 0.0
        for end, item in zip(part.series.t_s, part.series.column(key), strict=True):
            t = round(end, 3)
            where = f"{group}{', ' if side else ''}{side}, {start:.0f} to {t:.0f} s"
            made = row(t, item, group=group, where=where, column=column_of(key))
            start = t
            if made is not None:
                found.append(made | {"side": side})
    return found


def _panel(
    canvas: Canvas,
    rows: Sequence[ChartRow],
    groups: Sequence[str],
    what: tuple[str, str],
    end: float,
    *,
    paired: bool,
) -> View:
    key, heading = what
    scale = alt.Scale(domain=list(groups), range=list(PALETTE[: len(groups)]))
    legend = alt.Legend(title=None, symbolType="stroke") if len(groups) > 1 else None
    colour = alt.Color("group:N", scale=scale, legend=legend)
    share = key.endswith("_frac")
    largest = max(float(item["high"] if "high" in item else item["mid"]) for item in rows)
    vertical = alt.Scale(domain=[0, 1]) if share else alt.Scale(zero=True, nice=True)
    axis = alt.Axis(title=None, format=".0%" if share else axis_format(largest), tickCount=4)
    shared: dict[str, Any] = {"x": _time(end), "color": colour}
    layers: list[alt.Chart] = []
    banded = [item for item in rows if "low" in item]
    if banded and not paired and len(groups) <= _MOST_BANDS:
        band = alt.Chart(canvas.data(banded)).mark_area(opacity=0.16)
        low = alt.Y("low:Q", scale=vertical, axis=axis)
        layers.append(band.encode(y=low, y2=alt.Y2("high"), **shared))
    if paired:
        dash = alt.Scale(
            domain=["altered", "rewritten", "rewritten later"], range=[[1, 0], [5, 3], [1, 2]]
        )
        shared["strokeDash"] = alt.StrokeDash("side:N", scale=dash, legend=None)
    middle = alt.Y("mid:Q", scale=vertical, axis=axis)
    line = alt.Chart(canvas.data(rows)).mark_line(strokeWidth=1.5, clip=True)
    layers.append(line.encode(y=middle, **shared))
    return layered(layers, heading, _HEIGHT)


def _mark(canvas: Canvas, view: View, cell: PredictedCell, end: float) -> None:
    """Draw when tables are rewritten in the middle of the run: an upright line, or a band."""
    later = cell.rewritten_later
    if later is None or later.at_s is None or later.until_s is None:
        return
    at, until = round(later.at_s, 3), round(later.until_s, 3)
    row = {"x": at, "until": until, "told": f"rewritten {moment(later)}"}
    base = alt.Chart(canvas.data([row]))
    colour = alt.value("var(--c6)")
    layers = [base.mark_rule(strokeWidth=1.2).encode(x=_time(end), color=colour, description=TOLD)]
    if until > at:
        band = base.mark_rect(opacity=0.14)
        layers.append(band.encode(x=_time(end), x2=alt.X2("until"), color=colour))
    marks = layered(layers, "", _HEIGHT)["layer"]
    view["layer"] = [*view["layer"], *marks]


def _time(end: float) -> alt.X:
    axis = alt.Axis(title="seconds of the run", grid=False, tickCount=8)
    return alt.X("x:Q", axis=axis, scale=alt.Scale(domain=[0, end], nice=False))


def _events(cell: PredictedCell, end: float) -> list[ChartRow]:
    found = []
    for item in () if cell.by_itself is None else cell.by_itself.happened:
        began = round(item.began_s, 3)
        ended = None if item.ended_s is None else round(item.ended_s, 3)
        lasted = "goes on after the run" if ended is None else f"{ended - began:.2f} s"
        table = f" {reading.printable(item.table)}" if item.table else ""
        lane = title_text(f"{item.kind}{table}")
        found.append(
            {
                "x": float(began),
                "until": end if ended is None else float(ended),
                "kind": item.kind,
                "lane": lane,
                "told": f"{lane} at {began:.1f} s, {lasted}, {item.pages} pages",
            }
        )
    return found


def _strip(canvas: Canvas, events: Sequence[ChartRow], end: float) -> View:
    """A lane for each kind and table: a tick where it begins, a bar as long as it lasts."""
    lanes = list(dict.fromkeys(str(item["lane"]) for item in events))
    lane = alt.Y(
        "lane:N",
        sort=lanes,
        axis=alt.Axis(title=None, grid=True, ticks=False, domain=False, labelLimit=150),
    )
    layers = []
    # A layer a kind: a scale of colours would be shared with that of the lines above.
    for kind, colour in _EVENT_COLOURS.items():
        own = [item for item in events if item["kind"] == kind]
        if not own:
            continue
        base = alt.Chart(canvas.data(own))
        shared: dict[str, Any] = {"y": lane, "color": alt.value(colour)}
        bar = base.mark_bar(height=6, opacity=0.35, clip=True)
        tick = base.mark_tick(thickness=2, size=12)
        layers.append(bar.encode(x=_time(end), x2=alt.X2("until"), **shared))
        layers.append(tick.encode(x=_time(end), description=TOLD, **shared))
    height = _EVENT_HEIGHT * len(lanes)
    return layered(layers, "What the server does by itself", height)
