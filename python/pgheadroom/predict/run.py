"""
A profile and fillfactors become a prediction: the twin alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Literal

from pgheadroom.predict.cells import (
    Cell,
    is_variant,
    loaded_anew,
    loaded_rows,
    make_cells,
)
from pgheadroom.predict.clock import Clock, has_clockwork
from pgheadroom.predict.convergence import takes_effect
from pgheadroom.predict.growth import Growth, growth_of, rows_by_table
from pgheadroom.predict.planning import Asked, Planned, planned
from pgheadroom.predict.rewriting import RewriteAsked, RewrittenLater
from pgheadroom.predict.run_plan import (
    SERVER,
    Engine,
    Model,
    Storage,
    Timing,
)
from pgheadroom.predict.twin import Simulation, predict_cells, said_before
from pgheadroom.predict.values import PredictedCell, Prediction, Rewritten, answer_by
from pgheadroom.predict.variants import Difference, IndexChange, difference
from pgheadroom.predict.version import minor_version
from pgheadroom.profile import Profile
from pgheadroom.profile.queue_head import other_ways
from pgheadroom.profile.stating import EVALUATED
from pgheadroom.profile.unpriced import left_out, said_left_out, said_unpriced, unpriced_of
from pgheadroom.progress import Progress
from pgheadroom.types import Assumed, Taken


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
    seeds: int | None = None,
    timing: Timing | None = None,
    from_fillfactor: int | None = None,
    rewrite: RewriteAsked | None = None,
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
        seeds: Orders of the clients' transactions that are tried; None: `planning.seeds_of`.
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
            the run, or without a `from_fillfactor`; a setting that this version does not take.
        TwinError: The twin cannot play the profile; the message names the field.
    """
    cells = make_cells(profile, fillfactors, table, changes)
    minor = minor_version(profile, server)
    asked = Asked(
        model=Model(storage=storage, engine=engine, order=order),
        timing=timing or Timing(),
        seeds=seeds,
        table=table,
        from_fillfactor=from_fillfactor,
        rewrite=rewrite,
        sample_pages=sample_pages,
    )
    plan = planned(cells, minor.version, asked)
    found = predict_cells(plan.runs, executor=executor, report=report)
    made = _cells(plan, asked, found)
    return Prediction(
        server=minor.version,
        storage=storage,
        engine=engine,
        evidence=_evidence(asked.model, found[: len(cells) + len(plan.altered)]),
        assumed={
            **profile.assumed_on(minor.version.major),
            **minor.assumed,
            **plan.assumed,
            **loaded_anew(cells),
            **approximated(profile, found, plan.runs.seeds, other_ways(profile)),
            **_length(profile, found[0], plan.clock),
        },
        warnings=said_before(profile, found),
        answer=answer_by(made),
        cells=tuple(made),
    )


def _length(profile: Profile, found: Simulation, clock: Clock) -> Assumed:
    """How long the run is, where the profile says only the one or the other."""
    run = profile.workload.run
    if clock.at_rate:
        said = f"{found.transactions}: those that pgbench begins of this seed at rate_per_s"
        return {"run.operations": said}
    if run.duration_s is not None:
        return {"run.operations": f"{found.transactions}: {clock.said}, times duration_s"}
    if found.by_itself is not None:
        return {"run.duration_s": f"{found.by_itself.duration_s:g}: {clock.said}"}
    return {}


def _cells(plan: Planned, asked: Asked, found: Sequence[Simulation]) -> list[PredictedCell]:
    """The cells of a prediction, of what came of its plan."""
    loaded, altered, later = plan.parted(found)
    made = []
    for n, (cell, shown) in enumerate(zip(plan.cells, altered or loaded, strict=True)):
        before = (altered or loaded)[n - 1]
        variant = difference(shown.outcome, before.outcome) if is_variant(cell) else None
        rewritten = loaded[n] if altered else None
        one = PredictedCell(
            fillfactor=cell.fillfactor,
            predicted=shown.outcome,
            variant=cell.variant,
            difference=None if variant is None else Difference(predicted=variant),
            by_itself=shown.by_itself if has_clockwork(cell.profile) else None,
            series=shown.series,
            growth=_growth(shown, cell.profile, rewritten),
            order=shown.order,
        )
        if rewritten is not None and asked.from_fillfactor is not None:
            one = _beside_rewritten(one, cell, rewritten, asked.from_fillfactor)
        if asked.rewrite is not None:
            one = _beside_later(one, plan.later[n], later[n], asked.rewrite, plan.clock)
        made.append(one)
    return made


def _growth(
    found: Simulation, profile: Profile, rewritten: Simulation | None
) -> Mapping[str, Growth] | None:
    if found.series is None:
        return None
    beside = None if rewritten is None else rewritten.series
    return growth_of(found.series, rows_by_table(profile), beside)


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
    altered: PredictedCell, cell: Cell, found: Simulation, rewrite: RewriteAsked, clock: Clock
) -> PredictedCell:
    _, at_frac, until = cell.rewrites[0]
    until_frac = at_frac if until is None else until
    series, duration_s = found.series, clock.duration_s
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


def approximated(
    profile: Profile, found: Sequence[Simulation], seeds: int, ways: Sequence[str] = ()
) -> Assumed:
    """What the twin approximated, plans that may be others, and how its intervals were made."""
    assumed: dict[str, Taken] = {}
    lines = list(dict.fromkeys(line for item in found for line in item.approximations))
    lines += ways
    unpriced = said_unpriced(name for table in profile.tables for name in unpriced_of(table))
    unplayed = said_left_out(
        f"{name} of {table.name}" for table in profile.tables for name in left_out(table)
    )
    lines += [said for said in (unpriced, unplayed) if said]
    evaluated = (said for said in profile.assumed.values() if isinstance(said, str))
    lines += [said for said in evaluated if said.startswith(EVALUATED)]
    if lines:
        assumed["twin.approximations"] = tuple(lines)
    models = list(dict.fromkeys(line for item in found for line in item.model))
    if models:
        assumed["twin.model"] = tuple(models)
    if any(not item.outcome.is_exact for item in found):
        assumed["twin.interleavings"] = seeds
    return assumed


def _evidence(model: Model, found: Sequence[Simulation]) -> Literal["exact", "interval", "model"]:
    if (model.storage, model.engine) != (SERVER.storage, SERVER.engine):
        return "model"
    return _exactly(found)


def _exactly(found: Sequence[Simulation]) -> Literal["exact", "interval"]:
    return "exact" if all(item.outcome.is_exact for item in found) else "interval"
