"""
The tables of an experiment's results, by the forms that its presentation declares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pgheadroom.lab import measure_titles, reading
from pgheadroom.lab import presentation as forms
from pgheadroom.lab.design import Measure
from pgheadroom.lab.presentation import TableForm
from pgheadroom.lab.reading import Result
from pgheadroom.report.columns import (
    by_name,
    constant_note,
    factor_column,
    lead_factors,
    level,
    measure_column,
)
from pgheadroom.report.table import Column, Table

_PER_TABLE = 6
"""Measures in one table; more make a table that no page is wide enough for (arbitrary)."""

PREFIX = "predicted_"


def tables(result: Result, declared: Sequence[TableForm]) -> list[Table]:
    """The declared tables that have a value, and behind them the measures that none of them has."""
    if not any(isinstance(form, forms.RestTable) for form in declared):
        declared = (*declared, forms.RestTable())
    found: list[Table | None] = []
    for form in declared:
        match form:
            case forms.CellsTable():
                found.append(_of_cells(result, form))
            case forms.PairedTable():
                found.append(beside(result, form.measures, title=form.title))
            case forms.GivenTable():
                found.append(_given(result, form))
            case forms.RestTable():
                found += further(result, _seen(result, declared), title=form.title)
    return [table for table in found if table is not None]


def _seen(result: Result, declared: Sequence[TableForm]) -> set[str]:
    """The measures that the declared tables have."""
    seen: set[str] = set()
    for form in declared:
        match form:
            case forms.CellsTable():
                seen |= set(form.measures)
            case forms.PairedTable(measures=None):
                seen |= counterparts(paired(result))
            case forms.PairedTable(measures=names):
                seen |= {*(names or ()), *counterparts(names or ())}
            case forms.GivenTable():
                seen |= set(form.covers)
    return seen


def _of_cells(result: Result, form: forms.CellsTable) -> Table | None:
    cells = reading.cells(result)
    if form.only_with is not None:
        cells = tuple(cell for cell in cells if cell.get(form.only_with) is not None)
    return cells_table(
        result,
        form.title,
        form.measures,
        cells=cells,
        note=_note(result, form),
        repetitions=form.repetitions,
    )


def _given(result: Result, form: forms.GivenTable) -> Table:
    factors = {factor.name: factor for factor in reading.factors(result)}
    columns = []
    for column in form.columns:
        if column.factor and column.name in factors:
            columns.append(factor_column(factors[column.name]))
            continue
        columns.append(
            Column(
                column.name,
                column.title,
                style=column.style,
                group=column.group,
                evidence=column.evidence,
                description=column.description,
                signed=column.signed,
            )
        )
    rows = tuple(
        tuple(
            level({column.name: value}, factors[column.name])
            if column.factor and column.name in factors
            else value
            for column, value in zip(form.columns, row, strict=True)
        )
        for row in form.rows
    )
    return Table(form.title, tuple(columns), rows, _note(result, form))


def _note(result: Result, form: forms.CellsTable | forms.GivenTable) -> str | None:
    said = [constant_note(result) if form.constants else None, form.note]
    return " ".join(part for part in said if part) or None


def cells_table(
    result: Result,
    title: str,
    names: Sequence[str],
    *,
    cells: Sequence[Mapping[str, Any]] | None = None,
    note: str | None = None,
    repetitions: bool = False,
) -> Table | None:
    """
    Factors and the named measures of each cell; measures without any value are left out.

    Returns:
        None when no cell has a value of any of the measures.
    """
    known = by_name(result)
    shown = [
        known.get(name, Measure(name=name)) for name in names if reading.has_value(result, name)
    ]
    if not shown:
        return None
    leads = lead_factors(result)
    rows = reading.cells(result) if cells is None else cells
    count = repetitions and any(reading.number(cell.get("repetitions")) for cell in rows)
    columns = [*map(factor_column, leads), *map(measure_column, shown)]
    if count:
        columns.append(Column("repetitions", "repetitions"))
    return Table(
        title=title,
        columns=tuple(columns),
        rows=tuple(
            (
                *(level(cell, factor) for factor in leads),
                *(reading.value(cell, measure.name) for measure in shown),
                *([reading.number(cell.get("repetitions"))] if count else []),
            )
            for cell in rows
        ),
        note=note,
    )


def paired(result: Result) -> list[str]:
    """The measures that some cell has a prediction of."""
    names = [measure.name for measure in reading.measures(result)]
    return [name for name in names if f"{PREFIX}{name}" in names and _is_pair(result, name)]


def _is_pair(result: Result, name: str) -> bool:
    return reading.has_value(result, name) and reading.has_value(result, f"{PREFIX}{name}")


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
    shown = paired(result) if names is None else [n for n in names if reading.has_value(result, n)]
    if not shown:
        return None
    known, leads = by_name(result), lead_factors(result)
    columns: list[Column] = [factor_column(factor) for factor in leads]
    for name in shown:
        group = measure_titles.title(name)
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
