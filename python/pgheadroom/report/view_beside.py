"""
The view of experiments whose counts are predicted: measured beside predicted, cell by cell.

Knows no experiment: a measure with a `predicted_` twin is one that is predicted.
"""

from __future__ import annotations

from collections.abc import Sequence

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
)
from pgheadroom.report.view_generic import further

PREFIX = "predicted_"


def tables(result: Result) -> list[Table]:
    """One table of all that is predicted, then whatever else there is."""
    names = [item.name for item in reading.measures(result)]
    predicted = [name for name in names if PREFIX + name in names]
    return view(result, predicted, "Measured beside predicted")


def view(result: Result, names: Sequence[str], title: str) -> list[Table]:
    """
    A table of the named measures beside their predictions, then the measures that are left.

    Args:
        result: Of an experiment.
        names: Measures that are predicted.
        title: The first table's.
    """
    seen = {*names, *(PREFIX + name for name in names)}
    found = _beside(result, [name for name in names if has_value(result, name)], title)
    return ([] if found is None else [found]) + further(result, seen)


def _beside(result: Result, names: Sequence[str], title: str) -> Table | None:
    if not names:
        return None
    known, leads = by_name(result), lead_factors(result)
    columns: list[Column] = [factor_column(factor) for factor in leads]
    for name in names:
        measure = known.get(name, Measure(name=name))
        columns += [
            Column(
                name,
                "measured",
                group=name,
                evidence=measure.evidence,
                description=measure.description,
            ),
            Column(PREFIX + name, "predicted", group=name, evidence="predicted"),
        ]
    rows = [
        (
            *(level(cell, factor) for factor in leads),
            *(reading.value(cell, key) for name in names for key in (name, PREFIX + name)),
        )
        for cell in reading.cells(result)
    ]
    return Table(title, tuple(columns), tuple(rows), constant_note(result))
