"""The view of `index-walkthrough`: blocks of each step, measured beside predicted."""

from __future__ import annotations

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

COUNTED = ("buffers", "heap_pages", "index_pages")


def tables(result: Result) -> list[Table]:
    """One table of all counts, then whatever else there is."""
    seen = {*COUNTED, *(f"predicted_{name}" for name in COUNTED)}
    found = _beside(result)
    return ([] if found is None else [found]) + further(result, seen)


def _beside(result: Result) -> Table | None:
    names = [name for name in COUNTED if has_value(result, name)]
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
            Column(f"predicted_{name}", "predicted", group=name, evidence="predicted"),
        ]
    rows = [
        (
            *(level(cell, factor) for factor in leads),
            *(reading.value(cell, key) for name in names for key in (name, f"predicted_{name}")),
        )
        for cell in reading.cells(result)
    ]
    return Table(
        "Blocks, measured beside predicted", tuple(columns), tuple(rows), constant_note(result)
    )
