"""
Charts of experiments that go by windows: `fpi-sawtooth` and `long-transaction`.

A measure that is predicted too has both lines in one panel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pgheadroom.report import reading
from pgheadroom.report.charts import (
    Chart,
    Panel,
    Row,
    alternative,
    group_label,
    intervals_sentence,
    legend_title,
    panel_title,
    row,
    stacked,
)
from pgheadroom.report.reading import Measure, Result, Value
from pgheadroom.report.view_common import by_name, has_value, measure_column

_FIGURES: Mapping[str, Sequence[tuple[str, Sequence[str]]]] = {
    "fpi-sawtooth": (
        ("WAL per update since the checkpoint", ("wal_bytes_per_update", "wal_fpi_per_update")),
        ("What a checkpoint distance costs", ("mean_wal_bytes_per_update", "distance_bytes")),
    ),
    "long-transaction": (
        ("HOT and size, window by window", ("hot_frac", "heap_pages", "index_pages")),
        ("What an update costs", ("wal_bytes_per_update", "buffers_per_update")),
    ),
}


def charts(result: Result) -> list[Chart]:
    """The figures of the experiment, the one that answers its question first."""
    figures = _FIGURES.get(str(result.get("name")), ())
    found = [_figure(result, title, names, key=not n) for n, (title, names) in enumerate(figures)]
    return [chart for chart in found if chart is not None]


def _figure(result: Result, title: str, names: Sequence[str], *, key: bool) -> Chart | None:
    factors = [factor.name for factor in reading.varying(result) if factor.name != "window"]
    panels, values = [], list[Value]()
    for name in names:
        if not has_value(result, name):
            continue
        measure = by_name(result).get(name, Measure(name=name))
        rows = _rows(result, measure, name, factors, values)
        predicted = f"predicted_{name}"
        if has_value(result, predicted):
            rows += _rows(result, measure, predicted, factors, [], suffix="predicted")
        panels.append(
            Panel(
                title=panel_title(measure),
                rows=rows,
                form="line",
                x_title="window",
                share=measure_column(measure).style == "share",
            )
        )
    if not panels:
        return None
    caption = f"{intervals_sentence(values, 'measured')} Every axis of values begins at 0."
    spec = stacked(panels, legend=legend_title(factors))
    section: Any = "key" if key else "results"
    return Chart(title, caption, spec, alternative(title, panels), section)


def _rows(
    result: Result,
    measure: Measure,
    key: str,
    factors: Sequence[str],
    values: list[Value],
    *,
    suffix: str = "",
) -> list[Row]:
    """One row a cell; what was drawn is added to `values`."""
    found = []
    column = measure_column(measure)
    for cell in reading.cells(result):
        group = " · ".join(filter(None, (group_label(cell, factors), suffix)))
        value = reading.value(cell, key)
        where = reading.at(cell, ["window", *factors])
        made = row(reading.number(cell.get("window")), value, group=group, where=where,
                   column=column)  # fmt: skip
        if made is not None:
            found.append(made)
            values.append(value)
    return found
