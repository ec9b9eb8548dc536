"""Charts of `update-cost`: WAL and pages by cell, and against each further factor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from pgheadroom.report import charts_generic, reading
from pgheadroom.report.charts import (
    Canvas,
    Chart,
    Row,
    View,
    axis_format,
    colour,
    layered,
    panel_title,
    row,
)
from pgheadroom.report.charts import intervals_sentence as how_to_read
from pgheadroom.report.reading import Factor, Measure, Result
from pgheadroom.report.view_common import by_name, has_value, measure_column

_OWN = ("filler_length", "fillfactor", "update_bid")
_MOST_CELLS = 32


def charts(result: Result) -> list[Chart]:
    """WAL and pages by cell first, then time and WAL against indexes and the other factors."""
    found = [_by_cell(result)]
    known = by_name(result)
    names = [
        name
        for name in ("update_ms", "execution_ms", "wal_bytes_per_update", "wal_bytes")
        if has_value(result, name)
    ]
    if {"update_ms", "execution_ms"} <= set(names):
        names.remove("execution_ms")
    if {"wal_bytes_per_update", "wal_bytes"} <= set(names):
        names.remove("wal_bytes")
    shown = [known.get(name, Measure(name=name)) for name in names]
    for factor in reading.varying(result):
        if factor.name in _OWN or not shown:
            continue
        title = {
            "indexes": "Time and WAL against the number of additional indexes",
            "indexed_column": "An index on an updated column",
        }.get(factor.name, f"Time and WAL by {reading.printable(factor.name)}")
        cells = _only(result, factor)
        found.append(charts_generic.against(result, factor, shown, title=title, cells=cells))
    return [chart for chart in found if chart is not None]


def _only(result: Result, kept: Factor | None) -> list[Mapping[str, Any]]:
    """The cells where every further factor but one is at its first level."""
    first = {
        factor.name: factor.levels[0]
        for factor in reading.varying(result)
        if factor.name not in _OWN and (kept is None or factor.name != kept.name) and factor.levels
    }
    return [
        cell
        for cell in reading.cells(result)
        if all(name not in cell or cell[name] == level for name, level in first.items())
    ]


def _by_cell(result: Result) -> Chart | None:
    """Bars by cell, the document's figure as a mark on them."""
    cells = _only(result, None)[:_MOST_CELLS]
    own = [factor for factor in reading.factors(result) if factor.name in _OWN]
    known = by_name(result)
    size = "wal_bytes_per_update" if has_value(result, "wal_bytes_per_update") else "wal_bytes"
    canvas = Canvas()
    panels = []
    values: list[reading.Value] = []
    documented = foreseen = False
    for name in (size, "pages_dirtied"):
        measure = known.get(name, Measure(name=name))
        rows = [found for cell in cells if (found := _bar(cell, measure, own)) is not None]
        if rows:
            values += [reading.value(cell, name) for cell in cells]
            documented = documented or any("document" in item for item in rows)
            foreseen = foreseen or any("predicted" in item for item in rows)
            panels.append(_bars(canvas, measure, rows))
    if not panels:
        return None
    title = "WAL and pages by cell"
    caption = how_to_read(values, known[size].evidence if size in known else None)
    if documented:
        caption += " The upright mark is the document's figure."
    if foreseen:
        caption += " The circle is predicted."
    caption += f" Cells: {' · '.join(factor.name for factor in own)}."
    fixed = [f for f in reading.varying(result) if f.name not in _OWN and f.levels]
    if fixed:
        said = ", ".join(f"{reading.printable(f.name)} {reading.label(f.levels[0])}" for f in fixed)
        caption += f" Drawn for {said}."
    spec = canvas.finish(panels)
    mids = [mid for value in values if (mid := reading.middle(value)) is not None]
    words = (
        f"Bars of {size} and pages_dirtied for {len(cells)} cells, from {min(mids):.4g} "
        f"to {max(mids):.4g}. The figures are in the tables of this report."
    )
    return Chart(title, caption.strip(), spec, words, "key")


def _bar(cell: Mapping[str, Any], measure: Measure, own: Sequence[Factor]) -> Row | None:
    label = " · ".join(reading.label(cell.get(factor.name)) for factor in own)
    found = row(
        label,
        reading.value(cell, measure.name),
        group=f"fillfactor {reading.label(cell.get('fillfactor'))}",
        where=reading.at(cell, [factor.name for factor in own]),
        column=measure_column(measure),
    )
    if found is None:
        return None
    printed = reading.number(cell.get(f"document_{measure.name}"))
    updates = reading.number(cell.get("n_tup_upd"))
    if measure.name == "wal_bytes_per_update" and updates:
        printed = reading.number(cell.get("document_wal_bytes"))
        printed = None if printed is None else printed / updates
    if printed is not None:
        found |= {"document": printed, "document_said": f"{printed:.6g}"}
    foreseen = reading.number(cell.get(f"predicted_{measure.name}"))
    if measure.name == "wal_bytes_per_update" and updates:
        foreseen = reading.number(cell.get("predicted_wal_bytes"))
        foreseen = None if foreseen is None else foreseen / updates
    if foreseen is not None:
        found |= {"predicted": foreseen, "predicted_said": f"{foreseen:.6g}"}
    return found


def _bars(canvas: Canvas, measure: Measure, rows: list[Row]) -> View:
    order = [item["x"] for item in rows]
    groups = list(dict.fromkeys(item["group"] for item in rows))
    down = alt.Y("x:N", scale=alt.Scale(domain=order), axis=alt.Axis(title=None, labelLimit=180))
    axis = alt.Axis(title=None, format=axis_format(max(item["mid"] for item in rows)), tickCount=8)
    across = alt.X("mid:Q", axis=axis, scale=alt.Scale(zero=True, nice=True))
    tooltip = [
        alt.Tooltip("where:N", title="cell"),
        alt.Tooltip("said:N", title="ours"),
        alt.Tooltip("document_said:N", title="document"),
        alt.Tooltip("predicted_said:N", title="predicted"),
    ]
    layers: list[alt.Chart] = [
        alt.Chart(canvas.data(rows))
        .mark_bar(opacity=0.85, height={"band": 0.66})
        .encode(x=across, y=down, color=colour(groups), tooltip=tooltip)
    ]
    spread = [item for item in rows if "low" in item]
    if spread:
        layers.append(
            alt.Chart(canvas.data(spread))
            .mark_rule(strokeWidth=1.5, color="var(--ink)")
            .encode(x=alt.X("low:Q", axis=axis), x2=alt.X2("high"), y=down)
        )
    printed = [item for item in rows if "document" in item]
    if printed:
        layers.append(
            alt.Chart(canvas.data(printed))
            .mark_tick(thickness=2, color="var(--ink)", height={"band": 0.95})
            .encode(x=alt.X("document:Q", axis=axis), y=down, tooltip=tooltip)
        )
    foreseen = [item for item in rows if "predicted" in item]
    if foreseen:
        layers.append(
            alt.Chart(canvas.data(foreseen))
            .mark_point(size=40, shape="circle", color="var(--ink)", fill="var(--paper)")
            .encode(x=alt.X("predicted:Q", axis=axis), y=down, tooltip=tooltip)
        )
    return layered(layers, panel_title(measure), {"step": 22})
