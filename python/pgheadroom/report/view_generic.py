"""
The view of an experiment that has no view of its own: every factor, every measure.

Also the last resort of the other views: measures that they do not know are shown as here.
"""

from __future__ import annotations

from collections.abc import Iterable

from pgheadroom.report import reading
from pgheadroom.report.reading import Result
from pgheadroom.report.table import Table
from pgheadroom.report.view_common import cells_table, constant_note
from pgheadroom.report.view_predicted import beside, counterparts, paired

_PER_TABLE = 6
"""Measures in one table; more make a table that no page is wide enough for (arbitrary)."""


def tables(result: Result) -> list[Table]:
    """All measures of all cells, a handful per table, then those that were predicted too."""
    foreseen = beside(result)
    found = further(result, counterparts(paired(result)), title="Results")
    return found if foreseen is None else [*found, foreseen]


def further(result: Result, seen: Iterable[str], *, title: str = "Further measures") -> list[Table]:
    """Tables of the measures that are not among the seen ones."""
    known = set(seen)
    names = [measure.name for measure in reading.measures(result) if measure.name not in known]
    found: list[Table] = []
    for start in range(0, len(names), _PER_TABLE):
        table = cells_table(
            result,
            title if not found else f"{title}, continued",
            names[start : start + _PER_TABLE],
            note=constant_note(result) if not found else None,
            repetitions=not found,
        )
        if table is not None:
            found.append(table)
    return found
