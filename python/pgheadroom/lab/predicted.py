"""
What the twin predicts of an experiment, beside what its cells measured.

Predictions follow from the request alone and are made when samples are summarised, so that they
are in no trial's time and a record made earlier gets them too. An experiment says what its trial is
as a profile; here it is played, once for each profile and seed, and put into the cells:
`predicted_<measure>`, and `predicted_<measure>_interval` where it is statistical.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pgheadroom import outcome
from pgheadroom.errors import InputError, TwinError
from pgheadroom.forms import write
from pgheadroom.lab.design import Measure
from pgheadroom.outcome import Outcome, Value
from pgheadroom.profile.model import ProfileFile
from pgheadroom.profile.reading import checked_profile
from pgheadroom.stats import median
from pgheadroom.types import Interval, PgVersion
from pgheadroom.units import percent

if TYPE_CHECKING:
    from pgheadroom.predict import Cell
    from pgheadroom.predict.twin import Simulation

FIRST_MAJOR, LAST_MAJOR = 15, 19
"""Versions that the twin was compared with servers of."""

RUNS = 4
"""Runs of the twin for a statistical cell: each loads the tables anew, which is what takes time."""

ROWS_MAX = 3_000_000
"""Larger tables are not played: loading one takes a run about a second for a million rows."""

CATALOG_IMAGES = 6
CATALOG_BYTES = 15_458
"""
What the first session after a checkpoint logs of catalog pages where hints are logged: counted by
pg_waldump on 18.4, once a window of pgbench: pg_statistic (4), pg_attribute and pg_constraint.
"""


def measures_of(measures: Iterable[Measure], names: Sequence[str]) -> tuple[Measure, ...]:
    """The predicted counterparts of the named measures."""
    known = {measure.name: measure for measure in measures}
    return tuple(
        replace(
            known[name],
            name=f"predicted_{name}",
            description=f"the same by the twin: {known[name].description}",
            evidence="predicted",
        )
        for name in names
    )


def put(cell: dict[str, Any], name: str, value: Value) -> None:
    """Put a prediction of a measure into a cell: its middle, and its interval if it has one."""
    interval = value if isinstance(value, Interval) else None
    cell[f"predicted_{name}"] = value if interval is None else interval.mid
    cell[f"predicted_{name}_interval"] = interval


def with_catalogs(value: Value, each: float) -> Value:
    """
    A figure of a window, with what its first session logs of the catalogs' pages.

    Args:
        value: Predicted without.
        each: What the catalogs add to it, taken to be between nothing and twice as much.
    """
    from pgheadroom.predict.chance import LEVEL  # noqa: PLC0415 - slow

    if value is None:
        return None
    low, mid, high = outcome.ends(value)
    return Interval(low=low, mid=mid + each, high=high + 2 * each, level=LEVEL)


def middle(values: Sequence[Value]) -> Value:
    """The median of what single repetitions are predicted to give; of intervals end by end."""
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    low, mid, high = map(median, zip(*map(outcome.ends, known), strict=True))
    level = next((value.level for value in known if isinstance(value, Interval)), None)
    if level is None:
        return int(mid) if mid.is_integer() else mid
    return Interval(low=low, mid=mid, high=high, level=level)


def why_not(version: PgVersion, *, rows: int) -> str | None:
    """Why the twin does not play a trial, in words after "Not predicted:"; None if it does."""
    if not FIRST_MAJOR <= version.major <= LAST_MAJOR:
        return f"the twin follows PostgreSQL {FIRST_MAJOR} to {LAST_MAJOR}, and this was {version}"
    if rows > ROWS_MAX:
        return f"{rows:,} rows are more than are played beside an experiment ({ROWS_MAX:,})"
    return None


def runs_of(
    profile: ProfileFile, version: PgVersion, seeds: Sequence[int], *, random_seed: bool = False
) -> list[Simulation]:
    """
    What repetitions with these seeds give: a run for each where that is exact, else one for all.

    Args:
        profile: Of a trial; its seed is filled in here.
        version: The server's.
        seeds: pgbench's, one a repetition.
        random_seed: Whether the trial draws other numbers than a profile's run of its seed.

    Returns:
        Nothing where the twin cannot play the profile, or its tables are too large.
    """
    trial = _Trial.of(profile, version)
    try:
        if profile.run.clients == 1 and not random_seed:
            return [_exact(trial, seed) for seed in seeds]
        return [_drawn(trial, tuple(seeds[:RUNS]), 0)]
    except (TwinError, InputError):
        return []


def windows_of(profile: ProfileFile, version: PgVersion, windows: int) -> Simulation | None:
    """
    The same over windows of equal length, with any seeds; None where the twin cannot play it.
    """
    try:
        return _drawn(_Trial.of(profile, version), tuple(range(1, RUNS + 1)), windows)
    except (TwinError, InputError):
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    """What is played; two are one whose profiles say the same."""

    said: str
    version: PgVersion
    profile: ProfileFile = field(compare=False)

    @classmethod
    def of(cls, profile: ProfileFile, version: PgVersion) -> _Trial:
        said = json.dumps(write(profile, nulls=False), sort_keys=True)
        return cls(said=said, version=version, profile=profile)

    def cell(self, seed: int) -> Cell:
        """
        What the twin plays of it.

        Raises:
            InputError: It is no profile.
        """
        from pgheadroom.predict import Cell  # noqa: PLC0415 - slow

        run = replace(self.profile.run, seed=seed)
        return Cell(fillfactor=0, profile=checked_profile(replace(self.profile, run=run)))


@lru_cache(maxsize=512)
def _exact(trial: _Trial, seed: int) -> Simulation:
    from pgheadroom.predict import RunPlan, predict_cells  # noqa: PLC0415 - slow

    return predict_cells(RunPlan(cells=[trial.cell(seed)], version=trial.version, seeds=RUNS))[0]


@lru_cache(maxsize=128)
def _drawn(trial: _Trial, seeds: tuple[int, ...], windows: int) -> Simulation:
    from pgheadroom.predict import RunPlan, predict_cells  # noqa: PLC0415 - slow
    from pgheadroom.predict.clock import clock_of  # noqa: PLC0415 - slow

    cell = trial.cell(seeds[0])
    plan = RunPlan(
        cells=[cell],
        version=trial.version,
        clock=clock_of(cell.profile, 1000) if windows else None,
        windows=windows,
        seeds=RUNS,
        drawn=seeds,
    )
    return predict_cells(plan)[0]


def fill(
    cell: dict[str, Any],
    runs: Sequence[Simulation],
    figures: Mapping[str, Callable[[Simulation], Value]],
) -> None:
    """Put the named figures of the runs into a cell; null where there is no run."""
    for name, figure in figures.items():
        put(cell, name, middle([figure(run) for run in runs]))


def of_table(table: str, key: str) -> Callable[[Simulation], Value]:
    """A figure of one table."""
    return lambda run: run.outcome.by_table[table].value(key)


def per_transaction(run: Simulation, key: str) -> Value:
    """A figure of all tables and of the clients' commits, for each transaction."""
    return outcome.scaled(run.outcome.value(key), 1 / run.transactions)


def same_page_frac(part: Outcome) -> float:
    """The share of updates whose new version stayed on its page, in the middle."""
    return 1 - (outcome.middle(part.newpage_frac) or 0.0)


def findings(cells: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[str]:
    """
    One sentence: how far predicted and measured lie apart at most, measure by measure.

    Shares are compared by their difference in points, everything else in per cent of the measured
    value. Nothing is said where nothing was predicted.
    """
    said: list[str] = []
    equal = count = held = intervals = 0
    for name in names:
        pairs = [
            (cell, cell[name], cell[f"predicted_{name}"])
            for cell in cells
            if cell.get(name) is not None and cell.get(f"predicted_{name}") is not None
        ]
        if not pairs:
            continue
        said.append(f"{name} {_apart(name, [(ours, theirs) for _, ours, theirs in pairs])}")
        count += len(pairs)
        equal += sum(measured == predicted for _, measured, predicted in pairs)
        spans = [(cell.get(f"predicted_{name}_interval"), ours) for cell, ours, _ in pairs]
        intervals += sum(span is not None for span, _ in spans)
        held += sum(span is not None and span.low <= x <= span.high for span, x in spans)
    if not said:
        return []
    text = f"Predicted and measured differ by at most: {', '.join(said)}. "
    text += f"{equal} of {count} values are equal"
    text += f"; {held} of {intervals} predicted intervals hold the measured value" * (intervals > 0)
    return [f"{text}."]


def _apart(name: str, pairs: Sequence[tuple[float, float]]) -> str:
    """The largest difference of measured and predicted values, in words."""
    most = max(abs(predicted - measured) for measured, predicted in pairs)
    if name.endswith("_frac"):
        return f"{most * 100:.2f} points"
    if most == 0:
        return "0"
    if any(measured == 0 != predicted for measured, predicted in pairs):
        return f"{most:,.4g}"
    return percent(max(abs(theirs / ours - 1) for ours, theirs in pairs if ours), 2)
