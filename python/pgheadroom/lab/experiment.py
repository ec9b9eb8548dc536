"""
What an experiment is: its question, factors, plan, measurement and summary.

Each folder of `lab/experiments` holds one experiment; `lab/run.py` plays any of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pgheadroom.errors import InputError, UnsupportedServer
from pgheadroom.lab import reading
from pgheadroom.lab.answer import sentence
from pgheadroom.lab.design import Factor, LevelValue, Measure, Request, Trial, TrialCell, cell_key
from pgheadroom.lab.environment_form import ServerFound
from pgheadroom.lab.place import Place
from pgheadroom.lab.presentation import (
    PLAIN_FIGURES,
    PLAIN_TABLES,
    FigureForm,
    Presentation,
    TableForm,
)
from pgheadroom.lab.reading import Result
from pgheadroom.lab.record import SecondsSeries, TrialSample
from pgheadroom.lab.result import ComparedCells, Reference
from pgheadroom.stats import PAIRS_MIN, Comparison, compare, median, median_interval
from pgheadroom.types import PgVersion

COMPARED = "record"
"""The factor that tells two records apart where they stand side by side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOutcome:
    """What measuring one trial gives; the runner makes it a `Sample`."""

    measures: dict[str, float | None]
    notes: tuple[str, ...] = ()
    assumed: dict[str, str] = field(default_factory=dict)
    series: SecondsSeries | None = None
    environment: ServerFound | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The part of a result that depends on the experiment."""

    cells: list[dict[str, Any]]
    comparisons: list[ComparedCells] = field(default_factory=list)
    controls: list[ComparedCells] = field(default_factory=list)
    references: list[Reference] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


class Experiment(ABC):
    """One experiment; stateless, all state is in the place and the record."""

    name: str
    title: str
    question: str
    source: str
    time_needed: str
    scale_default: int
    scale_meaning: str
    factors: tuple[Factor, ...]
    options: tuple[Factor, ...]
    measures: tuple[Measure, ...]
    topic: str = "Other experiments"
    """Under what a site lists its records."""
    order: int = 100
    """Where it stands in the list of experiments; those of one number go by their name."""
    open_factors: str | None = None
    """What else may be a factor, for one that is swept over whatever its user names."""

    tables: tuple[TableForm, ...] = PLAIN_TABLES
    figures: tuple[FigureForm, ...] = PLAIN_FIGURES
    series_by: str | None = None
    """How results are shown, as `Presentation` has it."""

    def factors_for(self, names: Iterable[str]) -> tuple[Factor, ...]:  # noqa: ARG002
        """The factors, given the names that a request sets."""
        return self.factors

    def repetitions_default(self, scale: int) -> int:  # noqa: ARG002 - for those that go by it
        """Repetitions when the user gives none: the fewest that allow a verdict."""
        return PAIRS_MIN

    @abstractmethod
    def check(self, request: Request, version: PgVersion, *, throw_away: bool) -> None:
        """Raise InputError or UnsupportedServer when this server cannot run the request."""

    @abstractmethod
    def trials(self, request: Request) -> list[Trial]:
        """All trials in the order to run them."""

    def one_block(self, request: Request) -> list[Trial]:
        """Each cell and each control arm once, as block 1 of a plan with several blocks."""
        # A plan of a single block may have no controls, which decide nothing there.
        several = self.trials(replace(request, repetitions=2))
        return [trial for trial in several if trial.repetition == 1]

    @abstractmethod
    def trial_s(self, request: Request) -> float:
        """A first guess of one trial's length in seconds, before any has run."""

    @abstractmethod
    def measure(self, request: Request, place: Place, trial: Trial) -> TrialOutcome:
        """Run one trial and give its measures; raise MeasurementInvalid rather than guess."""

    @abstractmethod
    def shape_name(self, trial: Trial) -> str:
        """The prepared cluster that a trial starts from."""

    def expand(
        self,
        request: Request,  # noqa: ARG002
        samples: Sequence[TrialSample],
    ) -> list[TrialSample]:
        """Samples whose cells are the result's: the same, unless a trial measures several."""
        return list(samples)

    @abstractmethod
    def summarise(
        self, request: Request, version: PgVersion, samples: Sequence[TrialSample]
    ) -> Summary:
        """Cells, comparisons and findings out of the samples so far."""

    def tables_for(self, result: Result) -> tuple[TableForm, ...]:  # noqa: ARG002
        """The tables of a result, for an experiment whose tables depend on it."""
        return self.tables

    def figures_for(self, result: Result) -> tuple[FigureForm, ...]:  # noqa: ARG002
        """The figures of a result, for an experiment whose figures depend on it."""
        return self.figures

    def answer(self, result: Result) -> str | None:  # noqa: ARG002
        """The answer in one sentence; None leaves it to the one that all experiments have."""
        return None

    def presentation(self, result: Result) -> Presentation:
        """How a result is shown; one of two records that are compared has a common answer."""
        compared = any(factor.name == COMPARED for factor in reading.factors(result))
        return Presentation(
            answer=sentence(result, None if compared else self.answer),
            tables=self.tables_for(result),
            figures=self.figures_for(result),
            series_by=self.series_by,
        )


def require_wal_counters(version: PgVersion) -> None:
    """
    Refuse a server that does not count its WAL.

    Raises:
        UnsupportedServer: It is older than 14.
    """
    if version.major < 14:
        raise UnsupportedServer(
            f"PostgreSQL {version} has no pg_stat_wal: 14 is the first that has"
        )


def require_own_server(throw_away: bool, doing: str) -> None:
    """
    Refuse a borrowed server.

    Args:
        throw_away: Whether the server is one of ours.
        doing: What the experiment does that only a server of ours allows, with its name first.

    Raises:
        InputError: It is somebody's.
    """
    if not throw_away:
        raise InputError(
            f"{doing}, and this server is not ours: leave `server` out, or name a version",
            mentions=("server",),
        )


def summarise_cells(
    samples: Iterable[TrialSample], cells: Sequence[TrialCell], measures: Sequence[Measure]
) -> list[dict[str, Any]]:
    """
    One object a cell: factors, then each measure's median with its interval beside it.

    A measure that no repetition has is null; so is the interval of a single repetition. Cells
    without any sample are left out.
    """
    by_cell: dict[str, list[TrialSample]] = {}
    for sample in samples:
        if sample.arm == "measured":
            by_cell.setdefault(cell_key(sample.cell), []).append(sample)
    summarised: list[dict[str, Any]] = []
    for cell in cells:
        group = by_cell.get(cell_key(cell))
        if not group:
            continue
        row: dict[str, Any] = dict(cell)
        for measure in measures:
            values = [
                value
                for sample in group
                if (value := sample.measures.get(measure.name)) is not None
            ]
            complete = len(values) == len(group)
            row[measure.name] = _as_counted(median(values)) if complete else None
            interval = median_interval(values) if complete else None
            row[f"{measure.name}_interval"] = interval
        row["repetitions"] = len(group)
        summarised.append(row)
    return summarised


def _as_counted(value: float) -> float | int:
    """A whole number without a decimal point, as counters are."""
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def compare_cells(
    samples: Iterable[TrialSample],
    *,
    cell: Mapping[str, LevelValue],
    against: Mapping[str, LevelValue],
    measure: str,
    arms: tuple[str, str] = ("measured", "measured"),
    aa: Comparison | None = None,
) -> Comparison:
    """Compare a measure in two cells, paired by repetition; those without both are left out."""
    series: list[dict[int, float]] = [{}, {}]
    for sample in samples:
        value = sample.measures.get(measure)
        if value is None:
            continue
        for position, wanted in enumerate((cell, against)):
            if sample.cell == dict(wanted) and sample.arm == arms[position]:
                series[position][sample.repetition] = value
    common = sorted(series[0].keys() & series[1].keys())
    return compare([series[0][r] for r in common], [series[1][r] for r in common], aa=aa)


def compared_cells(
    comparison: Comparison,
    *,
    measure: str,
    cell: Mapping[str, LevelValue],
    against: Mapping[str, LevelValue],
    control: Mapping[str, LevelValue] | None = None,
) -> ComparedCells:
    """
    One entry of a result's `comparisons` or `controls`.

    Args:
        comparison: What was found.
        measure: Name of the measure.
        cell: What is compared.
        against: What it is compared with.
        control: The cell whose A/A control decided, where that is not `against`.
    """
    return ComparedCells(
        measure=measure,
        cell=dict(cell),
        against=dict(against),
        control=None if control is None else dict(control),
        ratio=comparison.ratio,
        pairs=comparison.pairs,
        method=comparison.method,
        verdict=str(comparison.verdict),
        reason=comparison.reason,
    )
