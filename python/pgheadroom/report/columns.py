"""
Columns of an experiment's tables: its factors lead, its measures follow.
"""

from __future__ import annotations

from pgheadroom.lab import measure_titles, reading
from pgheadroom.lab.design import Measure
from pgheadroom.lab.reading import Result
from pgheadroom.lab.result import CellValue, FactorLevels, ResultCell
from pgheadroom.report.table import Column


def factor_column(factor: FactorLevels) -> Column:
    """The leading column of a factor."""
    return Column(
        key=factor.name,
        title=reading.printable(factor.name),
        unit=factor.unit,
        style="number" if factor.numeric else "words",
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
        title=title or measure_titles.title(measure.name),
        unit="%" if share else measure.unit,
        style="share" if share else "number",
        group=group,
        evidence=measure.evidence,
        description=measure.description,
    )


def by_name(result: Result) -> dict[str, Measure]:
    """Measures by name; one that only a cell holds is there too, without description."""
    return {measure.name: measure for measure in reading.measures(result)}


def lead_factors(result: Result) -> tuple[FactorLevels, ...]:
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


def level(cell: ResultCell, factor: FactorLevels) -> CellValue:
    """A cell's level of a factor, as a table's value."""
    found = cell.get(factor.name)
    if found is None or (factor.numeric and reading.number(found) is not None):
        return found
    return reading.label(found)
