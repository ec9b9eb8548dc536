"""
Two records of one experiment side by side: another server version, another machine, another day.

The result has the form of an experiment's, with the record as one more factor, so that every view
of it works. What two records show of times stays undecided: their runs were not interleaved, and
the machine may have been another one, or busier.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pgheadroom
from pgheadroom.errors import InputError
from pgheadroom.forms import read
from pgheadroom.lab.design import Measure, Request, TrialCell, cell_key
from pgheadroom.lab.environment import command_line
from pgheadroom.lab.environment_form import Environment
from pgheadroom.lab.experiment import COMPARED, Experiment, compared_cells, summarise_cells
from pgheadroom.lab.experiments import get
from pgheadroom.lab.record import Record, TrialSample
from pgheadroom.lab.result import (
    ComparedCells,
    ExperimentResult,
    FactorLevels,
    Surroundings,
    levels_of,
)
from pgheadroom.stats import Comparison, compare_unpaired

FACTOR = COMPARED
LABELS = ("A", "B")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """One of the two records, opened."""

    label: str
    record: Record
    request: Request
    environment: Environment
    samples: Sequence[TrialSample]

    @property
    def said(self) -> str:
        started = self.samples[0].started_at if self.samples else "?"
        return (
            f"{self.label}: {self.record.name}, PostgreSQL {self.environment.server}, "
            f"scale {self.request.scale}, begun {started}"
        )


def compare_records(first: Record, second: Record) -> ExperimentResult:
    """
    Both records as one result.

    Args:
        first: Record A, what the other is compared with.
        second: Record B; ratios are B over A.

    Returns:
        A result of kind "experiment" whose cells have the factor `record`, and whose command names
        the folders as the records do.

    Raises:
        InputError: Records of different experiments, or without a common cell.
    """
    sides = [_side(label, each) for label, each in zip(LABELS, (first, second), strict=True)]
    names = [side.request.experiment for side in sides]
    if names[0] != names[1]:
        raise InputError(
            f"{first.name} is a record of {names[0]} and {second.name} one of {names[1]}: "
            "expected two records of the same experiment"
        )
    experiment = get(names[0])
    cells = [
        {FACTOR: side.label, **cell}
        for side in sides
        for cell in summarise_cells(side.samples, side.request.cells(), experiment.measures)
    ]
    comparisons = _comparisons(experiment, sides)
    if not comparisons:
        raise InputError(
            f"{first.name} and {second.name} have no cell in common: expected records whose "
            "factors share at least one combination of levels"
        )
    return ExperimentResult(
        tool_version=pgheadroom.__version__,
        name=experiment.name,
        title=f"{experiment.title}: two records compared",
        question=experiment.question,
        source=experiment.source,
        server=" and ".join(dict.fromkeys(side.environment.server for side in sides)),
        command=command_line(["lab", "compare", *(s.record.name for s in sides)]),
        seed=sides[0].request.seed,
        scale=sides[0].request.scale,
        complete=True,
        factors=tuple(_factors(experiment, sides)),
        measures=experiment.measures,
        cells=tuple(cells),
        comparisons=tuple(comparisons),
        findings=(*(side.said for side in sides), *_findings(comparisons)),
        warnings=tuple(_differences(sides)),
        environment=read(
            Surroundings, {side.label: _told(side.environment) for side in sides}, exact=True
        ),
    )


def _side(label: str, record: Record) -> _Side:
    request, environment = record.request, record.read_environment()
    if environment is None:
        raise InputError(f"{record.name} has no finished trial yet: it cannot be compared")
    return _Side(
        label=label,
        record=record,
        request=request,
        environment=environment,
        samples=get(request.experiment).expand(request, record.samples),
    )


def _told(environment: Environment) -> dict[str, Any]:
    flat = {name: value for name, value in environment.items() if not isinstance(value, Mapping)}
    return {name: value for name, value in flat.items() if name not in ("schema_version", "kind")}


def _factors(experiment: Experiment, sides: Sequence[_Side]) -> list[FactorLevels]:
    found = [FactorLevels(name=FACTOR, description="which record", levels=LABELS)]
    names = dict.fromkeys(name for side in sides for name in side.request.levels)
    for factor in experiment.factors_for(names):
        levels = [level for side in sides for level in side.request.levels.get(factor.name, ())]
        if levels:
            found.append(levels_of(factor, list(dict.fromkeys(levels))))
    return found


def _comparisons(experiment: Experiment, sides: Sequence[_Side]) -> list[ComparedCells]:
    """B over A for each common cell and measure."""
    a, b = sides
    common = {cell_key(cell) for cell in a.request.cells()}
    found = []
    for measure in experiment.measures:
        for cell in b.request.cells():
            if cell_key(cell) not in common:
                continue
            values = [_values(side, cell, measure) for side in (b, a)]
            if not all(values):
                continue
            compared = compare_unpaired(*values, clock=measure.is_clock)
            found.append(_compared(compared, measure, cell))
    return found


def _values(side: _Side, cell: TrialCell, measure: Measure) -> list[float]:
    return [
        value
        for sample in side.samples
        if sample.arm == "measured"
        and sample.cell == cell
        and (value := sample.measures.get(measure.name)) is not None
    ]


def _compared(compared: Comparison, measure: Measure, cell: TrialCell) -> ComparedCells:
    found = compared_cells(
        compared,
        measure=measure.name,
        cell={FACTOR: LABELS[1], **cell},
        against={FACTOR: LABELS[0], **cell},
    )
    return replace(found, method="Welch's t on logarithms, not paired")


def _findings(comparisons: Sequence[ComparedCells]) -> list[str]:
    """How many comparisons say what, by measure, those with a verdict first."""
    by_measure: dict[str, dict[str, int]] = {}
    for item in comparisons:
        counts = by_measure.setdefault(item.measure, {})
        counts[item.verdict] = counts.get(item.verdict, 0) + 1
    said = []
    for measure, counts in by_measure.items():
        parts = ", ".join(f"{verdict} in {count}" for verdict, count in counts.items())
        said.append(f"{measure}, B against A: {parts} of {sum(counts.values())} cells.")
    return said


def _differences(sides: Sequence[_Side]) -> list[str]:
    """What else differs between the records; none of it was varied on purpose."""
    a, b = sides
    pairs: dict[str, tuple[object, object]] = {
        "scale": (a.request.scale, b.request.scale),
        "seed": (a.request.seed, b.request.seed),
    }
    for name in dict.fromkeys((*a.request.options, *b.request.options)):
        pairs[name] = (a.request.options.get(name), b.request.options.get(name))
    pairs["server"] = (a.environment.server, b.environment.server)
    hardware = [side.environment.hardware() for side in sides]
    pairs |= {name: (hardware[0][name], hardware[1][name]) for name in hardware[0]}
    pairs["kernel"] = (a.environment.kernel, b.environment.kernel)
    pairs["tool_version"] = (a.environment.tool_version, b.environment.tool_version)
    settings = [each.environment.settings or {} for each in sides]
    varied = {name for each in sides for name in each.environment.settings_that_vary or {}}
    for name in sorted({*settings[0], *settings[1]}):
        if name not in ("port", "cluster_name", "unix_socket_directories", *varied):
            pairs[name] = (settings[0].get(name), settings[1].get(name))
    found = [f"{name}: {x} and {y}" for name, (x, y) in pairs.items() if x != y]
    return [f"The records also differ in {'; '.join(found)}."] if found else []
