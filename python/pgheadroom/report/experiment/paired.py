"""Measures that were predicted too: measured and predicted side by side, as points or bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pgheadroom.lab import reading
from pgheadroom.lab.design import Measure
from pgheadroom.lab.presentation import PairedBars, PairedPoints
from pgheadroom.lab.reading import Result
from pgheadroom.lab.result import CellValue, FactorLevels
from pgheadroom.report.charts import (
    MOST_GROUPS,
    Chart,
    ChartRow,
    Panel,
    alternative,
    intervals_sentence,
    panel_title,
    row,
    stacked,
    title_text,
)
from pgheadroom.report.columns import by_name, measure_column
from pgheadroom.report.experiment.tables import PREFIX, paired

_MOST_PANELS = 4


def points(result: Result, across: FactorLevels, names: Sequence[str] = ()) -> Chart | None:
    """
    Measures against one factor, measured and predicted beside each other at each level.

    Args:
        result: Of an experiment.
        across: The factor on the axis.
        names: Measures in the order of their panels; the first that were predicted when empty.
    """
    there = paired(result)
    shown = [name for name in names if name in there] or there[:_MOST_PANELS]
    levels = reading.present(result, across)
    rest = [factor.name for factor in reading.varying(result) if factor.name != across.name]
    panels, values = [], list[CellValue]()
    for name in shown:
        rows = _rows(result, across, name, rest, values)
        if len({item["group"] for item in rows}) > MOST_GROUPS:
            return None
        panels.append(
            Panel(
                title=panel_title(by_name(result).get(name, Measure(name=name))),
                rows=rows,
                order=[reading.label(item) for item in levels],
                x_title=title_text(f"{across.name}{f', {across.unit}' if across.unit else ''}"),
                share=name.endswith("_frac"),
                height=130,
            )
        )
    if not panels:
        return None
    title = "Predicted beside measured"
    legend = title_text(" · ".join(rest)) if rest else None
    caption = f"{intervals_sentence(values, None)} Every axis of values begins at 0."
    return Chart(title, caption.strip(), stacked(panels, legend=legend), alternative(title, panels))


def _rows(
    result: Result, across: FactorLevels, name: str, rest: Sequence[str], values: list[CellValue]
) -> list[ChartRow]:
    """One row a cell and side; a prediction that all groups share stands there once."""
    column = measure_column(by_name(result).get(name, Measure(name=name)))
    found: list[ChartRow] = []
    shared = _is_shared(result, across, name)
    for side, key in (("measured", name), ("predicted", f"{PREFIX}{name}")):
        alone = side == "predicted" and shared
        seen: set[str] = set()
        for cell in reading.cells(result):
            x = reading.label(cell.get(across.name))
            value = reading.value(cell, key)
            group = [] if alone else [reading.label(cell.get(name)) for name in rest]
            where = f"{side}, {reading.at(cell, [across.name, *([] if alone else rest)])}"
            label = " · ".join((side, *group))
            made = row(x, value, group=label, where=where, column=column)
            if made is not None and not (alone and x in seen):
                found.append(made)
                values.append(value)
                seen.add(x)
    return found


def _is_shared(result: Result, across: FactorLevels, name: str) -> bool:
    """Whether the prediction depends on the factor of the axis alone."""
    by_level: dict[str, set[CellValue]] = {}
    for cell in reading.cells(result):
        value = reading.value(cell, f"{PREFIX}{name}")
        if value is not None:
            by_level.setdefault(reading.label(cell.get(across.name)), set()).add(value)
    return all(len(values) == 1 for values in by_level.values())


def drawn_points(result: Result, form: PairedPoints) -> Chart | None:
    """The figure that a form declares; None where the result has no such factor."""
    named = [item for item in reading.factors(result) if item.name == form.across]
    return points(result, named[0], form.measures) if named else None


def drawn_bars(result: Result, form: PairedBars) -> Chart | None:
    """Bars of what was measured beside what was predicted, of the cells with the least."""
    factor = next((each for each in reading.factors(result) if each.name == form.across), None)
    known = by_name(result)
    shown = [
        known.get(name, Measure(name=name))
        for name in form.measures
        if reading.has_value(result, f"{PREFIX}{name}") and reading.has_value(result, name)
    ]
    if factor is None or not shown:
        return None
    order = [reading.label(level) for level in reading.present(result, factor)]
    cells = _least(result, form.least)
    panels, values = [], list[CellValue]()
    for measure in shown:
        column = measure_column(measure)
        rows = []
        for cell in cells:
            for group, prefix in (("measured", ""), ("predicted", PREFIX)):
                value = reading.value(cell, f"{prefix}{measure.name}")
                made = row(
                    reading.label(cell.get(form.across)),
                    value if group == "measured" else reading.middle(value),
                    group=group,
                    where=f"{reading.at(cell, [form.across, form.least])}, {group}",
                    column=column,
                )
                if made is not None:
                    rows.append(made)
                    values.append(value)
        panels.append(
            Panel(
                title=panel_title(measure),
                rows=rows,
                form="bar",
                order=order,
                x_title=title_text(form.across),
                share=column.style == "share",
                height=110,
            )
        )
    caption = f"{intervals_sentence(values, 'measured')} Every axis of values begins at 0."
    return Chart(form.title, caption, stacked(panels), alternative(form.title, panels))


def _least(result: Result, factor: str) -> list[Mapping[str, Any]]:
    """The cells with the lowest number of a factor."""
    numbered = [(reading.number(cell.get(factor)), cell) for cell in reading.cells(result)]
    least = min((number for number, _ in numbered if number is not None), default=None)
    return [cell for number, cell in numbered if number is not None and number == least]
