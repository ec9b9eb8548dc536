"""
What presentations and the report take from a result: its factors, measures, and cells' values.

A result is checked where it is read; here its texts, which are foreign, become printable, and a
value that a cell does not have is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pgheadroom import quoting
from pgheadroom.lab.design import Measure
from pgheadroom.lab.result import CellValue, ExperimentResult, FactorLevels, PlainLevel, ResultCell
from pgheadroom.types import Interval

Result = ExperimentResult
PlainNumber = int | float


def number(value: object) -> PlainNumber | None:
    """The value if it is a number (a truth value is none), else None."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def printable(value: object) -> str:
    """The value as text in which nothing acts on a terminal or a page; names in it are foreign."""
    return quoting.printable(value if isinstance(value, str) else str(value))


def text(found: str | None) -> str | None:
    """Printable text, or None when there is none."""
    return printable(found) if found is not None and found.strip() else None


def texts(found: Sequence[str]) -> tuple[str, ...]:
    """Those that are not empty, as printable text."""
    return tuple(printable(item) for item in found if item)


def factors(result: Result) -> tuple[FactorLevels, ...]:
    """The factors of a result; levels that only its cells show are added behind the stated ones."""
    return tuple(
        replace(
            factor,
            description=text(factor.description),
            unit=text(factor.unit),
            levels=_levels(factor, cells(result)),
        )
        for factor in result.factors
    )


def _levels(factor: FactorLevels, found: Sequence[ResultCell]) -> tuple[PlainLevel, ...]:
    levels = list(factor.levels)
    for cell in found:
        level = cell.get(factor.name)
        if factor.name in cell and not isinstance(level, Interval) and level not in levels:
            levels.append(level)
    return tuple(levels)


def varying(result: Result) -> tuple[FactorLevels, ...]:
    """The factors that take more than one level in the cells at hand."""
    return tuple(factor for factor in factors(result) if len(present(result, factor)) > 1)


def present(result: Result, factor: FactorLevels) -> tuple[PlainLevel, ...]:
    """The levels of a factor that have a cell, in the order of the levels."""
    seen = [cell.get(factor.name) for cell in cells(result)]
    return tuple(level for level in factor.levels if level in seen)


def measures(result: Result) -> tuple[Measure, ...]:
    """The measures of a result, in its order."""
    return tuple(
        replace(measure, description=text(measure.description) or "", unit=text(measure.unit))
        for measure in result.measures
    )


def cells(result: Result) -> tuple[ResultCell, ...]:
    """The cells of a result."""
    return result.cells


def value(cell: ResultCell, measure: str) -> CellValue:
    """What a cell says about a measure: its interval where it has one, else the plain value."""
    spread = spread_of(cell, measure)
    found = cell.get(measure) if spread is None else spread
    return printable(found) if isinstance(found, str) else found


def spread_of(cell: ResultCell, measure: str) -> Interval | None:
    """The interval beside a measure's value; None where it has none."""
    found = cell.get(f"{measure}_interval")
    return found if isinstance(found, Interval) else None


def middle(value: CellValue) -> float | None:
    """The number in the middle of a value, or None when the value is no number."""
    if isinstance(value, Interval):
        return value.mid
    found = number(value)
    return None if found is None else float(found)


def label(level: object) -> str:
    """A factor's level as people write it."""
    if level is None:
        return "-"
    if isinstance(level, bool):
        return "on" if level else "off"
    if isinstance(level, float) and level.is_integer() and abs(level) < 1e15:
        return str(int(level))
    return printable(level)


def at(cell: ResultCell, names: Sequence[str]) -> str:
    """A cell's place among the named factors: `"fillfactor 90, memory fits"`."""
    return ", ".join(f"{printable(name)} {label(cell[name])}" for name in names if name in cell)


def group_label(cell: ResultCell, names: Sequence[str]) -> str:
    """A cell's place in a legend: `"memory fits"`, or `"fits · default"` under a legend's title."""
    if len(names) < 2:
        return at(cell, names)
    return " · ".join(label(cell.get(name)) for name in names)


def has_value(result: Result, measure: str) -> bool:
    """Whether any cell has a value of the measure."""
    return any(value(cell, measure) is not None for cell in cells(result))


def told_apart(result: Result, across: str, always: Sequence[str]) -> list[FactorLevels]:
    """The factors besides one that tell the cells apart: those that vary, and some in any case."""
    names = {factor.name for factor in varying(result)} | set(always)
    return [factor for factor in factors(result) if factor.name != across and factor.name in names]
