"""
Runs of the twin side by side: one for an exact cell, several for a statistical one.

The core lets go of Python's lock while it runs, so threads fill the cores. A worker thread is
never interrupted by Ctrl-C; the calling thread is, and then tells every run to stop.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, Literal

from pgheadroom import _core
from pgheadroom.errors import InputError
from pgheadroom.outcome import SUMMED, Outcome, put_together
from pgheadroom.predict.cells import Cell
from pgheadroom.predict.clock import ByItself, Pace, by_itself, has_clockwork, pace_of, tps_of
from pgheadroom.predict.memory import check_memory
from pgheadroom.predict.order import KeyOrder, order_of
from pgheadroom.predict.rewriting import RewriteWork, work_of
from pgheadroom.predict.sampling import Sample
from pgheadroom.predict.series import Series, series_of
from pgheadroom.predict.spread import WHOLE, exact, images_estimated, spread
from pgheadroom.profile import Profile, Snapshot, to_json
from pgheadroom.profile.model import CHECKSUMS_FROM_MAJOR
from pgheadroom.schedule import run_pieces
from pgheadroom.types import PgVersion

SEEDS_DEFAULT = 8
"""Runs of a statistical cell: enough for a spread, few enough to wait for; arbitrary."""

Storage = Literal["local", "log-structured"]
"""
Where pages are kept: PostgreSQL's files; or a log that the storage itself turns into pages, so that
the server writes no page, has no checkpoint and logs no image that would repair one.
"""

Engine = Literal["heap", "clustered", "undo"]
"""
How rows are stored: PostgreSQL's heap; heap whose inserts go beside the previous key; updates in
place with undo pages. The latter two are models.
"""

Report = Callable[[int, int], None]
"""Called with how many rows and transactions are done, and how many there are."""

TwinEvent = tuple[float, str, str | None]
"""When (0 to 1 of the run), what (`checkpoint_starting`, `autovacuum`, ...), which table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """
    What a server's run tells the twin, where a prediction alone cannot know it.

    `events` are None when nobody looked, and empty when nothing happened. `snapshots` are those
    that were held, from and to which share of the run; None: as the profile wants them.
    """

    operations: int | None = None
    events: tuple[TwinEvent, ...] | None = None
    snapshots: tuple[tuple[float, float], ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """
    What is not as a server of ours has it, where something is.

    Attributes:
        storage: Where pages are kept.
        engine: How rows are stored once they are loaded.
        order: Whether the order of the tables is measured.
    """

    storage: Storage = "local"
    engine: Engine = "heap"
    order: bool = False


SERVER = Model()
"""Everything as servers have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """
    A cell as the twin sees it: the outcome, and what it had to approximate.

    `by_itself` is what the server did on the twin's clock, `series` its windows; None without.
    `model` says what of it is a model, in sentences; `order` has the order of each table, where
    that was asked for; `rewrites` what rewriting tables in the middle of the run did.
    """

    outcome: Outcome
    transactions: int
    approximations: tuple[str, ...]
    by_itself: ByItself | None = None
    series: Series | None = None
    model: tuple[str, ...] = ()
    order: Mapping[str, KeyOrder] | None = None
    rewrites: tuple[RewriteWork, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """
    The twin's clock for a prediction.

    `tps` are transactions a second of all clients (None: assumed), `windows` those of a series.
    """

    tps: float | None = None
    windows: int = 0


@dataclass(frozen=True, slots=True)
class _Piece:
    """One run of the twin."""

    cell: int
    profile_json: str
    version: str
    interleaving: int
    events: tuple[TwinEvent, ...] | None
    transactions: int | None
    model: Model = SERVER
    pace: Pace | None = None
    windows: int = 0
    later: tuple[tuple[str, int], ...] = ()
    rewrites: tuple[tuple[str, float, float | None], ...] = ()


def predict_cells(
    cells: Sequence[Cell],
    version: PgVersion,
    *,
    given: Sequence[Given] | None = None,
    samples: Sequence[Sample] | None = None,
    model: Model = SERVER,
    timing: Timing | None = None,
    seeds: int = SEEDS_DEFAULT,
    drawn: Sequence[int] | None = None,
    executor: Executor | None = None,
    report: Report | None = None,
) -> list[Simulation]:
    """
    Run the twin on each cell.

    Args:
        cells: The profile at each fillfactor.
        version: The minor that the twin follows.
        given: What a server's run of each cell tells; None for a prediction.
        samples: What stands for each cell's profile; None: it is simulated whole.
        model: Another storage or engine.
        timing: The clock by which the server does what it does by itself, where no run tells.
        seeds: Orders of the clients' transactions that are tried in a statistical cell, at least 2.
        drawn: pgbench's seeds that the runs of a cell take in turn, instead of the profile's: what
            is foreseen is a run whose seed is not known, and every cell is statistical.
        executor: Where to run; a thread a core when None.
        report: Called with the progress.

    Raises:
        TwinError: The twin cannot play the profile, or reached one of its limits.
        InputError: Fewer than two seeds, or a run whose length nobody knows.
    """
    if seeds < 2:
        raise InputError(f"seeds {seeds}: expected at least 2, one run shows no spread")
    told = given or [Given() for _ in cells]

    def piece(cell: int, seed: int) -> _Piece:
        played = cells[cell]
        if samples is not None:
            played = replace(played, profile=samples[cell].with_seed(seed))
        elif drawn is not None:
            played = replace(played, profile=_with_seed(played.profile, drawn[seed % len(drawn)]))
        made = _piece(played, told[cell], version, cell, seed, seeds, timing)
        made = replace(made, model=model)
        if samples is not None:
            made = replace(made, profile_json=samples[cell].twin_json(seed))
        return made if timing is None else _on_clock(made, cells[cell], timing)

    begun = [piece(n, 0) for n in range(len(cells))]
    is_drawn = samples is not None or drawn is not None
    repeated = is_drawn or any(cell.profile.workload.run.clients > 1 for cell in cells)
    check_memory(
        [_needed_bytes(one) for one in begun],
        [cell.profile for cell in cells] if samples is None else [s.profile for s in samples],
        len(cells) * (seeds if repeated else 1),
        may_sample=given is None and all(_can_be_sampled(cell, model, timing) for cell in cells),
    )
    with _Runs(executor, report) as runs:
        first = runs.run(begun)
        images_only = [
            samples is None
            and drawn is None
            and model.storage == "local"
            and _images_only(cells[n], told[n], first[(n, 0)])
            for n in range(len(cells))
        ]
        more = [
            piece(n, seed)
            for n in range(len(cells))
            if samples is not None
            or drawn is not None
            or (not _is_exact(cells[n], first[(n, 0)]) and not images_only[n])
            for seed in range(1, seeds)
        ]
        found = first | runs.run(more)
    return [
        _simulation(
            [run for (m, _), run in sorted(found.items()) if m == n],
            images_only=images_only[n],
            clients=cells[n].profile.workload.run.clients,
            major=version.major,
            logs_hints=model.storage == "local" and _logs_hints(cells[n].profile, version.major),
            sample=None if samples is None else samples[n],
        )
        for n in range(len(cells))
    ]


def _can_be_sampled(cell: Cell, model: Model, timing: Timing | None) -> bool:
    """Whether what is asked for is something that a sample can give."""
    windows = 0 if timing is None else timing.windows
    return not (windows or model.order or cell.later or cell.rewrites)


def _needed_bytes(piece: _Piece) -> int:
    needed = _core.needed_bytes(piece.profile_json, piece.transactions)
    return 2 * needed if piece.rewrites else needed  # a rewrite makes a copy


def _with_seed(profile: Profile, seed: int) -> Profile:
    run = replace(profile.workload.run, seed=seed)
    return replace(profile, workload=replace(profile.workload, run=run))


def _is_exact(cell: Cell, run: _core.Simulated) -> bool:
    """Whether another run gives the same: nothing was drawn, and nothing waits for a clock."""
    return not run.approximations and cell.profile.workload.run.duration_s is None


def _images_only(cell: Cell, given: Given, run: _core.Simulated) -> bool:
    """Whether the sizes of compressed images are all that is not exact."""
    profile = cell.profile
    asked = profile.workload.run
    compresses = profile.server.full_page_writes and profile.server.wal_compression != "off"
    sampled = asked.clients > 1 or asked.snapshots or asked.duration_s is not None or given.events
    return compresses and not sampled and len(run.approximations) == 1


def _piece(
    cell: Cell,
    given: Given,
    version: PgVersion,
    number: int,
    seed: int,
    seeds: int,
    timing: Timing | None,
) -> _Piece:
    profile = as_given(cell.profile, given)
    tps = None if timing is None else tps_of(profile, timing.tps)[0]
    count = transactions_of(profile, given, seed, seeds, tps)
    text = json.dumps(to_json(profile))
    return _Piece(
        number,
        text,
        str(version),
        seed,
        given.events,
        count,
        later=tuple(cell.later.items()),
        rewrites=cell.rewrites,
    )


def _on_clock(piece: _Piece, cell: Cell, timing: Timing) -> _Piece:
    """The same run on a clock, where something goes by it."""
    if not timing.windows and not has_clockwork(cell.profile):
        return piece
    return replace(piece, pace=pace_of(cell.profile, timing.tps), windows=timing.windows)


def as_given(profile: Profile, given: Given) -> Profile:
    """The profile with the snapshots that were held, where a server's run tells."""
    if given.snapshots is None:
        return profile
    held = tuple(
        Snapshot(start_frac=began, length_frac=ended - began) for began, ended in given.snapshots
    )
    run = replace(profile.workload.run, snapshots=held)
    return replace(profile, workload=replace(profile.workload, run=run))


def transactions_of(
    profile: Profile, given: Given, seed: int, seeds: int, tps: float | None = None
) -> int | None:
    """
    How many transactions a duration is; None where the profile says it.

    At a rate their number is Poisson's, as pgbench's throttle makes it; the runs of a cell take
    the quantiles of that in turn, the first the median. Else `tps` a second, if given.

    Raises:
        InputError: A duration without a rate, and neither `tps` nor a server's run tells the
            number.
    """
    run = profile.workload.run
    if run.duration_s is None:
        return None
    if run.rate_per_s is not None:
        mean = run.rate_per_s * run.duration_s
        place = 0.5 if seed == 0 else (seed - 0.5) / (seeds - 1)
        return max(1, round(mean + NormalDist().inv_cdf(place) * math.sqrt(mean)))
    if given.operations is None and tps is not None:
        return max(run.clients, round(tps * run.duration_s))
    if given.operations is None:
        raise InputError(
            "run.duration_s: how many transactions that is depends on the machine; a prediction "
            "needs run.operations, or run.rate_per_s beside it"
        )
    return given.operations


class _Runs:
    """Runs of the twin in one executor; whatever ends the block early ends them all."""

    def __init__(self, executor: Executor | None, report: Report | None) -> None:
        self.cores = len(os.sched_getaffinity(0))
        self._own = ThreadPoolExecutor(self.cores) if executor is None else None
        self._executor = executor or self._own
        self._report = report
        self._progress: dict[tuple[int, int], _core.Progress] = {}

    def __enter__(self) -> _Runs:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            for progress in self._progress.values():
                progress.cancel()
        if self._own is not None:
            self._own.shutdown(wait=True, cancel_futures=True)

    def run(self, pieces: Sequence[_Piece]) -> dict[tuple[int, int], _core.Simulated]:
        """All pieces' results, by cell and interleaving."""
        if self._own is not None:  # what is told across processes would not come back
            for piece in pieces:
                self._progress[(piece.cell, piece.interleaving)] = _core.Progress()
        found = {}
        for piece, result in run_pieces(
            self._simulate if self._own is not None else simulate,
            pieces,
            executor=self._executor,
            in_flight=self.cores if self._own is not None else max(1, len(pieces)),
            tick=self._tick,
        ):
            found[(piece.cell, piece.interleaving)] = result
        self._tick()
        return found

    def _simulate(self, piece: _Piece) -> _core.Simulated:
        return simulate(piece, self._progress[(piece.cell, piece.interleaving)])

    def _tick(self) -> None:
        if self._report is None or not self._progress:
            return
        totals = [progress.total for progress in self._progress.values()]
        # Those that have not begun will be like those that have.
        begun = [total for total in totals if total > 0]
        if begun:
            total = sum(begun) * len(totals) // len(begun)
            done = sum(progress.done for progress in self._progress.values())
            self._report(min(done, total), total)


def simulate(piece: _Piece, progress: _core.Progress | None = None) -> _core.Simulated:
    """One run; importable, for executors in other processes."""
    return _core.simulate(
        piece.profile_json,
        piece.version,
        interleaving=piece.interleaving,
        events=piece.events,
        transactions=piece.transactions,
        pace=piece.pace,
        windows=piece.windows,
        fillfactors_later=list(piece.later),
        rewrites=list(piece.rewrites),
        storage=piece.model.storage,
        engine=piece.model.engine,
        order=piece.model.order,
        progress=progress,
    )


def _simulation(
    runs: Sequence[_core.Simulated],
    *,
    images_only: bool,
    clients: int,
    major: int,
    logs_hints: bool,
    sample: Sample | None,
) -> Simulation:
    wholes = [whole(run) for run in runs]
    doubt = WHOLE
    if sample is not None:
        wholes, doubt = [sample.blown_up(run) for run in wholes], sample.doubt
    if images_only:
        outcome = images_estimated(wholes[0])
    elif len(wholes) == 1:
        outcome = exact(wholes[0])
    else:
        outcome = spread(
            wholes,
            clients=clients,
            major=major,
            samples=doubt,
            by_clock=by_itself(runs) is not None,
            logs_hints=logs_hints,
        )
    return Simulation(
        outcome=outcome,
        transactions=runs[0].transactions,
        approximations=tuple(dict.fromkeys(line for run in runs for line in run.approximations)),
        by_itself=by_itself(runs),
        series=series_of(runs, clients=clients, major=major),
        model=() if runs[0].model is None else (runs[0].model,),
        order=order_of([run.order for run in runs]),
        rewrites=work_of(runs),
    )


def _logs_hints(profile: Profile, major: int) -> bool:
    """Whether the first hint on a page after a checkpoint is logged with the page's image."""
    server = profile.server
    checksums = server.data_checksums
    if checksums is None:
        checksums = major >= CHECKSUMS_FROM_MAJOR
    return server.full_page_writes and (checksums or server.wal_log_hints)


def whole(run: _core.Simulated) -> dict[str, Any]:
    """A run's figures as the object of a proof."""
    tables: Mapping[str, dict[str, int | None]] = {
        table.name: {key: int(getattr(table, key)) for key in SUMMED} for table in run.tables
    }
    clients = {"wal_records": run.transaction_records, "wal_bytes": run.transaction_bytes}
    return put_together(tables, clients)
