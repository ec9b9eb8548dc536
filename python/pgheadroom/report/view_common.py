"""
What every experiment's view shares: columns for measures, and the tables around the results.

Comparisons, controls, references, assumptions, environment and method look the same whatever was
measured; the views of single experiments add their own tables of results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pgheadroom import units
from pgheadroom.report import reading
from pgheadroom.report.reading import Factor, Measure, Result
from pgheadroom.report.table import Column, Section, Table

_BETTER = {
    ("higher", "higher"): "higher (better)",
    ("higher", "lower"): "higher (worse)",
    ("lower", "lower"): "lower (better)",
    ("lower", "higher"): "lower (worse)",
}

_MEMORY_KEYS = frozenset({"memory_bytes"})


def factor_column(factor: Factor) -> Column:
    """The leading column of a factor."""
    return Column(
        key=factor.name,
        title=reading.printable(factor.name),
        unit=factor.unit,
        align="right" if factor.numeric else "left",
        style="number" if factor.numeric else "text",
        lead=True,
        description=factor.description,
    )


def measure_column(
    measure: Measure, *, title: str | None = None, group: str | None = None
) -> Column:
    """The column of a measure; a fraction is written as per cent."""
    share = measure.name.endswith("_frac")
    return Column(
        key=measure.name,
        title=title or reading.printable(share_title(measure.name) if share else measure.name),
        unit="%" if share else measure.unit,
        style="share" if share else "number",
        group=group,
        evidence=measure.evidence,
        description=measure.description,
    )


def share_title(name: str) -> str:
    """A fraction's name where it is shown to people: `hot_frac` is shown as `hot_pct`."""
    return f"{name.removesuffix('_frac')}_pct"


def by_name(result: Result) -> dict[str, Measure]:
    """Measures by name; one that only a cell holds is there too, without description."""
    return {measure.name: measure for measure in reading.measures(result)}


def has_value(result: Result, measure: str) -> bool:
    """Whether any cell has a value of the measure."""
    return any(reading.value(cell, measure) is not None for cell in reading.cells(result))


def lead_factors(result: Result) -> tuple[Factor, ...]:
    """The factors that tell the cells apart; all of them when there is one cell."""
    return reading.varying(result) or reading.factors(result)


def constant_note(result: Result) -> str | None:
    """The factors that stayed the same in every cell, as a sentence."""
    constant = [
        f"{reading.printable(factor.name)} {reading.label(present[0])}"
        for factor in reading.factors(result)
        if len(present := reading.present(result, factor)) == 1
    ]
    if not constant or not reading.varying(result):
        return None
    return f"The same in every cell: {', '.join(constant)}."


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
    shown = [known.get(name, Measure(name=name)) for name in names if has_value(result, name)]
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


def level(cell: Mapping[str, Any], factor: Factor) -> object:
    """A cell's level of a factor, as a table's value."""
    found = cell.get(factor.name)
    if found is None or (factor.numeric and reading.number(found) is not None):
        return found
    return reading.label(found)


def surrounding(result: Result) -> list[Table]:
    """Comparisons, controls, references, assumptions, method, environment; those that have rows."""
    tables = [
        _ratios(result, "comparisons", "Comparisons"),
        _ratios(result, "controls", "A/A controls"),
        *_references(result),
        _pairs(result.get("assumed"), "How it was obtained, and what was assumed", "assumed"),
        _factors_table(result),
        _measures_table(result),
        *_environment(result),
    ]
    return [table for table in tables if table is not None]


def _ratios(result: Result, key: Section, title: str) -> Table | None:
    items = reading.mappings(result.get(key))
    if not items:
        return None
    known = by_name(result)
    names = _told_apart(result, items)
    rows = []
    for item in sorted(items, key=lambda item: _place_of(item, items)):
        cell, against = reading.mapping(item.get("cell")), reading.mapping(item.get("against"))
        measure = str(item.get("measure") or "")
        rows.append(
            (
                _measure_heading(measure, known.get(measure)),
                *(compared(cell, against, name) for name in names),
                reading.interval(item.get("ratio")),
                reading.number(item.get("pairs")),
                verdict(item, known.get(measure)),
            )
        )
    columns = (
        Column("measure", "measure", align="left", style="text", lead=True),
        *(
            Column(name, reading.printable(name), align="left", style="text", lead=True)
            for name in names
        ),
        Column("ratio", "ratio", style="ratio", evidence=_evidence(items, known)),
        Column("pairs", "pairs"),
        Column("verdict", "verdict", align="left", style="text"),
    )
    note = (
        "Both sides of a control are the same cell, so its ratio should be 1; "
        "how far its interval reaches is the noise of this machine."
        if key == "controls"
        else "Ratio of the first to the second, from interleaved pairs; 1 means no difference."
    )
    return Table(title, columns, tuple(rows), note, key, headed=True)


def _told_apart(result: Result, items: Sequence[Mapping[str, Any]]) -> list[str]:
    """The factors that the comparisons' cells differ in, in the order of the factors."""
    sides = [reading.mapping(item.get(side)) for item in items for side in ("cell", "against")]
    stated = [factor.name for factor in reading.factors(result)]
    names = [*stated, *(name for side in sides for name in side)]
    varying = {factor.name for factor in reading.varying(result)}
    return [
        name
        for name in dict.fromkeys(map(str, names))
        if any(name in side for side in sides)
        and (name in varying or len({reading.label(side.get(name)) for side in sides}) > 1)
    ]


def _place_of(item: Mapping[str, Any], items: Sequence[Mapping[str, Any]]) -> int:
    """Where the item's measure comes first, so that a measure's rows stand together."""
    return [other.get("measure") for other in items].index(item.get("measure"))


def _measure_heading(name: str, measure: Measure | None) -> str:
    better = f" ({measure.better} is better)" if measure and measure.better else ""
    return f"{reading.printable(name)}{better}"


def compared(cell: Mapping[str, Any], against: Mapping[str, Any], name: str) -> str | None:
    """A factor's level in a comparison: `"80 vs 100"` where the sides differ, else the level."""
    if name not in cell and name not in against:
        return None
    ours, theirs = reading.label(cell.get(name)), reading.label(against.get(name))
    return ours if ours == theirs else f"{ours} vs {theirs}"


def verdict(item: Mapping[str, Any], measure: Measure | None) -> str:
    """The verdict of a comparison: whether it is better where the measure says so, and why."""
    found = reading.text(item.get("verdict")) or "undecided"
    said = _BETTER.get((found, (measure.better if measure else None) or ""), found)
    reason = reading.text(item.get("reason"))
    return f"{said}: {reason}" if reason else said


def _evidence(items: Iterable[Mapping[str, Any]], known: Mapping[str, Measure]) -> str | None:
    kinds = {
        known[str(item.get("measure"))].evidence
        for item in items
        if str(item.get("measure")) in known
    }
    return kinds.pop() if len(kinds) == 1 else None


def _references(result: Result) -> list[Table]:
    tables = []
    for item in reading.mappings(result.get("references")):
        titles = reading.texts(item.get("columns"))
        rows = [
            tuple(_plain(value) for value in row)
            for row in item.get("rows") or ()
            if isinstance(row, Sequence) and not isinstance(row, str) and len(row) == len(titles)
        ]
        if not titles:
            continue
        columns = []
        said_evidence = reading.text(item.get("evidence")) or "printed by the document"
        for place, name in enumerate(titles):
            numeric = all(not isinstance(row[place], str) for row in rows)
            columns.append(
                Column(
                    name,
                    name,
                    align="right" if numeric else "left",
                    style="number" if numeric else "text",
                    evidence=said_evidence,
                )
            )
        source, note = reading.text(item.get("source")), reading.text(item.get("note"))
        said = [f"Source: {source}." if source else None, note]
        tables.append(
            Table(
                reading.text(item.get("title")) or "Reference",
                tuple(columns),
                tuple(rows),
                " ".join(part for part in said if part) or None,
                "references",
            )
        )
    return tables


def _plain(value: object) -> object:
    spread = reading.interval(value)
    if spread is not None or value is None or isinstance(value, bool):
        return spread if spread is not None else value
    found = reading.number(value)
    return reading.printable(value) if found is None else found


def _pairs(value: object, title: str, section: Section, note: str | None = None) -> Table | None:
    rows = [
        (reading.printable(name), shown(str(name), item))
        for name, item in reading.mapping(value).items()
        if not isinstance(item, Mapping)
    ]
    if not rows:
        return None
    columns = (
        Column("name", "name", align="left", style="text", lead=True),
        Column("value", "value", align="left", style="text"),
    )
    return Table(title, columns, tuple(rows), note, section)


def shown(name: str, value: object) -> str:
    """A value of the environment as text; bytes also in the unit that people read."""
    found = reading.number(value)
    if found is not None and name.endswith("_bytes") and found >= 1024:
        return f"{found} ({units.show_bytes(found)})"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(reading.label(item) for item in value)
    return reading.label(value)


def _environment(result: Result) -> list[Table | None]:
    environment = reading.mapping(result.get("environment"))
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
        Column("factor", "factor", align="left", style="text", lead=True),
        Column("levels", "levels", align="left", style="text"),
        Column("unit", "unit", align="left", style="text"),
        Column("description", "description", align="left", style="text"),
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
        Column("measure", "measure", align="left", style="text", lead=True),
        Column("unit", "unit", align="left", style="text"),
        Column("evidence", "evidence", align="left", style="text"),
        Column("better", "better", align="left", style="text"),
        Column("description", "description", align="left", style="text"),
    )
    return Table("What was observed", columns, tuple(rows), None, "method") if rows else None
