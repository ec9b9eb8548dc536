"""
Bars by cell, with what a document prints, or the twin predicts, marked on them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from pgheadroom.lab import reading
from pgheadroom.lab.design import Measure
from pgheadroom.lab.presentation import CellBars
from pgheadroom.lab.reading import Result
from pgheadroom.lab.result import CellValue, FactorLevels
from pgheadroom.report.charts import (
    TOLD,
    Canvas,
    Chart,
    ChartRow,
    View,
    axis_format,
    colour,
    layered,
    panel_title,
    row,
)
from pgheadroom.report.charts import intervals_sentence as how_to_read
from pgheadroom.report.columns import by_name, measure_column

_MOST_CELLS = 32


def drawn(result: Result, form: CellBars, *, is_key: bool) -> Chart | None:
    """The figure that a form declares; None where no cell has a value."""
    numbered = [
        (number, cell)
        for number, cell in enumerate(reading.cells(result))
        if all(name not in cell or cell[name] == level for name, level in form.only.items())
    ][:_MOST_CELLS]
    own = [factor for factor in reading.factors(result) if factor.name in form.factors]
    known = by_name(result)
    canvas = Canvas()
    panels = []
    values: list[CellValue] = []
    documented = foreseen = False
    for name in form.measures:
        measure = known.get(name, Measure(name=name))
        made = [_bar(cell, number, measure, own, form) for number, cell in numbered]
        rows = [found for found in made if found is not None]
        if rows:
            values += [reading.value(cell, name) for _, cell in numbered]
            documented = documented or any("document" in item for item in rows)
            foreseen = foreseen or any("predicted" in item for item in rows)
            panels.append(_bars(canvas, measure, rows))
    if not panels:
        return None
    first = form.measures[0]
    caption = how_to_read(values, known[first].evidence if first in known else None)
    if documented:
        caption += " The upright mark is the document's figure."
    if foreseen:
        caption += " The circle is predicted."
    caption += f" Cells: {' · '.join(factor.name for factor in own)}."
    if form.only:
        said = (f"{reading.printable(n)} {reading.label(at)}" for n, at in form.only.items())
        caption += f" Drawn for {', '.join(said)}."
    spec = canvas.finish(panels)
    mids = [mid for value in values if (mid := reading.middle(value)) is not None]
    words = (
        f"Bars of {' and '.join(form.measures)} for {len(numbered)} cells, from {min(mids):.4g} "
        f"to {max(mids):.4g}. The figures are in the tables of this report."
    )
    section: Any = "key" if is_key else "results"
    return Chart(form.title, caption.strip(), spec, words, section)


def _bar(
    cell: Mapping[str, Any],
    number: int,
    measure: Measure,
    own: Sequence[FactorLevels],
    form: CellBars,
) -> ChartRow | None:
    label = " · ".join(reading.label(cell.get(factor.name)) for factor in own)
    found = row(
        label,
        reading.value(cell, measure.name),
        group=f"{form.colour} {reading.label(cell.get(form.colour))}",
        where=reading.at(cell, [factor.name for factor in own]),
        column=measure_column(measure),
    )
    if found is None:
        return None
    for beside in form.beside:
        if beside.measure == measure.name:
            for key, figures in (("document", beside.documented), ("predicted", beside.predicted)):
                figure = figures[number] if number < len(figures) else None
                if figure is not None:
                    found[key] = figure
                    found["said"] += f"; {key}: {figure:.6g}"
    return found


def _bars(canvas: Canvas, measure: Measure, rows: list[ChartRow]) -> View:
    order = [item["x"] for item in rows]
    groups = list(dict.fromkeys(item["group"] for item in rows))
    down = alt.Y("x:N", scale=alt.Scale(domain=order), axis=alt.Axis(title=None, labelLimit=180))
    axis = alt.Axis(title=None, format=axis_format(max(item["mid"] for item in rows)), tickCount=8)
    across = alt.X("mid:Q", axis=axis, scale=alt.Scale(zero=True, nice=True))
    layers: list[alt.Chart] = [
        alt.Chart(canvas.data(rows))
        .mark_bar(opacity=0.85, height={"band": 0.66})
        .encode(x=across, y=down, color=colour(groups), description=TOLD)
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
            .encode(x=alt.X("document:Q", axis=axis), y=down, description=TOLD)
        )
    foreseen = [item for item in rows if "predicted" in item]
    if foreseen:
        layers.append(
            alt.Chart(canvas.data(foreseen))
            .mark_point(size=40, shape="circle", color="var(--ink)", fill="var(--paper)")
            .encode(x=alt.X("predicted:Q", axis=axis), y=down, description=TOLD)
        )
    return layered(layers, panel_title(measure), {"step": 22})
