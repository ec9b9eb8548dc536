"""
A result as its file has it: what every experiment's says alike, typed; its cells as they are.

A cell has a level for each factor and a value for each measure, so its keys are the result's own
factors and measures, and `reading` gets at them by these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pgheadroom.forms import Kept, Text, kept
from pgheadroom.lab.design import Measure
from pgheadroom.types import Interval

Cell = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorLevels:
    """A factor with the levels that it takes in a result, in the order in which they are shown."""

    name: Text
    description: str | None = None
    unit: str | None = None
    levels: tuple[Any, ...] = ()

    @property
    def numeric(self) -> bool:
        """Whether every level is a number, so that an axis of numbers makes sense."""
        return bool(self.levels) and all(
            isinstance(level, int | float) and not isinstance(level, bool) for level in self.levels
        )


@kept
class ComparedCells(Kept):
    """A measure in a cell against another one; `comparisons` and `controls` of a result."""

    measure: str
    cell: Cell
    against: Cell
    ratio: Interval | None = None
    pairs: int | None = None
    method: str | None = None
    verdict: str
    reason: str = ""


@kept
class ExperimentResult(Kept):
    """What a run of an experiment gave: `result.json`."""

    name: Text
    title: str
    question: str | None = None
    source: str | None = None
    server: str
    command: str | None = None
    complete: bool
    factors: tuple[FactorLevels, ...] = ()
    measures: tuple[Measure, ...] = ()
    cells: tuple[Cell, ...]
    comparisons: tuple[ComparedCells, ...] = ()
    controls: tuple[ComparedCells, ...] = ()
    references: tuple[Mapping[str, Any], ...] = ()
    findings: tuple[str, ...]
    warnings: tuple[str, ...]
    assumed: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
