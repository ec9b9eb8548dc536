"""
Figures over the levels of one factor: paired ratios, measures, sizes, percentiles.

The other factors that vary, and those that a form names, are the groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pgheadroom.lab import measure_titles, reading
from pgheadroom.lab.design import Measure
from pgheadroom.lab.presentation import Levels, Percentiles, Ratios
from pgheadroom.lab.reading import Result, group_label
from pgheadroom.lab.result import CellValue, ComparedCells
from pgheadroom.report.charts import (
    MOST_GROUPS,
    Chart,
    ChartRow,
    Panel,
    alternative,
    ends,
    intervals_sentence,
    legend_title,
    panel_title,
    row,
    stacked,
    title_text,
)
from pgheadroom.report.columns import by_name, measure_column
from pgheadroom.report.table import Column
from pgheadroom.types import Interval
from pgheadroom.units import PAGE_BYTES

_MOST_EFFECTS = 5
_UNDECIDED = ("undecided", "no difference shown")
_FAR_APART = 4
"""Ratio of largest to smallest from which the effect has a logarithmic axis (arbitrary)."""

_MIB = 1024**2
_PERCENTILES = ("p50", "p90", "p99", "max")


class _Across:
    """The factor across and the groups of cells beside it."""

    def __init__(self, result: Result, form: Ratios | Levels | Percentiles) -> None:
        factor = next((item for item in reading.factors(result) if item.name == form.across), None)
        levels = list(reading.present(result, factor)) if factor else []
        if all(reading.number(level) is not None for level in levels):
            levels.sort(reverse=True)
        self.name = form.across
        self.order = [reading.label(level) for level in levels]
        unit = f", {factor.unit}" if factor and factor.unit else ""
        self.title = title_text(f"{form.across}{unit}")
        self._rest = [
            factor.name for factor in reading.told_apart(result, form.across, form.told_apart)
        ]
        self.legend = legend_title(self._rest)

    def group(self, cell: Mapping[str, Any]) -> str:
        """A cell's place in the legend."""
        return group_label(cell, self._rest)

    def where(self, cell: Mapping[str, Any]) -> str:
        """A cell's place in words."""
        return reading.at(cell, [self.name, *self._rest])

    def row(self, cell: Mapping[str, Any], value: CellValue, column: Column) -> ChartRow | None:
        """A cell's row of a panel."""
        place = reading.label(cell.get(self.name))
        return row(place, value, group=self.group(cell), where=self.where(cell), column=column)


def ratios(result: Result, form: Ratios, *, is_key: bool) -> Chart | None:
    """Paired ratios against the reference level, where the A/A control stands itself."""
    known = by_name(result)
    across = _Across(result, form)
    items = [
        (item, control)
        for found, control in ((result.comparisons, False), (result.controls, True))
        for item in found
    ]
    named = list(dict.fromkeys(item.measure for item, _ in items))
    first = form.measures
    names = sorted(named, key=lambda name: first.index(name) if name in first else 99)
    panels, values = [], []
    for name in names[:_MOST_EFFECTS]:
        rows: list[ChartRow] = []
        for item, control in items:
            if item.measure != name or item.ratio is None:
                continue
            row_ = _ratio_row(across, item, item.ratio, control=control)
            if row_ is not None:
                rows.append(row_)
                values.append(item.ratio)
        if any(not item["control"] for item in rows):
            panels.append(
                Panel(
                    title=panel_title(known.get(name, Measure(name=name)), ratio=True),
                    rows=rows,
                    order=across.order,
                    x_title=across.title,
                    zero=False,
                    log=_far_apart(rows),
                    level=1.0,
                    height=130,
                )
            )
    if not panels:
        return None
    against = _against(result, form.across)
    title = f"Effect against {form.across} {against}" if against else "Effect"
    spec = stacked(panels, legend=across.legend)
    caption = _caption(panels, values, f"{form.across} {against}" if against else None, against)
    section: Literal["key", "results"] = "key" if is_key else "results"
    return Chart(title, caption, spec, alternative(title, panels), section)


def _caption(
    panels: Sequence[Panel], values: Sequence[CellValue], named: str | None, against: str | None
) -> str:
    """How to read the ratios."""
    caption = f"Paired ratio to {named}" if named else "Ratio to what each is compared with"
    caption += (
        "; the line at 1 is no effect, and the axis does not begin at 0. Hollow: undecided or no "
        "difference shown. "
    )
    if any(panel.log for panel in panels):
        caption += "An axis whose labels grow by factors is logarithmic. "
    if any(item["control"] for panel in panels for item in panel.rows):
        caption += f"At {against}: the A/A control, equal against equal. " if against else ""
    return (caption + intervals_sentence(values, None)).strip()


def _against(result: Result, across: str) -> str | None:
    """The level that all others are compared with, None where it is no single one."""
    levels = {
        reading.label(item.against[across]) for item in result.comparisons if across in item.against
    }
    return levels.pop() if len(levels) == 1 else None


def _far_apart(rows: Sequence[ChartRow]) -> bool:
    """Whether the ratios reach so far that a linear axis would hide those below 1."""
    low, high = ends(rows) if rows else (1.0, 1.0)
    return low > 0 and high > _FAR_APART * low


def _ratio_row(
    across: _Across, item: ComparedCells, ratio: Interval, *, control: bool
) -> ChartRow | None:
    verdict = reading.text(item.verdict) or "undecided"
    found = across.row(item.cell, ratio, Column("ratio", "ratio", style="ratio"))
    if found is not None:
        where = found["where"]
        found["where"] = f"A/A control, {where}" if control else where
        found["said"] += f", {verdict}"
        found |= {"hollow": control or verdict in _UNDECIDED, "control": control}
    return found


def levels(result: Result, form: Levels, *, is_key: bool) -> Chart | None:
    """Measures of the cells at each level, one panel each."""
    if form.unit == "MiB":
        return _sizes(result, form, is_key=is_key)
    known = by_name(result)
    across = _Across(result, form)
    panels, values = [], []
    for name in form.measures:
        measure = known.get(name, Measure(name=name))
        column = measure_column(measure)
        rows = []
        for cell in reading.cells(result):
            value = reading.value(cell, name)
            found = across.row(cell, value, column)
            if found is not None:
                rows.append(found)
                values.append(value)
        if rows:
            panels.append(
                Panel(
                    title=panel_title(measure),
                    rows=rows,
                    form=form.form,
                    order=across.order,
                    x_title=across.title,
                    share=column.style == "share",
                )
            )
    evidence = {known[name].evidence for name in form.measures if name in known}
    caption = intervals_sentence(values, evidence.pop() if len(evidence) == 1 else None)
    return _chart(form.title, caption, panels, across, is_key=is_key)


def _sizes(result: Result, form: Levels, *, is_key: bool) -> Chart | None:
    """Pages after the run in MiB."""
    known = by_name(result)
    across = _Across(result, form)
    panels = []
    for name in form.measures:
        if not reading.has_value(result, name):
            continue
        rows = []
        for cell in reading.cells(result):
            after = reading.middle(reading.value(cell, name))
            before = reading.number(cell.get(f"{name}_before"))
            if after is None:
                continue
            mib = Column(name, name, unit="MiB", digits=1)
            found = across.row(cell, after * PAGE_BYTES / _MIB, mib)
            if found is not None:
                if before is not None:
                    found["said"] += f" ({before:.0f} pages before, {after:.0f} after)"
                rows.append(found)
        panels.append(
            Panel(
                title=title_text(
                    f"{measure_titles.title(name)} after the run, MiB, lower is better"
                ),
                rows=rows,
                form=form.form,
                order=across.order,
                x_title=across.title,
                height=140,
            )
        )
    first = form.measures[0]
    evidence = known[first].evidence if first in known else None
    said = f"{evidence[0].upper()}{evidence[1:]}; pages" if evidence else "Pages"
    caption = f"{said} of {PAGE_BYTES} bytes; 1 MiB is 1,048,576 bytes."
    return _chart(form.title, caption, panels, across, is_key=is_key)


def percentiles(result: Result, form: Percentiles, *, is_key: bool) -> Chart | None:
    """Percentiles on a logarithmic axis, one panel per group of cells."""
    known = by_name(result)
    across = _Across(result, form)
    names = [name for name in _percentiles(result, form) if reading.has_value(result, name)]
    groups = list(dict.fromkeys(across.group(cell) for cell in reading.cells(result)))
    panels, values = [], []
    for group in groups[:MOST_GROUPS]:
        rows = []
        for name in names:
            column = measure_column(known.get(name, Measure(name=name, unit=form.unit)))
            for cell in reading.cells(result):
                if across.group(cell) != group:
                    continue
                value = reading.value(cell, name)
                found = across.row(cell, value, column)
                if found is not None:
                    found["group"] = name.removeprefix(form.prefix)
                    rows.append(found)
                    values.append(value)
        if rows:
            panels.append(
                Panel(
                    title=title_text(f"{group or form.title.lower()}, {form.unit}"),
                    rows=rows,
                    order=across.order,
                    x_title=across.title,
                    log=True,
                )
            )
    if not panels:
        return None
    evidence = known[names[0]].evidence if names[0] in known else None
    caption = f"Logarithmic axis. {intervals_sentence(values, evidence)}"
    section: Literal["key", "results"] = "key" if is_key else "results"
    return Chart(form.title, caption, stacked(panels), alternative(form.title, panels), section)


def _percentiles(result: Result, form: Percentiles) -> list[str]:
    named = [measure.name for measure in reading.measures(result)]
    stated = [name for name in named if name.startswith(form.prefix)]
    return stated or [f"{form.prefix}{end}" for end in _PERCENTILES]


def _chart(
    title: str, caption: str, panels: Sequence[Panel], across: _Across, *, is_key: bool
) -> Chart | None:
    if not panels:
        return None
    spec = stacked(panels, legend=across.legend)
    section: Literal["key", "results"] = "key" if is_key else "results"
    return Chart(title, caption, spec, alternative(title, panels), section)
