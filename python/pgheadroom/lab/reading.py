"""
Reads a result as it stands in its file, without trusting it.

For presentations and the report: turns the loose JSON of a result into factors, measures and
values.
A result may come from another machine or another version, so what is missing or has the wrong
type becomes None or an empty tuple; the checks that refuse a damaged record are the lab's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pgheadroom import quoting
from pgheadroom.types import Interval

Result = Mapping[str, Any]
Number = int | float
Value = None | bool | int | float | str | Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """What an experiment varies, with its levels in the order in which they are shown."""

    name: str
    description: str | None = None
    unit: str | None = None
    levels: tuple[Any, ...] = ()

    @property
    def numeric(self) -> bool:
        """Whether every level is a number, so that an axis of numbers makes sense."""
        return bool(self.levels) and all(number(level) is not None for level in self.levels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """What an experiment reports of each cell, with where the number comes from."""

    name: str
    description: str | None = None
    unit: str | None = None
    evidence: str | None = None
    better: str | None = None


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


def factors(result: Result) -> tuple[Factor, ...]:
    """The factors of a result; levels that only its cells show are added behind the stated ones."""
    read = []
    for item in mappings(result.get("factors")):
        name = item.get("name")
        if not isinstance(name, str) or not name:
            continue
        stated = item.get("levels")
        levels = (
            list(stated) if isinstance(stated, Sequence) and not isinstance(stated, str) else []
        )
        for cell in cells(result):
            if name in cell and cell[name] not in levels:
                levels.append(cell[name])
        read.append(
            Factor(
                name=name,
                description=text(item.get("description")),
                unit=text(item.get("unit")),
                levels=tuple(levels),
            )
        )
    return tuple(read)


def varying(result: Result) -> tuple[Factor, ...]:
    """The factors that take more than one level in the cells at hand."""
    return tuple(factor for factor in factors(result) if len(present(result, factor)) > 1)


def present(result: Result, factor: Factor) -> tuple[Any, ...]:
    """The levels of a factor that have a cell, in the order of the levels."""
    seen = [cell.get(factor.name) for cell in cells(result)]
    return tuple(level for level in factor.levels if level in seen)


def measures(result: Result) -> tuple[Measure, ...]:
    """The measures of a result, in its order."""
    return tuple(
        Measure(
            name=item["name"],
            description=text(item.get("description")),
            unit=text(item.get("unit")),
            evidence=text(item.get("evidence")),
            better=item.get("better") if item.get("better") in ("higher", "lower") else None,
        )
        for item in mappings(result.get("measures"))
        if isinstance(item.get("name"), str) and item["name"]
    )


def cells(result: Result) -> tuple[Mapping[str, Any], ...]:
    """The cells of a result."""
    return mappings(result.get("cells"))


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
    found = value(cell, measure)
    return found.to_json() if isinstance(found, Interval) else found


def told_apart(result: Result, across: str, always: Sequence[str]) -> list[Factor]:
    """The factors besides one that tell the cells apart: those that vary, and some in any case."""
    names = {factor.name for factor in varying(result)} | set(always)
    return [factor for factor in factors(result) if factor.name != across and factor.name in names]
