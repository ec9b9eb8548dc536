"""
A result as its file has it: what every experiment's says alike, and its cells.

A cell has a level for each factor and a value for each measure, so its keys are the result's own
factors and measures, and `reading` gets at them by these. A value that is statistical has its
interval beside it, under `NAME_interval`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pgheadroom.forms import Expected, Filed, Kept, Text, in_file, kept
from pgheadroom.lab.design import SCHEMA_VERSION, Factor, Level, Measure
from pgheadroom.types import Interval

CellValue = bool | float | str | Interval | None
"""What a cell says of a factor or a measure, and what stands in a table."""
CheckedValue = Annotated[
    CellValue, Expected("a number, a text, true or false, an interval, or nothing", whole=True)
]
ResultCell = Mapping[str, CheckedValue]
PlainLevel = Annotated[
    bool | float | str | None, Expected("a number, a text, true or false, or nothing")
]
"""A level of a factor."""
DocumentFigure = str | float | None
"""What stands in a table of a document: a number, a text, or nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorLevels:
    """A factor with the levels that it takes in a result, in the order in which they are shown."""

    name: Text
    description: str | None = None
    unit: str | None = None
    levels: tuple[PlainLevel, ...] = ()

    @property
    def numeric(self) -> bool:
        """Whether every level is a number, so that an axis of numbers makes sense."""
        return bool(self.levels) and all(
            isinstance(level, int | float) and not isinstance(level, bool) for level in self.levels
        )


def levels_of(factor: Factor, levels: Sequence[Any]) -> FactorLevels:
    """A factor of an experiment with the levels that it takes."""
    return FactorLevels(
        name=factor.name,
        description=factor.description,
        unit=factor.unit,
        levels=tuple(levels),
    )


@kept
class ComparedCells(Kept):
    """
    A measure in a cell against another one; `comparisons` and `controls` of a result.

    `control` is the cell whose A/A control decided, where that is not `against`.
    """

    measure: str
    cell: ResultCell
    against: ResultCell
    control: ResultCell | None = field(default=None, metadata=in_file(unless_none=True))
    ratio: Interval | None = None
    pairs: int | None = None
    method: str | None = None
    verdict: str
    reason: str = ""


@kept
class Reference(Kept):
    """Figures of a document, as a table of its own; `evidence` None: printed by the document."""

    title: str
    source: str | None = None
    evidence: str | None = field(default=None, metadata=in_file(unless_none=True))
    columns: tuple[str, ...]
    rows: tuple[tuple[DocumentFigure, ...], ...] = ()
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesFile:
    """Where the series of a cell's repetition lies in the record."""

    cell: Mapping[str, Level]
    repetition: int
    file: str


@kept
class Surroundings(Kept):
    """What `environment.json` says besides server and command; of two records, each by its name."""

    cores: int | None = None
    merged_from: Mapping[str, str | None] | None = None


@kept
class ExperimentResult(Kept, Filed):
    """
    What a run of an experiment gave: `result.json`.

    `presentation` is how it is shown, a form of its own that `Presentation` reads.
    """

    KIND = "experiment"
    VERSION = SCHEMA_VERSION

    tool_version: str | None = None
    name: Text
    title: str
    question: str | None = None
    source: str | None = None
    server: str
    command: str | None = None
    seed: int | None = None
    scale: int | None = None
    repetitions: int | None = field(default=None, metadata=in_file(unless_none=True))
    started_at: str | None = field(default=None, metadata=in_file(unless_none=True))
    duration_s: float | None = field(default=None, metadata=in_file(unless_none=True))
    complete: bool
    factors: tuple[FactorLevels, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    measures: tuple[Measure, ...] = ()
    cells: tuple[ResultCell, ...]
    comparisons: tuple[ComparedCells, ...] = ()
    controls: tuple[ComparedCells, ...] = ()
    references: tuple[Reference, ...] = ()
    findings: tuple[str, ...]
    warnings: tuple[str, ...]
    assumed: Mapping[str, Any] = field(default_factory=dict)
    environment: Surroundings = field(default_factory=Surroundings)
    series: tuple[SeriesFile, ...] = ()
    presentation: Mapping[str, Any] | None = field(default=None, metadata=in_file(unless_none=True))
