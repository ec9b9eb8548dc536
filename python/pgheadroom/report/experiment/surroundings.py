"""
The tables around an experiment's results, which look the same whatever was measured.

Comparisons, controls, references, assumptions, method, environment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pgheadroom import units
from pgheadroom.lab import measure_titles, reading
from pgheadroom.lab.design import Measure
from pgheadroom.lab.reading import Result
from pgheadroom.lab.result import ComparedCells, DocumentFigure
from pgheadroom.report.columns import by_name
from pgheadroom.report.table import Column, Section, Table

_BETTER = {
    ("higher", "higher"): "higher (better)",
    ("higher", "lower"): "higher (worse)",
    ("lower", "lower"): "lower (better)",
    ("lower", "higher"): "lower (worse)",
}


def surrounding(result: Result) -> list[Table]:
    """Comparisons, controls, references, assumptions, method, environment; those that have rows."""
    tables = [
        _ratios(result, result.comparisons, "comparisons", "Comparisons"),
        _ratios(result, result.controls, "controls", "A/A controls"),
        *_references(result),
        _pairs(result.assumed, "How it was obtained, and what was assumed", "assumed"),
        _factors_table(result),
        _measures_table(result),
        *_environment(result),
    ]
    return [table for table in tables if table is not None]


def _ratios(
    result: Result, items: Sequence[ComparedCells], key: Section, title: str
) -> Table | None:
    if not items:
        return None
    known = by_name(result)
    names = _told_apart(result, items)
    rows = []
    for item in sorted(items, key=lambda item: _place_of(item, items)):
        measure = known.get(item.measure)
        rows.append(
            (
                _measure_heading(item.measure, measure),
                *(compared(item.cell, item.against, name) for name in names),
                item.ratio,
                item.pairs,
                verdict(item, measure),
            )
        )
    columns = (
        Column("measure", "measure", style="words", lead=True),
        *(Column(name, reading.printable(name), style="words", lead=True) for name in names),
        Column("ratio", "ratio", style="ratio", evidence=_evidence(items, known)),
        Column("pairs", "pairs"),
        Column("verdict", "verdict", style="words"),
    )
    note = (
        "Both sides of a control are the same cell, so its ratio should be 1; "
        "how far its interval reaches is the noise of this machine."
        if key == "controls"
        else "Ratio of the first to the second, from interleaved pairs; 1 means no difference."
    )
    return Table(title, columns, tuple(rows), note, key, headed=True)


def _told_apart(result: Result, items: Sequence[ComparedCells]) -> list[str]:
    """The factors that the comparisons' cells differ in, in the order of the factors."""
    sides = [side for item in items for side in (item.cell, item.against)]
    stated = [factor.name for factor in reading.factors(result)]
    names = [*stated, *(name for side in sides for name in side)]
    varying = {factor.name for factor in reading.varying(result)}
    return [
        name
        for name in dict.fromkeys(map(str, names))
        if any(name in side for side in sides)
        and (name in varying or len({reading.label(side.get(name)) for side in sides}) > 1)
    ]


def _place_of(item: ComparedCells, items: Sequence[ComparedCells]) -> int:
    """Where the item's measure comes first, so that a measure's rows stand together."""
    return [other.measure for other in items].index(item.measure)


def _measure_heading(name: str, measure: Measure | None) -> str:
    better = f" ({measure.better} is better)" if measure and measure.better else ""
    return f"{measure_titles.title(name)}{better}"


def compared(cell: Mapping[str, Any], against: Mapping[str, Any], name: str) -> str | None:
    """A factor's level in a comparison: `"80 vs 100"` where the sides differ, else the level."""
    if name not in cell and name not in against:
        return None
    ours, theirs = reading.label(cell.get(name)), reading.label(against.get(name))
    return ours if ours == theirs else f"{ours} vs {theirs}"


def verdict(item: ComparedCells, measure: Measure | None) -> str:
    """The verdict of a comparison: whether it is better where the measure says so, and why."""
    found = reading.text(item.verdict) or "undecided"
    said = _BETTER.get((found, (measure.better if measure else None) or ""), found)
    reason = reading.text(item.reason)
    return f"{said}: {reason}" if reason else said


def _evidence(items: Iterable[ComparedCells], known: Mapping[str, Measure]) -> str | None:
    kinds = {known[item.measure].evidence for item in items if item.measure in known}
    return kinds.pop() if len(kinds) == 1 else None


def _references(result: Result) -> list[Table]:
    tables = []
    for item in result.references:
        titles = reading.texts(item.columns)
        rows = [
            tuple(_figure(value) for value in row) for row in item.rows if len(row) == len(titles)
        ]
        if not titles:
            continue
        columns = []
        said_evidence = reading.text(item.evidence) or "printed by the document"
        for place, name in enumerate(titles):
            numeric = all(not isinstance(row[place], str) for row in rows)
            columns.append(
                Column(
                    name,
                    name,
                    style="number" if numeric else "words",
                    evidence=said_evidence,
                )
            )
        source, note = reading.text(item.source), reading.text(item.note)
        said = [f"Source: {source}." if source else None, note]
        tables.append(
            Table(
                reading.text(item.title) or "Reference",
                tuple(columns),
                tuple(rows),
                " ".join(part for part in said if part) or None,
                "references",
            )
        )
    return tables


def _figure(value: DocumentFigure) -> DocumentFigure:
    return reading.printable(value) if isinstance(value, str) else value


def _pairs(value: Mapping[str, Any], title: str, section: Section) -> Table | None:
    rows = [
        (reading.printable(name), shown(str(name), item))
        for name, item in value.items()
        if not isinstance(item, Mapping)
    ]
    if not rows:
        return None
    columns = (
        Column("name", "name", style="words", lead=True),
        Column("value", "value", style="words"),
    )
    return Table(title, columns, tuple(rows), None, section)


def shown(name: str, value: object) -> str:
    """A value of the environment as text; bytes also in the unit that people read."""
    found = reading.number(value)
    if found is not None and name.endswith("_bytes") and found >= 1024:
        return f"{found} ({units.show_bytes(found)})"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(reading.label(item) for item in value)
    return reading.label(value)


def _environment(result: Result) -> list[Table | None]:
    environment = result.environment
    return [
        _pairs(environment, "Environment", "place"),
        *(
            _pairs(item, f"Environment: {reading.printable(name)}", "place")
            for name, item in environment.items()
            if isinstance(item, Mapping)
        ),
    ]


def _factors_table(result: Result) -> Table | None:
    rows = [
        (
            reading.printable(factor.name),
            ", ".join(reading.label(item) for item in factor.levels),
            factor.unit,
            factor.description,
        )
        for factor in reading.factors(result)
    ]
    columns = (
        Column("factor", "factor", style="words", lead=True),
        Column("levels", "levels", style="words"),
        Column("unit", "unit", style="words"),
        Column("description", "description", style="words"),
    )
    return Table("What was varied", columns, tuple(rows), None, "method") if rows else None


def _measures_table(result: Result) -> Table | None:
    rows = [
        (
            reading.printable(measure.name),
            measure.unit,
            measure.evidence,
            measure.better,
            measure.description,
        )
        for measure in reading.measures(result)
    ]
    columns = (
        Column("measure", "measure", style="words", lead=True),
        Column("unit", "unit", style="words"),
        Column("evidence", "evidence", style="words"),
        Column("better", "better", style="words"),
        Column("description", "description", style="words"),
    )
    return Table("What was observed", columns, tuple(rows), None, "method") if rows else None
