"""Charts of `fillfactor`: the effect with its intervals first, then what explains it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pgheadroom.report import charts_predicted, reading
from pgheadroom.report.charts import (
    MOST_GROUPS,
    Chart,
    Panel,
    Row,
    alternative,
    ends,
    group_label,
    intervals_sentence,
    legend_title,
    panel_title,
    row,
    stacked,
)
from pgheadroom.report.reading import Measure, Result, Value
from pgheadroom.report.table import Column
from pgheadroom.report.view_common import by_name, has_value, measure_column
from pgheadroom.report.view_fillfactor import rest_factors
from pgheadroom.types import Interval
from pgheadroom.units import PAGE_BYTES

_EFFECTS = ("tps", "accounts_update_ms", "wal_bytes_per_tx", "latency_ms_p99", "hot_frac")
_MOST_EFFECTS = 5
_UNDECIDED = ("undecided", "no difference shown")
_FAR_APART = 4
"""Ratio of largest to smallest from which the effect has a logarithmic axis (arbitrary)."""

_MIB = 1024**2


def charts(result: Result) -> list[Chart]:
    """The effect, HOT and new-page shares, WAL, size and latency against fillfactor."""
    found = [
        _effect(result),
        _measured(result, "Where the new row versions went", ("hot_frac", "newpage_frac")),
        _measured(
            result, "WAL per transaction", ("wal_bytes_per_tx", "wal_fpi_per_tx"), form="bar"
        ),
        _size(result),
        _predicted(result),
        _latency(result),
    ]
    return [chart for chart in found if chart is not None]


def _levels(result: Result) -> list[str]:
    """The fillfactors that occur, fullest page first."""
    factor = next((item for item in reading.factors(result) if item.name == "fillfactor"), None)
    levels = list(reading.present(result, factor)) if factor else []
    if all(reading.number(level) is not None for level in levels):
        levels.sort(reverse=True)
    return [reading.label(level) for level in levels]


def _group(result: Result, cell: Mapping[str, Any]) -> str:
    return group_label(cell, [factor.name for factor in rest_factors(result)])


def _legend(result: Result) -> str | None:
    return legend_title([factor.name for factor in rest_factors(result)])


def _effect(result: Result) -> Chart | None:
    """Paired ratios against the reference fillfactor, where the A/A control stands itself."""
    known = by_name(result)
    items = [
        (item, control)
        for key, control in (("comparisons", False), ("controls", True))
        for item in reading.mappings(result.get(key))
    ]
    named = list(dict.fromkeys(str(item.get("measure")) for item, _ in items))
    names = sorted(named, key=lambda name: _EFFECTS.index(name) if name in _EFFECTS else 99)
    panels, values = [], []
    for name in names[:_MOST_EFFECTS]:
        rows: list[Row] = []
        for item, control in items:
            ratio = reading.interval(item.get("ratio"))
            if item.get("measure") != name or ratio is None:
                continue
            found = _ratio_row(result, item, ratio, control=control)
            if found is not None:
                rows.append(found)
                values.append(ratio)
        if any(not item["control"] for item in rows):
            panels.append(
                Panel(
                    title=panel_title(known.get(name, Measure(name=name)), ratio=True),
                    rows=rows,
                    order=_levels(result),
                    x_title="fillfactor, %",
                    zero=False,
                    log=_far_apart(rows),
                    level=1.0,
                    height=130,
                )
            )
    if not panels:
        return None
    against = _against(result)
    title = f"Effect against fillfactor {against}" if against else "Effect"
    caption = (
        f"Paired ratio to fillfactor {against}"
        if against
        else "Ratio to what each is compared with"
    )
    caption += (
        "; the line at 1 is no effect, and the axis does not begin at 0. Hollow: undecided or no "
        "difference shown. "
    )
    if any(panel.log for panel in panels):
        caption += "An axis whose labels grow by factors is logarithmic. "
    if any(item["control"] for panel in panels for item in panel.rows):
        caption += f"At {against}: the A/A control, equal against equal. " if against else ""
    caption += intervals_sentence(values, None)
    spec = stacked(panels, legend=_legend(result))
    return Chart(title, caption.strip(), spec, alternative(title, panels), "key")


def _against(result: Result) -> str | None:
    """The fillfactor that all others are compared with, None where it is no single one."""
    levels = {
        reading.label(against["fillfactor"])
        for item in reading.mappings(result.get("comparisons"))
        if "fillfactor" in (against := reading.mapping(item.get("against")))
    }
    return levels.pop() if len(levels) == 1 else None


def _far_apart(rows: Sequence[Row]) -> bool:
    """Whether the ratios reach so far that a linear axis would hide those below 1."""
    low, high = ends(rows) if rows else (1.0, 1.0)
    return low > 0 and high > _FAR_APART * low


def _ratio_row(
    result: Result, item: Mapping[str, Any], ratio: Interval, *, control: bool
) -> Row | None:
    cell = reading.mapping(item.get("cell"))
    where = reading.at(cell, ["fillfactor", *(factor.name for factor in rest_factors(result))])
    verdict = reading.text(item.get("verdict")) or "undecided"
    column = Column("ratio", "ratio", style="ratio")
    found = row(
        reading.label(cell.get("fillfactor")),
        ratio,
        group=_group(result, cell),
        where=f"A/A control, {where}" if control else where,
        column=column,
    )
    if found is not None:
        found["said"] += f", {verdict}"
        found |= {"hollow": control or verdict in _UNDECIDED, "control": control}
    return found


def _measured(
    result: Result, title: str, names: Sequence[str], *, form: Literal["point", "bar"] = "point"
) -> Chart | None:
    """Measures of the cells against fillfactor, one panel each."""
    known = by_name(result)
    order = _levels(result)
    panels, values = [], []
    for name in names:
        measure = known.get(name, Measure(name=name))
        column = measure_column(measure)
        rows = []
        for cell in reading.cells(result):
            value = reading.value(cell, name)
            found = _cell_row(result, cell, value, column)
            if found is not None:
                rows.append(found)
                values.append(value)
        if rows:
            panels.append(
                Panel(
                    title=panel_title(measure),
                    rows=rows,
                    form=form,
                    order=order,
                    x_title="fillfactor, %",
                    share=column.style == "share",
                )
            )
    if not panels:
        return None
    evidence = {known[name].evidence for name in names if name in known}
    caption = intervals_sentence(values, evidence.pop() if len(evidence) == 1 else None)
    return Chart(
        title, caption, stacked(panels, legend=_legend(result)), alternative(title, panels)
    )


def _cell_row(result: Result, cell: Mapping[str, Any], value: Value, column: Column) -> Row | None:
    return row(
        reading.label(cell.get("fillfactor")),
        value,
        group=_group(result, cell),
        where=reading.at(cell, ["fillfactor", *(factor.name for factor in rest_factors(result))]),
        column=column,
    )


def _size(result: Result) -> Chart | None:
    """Heap after the run as bars of MiB."""
    known = by_name(result)
    panels = []
    for name in ("heap_pages", "index_pages"):
        if not has_value(result, name):
            continue
        rows = []
        for cell in reading.cells(result):
            after = reading.middle(reading.value(cell, name))
            before = reading.number(cell.get(f"{name}_before"))
            if after is None:
                continue
            mib = Column(name, name, unit="MiB", digits=1)
            found = _cell_row(result, cell, after * PAGE_BYTES / _MIB, mib)
            if found is not None:
                if before is not None:
                    found["said"] += f" ({before:.0f} pages before, {after:.0f} after)"
                rows.append(found)
        panels.append(
            Panel(
                title=f"{name.removesuffix('_pages')} after the run, MiB, lower is better",
                rows=rows,
                form="bar",
                order=_levels(result),
                x_title="fillfactor, %",
                height=140,
            )
        )
    if not panels:
        return None
    title = "Size"
    evidence = known["heap_pages"].evidence if "heap_pages" in known else None
    said = f"{evidence[0].upper()}{evidence[1:]}; pages" if evidence else "Pages"
    caption = f"{said} of {PAGE_BYTES} bytes; 1 MiB is 1,048,576 bytes."
    return Chart(
        title, caption, stacked(panels, legend=_legend(result)), alternative(title, panels)
    )


def _predicted(result: Result) -> Chart | None:
    """The twin's counters beside the server's."""
    factor = next((item for item in reading.factors(result) if item.name == "fillfactor"), None)
    if factor is None:
        return None
    return charts_predicted.chart(result, factor, ("hot_frac", "heap_pages", "wal_bytes_per_tx"))


def _latency(result: Result) -> Chart | None:
    """Percentiles on a logarithmic axis, one panel per group of cells."""
    known = by_name(result)
    names = [name for name in _percentiles(result) if has_value(result, name)]
    groups = list(dict.fromkeys(_group(result, cell) for cell in reading.cells(result)))
    panels, values = [], []
    for group in groups[:MOST_GROUPS]:
        rows = []
        for name in names:
            column = measure_column(known.get(name, Measure(name=name, unit="ms")))
            for cell in reading.cells(result):
                if _group(result, cell) != group:
                    continue
                value = reading.value(cell, name)
                found = _cell_row(result, cell, value, column)
                if found is not None:
                    found["group"] = name.removeprefix("latency_ms_")
                    rows.append(found)
                    values.append(value)
        if rows:
            panels.append(
                Panel(
                    title=f"{group or 'latency per transaction'}, ms",
                    rows=rows,
                    order=_levels(result),
                    x_title="fillfactor, %",
                    log=True,
                )
            )
    if not panels:
        return None
    title = "Latency per transaction"
    evidence = known[names[0]].evidence if names[0] in known else None
    caption = f"Logarithmic axis. {intervals_sentence(values, evidence)}"
    return Chart(title, caption, stacked(panels), alternative(title, panels))


def _percentiles(result: Result) -> list[str]:
    named = [measure.name for measure in reading.measures(result)]
    stated = [name for name in named if name.startswith("latency_ms_")]
    return stated or [f"latency_ms_{end}" for end in ("p50", "p90", "p99", "max")]
