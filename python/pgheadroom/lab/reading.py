"""
What presentations and the report take from a result: its factors, measures, and cells' values.

Cells are as their result has them, so a value that is missing or of another type becomes None here;
texts, which are foreign, become printable.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pgheadroom import quoting
from pgheadroom.forms import write
from pgheadroom.lab.design import Measure
from pgheadroom.lab.result import ExperimentResult, FactorLevels
from pgheadroom.types import Interval

Result = ExperimentResult
Number = int | float
Value = None | bool | int | float | str | Interval


def number(value: object) -> Number | None:
    """The value if it is a finite number (a truth value is none), else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:  # a whole number beyond any float, which JSON may well hold
        return None


def interval(value: object) -> Interval | None:
    """The value as an interval, or None when it is none or contradicts itself."""
    if isinstance(value, Interval):
        return value
    if not isinstance(value, Mapping):
        return None
    parts = [number(value.get(key)) for key in ("low", "mid", "high")]
    level = number(value.get("level"))
    if any(part is None for part in parts):
        return None
    low, mid, high = (float(part) for part in parts if part is not None)
    try:
        return Interval(low=low, mid=mid, high=high, level=float(level or 0.95))
    except ValueError:
        return None


def figure(value: object) -> Number | Interval | None:
    """A figure of a file: a number where it is exact, an interval where it is statistical."""
    return interval(value) if isinstance(value, Mapping) else number(value)


def printable(value: object) -> str:
    """The value as text in which nothing acts on a terminal or a page; names in it are foreign."""
    return quoting.printable(value if isinstance(value, str) else str(value))


def text(value: object) -> str | None:
    """Printable text, or None when there is none."""
    return printable(value) if isinstance(value, str) and value.strip() else None


def mappings(value: object) -> tuple[Mapping[str, Any], ...]:
    """Those items of a list that are objects; nothing when it is no list."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        return ()
    return tuple(item for item in value if isinstance(item, Mapping))


def texts(value: object) -> tuple[str, ...]:
    """Those items of a list that are not empty, as printable text."""
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, Sequence):
        return ()
    return tuple(printable(item) for item in value if item not in (None, ""))


def mapping(value: object) -> Mapping[str, Any]:
    """The object, or an empty one."""
    return value if isinstance(value, Mapping) else {}


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


def _levels(factor: FactorLevels, found: Sequence[Mapping[str, Any]]) -> tuple[Any, ...]:
    levels = list(factor.levels)
    for cell in found:
        if factor.name in cell and cell[factor.name] not in levels:
            levels.append(cell[factor.name])
    return tuple(levels)


def varying(result: Result) -> tuple[FactorLevels, ...]:
    """The factors that take more than one level in the cells at hand."""
    return tuple(factor for factor in factors(result) if len(present(result, factor)) > 1)


def present(result: Result, factor: FactorLevels) -> tuple[Any, ...]:
    """The levels of a factor that have a cell, in the order of the levels."""
    seen = [cell.get(factor.name) for cell in cells(result)]
    return tuple(level for level in factor.levels if level in seen)


def measures(result: Result) -> tuple[Measure, ...]:
    """The measures of a result, in its order."""
    return tuple(
        replace(measure, description=text(measure.description) or "", unit=text(measure.unit))
        for measure in result.measures
    )


def cells(result: Result) -> tuple[Mapping[str, Any], ...]:
    """The cells of a result."""
    return result.cells


def value(cell: Mapping[str, Any], measure: str) -> Value:
    """What a cell says about a measure: its interval where it has one, else the plain value."""
    stated = cell.get(measure)
    spread = interval(cell.get(f"{measure}_interval"))
    if spread is not None:
        return spread
    if isinstance(stated, bool):
        return stated
    if isinstance(stated, str):
        return printable(stated)
    return number(stated)


def middle(value: Value) -> float | None:
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


def at(cell: Mapping[str, Any], names: Sequence[str]) -> str:
    """A cell's place among the named factors: `"fillfactor 90, memory fits"`."""
    return ", ".join(f"{printable(name)} {label(cell[name])}" for name in names if name in cell)


def group_label(cell: Mapping[str, Any], names: Sequence[str]) -> str:
    """A cell's place in a legend: `"memory fits"`, or `"fits · default"` under a legend's title."""
    if len(names) < 2:
        return at(cell, names)
    return " · ".join(label(cell.get(name)) for name in names)


def has_value(result: Result, measure: str) -> bool:
    """Whether any cell has a value of the measure."""
    return any(value(cell, measure) is not None for cell in cells(result))


def stated(cell: Mapping[str, Any], measure: str) -> Any:
    """What a cell says about a measure, as JSON: an interval as the object that it is."""
    return write(value(cell, measure))


def told_apart(result: Result, across: str, always: Sequence[str]) -> list[FactorLevels]:
    """The factors besides one that tell the cells apart: those that vary, and some in any case."""
    names = {factor.name for factor in varying(result)} | set(always)
    return [factor for factor in factors(result) if factor.name != across and factor.name in names]
