"""
How an experiment's result is shown: tables, figures and the answer, as data.

An experiment declares these values, a result keeps them, and the report draws them without knowing
whose they are. Each form says what it shows by the names of factors and measures; what has to be
computed from cells for a form is computed by the experiment and stands in it (`GivenTable`,
`Curves`, `Beside`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from pgheadroom.errors import InputError
from pgheadroom.forms import FieldError, read, write
from pgheadroom.lab.design import LevelValue
from pgheadroom.lab.result import CheckedValue
from pgheadroom.quoting import printable

# Tables ------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class CellsTable:
    """
    Measures of each cell; those without any value are left out.

    `constants` says what is the same in every cell; `repetitions` counts them; with `only_with`
    cells stand in it that have a value of that measure.
    """

    kind: Literal["cells"] = "cells"
    title: str
    measures: tuple[str, ...]
    note: str | None = None
    constants: bool = False
    repetitions: bool = False
    only_with: str | None = None


@dataclass(frozen=True, kw_only=True)
class PairedTable:
    """Measures beside their `predicted_` ones: those named, else those that were predicted."""

    kind: Literal["paired"] = "paired"
    title: str = "Measured beside predicted"
    measures: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class GivenColumn:
    """One column of a given table; `factor` is for one that holds a factor's levels."""

    name: str
    title: str
    factor: bool = False
    group: str | None = None
    style: Literal["number", "text"] = "number"
    signed: bool = False
    evidence: str | None = None
    description: str | None = None


@dataclass(frozen=True, kw_only=True)
class GivenTable:
    """Columns and rows as they are; `covers` are the measures that need no other table."""

    kind: Literal["given"] = "given"
    title: str
    columns: tuple[GivenColumn, ...]
    rows: tuple[tuple[CheckedValue, ...], ...]
    note: str | None = None
    constants: bool = False
    covers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError where a row has not one value for each column."""
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"a row has not the {len(self.columns)} values of its columns")


@dataclass(frozen=True, kw_only=True)
class RestTable:
    """The measures that no other table has; it comes last by itself where it is not declared."""

    kind: Literal["rest"] = "rest"
    title: str = "Further measures"


TableForm = CellsTable | PairedTable | GivenTable | RestTable

# Figures -----------------------------------------------------------------------------------------
# Of the figures with `key` the first that can be drawn stands above everything.


@dataclass(frozen=True, kw_only=True)
class Overview:
    """The first few measures against the first factor that varies, then those predicted too."""

    kind: Literal["overview"] = "overview"
    key: bool = True


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A place on an axis of numbers, with what is there."""

    at: float
    name: str


@dataclass(frozen=True, kw_only=True)
class Against:
    """
    Measures against a factor, a panel each, coloured by the other factors.

    `only` are levels that a cell must have, `only_with` a measure of which it must have a value.
    With `evenly` the factor's numbers stand at equal distances, for levels that grow tenfold;
    `logarithmic` are measures. Where `across` is a measure, `axis` names it and `factors` are those
    to colour by.
    """

    kind: Literal["against"] = "against"
    title: str
    across: str
    measures: tuple[str, ...]
    only: Mapping[str, LevelValue] = field(default_factory=dict)
    only_with: str | None = None
    evenly: bool = False
    logarithmic: tuple[str, ...] = ()
    axis: str | None = None
    factors: tuple[str, ...] = ()
    marks: tuple[Mark, ...] = ()
    key: bool = False


@dataclass(frozen=True, kw_only=True)
class Course:
    """Measures along a factor that counts (windows, rounds), each with its prediction."""

    kind: Literal["course"] = "course"
    title: str
    along: str
    measures: tuple[str, ...]
    key: bool = False


@dataclass(frozen=True, kw_only=True)
class Ratios:
    """Paired ratios of comparisons and A/A controls at each level of the factor compared."""

    kind: Literal["ratios"] = "ratios"
    across: str
    measures: tuple[str, ...]
    told_apart: tuple[str, ...] = ()
    key: bool = False


@dataclass(frozen=True, kw_only=True)
class Levels:
    """
    Measures at each level of a factor, the highest first.

    `unit` MiB is for pages: what they were before, `NAME_before`, is said beside. `told_apart` are
    factors that are named though they do not vary.
    """

    kind: Literal["levels"] = "levels"
    title: str
    across: str
    measures: tuple[str, ...]
    form: Literal["point", "bar"] = "point"
    unit: Literal["MiB"] | None = None
    told_apart: tuple[str, ...] = ()
    key: bool = False


@dataclass(frozen=True, kw_only=True)
class Percentiles:
    """Measures `PREFIX...` in one panel for each group of cells, on a logarithmic axis."""

    kind: Literal["percentiles"] = "percentiles"
    title: str
    across: str
    prefix: str
    unit: str
    told_apart: tuple[str, ...] = ()
    key: bool = False


@dataclass(frozen=True, kw_only=True)
class PairedPoints:
    """Predicted beside measured at each level of a factor, told apart by the others."""

    kind: Literal["paired"] = "paired"
    across: str
    measures: tuple[str, ...] = ()
    key: bool = False


@dataclass(frozen=True, kw_only=True)
class PairedBars:
    """Predicted beside measured at each level of a factor, of the cells with the least `least`."""

    kind: Literal["paired-bars"] = "paired-bars"
    title: str
    across: str
    measures: tuple[str, ...]
    least: str
    key: bool = False


@dataclass(frozen=True, kw_only=True)
class ByEither:
    """Measures by the first factor where it varies (lines), else by the second (bars)."""

    kind: Literal["by-either"] = "by-either"
    title: str
    first: str
    second: str
    measures: tuple[str, ...]
    height: int = 170
    key: bool = False


@dataclass(frozen=True, kw_only=True)
class Beside:
    """Figures that stand beside a measure, one for each cell of the result, in its order."""

    measure: str
    documented: tuple[float | None, ...] = ()
    predicted: tuple[float | None, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CellBars:
    """A bar for each cell, named by its levels of some factors, coloured by one of them."""

    kind: Literal["cell-bars"] = "cell-bars"
    title: str
    factors: tuple[str, ...]
    colour: str
    measures: tuple[str, ...]
    beside: tuple[Beside, ...] = ()
    only: Mapping[str, LevelValue] = field(default_factory=dict)
    key: bool = False


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A named line, its points as pairs."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, kw_only=True)
class CurvePanel:
    """Lines on common axes, with a horizontal one to compare with."""

    title: str
    curves: tuple[Curve, ...]
    level: float | None = None


@dataclass(frozen=True, kw_only=True)
class Curves:
    """Ratios that the experiment has computed; `legend` are the factors in their names."""

    kind: Literal["curves"] = "curves"
    title: str
    caption: str
    across: str
    panels: tuple[CurvePanel, ...]
    legend: tuple[str, ...] = ()
    key: bool = False


FigureForm = (
    Overview
    | Against
    | Course
    | Ratios
    | Levels
    | Percentiles
    | PairedPoints
    | PairedBars
    | ByEither
    | CellBars
    | Curves
)

# -------------------------------------------------------------------------------------------------

PLAIN_TABLES: tuple[TableForm, ...] = (RestTable(title="Results"), PairedTable())
PLAIN_FIGURES: tuple[FigureForm, ...] = (Overview(),)


@dataclass(frozen=True, kw_only=True)
class Presentation:
    """
    All that a result shows of its own, its answer first.

    `series_by` is the factor whose levels stand below each other where time runs across; the first
    that varies where it is None.
    """

    answer: str | None = None
    tables: tuple[TableForm, ...] = PLAIN_TABLES
    figures: tuple[FigureForm, ...] = PLAIN_FIGURES
    series_by: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Its form in a result file: of tables and figures only what is not their default."""
        parts = {item.name: getattr(self, item.name) for item in fields(self)}
        return {name: write(part, whole=False) for name, part in parts.items()}

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Presentation:
        """
        A presentation out of a result file.

        Raises:
            InputError: It has a form that this version does not know, or a field of another type.
        """
        try:
            return read(cls, _harmless(form), at="presentation", exact=True)
        except FieldError as error:
            raise InputError(
                f"a result is damaged: {error}; restore it from a copy, or use the version that "
                "wrote it"
            ) from error


def _harmless(value: Any) -> Any:
    """The same with texts in which nothing acts on a terminal or a page; they are foreign."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {printable(str(name)): _harmless(item) for name, item in value.items()}
    return [_harmless(item) for item in value] if isinstance(value, list | tuple) else value
