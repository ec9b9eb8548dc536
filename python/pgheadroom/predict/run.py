"""
A profile and fillfactors become a prediction: the twin alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any, Literal

from pgheadroom.defaults import SEEDS_DEFAULT
from pgheadroom.errors import ParameterError
from pgheadroom.predict.cells import (
    Cell,
    is_variant,
    loaded_at,
    loaded_rows,
    make_cells,
)
from pgheadroom.predict.clock import has_clockwork, tps_of
from pgheadroom.predict.convergence import takes_effect
from pgheadroom.predict.growth import Growth, growth_of, rows_by_table
from pgheadroom.predict.rewriting import (
    Rewrite,
    RewrittenLater,
    duration_of,
    rewritten_at,
)
from pgheadroom.predict.run_plan import (
    SERVER,
    Engine,
    Model,
    RunPlan,
    Storage,
    Timing,
)
from pgheadroom.predict.sampling import PageSample, heap_pages, sample_if_big, sample_of
from pgheadroom.predict.twin import Simulation, predict_cells, said_before
from pgheadroom.predict.values import PredictedCell, Prediction, Rewritten, answer_by
from pgheadroom.predict.variants import Difference, IndexChange, difference
from pgheadroom.predict.version import minor_version
from pgheadroom.profile import Profile
from pgheadroom.profile.unpriced import left_out, said_left_out, said_unpriced, unpriced_of
from pgheadroom.progress import Progress


def predict(
    profile: Profile,
    fillfactors: Sequence[int] | None = None,
    table: str | None = None,
    *,
    server: str | None = None,
    changes: Sequence[IndexChange] = (),
    storage: Storage = "local",
    engine: Engine = "heap",
    order: bool = False,
    seeds: int = SEEDS_DEFAULT,
    timing: Timing | None = None,
    from_fillfactor: int | None = None,
    rewrite: Rewrite | None = None,
    sample_pages: int | None = None,
    executor: Executor | None = None,
    report: Progress | None = None,
) -> Prediction:
    """
    Predict what a profile does, without a server.

    Args:
        profile: The profile.
        fillfactors: Percent, 10 to 100, one cell each; None: the profile's own, one cell.
        table: The table to vary; every table that has updates when None.
        server: Version, or a folder with server programs, whose minor the twin follows; it wins
            over the profile's version.
        changes: What is changed of the profile's indexes in a variant, which stands beside the
            unchanged profile at each fillfactor.
        storage: Where pages are kept.
        engine: How rows are stored once they are loaded; all but `heap` are models.
        order: Whether the order of the tables is measured: pages of a range of keys, correlation.
        seeds: Orders of the clients' transactions that are tried in a statistical cell.
        timing: Transactions a second, and windows of a series; None: no series, and an assumed
            pace where autovacuum, checkpoints or a duration need one.
        from_fillfactor: Percent at which the varied tables are loaded; the cell's own is set when
            the run begins, and pages stay as they are.
        rewrite: With a `from_fillfactor`: the same once more, rewritten in the middle of the run.
        sample_pages: Heap pages of the largest table that are simulated and stand for the whole;
            None: all, up to `sampling.WHOLE_PAGES_MAX` of a profile that can be sampled.
        executor: Where to run (`concurrent.futures`); a thread a core when None.
        report: Called with the rows and transactions that are done, and their number.

    Raises:
        InputError: A fillfactor, table, index or version that is none; a change that is not
            possible; a run whose length nobody knows; a sample of what has none; a rewrite outside
            the run, or without a `from_fillfactor`.
        TwinError: The twin cannot play the profile; the message names the field.
    """
    cells = make_cells(profile, fillfactors, table, changes)
    timing = timing or Timing()
    model = Model(storage=storage, engine=engine, order=order)
    told: dict[str, Any] = {}
    version = minor_version(profile, server, told)
    assumed = profile.assumed_on(version.major) | told
    altered = () if from_fillfactor is None else loaded_at(cells, from_fillfactor, table)
    later = () if rewrite is None else rewritten_at(altered, rewrite, timing.tps, assumed)
    samples = _samples(cells, sample_pages, over_time=bool(timing.windows or order or altered))
    if samples is not None:
        assumed["twin.sample"] = _said(samples, cells, seeds)
    plan = RunPlan(cells=cells, version=version, model=model, timing=timing, seeds=seeds)
    plan = replace(plan, cells=(*cells, *altered, *later), samples=samples)
    found = predict_cells(plan, executor=executor, report=report)
    note(assumed, profile, found, seeds)
    _note_length(assumed, profile, found[0], timing.tps)
    rewritten = found[: len(cells)] if altered else None
    made = _cells(cells, found[len(cells) :] if altered else found, rewritten, from_fillfactor)
    if rewrite is not None:
        last = zip(made, later, found[2 * len(cells) :], strict=True)
        made = [_beside_later(*each, rewrite, timing.tps) for each in last]
    return Prediction(
        server=version,
        storage=storage,
        engine=engine,
        evidence=_evidence(model, found[: len(cells) + len(altered)]),
        assumed=assumed,
        warnings=said_before(profile, found),
        answer=answer_by(made),
        cells=tuple(made),
    )


def _note_length(
    assumed: dict[str, Any], profile: Profile, found: Simulation, tps: float | None
) -> None:
    """Say under `assumed` how long a run is, where the profile says only the one or the other."""
    run = profile.workload.run
    _, pace = tps_of(profile, tps)
    if run.duration_s is not None and run.rate_per_s is not None:
        assumed["run.operations"] = (
            f"{found.transactions}: rate_per_s times duration_s, and Poisson's spread of it"
        )
    elif run.duration_s is not None:
        assumed["run.operations"] = f"{found.transactions}: {pace}, times duration_s"
    elif found.by_itself is not None:
        assumed["run.duration_s"] = f"{found.by_itself.duration_s:g}: {pace}"


def _cells(
    cells: Sequence[Cell],
    shown: Sequence[Simulation],
    rewritten: Sequence[Simulation] | None,
    from_fillfactor: int | None,
) -> list[PredictedCell]:
    """
    The cells of a prediction.

    Args:
        cells: What was asked.
        shown: What came of each.
        rewritten: Where tables were altered: the same on tables loaded at the cell's fillfactor.
        from_fillfactor: At which the altered ones were loaded.
    """
    made = []
    for n, cell in enumerate(cells):
        variant = difference(shown[n].outcome, shown[n - 1].outcome) if is_variant(cell) else None
        found = PredictedCell(
            fillfactor=cell.fillfactor,
            predicted=shown[n].outcome,
            variant=cell.variant,
            difference=None if variant is None else Difference(predicted=variant),
            by_itself=shown[n].by_itself if has_clockwork(cell.profile) else None,
            series=shown[n].series,
            growth=_growth(shown[n], cell.profile, None if rewritten is None else rewritten[n]),
            order=shown[n].order,
        )
        if rewritten is not None and from_fillfactor is not None:
            found = _beside_rewritten(found, cell, rewritten[n], from_fillfactor)
        made.append(found)
    return made


def _growth(
    found: Simulation, profile: Profile, rewritten: Simulation | None
) -> Mapping[str, Growth] | None:
    if found.series is None:
        return None
    beside = None if rewritten is None else rewritten.series
    return growth_of(found.series, rows_by_table(profile), beside)


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


def _beside_rewritten(
    altered: PredictedCell, cell: Cell, rewritten: Simulation, from_fillfactor: int
) -> PredictedCell:
    effect = None
    if altered.series is not None:
        effect = takes_effect(altered.series, rewritten.series, loaded_rows(cell.profile))
    return replace(
        altered,
        from_fillfactor=from_fillfactor,
        rewritten=Rewritten(
            predicted=rewritten.outcome,
            series=rewritten.series,
            effect=None
            if rewritten.series is None
            else takes_effect(rewritten.series, None, loaded_rows(cell.profile)),
        ),
        effect=effect,
    )


def _beside_later(
    altered: PredictedCell, cell: Cell, found: Simulation, rewrite: Rewrite, tps: float | None
) -> PredictedCell:
    _, at_frac, until = cell.rewrites[0]
    until_frac = at_frac if until is None else until
    series, duration_s = found.series, duration_of(cell.profile, tps)
    return replace(
        altered,
        rewritten_later=RewrittenLater(
            how=rewrite.how,
            evidence="model" if rewrite.how == "online" else _exactly([found]),
            at_frac=at_frac,
            until_frac=until_frac,
            at_s=None if series is None else at_frac * duration_s,
            until_s=None if series is None else until_frac * duration_s,
            predicted=found.outcome,
            tables=found.rewrites,
            series=series,
            effect=None
            if series is None
            else takes_effect(series, None, loaded_rows(cell.profile)),
        ),
    )


def note(
    assumed: dict[str, Any], profile: Profile, found: Sequence[Simulation], seeds: int
) -> None:
    """Say under `assumed` what the twin approximated, and how its intervals were made."""
    lines = list(dict.fromkeys(line for item in found for line in item.approximations))
    unpriced = said_unpriced(name for table in profile.tables for name in unpriced_of(table))
    unplayed = said_left_out(
        f"{name} of {table.name}" for table in profile.tables for name in left_out(table)
    )
    lines += [said for said in (unpriced, unplayed) if said]
    if lines:
        assumed["twin.approximations"] = lines
    models = list(dict.fromkeys(line for item in found for line in item.model))
    if models:
        assumed["twin.model"] = models
    if any(not item.outcome.is_exact for item in found):
        assumed["twin.interleavings"] = seeds


def _evidence(model: Model, found: Sequence[Simulation]) -> Literal["exact", "interval", "model"]:
    if (model.storage, model.engine) != (SERVER.storage, SERVER.engine):
        return "model"
    return _exactly(found)


def _exactly(found: Sequence[Simulation]) -> Literal["exact", "interval"]:
    return "exact" if all(item.outcome.is_exact for item in found) else "interval"
