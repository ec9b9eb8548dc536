"""
Measures that were predicted too: measured beside predicted, for any experiment that has such.

Tables only; the charts are in `charts_predicted.py`, which imports the chart library.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pgheadroom.report import reading
from pgheadroom.report.reading import Measure, Result
from pgheadroom.report.table import Column, Table
from pgheadroom.report.view_common import (
    by_name,
    constant_note,
    factor_column,
    has_value,
    lead_factors,
    level,
    measure_column,
    share_title,
)

PREFIX = "predicted_"


def paired(result: Result) -> list[str]:
    """The measures that some cell has a prediction of."""
    names = [measure.name for measure in reading.measures(result)]
    return [name for name in names if f"{PREFIX}{name}" in names and _is_pair(result, name)]


def _is_pair(result: Result, name: str) -> bool:
    return has_value(result, name) and has_value(result, f"{PREFIX}{name}")


def counterparts(names: Iterable[str]) -> set[str]:
    """The names of the measures' predictions."""
    return {f"{PREFIX}{name}" for name in names}


def beside(
    result: Result, names: Sequence[str] | None = None, *, title: str = "Measured beside predicted"
) -> Table | None:
    """
    Each measure with its prediction in the next column; None where nothing was predicted.

    Args:
        result: Of an experiment.
        names: Measures to show, predicted or not; those that were predicted when None.
        title: The table's.
    """
    shown = paired(result) if names is None else [n for n in names if has_value(result, n)]
    if not shown:
        return None
    known, leads = by_name(result), lead_factors(result)
    columns: list[Column] = [factor_column(factor) for factor in leads]
    for name in shown:
        group = share_title(name) if name.endswith("_frac") else name
        for key, heading in ((name, "measured"), (f"{PREFIX}{name}", "predicted")):
            measure = known.get(key, Measure(name=key))
            columns.append(measure_column(measure, title=heading, group=group))
    rows = [
        (
            *(level(cell, factor) for factor in leads),
            *(reading.value(cell, key) for name in shown for key in (name, f"{PREFIX}{name}")),
        )
        for cell in reading.cells(result)
    ]
    return Table(title, tuple(columns), tuple(rows), constant_note(result))
