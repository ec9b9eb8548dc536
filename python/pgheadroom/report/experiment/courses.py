"""
Lines: measures along windows or rounds, by one factor or another, and curves that are given.

A measure that is predicted too has both lines in one panel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pgheadroom.lab import reading
from pgheadroom.lab.design import Measure
from pgheadroom.lab.presentation import ByEither, Course, Curves
from pgheadroom.lab.reading import Result, group_label
from pgheadroom.lab.result import CellValue
from pgheadroom.report.charts import (
    Chart,
    ChartRow,
    Panel,
    alternative,
    intervals_sentence,
    legend_title,
    panel_title,
    row,
    stacked,
    title_text,
)
from pgheadroom.report.columns import by_name, measure_column
from pgheadroom.report.experiment.tables import PREFIX
from pgheadroom.report.table import Column

_RATIO = Column("ratio", "ratio", style="ratio")


def course(result: Result, form: Course, *, is_key: bool) -> Chart | None:
    """Measures along a factor that counts, one panel each."""
    factors = [factor.name for factor in reading.varying(result) if factor.name != form.along]
    panels, values = [], list[CellValue]()
    for name in form.measures:
        if not reading.has_value(result, name):
            continue
        measure = by_name(result).get(name, Measure(name=name))
        rows = _rows(result, measure, name, form.along, factors, values)
        predicted = f"{PREFIX}{name}"
        if reading.has_value(result, predicted):
            rows += _rows(result, measure, predicted, form.along, factors, [], suffix="predicted")
        panels.append(
            Panel(
                title=panel_title(measure),
                rows=rows,
                form="line",
                x_title=title_text(form.along),
                share=measure_column(measure).style == "share",
            )
        )
    spec = stacked(panels, legend=legend_title(factors)) if panels else {}
    return _chart(form.title, panels, values, spec, is_key=is_key)


def _rows(
    result: Result,
    measure: Measure,
    key: str,
    along: str,
    factors: Sequence[str],
    values: list[CellValue],
    *,
    suffix: str = "",
) -> list[ChartRow]:
    """One row a cell; what was drawn is added to `values`."""
    found = []
    column = measure_column(measure)
    for cell in reading.cells(result):
        group = " · ".join(filter(None, (group_label(cell, factors), suffix)))
        value = reading.value(cell, key)
        where = reading.at(cell, [along, *factors])
        made = row(reading.number(cell.get(along)), value, group=group, where=where,
                   column=column)  # fmt: skip
        if made is not None:
            found.append(made)
            values.append(value)
    return found


def by_either(result: Result, form: ByEither, *, is_key: bool) -> Chart | None:
    """The first factor across where it varies, else the second as bars; the others are colours."""
    varying = {factor.name: factor for factor in reading.varying(result)}
    across = form.first if form.first in varying or form.second not in varying else form.second
    order = None
    if across == form.second:
        order = [reading.label(level) for level in reading.present(result, varying[across])]
    others = [name for name in varying if name != across]
    drawn: Literal["line", "bar"] = "line" if order is None else "bar"
    panels, values = [], list[CellValue]()
    for name in form.measures:
        if not reading.has_value(result, name):
            continue
        measure = by_name(result).get(name, Measure(name=name))
        column = measure_column(measure)
        rows: list[ChartRow] = []
        for cell in reading.cells(result):
            value = reading.value(cell, name)
            place = cell.get(across)
            made = row(
                reading.number(place) if order is None else reading.label(place),
                value,
                group=group_label(cell, others),
                where=reading.at(cell, [across, *others]),
                column=column,
            )
            if made is not None:
                rows.append(made)
                values.append(value)
        panels.append(
            Panel(
                title=panel_title(measure),
                rows=rows,
                form=drawn,
                order=order,
                x_title=title_text(across),
                share=column.style == "share",
                height=form.height,
            )
        )
    spec = stacked(panels) if panels else {}
    return _chart(f"{form.title} by {across}", panels, values, spec, is_key=is_key)


def curves(form: Curves, *, is_key: bool) -> Chart | None:
    """Lines as they are given."""
    panels = []
    for given in form.panels:
        made = [
            row(
                x,
                y,
                group=curve.name,
                where=f"{curve.name}, {form.across} {x:g}",
                column=_RATIO,
            )
            for curve in given.curves
            for x, y in curve.points
        ]
        panels.append(
            Panel(
                title=title_text(given.title),
                rows=[item for item in made if item is not None],
                form="line",
                x_title=title_text(form.across),
                level=given.level,
            )
        )
    shown = [panel for panel in panels if panel.rows]
    if not shown:
        return None
    spec = stacked(shown, legend=legend_title(form.legend))
    words = alternative(form.title, panels)
    return Chart(form.title, form.caption, spec, words, "key" if is_key else "results")


def _chart(
    title: str,
    panels: Sequence[Panel],
    values: Sequence[CellValue],
    spec: dict[str, Any],
    *,
    is_key: bool,
) -> Chart | None:
    if not panels:
        return None
    caption = f"{intervals_sentence(values, 'measured')} Every axis of values begins at 0."
    return Chart(title, caption, spec, alternative(title, panels), "key" if is_key else "results")
