"""
Measures against a factor: as declared, or the first ones against the first varying factor.

Draws at most two factors; the others stand at their first level, which the caption says.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pgheadroom.lab import reading
from pgheadroom.lab.design import Measure
from pgheadroom.lab.presentation import Against
from pgheadroom.lab.reading import Result
from pgheadroom.lab.result import CellValue, FactorLevels
from pgheadroom.report.charts import (
    MOST_GROUPS,
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
from pgheadroom.report.experiment.paired import points
from pgheadroom.report.experiment.tables import counterparts, paired

_MOST_PANELS = 4
_MOST_LABELS = 40
"""More labels than these on an axis cannot be read; the tables have them all."""


def overview(result: Result, *, is_key: bool) -> list[Chart]:
    """The first few measures against the first varying factor, then those predicted too."""
    foreseen = counterparts(paired(result))
    shown = [
        item
        for item in reading.measures(result)
        if reading.has_value(result, item.name) and item.name not in foreseen
    ]
    varying = reading.varying(result)
    if not shown or not varying:
        return []
    across = max(varying, key=lambda factor: factor.numeric)
    found = [
        against(result, across, shown[:_MOST_PANELS], section_key=is_key),
        points(result, across) if foreseen else None,
    ]
    return [chart for chart in found if chart is not None]


def drawn(result: Result, form: Against, *, is_key: bool) -> Chart | None:
    """The figure that a form declares; None where the result lacks what it shows."""
    known = by_name(result)
    shown = [
        known.get(name, Measure(name=name))
        for name in form.measures
        if reading.has_value(result, name)
    ]
    cells = [
        cell
        for cell in reading.cells(result)
        if all(name not in cell or cell[name] == level for name, level in form.only.items())
        and (form.only_with is None or cell.get(form.only_with) is not None)
    ]
    if form.axis is not None:
        cells = [{**cell, form.axis: cell.get(form.across)} for cell in cells]
        colours = [item for item in result.factors if item.name in form.factors]
        result = replace(result, factors=tuple(colours))
        across = _axis(cells, form.axis)
    else:
        named = [item for item in reading.factors(result) if item.name == form.across]
        across = named[0] if named else None
    if across is None or not shown or not cells:
        return None
    if form.evenly:
        across = replace(across, levels=tuple(reading.label(item) for item in across.levels))
    return against(
        result,
        across,
        shown,
        title=form.title,
        cells=cells,
        section_key=is_key,
        logarithmic=form.logarithmic,
        marks=[(mark.at, mark.name) for mark in form.marks],
    )


def _axis(cells: Sequence[Mapping[str, Any]], name: str) -> FactorLevels | None:
    """A measure as if it were a factor."""
    levels = (reading.number(cell.get(name)) for cell in cells)
    known = tuple(dict.fromkeys(level for level in levels if level is not None))
    return FactorLevels(name=name, levels=known) if known else None


def against(
    result: Result,
    across: FactorLevels,
    shown: Sequence[Measure],
    *,
    title: str | None = None,
    section_key: bool = False,
    cells: Sequence[Mapping[str, Any]] | None = None,
    logarithmic: Collection[str] = (),
    marks: Sequence[tuple[float, str]] = (),
) -> Chart | None:
    """
    A chart of measures against one factor, coloured by the other factors; some by powers.

    `marks` are places on the axis of that factor, with what is there.
    """
    picked = reading.cells(result) if cells is None else cells
    others = [
        factor
        for factor in reading.varying(result)
        if factor.name != across.name
        and len({reading.label(cell.get(factor.name)) for cell in picked}) > 1
    ]
    picked, groups, left_out = _grouped(picked, others)
    names = [factor.name for factor in groups]
    order = None if across.numeric else [reading.label(item) for item in across.levels]
    if order is not None and len(order) > _MOST_LABELS:
        return None
    panels: list[Panel] = []
    values: list[CellValue] = []
    for measure in shown:
        column = measure_column(measure)
        rows: list[ChartRow] = []
        for cell in picked:
            place = cell.get(across.name)
            x = reading.number(place) if across.numeric else reading.label(place)
            value = reading.value(cell, measure.name)
            group = reading.group_label(cell, names)
            where = reading.at(cell, [across.name, *(factor.name for factor in others)])
            found = None if x is None else row(x, value, group=group, where=where, column=column)
            if found is not None:
                rows.append(found)
                values.append(value)
        if rows:
            unit = f", {across.unit}" if across.unit else ""
            panels.append(
                Panel(
                    title=panel_title(measure),
                    rows=rows,
                    form="line" if across.numeric else "point",
                    order=order,
                    x_title=title_text(f"{across.name}{unit}"),
                    share=column.style == "share",
                    log=measure.name in logarithmic,
                    # Their names stand once, above the panels that share the axis.
                    marks=[(at, "" if panels else said) for at, said in marks],
                )
            )
    if not panels:
        return None
    drawn = ", ".join(reading.printable(measure.name) for measure in shown)
    name = title or f"{drawn} by {reading.printable(across.name)}"
    evidence = {measure.evidence for measure in shown}
    said = intervals_sentence(values, evidence.pop() if len(evidence) == 1 else None)
    if evidence:
        kinds = (f"{reading.printable(item.name)} {item.evidence or 'unstated'}" for item in shown)
        said = f"Evidence: {', '.join(kinds)}. {said}"
    powers = [reading.printable(item.name) for item in shown if item.name in logarithmic]
    axes = (
        f"The axis of {', '.join(powers)} is logarithmic, every other begins at 0."
        if powers
        else "Every axis of values begins at 0."
    )
    caption = " ".join(filter(None, [said, left_out, axes]))
    spec = stacked(panels, legend=legend_title(names))
    return Chart(
        name, caption, spec, alternative(name, panels),
        "key" if section_key else "results",
    )  # fmt: skip


def _grouped(
    cells: Sequence[Mapping[str, Any]], others: Sequence[FactorLevels]
) -> tuple[Sequence[Mapping[str, Any]], Sequence[FactorLevels], str | None]:
    """As many factors as the colours can tell apart; cells at the first level of the rest."""
    groups = list(others)
    fixed: list[FactorLevels] = []

    def shades() -> int:
        return len({reading.at(cell, [factor.name for factor in groups]) for cell in cells})

    while groups and shades() > MOST_GROUPS:
        fixed.append(groups.pop())
        first = [cell.get(factor.name) for cell in cells[:1] for factor in fixed]
        cells = [
            cell
            for cell in cells
            if all(cell.get(factor.name) == at for factor, at in zip(fixed, first, strict=True))
        ]
    if not fixed:
        return cells, groups, None
    said = reading.at(cells[0], [factor.name for factor in fixed]) if cells else ""
    return cells, groups, f"Drawn for {said} only; the tables have all cells."
