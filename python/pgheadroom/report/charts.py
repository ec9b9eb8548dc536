"""
Charts as values: the shared look, and the few forms that the views build theirs from.

A chart is a Vega-Lite description made with Altair; it holds its data, and `drawn.py` makes the
page's picture of it. Colours are CSS variables of the page (`var(--c1)`), which is how one chart
serves light, dark and paper. Data fields have names of ours (`x`, `mid`, `group`), since a foreign
name with a dot or a bracket would be read as a path; foreign text only appears as values and
titles.

Imports the chart library: import this module only where a chart is drawn.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import altair as alt

from pgheadroom.lab import measure_titles
from pgheadroom.lab.design import Measure
from pgheadroom.lab.reading import middle, printable
from pgheadroom.lab.result import CellValue
from pgheadroom.report.columns import measure_column
from pgheadroom.report.table import Column
from pgheadroom.types import Interval

ChartRow = dict[str, Any]
View = dict[str, Any]

MOST_GROUPS = 8
"""Colours in the palette; what exceeds them is left to the tables and said in the caption."""

WIDTH = 640
"""Width of a panel outside a page; a page fits it to its place."""

TOLD = alt.Description("told:N")
"""Makes a mark say its row's `told`, or its `where` and `said`."""

PALETTE = tuple(f"var(--c{index})" for index in range(1, MOST_GROUPS + 1))
SHAPES = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "triangle-down",
    "cross",
    "triangle-left",
    "triangle-right",
)

LIGHT = {
    "--ink": "#1c1d1f",
    "--muted": "#5d6066",
    "--rule": "#dcdcd8",
    "--paper": "#fdfdfb",
    # Okabe and Ito's colours, told apart by colour-blind readers, darkened to carry thin lines.
    "--c1": "#0072b2",
    "--c2": "#c85200",
    "--c3": "#00805d",
    "--c4": "#b0568c",
    "--c5": "#a87400",
    "--c6": "#2f93cf",
    "--c7": "#6b6f76",
    "--c8": "#3d3f8f",
}
"""The colours on paper; the page's style sheet has the same, and those for the dark."""


_LONGEST_TITLE = 90

_NARROW_LOG = 2
"""Powers of ten up to which a logarithmic axis has room for 1, 2 and 5."""

_MOST_POWERS = 6
"""Powers of ten up to which each has its line."""


@dataclass(frozen=True)
class Chart:
    """A figure: what it shows, how to read it, the Vega-Lite description, and words for it."""

    title: str
    caption: str
    spec: dict[str, Any]
    alt: str
    section: Literal["key", "results", "time"] = "results"


class Canvas:
    """
    The data of a chart under construction, by name.

    Kept apart from the description until it is finished, because Altair would check every row
    against the schema, which takes seconds for series.
    """

    def __init__(self) -> None:
        self._rows: dict[str, list[ChartRow]] = {}

    def data(self, rows: Sequence[ChartRow]) -> alt.NamedData:
        """Keep rows, and give the name under which a layer refers to them."""
        name = f"rows{len(self._rows)}"
        self._rows[name] = [
            {"told": f"{item['where']}: {item['said']}", **item}
            if "where" in item and "said" in item
            else item
            for item in rows
        ]
        return alt.NamedData(name=name)

    def finish(self, panels: Sequence[View], *, spacing: int = 26) -> dict[str, Any]:
        """The description of panels below each other, with the data and the shared look."""
        found: dict[str, Any] = {"$schema": alt.SCHEMA_URL}
        found |= panels[0] if len(panels) == 1 else {"vconcat": list(panels), "spacing": spacing}
        labels = [
            str(item["group"]) for rows in self._rows.values() for item in rows if "group" in item
        ]
        # A page sets as many columns of the legend as there is room for; see `drawn.fitted`.
        room = {"legend_px": min(210, 34 + 6.5 * max(map(len, labels), default=8))}
        return found | {
            "datasets": self._rows,
            "config": _config(),
            "background": "transparent",
            "usermeta": room,
        }


@dataclass(frozen=True, kw_only=True)
class Panel:
    """
    One panel of a chart: rows with `x`, `mid`, and if known `low`, `high`, `group`, `hollow`.

    `form` is how the middle is drawn; a curve has no points, and ends where rows have another
    `part`. `level` is a horizontal line to compare with, `marks` are
    vertical lines with their names, on an axis of numbers. `order` are the labels of an axis
    without numbers; None makes the axis one of numbers.
    """

    title: str
    rows: Sequence[ChartRow]
    form: Literal["point", "line", "curve", "bar"] = "point"
    order: Sequence[str] | None = None
    x_title: str | None = None
    zero: bool = True
    level: float | None = None
    marks: Sequence[tuple[float, str]] = ()
    share: bool = False
    log: bool = False
    height: int = 170


def resolved(spec: Mapping[str, Any], colours: Mapping[str, str] = LIGHT) -> dict[str, Any]:
    """The same chart with plain colours, for a picture that stands outside the page."""

    def walk(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {
                key: item if key in ("values", "datasets") else walk(item)
                for key, item in value.items()
            }
        if isinstance(value, list):
            return [walk(item) for item in value]
        if isinstance(value, str) and (match := re.fullmatch(r"var\((--\w+)\)", value)):
            return colours.get(match[1], value)
        return value

    found: dict[str, Any] = walk(spec)
    return found


def row(
    x: object, value: CellValue, *, group: str = "", where: str = "", column: Column
) -> ChartRow | None:
    """A row of a panel from a cell's value; None when the value is no number."""
    mid = middle(value)
    if mid is None:
        return None
    found: ChartRow = {"x": x, "mid": mid, "group": group, "where": where or str(x)}
    found["said"] = str(column.write(value)) + (f" {column.unit}" if column.unit else "")
    if isinstance(value, Interval) and value.low != value.high:
        found |= {"low": value.low, "high": value.high}
    return found


def without_time(panel: View) -> None:
    """Take the labels off the time axis: panels on the same axis need them once, at the bottom."""
    for layer in panel["layer"]:
        layer["encoding"]["x"]["axis"] = {
            "title": None, "labels": False, "grid": False, "tickCount": 8
        }  # fmt: skip


def title_text(text: object) -> str:
    """
    Foreign text as a title inside a chart: short, and without what would end a string.

    Vega-Lite pastes the titles of axes into expressions and escapes only the quote,
    so a backslash before a quote would let the rest of a name run as an expression.
    """
    shown = printable(text).translate({ord("\\"): "∖", ord('"'): "”"})
    return shown if len(shown) <= _LONGEST_TITLE else f"{shown[: _LONGEST_TITLE - 1]}…"


def legend_title(names: Sequence[str]) -> str | None:
    """What the parts of the labels are; None where the labels say it themselves."""
    return title_text(" · ".join(names)) if len(names) > 1 else None


def panel_title(measure: Measure, *, ratio: bool = False) -> str:
    """A measure as the heading of a panel, with unit and which way is better."""
    column = measure_column(measure)
    parts = [title_text(measure_titles.title(measure.name))]
    if ratio:
        parts.append("ratio")
    elif column.unit:
        parts.append(title_text(column.unit))
    if measure.better:
        parts.append(f"{measure.better} is better")
    return ", ".join(parts)


def groups_of(panels: Sequence[Panel]) -> list[str]:
    """The groups of all panels, in the order in which they appear."""
    return list(dict.fromkeys(str(item["group"]) for panel in panels for item in panel.rows))


def stacked(panels: Sequence[Panel], *, legend: str | None = None) -> dict[str, Any]:
    """The description of panels below each other, with one legend for all."""
    groups = groups_of(panels)
    canvas = Canvas()
    last = panels[-1]
    same = all((panel.order, panel.x_title) == (last.order, last.x_title) for panel in panels)
    return canvas.finish(
        [
            # Panels below each other share their axis; its title stands once, at the bottom.
            _panel(
                canvas,
                replace(panel, x_title=None) if same and panel is not last else panel,
                groups,
                legend=legend,
            )
            for panel in panels
        ],
        spacing=16,
    )


def colour(groups: Sequence[str], *, legend: str | None = None, field: str = "group") -> alt.Color:
    """Colour by group; without legend when there is nothing to tell apart."""
    shown = alt.Legend(title=legend) if len(groups) > 1 else None
    return alt.Color(f"{field}:N", legend=shown, scale=_scale(groups, PALETTE))


def _scale(groups: Sequence[str], values: Sequence[str]) -> alt.Scale:
    return alt.Scale(
        domain=list(groups), range=[values[place % len(values)] for place in range(len(groups))]
    )


def _panel(canvas: Canvas, panel: Panel, groups: Sequence[str], *, legend: str | None) -> View:
    across = _across(panel)
    scale = _vertical(panel)
    axis = _vertical_axis(panel)
    shared: dict[str, Any] = {"x": across, "color": colour(groups, legend=legend)}
    if panel.order is not None and len(groups) > 1:
        shared["xOffset"] = alt.XOffset("group:N", scale=alt.Scale(domain=list(groups)))
    shape = alt.Shape(
        "group:N",
        scale=_scale(groups, SHAPES),
        legend=alt.Legend(title=legend) if len(groups) > 1 else None,
    )
    layers: list[alt.Chart] = []
    if panel.level is not None:
        line = alt.Chart(canvas.data([{"at": panel.level}]))
        layers.append(
            line.mark_rule(color="var(--ink)", strokeWidth=1).encode(
                y=alt.Y("at:Q", scale=scale, axis=axis)
            )
        )
    if panel.marks:
        marked = alt.Chart(canvas.data([{"at": at, "name": name} for at, name in panel.marks]))
        place = _numbers("at", panel)
        layers.append(
            marked.mark_rule(color="var(--ink)", strokeWidth=1, strokeDash=[4, 3]).encode(x=place)
        )
        text = marked.mark_text(color="var(--ink)", align="left", baseline="top", dx=4)
        layers.append(text.encode(x=place, y=alt.value(2), text="name:N"))
    base = alt.Chart(canvas.data(panel.rows))
    middle_y = alt.Y("mid:Q", scale=scale, axis=axis)
    if panel.form == "bar":
        layers.append(base.mark_bar(opacity=0.85).encode(y=middle_y, description=TOLD, **shared))
    elif panel.form == "line":
        layers.append(base.mark_line(strokeWidth=1.5).encode(y=middle_y, **shared))
    elif panel.form == "curve":
        detail = alt.Detail("part:N")
        layers.append(base.mark_line(strokeWidth=1.5).encode(y=middle_y, detail=detail, **shared))
    ends = {"y": alt.Y("low:Q", scale=scale, axis=axis), "y2": alt.Y2("high")}
    spread = [item for item in panel.rows if "low" in item]
    if spread:
        rule = alt.Chart(canvas.data(spread)).mark_rule(strokeWidth=1.5)
        if panel.form == "bar":
            over = {key: value for key, value in shared.items() if key != "color"}
            layers.append(rule.encode(color=alt.value("var(--ink)"), **ends, **over))
        else:
            layers.append(rule.encode(**ends, **shared))
    if panel.form not in ("bar", "curve"):
        fill = alt.condition(
            "datum.hollow", alt.value("var(--paper)"), colour(groups, legend=legend)
        )
        layers.append(
            base.mark_point(size=52, strokeWidth=1.6, opacity=1).encode(
                y=middle_y, shape=shape, fill=fill, description=TOLD, **shared
            )
        )
    return layered(layers, panel.title, panel.height)


def layered(
    layers: Sequence[alt.Chart], title: str, height: int | Mapping[str, int], **style: Any
) -> View:
    """
    Layers as one panel of full width under a heading.

    Put together here and not by Altair, which copies and checks every part once per level.
    """
    views = []
    for layer in layers:
        view: View = layer.to_dict(validate=False)
        # Only what has something to say; Vega would describe every mark by its fields.
        view["mark"]["aria"] = "description" in view["encoding"]
        views.append({key: item for key, item in view.items() if key not in ("$schema", "config")})
    heading = {"text": title, "anchor": "start", "frame": "bounds", **style}
    return {"layer": views, "width": WIDTH, "height": height, "title": heading}


def _across(panel: Panel) -> alt.X:
    if panel.order is None:
        return _numbers("x", panel)
    axis = alt.Axis(title=panel.x_title, labelAngle=0, grid=False, labelOverlap=True)
    return alt.X(
        "x:N", sort=list(panel.order), scale=alt.Scale(domain=list(panel.order)), axis=axis
    )


def _numbers(field: str, panel: Panel) -> alt.X:
    """A field on the axis of numbers."""
    axis = alt.Axis(title=panel.x_title, grid=False, tickMinStep=1)
    return alt.X(f"{field}:Q", axis=axis, scale=alt.Scale(zero=False, nice=False, padding=16))


def _vertical(panel: Panel) -> alt.Scale:
    if panel.share:
        return alt.Scale(domain=[0, 1])
    positive = all(item["mid"] > 0 and item.get("low", 1) > 0 for item in panel.rows)
    if panel.log and positive:
        return alt.Scale(type="log", nice=True)
    return alt.Scale(zero=panel.zero, nice=True)


def _vertical_axis(panel: Panel) -> alt.Axis:
    if panel.log:
        return _log_axis(panel.rows)
    largest = max((abs(item["mid"]) for item in panel.rows), default=0)
    return alt.Axis(title=None, format=".0%" if panel.share else axis_format(largest), tickCount=5)


def ends(rows: Sequence[ChartRow]) -> tuple[float, float]:
    """The least and the greatest value that rows reach, their intervals included."""
    reached = [float(item[key]) for item in rows for key in ("low", "mid", "high") if key in item]
    return min(reached), max(reached)


def _log_axis(rows: Sequence[ChartRow]) -> alt.Axis:
    """A few lines only: one for each digit between the powers of ten would hide the points."""
    low, high = ends(rows)
    if not 0 < low <= high:
        return alt.Axis(title=None, format="~g")
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    digits = (1, 2, 5) if last - first <= _NARROW_LOG else (1,)
    step = 1 + (last - first) // _MOST_POWERS
    powers = [power for power in range(first, last + 1) if power % step == 0]
    values = [digit * 10.0**power for power in powers for digit in digits]
    return alt.Axis(
        title=None, format="~r" if last - first < _MOST_POWERS else ".0e", values=values
    )


def share_format(largest: float) -> str:
    """The d3 format of an axis of shares up to a value: decimals where 1 % tells nothing apart."""
    if largest >= 0.04 or largest <= 0:
        return ".0%"
    return f".{1 - math.floor(math.log10(largest * 100))}~%"


def axis_format(largest: float) -> str:
    """The d3 format of an axis up to a value: whole numbers, and `M` and `G` from a million on."""
    return "~s" if largest >= 1_000_000 else ",~f"


def _config() -> dict[str, Any]:
    """The look: no frames, few lines, text in the page's colours."""
    text = {"labelColor": "var(--muted)", "titleColor": "var(--muted)"}
    return {
        "font": "system-ui, sans-serif",
        "view": {"stroke": None},
        "padding": {"left": 0, "right": 4, "top": 2, "bottom": 2},
        "axis": {
            **text,
            "labelFontSize": 11,
            "titleFontSize": 11,
            "titleFontWeight": "normal",
            "labelLimit": 220,
            "titleLimit": 420,
            "domainColor": "var(--muted)",
            "tickColor": "var(--muted)",
            "gridColor": "var(--rule)",
            "tickSize": 4,
            "labelPadding": 4,
        },
        # The same room for labels in every panel, so that panels and headings stand in line.
        "axisY": {"domain": False, "ticks": False, "minExtent": 44},
        "legend": {
            **text,
            "orient": "top",
            "direction": "horizontal",
            "labelFontSize": 11,
            "titleFontSize": 11,
            "titleFontWeight": "normal",
            "titleOrient": "top",
            "labelLimit": 180,
            "symbolSize": 60,
            "offset": 6,
            "columnPadding": 14,
        },
        "title": {
            "color": "var(--ink)",
            "fontSize": 12,
            "fontWeight": 600,
            "anchor": "start",
            "offset": 8,
            "limit": 620,
        },
        "range": {"category": list(PALETTE)},
    }


def alternative(title: str, panels: Sequence[Panel]) -> str:
    """Words in place of the picture: what is drawn, from where to where."""
    parts = [f"{title}."]
    for panel in panels:
        mids = [item["mid"] for item in panel.rows]
        if mids:
            parts.append(
                f"{panel.title}: {len(mids)} values from {min(mids):.4g} to {max(mids):.4g}."
            )
    return " ".join([*parts, "The figures are in the tables of this report."])


def intervals_sentence(values: Sequence[CellValue], evidence: str | None) -> str:
    """How to read the bars: where the numbers come from, and what the intervals cover."""
    covered = sorted({value.level for value in values if isinstance(value, Interval)})
    said = f"{evidence[0].upper()}{evidence[1:]}" if evidence else ""
    if not covered:
        return f"{said}." if said else ""
    span = f"{covered[0] * 100:.3g} %"
    if covered[0] != covered[-1]:
        span += f" to {covered[-1] * 100:.3g} %"
    lines = f"thin lines are intervals of {span} coverage."
    return f"{said}; {lines}" if said else f"T{lines[1:]}"
