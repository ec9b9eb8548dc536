"""
The view of `update-cost`: what one UPDATE writes, beside the figures that the document prints.

Tables only; the charts are in `charts_update_cost.py`, which imports the chart library.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pgheadroom.report import reading
from pgheadroom.report.reading import Measure, Result, Value
from pgheadroom.report.table import Column, Table
from pgheadroom.report.view_common import (
    by_name,
    cells_table,
    constant_note,
    factor_column,
    has_value,
    lead_factors,
    level,
)
from pgheadroom.report.view_generic import further
from pgheadroom.report.view_predicted import beside, counterparts, paired

DOCUMENTED = ("pages_dirtied", "wal_records", "wal_bytes")
"""The measures that the document prints; ours and the document's stand side by side."""

_VERSIONS = ("n_tup_upd", "n_tup_hot_upd", "n_tup_newpage_upd", "hot_frac", "newpage_frac")
_WAL_AND_SIZE = (
    "wal_bytes_per_update",
    "wal_fpi",
    "heap_pages_before",
    "heap_pages",
    "index_pages",
)
_TIME = ("update_ms", "execution_ms")


def tables(result: Result) -> list[Table]:
    """Tables of the results, the document's comparison first."""
    found = [
        _beside(result),
        beside(result),
        cells_table(result, "Where the new row versions went", _VERSIONS),
        cells_table(result, "WAL per updated row, and size", _WAL_AND_SIZE),
        cells_table(
            result,
            "Time",
            _TIME,
            repetitions=True,
            note="Times are noisier than counters; read the comparisons for what they show.",
        ),
    ]
    seen = counterparts(paired(result)) | {
        *DOCUMENTED,
        *(f"document_{name}" for name in DOCUMENTED),
    }
    seen |= {*_VERSIONS, *_WAL_AND_SIZE, *_TIME}
    return [table for table in found if table is not None] + further(result, seen)


def _beside(result: Result) -> Table | None:
    """Ours, the document's, and the difference, for each documented measure."""
    known = by_name(result)
    leads = lead_factors(result)
    names = [name for name in DOCUMENTED if has_value(result, name)]
    if not names:
        return None
    columns: list[Column] = [factor_column(factor) for factor in leads]
    documented = [name for name in names if has_value(result, f"document_{name}")]
    for name in names:
        measure = known.get(name, Measure(name=name))
        group = name if name in documented else None
        columns.append(
            Column(
                name,
                "ours" if group else name,
                group=group,
                evidence=measure.evidence,
                description=measure.description,
            )
        )
        if group:
            columns += [
                Column(
                    f"document_{name}", "document", group=group, evidence="printed by the document"
                ),
                Column(f"{name}_difference", "difference", group=group, signed=True),
            ]
    rows = []
    for cell in reading.cells(result):
        row: list[object] = [level(cell, factor) for factor in leads]
        for name in names:
            row.append(reading.value(cell, name))
            if name in documented:
                row += [reading.number(cell.get(f"document_{name}")), _less(cell, name)]
        rows.append(tuple(row))
    notes = [constant_note(result)]
    if documented:
        notes.append(
            "Difference: ours less the document's; a dash where the document has no figure."
        )
        title = "One UPDATE: ours beside the document's"
    else:
        notes.append(
            "The document's figures are for scale 100 and full_page_writes off; "
            "none of these cells is such a one."
        )
        title = "One UPDATE"
    return Table(title, tuple(columns), tuple(rows), " ".join(filter(None, notes)))


def _less(cell: Mapping[str, Any], name: str) -> Value:
    ours = reading.number(cell.get(name))
    theirs = reading.number(cell.get(f"document_{name}"))
    return None if ours is None or theirs is None else ours - theirs
