"""
What is asked of a prediction becomes the runs of a plan: cells, clock, samples, rewrites.

Everything is decided here, before anything is played; whoever needs a pace, a length or a sample
afterwards asks the plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from pgheadroom.defaults import SEEDS_DEFAULT, SEEDS_IN_SWEEP, SWEEP_FROM
from pgheadroom.errors import ParameterError
from pgheadroom.predict.cells import Cell, loaded_at
from pgheadroom.predict.clock import Clock, clock_of
from pgheadroom.predict.rewriting import RewriteAsked, RewrittenCells, rewritten_at
from pgheadroom.predict.run_plan import Model, RunPlan, Timing
from pgheadroom.predict.sampling import PageSample, heap_pages, sample_if_big, sample_of
from pgheadroom.types import Assumed, PgVersion

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How the cells of a prediction are played; the fields are as for `predict`."""

    model: Model
    timing: Timing
    seeds: int | None = None
    table: str | None = None
    from_fillfactor: int | None = None
    rewrite: RewriteAsked | None = None
    sample_pages: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """
    The runs of a prediction.

    Attributes:
        cells: What was asked for.
        altered: The same, loaded at another fillfactor and altered when the run begins; or none.
        later: Those, rewritten in the middle of the run; or none.
        runs: The plan of them all, in this order.
        clock: How fast they go.
        assumed: What it takes for granted, in words, by what that is.
    """

    cells: tuple[Cell, ...]
    altered: tuple[Cell, ...]
    later: tuple[Cell, ...]
    runs: RunPlan
    clock: Clock
    assumed: Assumed

    def parted(self, found: Sequence[T]) -> tuple[Sequence[T], Sequence[T], Sequence[T]]:
        """What came of the plan's cells: of those asked for, of the altered, of the later."""
        count = len(self.cells)
        return found[:count], found[count : count + len(self.altered)], found[2 * count :]


def planned(cells: tuple[Cell, ...], version: PgVersion, asked: Asked) -> Planned:
    """
    Decide what is played.

    Args:
        cells: The profile at each fillfactor, and beside each its variant if there is one.
        version: The minor that the twin follows.
        asked: How.

    Raises:
        InputError: As `predict`.
    """
    clock = clock_of(cells[0].profile, asked.timing.tps)
    altered: tuple[Cell, ...] = ()
    if asked.from_fillfactor is not None:
        altered = loaded_at(cells, asked.from_fillfactor, asked.table)
    later = RewrittenCells()
    if asked.rewrite is not None:
        later = rewritten_at(altered, asked.rewrite, clock)
    over_time = bool(asked.timing.windows or asked.model.order or altered)
    samples = _samples(cells, asked.sample_pages, over_time=over_time)
    seeds = asked.seeds
    if seeds is None:
        fillfactors = {str(cell.fillfactor) for cell in cells}  # a table's own may stand by name
        seeds = seeds_of(len(fillfactors), sampled=samples is not None)
    sampled = {} if samples is None else {"twin.sample": _said(samples, cells, seeds)}
    runs = RunPlan(
        cells=(*cells, *altered, *later.cells),
        version=version,
        samples=samples,
        model=asked.model,
        clock=clock,
        windows=asked.timing.windows,
        seeds=seeds,
    )
    return Planned(
        cells=cells,
        altered=altered,
        later=later.cells,
        runs=runs,
        clock=clock,
        assumed={**later.assumed, **sampled},
    )


def seeds_of(fillfactors: int, *, sampled: bool) -> int:
    """
    How many runs a statistical cell has where nobody says.

    Samples keep their number: it is their mean that stands for the whole, so that with half of them
    an interval would be up to 1.7 times as wide.

    Args:
        fillfactors: How many are asked for; variants of one are no more of them.
        sampled: Whether each run is a sample.
    """
    return SEEDS_IN_SWEEP if fillfactors >= SWEEP_FROM and not sampled else SEEDS_DEFAULT


def _said(samples: Sequence[PageSample], cells: Sequence[Cell], seeds: int) -> str:
    pages, of_pages = (heap_pages(item.profile) for item in (samples[0], cells[0]))
    return f"{seeds} samples of {pages} of {of_pages} heap pages; rows and operations shrink alike"


def _samples(
    cells: Sequence[Cell], pages: int | None, *, over_time: bool
) -> list[PageSample] | None:
    """
    What stands for each cell; None when all are simulated whole.

    Raises:
        ParameterError: A sample is asked for of what it does not give.
    """
    if over_time:
        if pages is None:
            return None
        raise ParameterError(
            "sample_pages",
            ": a sample gives no `series`, `order` or `from_fillfactor`; ask for them without it",
            mentions=("series", "order", "from_fillfactor"),
        )
    if pages is not None:
        return [sample_of(cell.profile, pages) for cell in cells]
    found = [sample_if_big(cell.profile) for cell in cells]
    samples = [sample for sample in found if sample is not None]
    # All cells or none, so that a curve has no step where sampling begins.
    return samples if len(samples) == len(found) else None
