"""
Runs of the twin side by side: one for an exact cell, several for a statistical one.

The core lets go of Python's lock while it runs, so threads fill the cores. A worker thread is
never interrupted by Ctrl-C; the calling thread is, and then tells every run to stop.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from pgheadroom import _core
from pgheadroom.outcome import SUMMED, Outcome, Value, put_together
from pgheadroom.predict import carried, failing, running_out, wide, without_row
from pgheadroom.predict.clock import ByItself, by_itself
from pgheadroom.predict.contended import contended_of, failed_half, turn_halves
from pgheadroom.predict.failing import failed_frac, failed_of
from pgheadroom.predict.least_pages import LeastPages, least_pages_of
from pgheadroom.predict.memory import check_run
from pgheadroom.predict.order import KeyOrder, order_of
from pgheadroom.predict.pinned_pages import cut_off_of, with_pins
from pgheadroom.predict.rewriting import RewriteWork, work_of
from pgheadroom.predict.run_plan import Piece, RunPlan, needed_bytes
from pgheadroom.predict.series import Series, series_of
from pgheadroom.predict.spread import WHOLE, Doubt, images_estimated, made_up_of, over_draws, spread
from pgheadroom.predict.uncertain_rows import beside_maintenance, upserted_of
from pgheadroom.predict.without_row import Turns, said_of, turns_of
from pgheadroom.profile import Profile
from pgheadroom.profile.model import CHECKSUMS_FROM_MAJOR
from pgheadroom.progress import Progress
from pgheadroom.schedule import run_pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """
    A cell as the twin sees it: the outcome, and what it had to approximate.

    `by_itself` is what the server did on the twin's clock, `series` its windows; None without.
    `model` says what of it is a model, in sentences; `order` has the order of each table, where
    that was asked for; `rewrites` what rewriting tables in the middle of the run did; `turns` those
    of each operation of a profile; `failed` the transactions that failed, 0 too, and `failed_frac`
    their share; `worked_each` and `pauses_each` are what statements of a transaction of several
    clients take in the mean, in times of an UPDATE by key, and how many pauses it has; `wide_by`
    says why intervals may be wide.
    """

    outcome: Outcome
    transactions: int
    approximations: tuple[str, ...]
    by_itself: ByItself | None = None
    series: Series | None = None
    model: tuple[str, ...] = ()
    order: Mapping[str, KeyOrder] | None = None
    rewrites: tuple[RewriteWork, ...] = ()
    turns: Mapping[str, Turns] = field(default_factory=dict)
    failed: Value = 0
    failed_frac: float = 0.0
    worked_each: float = 0.0
    pauses_each: float = 0.0
    wide_by: tuple[str, ...] = ()


def predict_cells(
    plan: RunPlan, *, executor: Executor | None = None, report: Progress | None = None
) -> list[Simulation]:
    """
    Run the twin on each cell of a plan.

    Args:
        plan: What is played.
        executor: Where to run; a thread a core when None.
        report: Called with the progress.

    Raises:
        TwinError: The twin cannot play the profile, or reached one of its limits.
        InputError: A run whose length nobody knows.
    """
    cells = range(len(plan.cells))
    begun = [plan.piece(n, 0) for n in cells]
    if executor is None:
        plan.check_memory(begun)
    found: dict[int, dict[int, _core.Simulated]] = {n: {} for n in cells}
    made: dict[int, Simulation] = {}

    def make(cell: int) -> None:
        runs = sorted(found.pop(cell).items())
        made[cell] = _simulation(plan, cell, [run for _, run in runs])

    with _Runs(executor, report) as runs:
        later = (plan.seeds - 1) * sum(map(plan.is_repeated, cells))
        for piece, run in runs.run(begun, later):
            found[piece.cell][piece.interleaving] = run
        several = [n for n in cells if not plan.says_all(n, found[n][0])]
        for n in cells:
            if n not in several:
                make(n)
        more = [plan.piece(n, seed) for n in several for seed in range(1, plan.seeds)]
        # Whatever is made of a cell's runs is made while those of the next ones are played.
        for piece, run in runs.run(more):
            found[piece.cell][piece.interleaving] = run
            if len(found[piece.cell]) == plan.seeds:
                make(piece.cell)
    return [made[n] for n in cells]


class _Runs:
    """Runs of the twin in one executor; whatever ends the block early ends them all."""

    def __init__(self, executor: Executor | None, report: Progress | None) -> None:
        self.cores = len(os.sched_getaffinity(0))
        self._own = ThreadPoolExecutor(self.cores) if executor is None else None
        self._executor = executor or self._own
        self._report = report
        self._progress: dict[tuple[int, int], _core.Progress] = {}
        self._asked = self._ended = self._later = 0

    def __enter__(self) -> _Runs:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            for progress in self._progress.values():
                progress.cancel()
        if self._own is not None:
            self._own.shutdown(wait=True, cancel_futures=True)

    def run(
        self, pieces: Sequence[Piece], later: int = 0
    ) -> Iterator[tuple[Piece, _core.Simulated]]:
        """
        Each piece with its result, as it ends; further ones go on while the caller works.

        Args:
            pieces: Runs.
            later: How many more will be asked for, so that what is to be done is known.
        """
        self._later = later
        if self._own is not None:  # what is told across processes would not come back
            for piece in pieces:
                self._progress[(piece.cell, piece.interleaving)] = _core.Progress()
        self._asked += len(pieces)
        for ended in run_pieces(
            self._simulate if self._own is not None else _simulate_there,
            pieces,
            executor=self._executor,
            in_flight=2 * self.cores if self._own is not None else max(1, len(pieces)),
            tick=self._tick,
        ):
            self._ended += 1
            yield ended
        self._tick()

    def _simulate(self, piece: Piece) -> _core.Simulated:
        return simulate(piece, self._progress[(piece.cell, piece.interleaving)])

    def _tick(self) -> None:
        if self._report is None:
            return
        if self._own is None:
            self._report(self._ended, self._asked + self._later, "twin")
            return
        totals = [progress.total for progress in self._progress.values()]
        # Those that have not begun will be like those that have.
        begun = [total for total in totals if total > 0]
        if begun:
            total = sum(begun) * (len(totals) + self._later) // len(begun)
            done = sum(progress.done for progress in self._progress.values())
            self._report(min(done, total), total, "twin")


def _simulate_there(piece: Piece) -> _core.Simulated:
    """One run where somebody else's executor has it: the memory is that machine's."""
    check_run(needed_bytes(piece))
    return carried.fit_to_travel(simulate(piece))


def simulate(
    piece: Piece,
    progress: _core.Progress | None = None,
    *,
    watch: tuple[str, int] | None = None,
) -> _core.Simulated:
    """One run, with a page that is watched (table, block); importable, for other processes."""
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
        watch=watch,
        storage=piece.model.storage,
        engine=piece.model.engine,
        order=piece.model.order,
        duration_s=piece.duration_s,
        standing=piece.standing,
        course=piece.course,
        at_work=piece.at_work,
        is_maintenance_measured=piece.is_maintenance_measured,
        progress=progress,
    )


def _simulation(plan: RunPlan, cell: int, runs: Sequence[_core.Simulated]) -> Simulation:
    profile, major = plan.cells[cell].profile, plan.version.major
    clients = profile.workload.run.clients
    sample = None if plan.samples is None else plan.samples[cell]
    share = 1.0 if sample is None else sample.share
    turns = turns_of(runs, share, turn_halves(profile, share))
    failed = failed_of(runs, share, failed_half(profile, share))
    any_failed = any(run.failed_transactions for run in runs)
    wholes = [whole(run) for run in runs]
    if sample is not None:
        wholes = [sample.blown_up(run) for run in wholes]
    is_loaded = sample is None and plan.model.engine == "heap"
    least = least_pages_of(plan.cells[cell]) if is_loaded else {}
    return Simulation(
        outcome=replace(
            _outcome(plan, cell, runs, wholes, least),
            operations_without_row=said_of(turns),
            failed_transactions=failed if any_failed else None,
        ),
        transactions=runs[0].transactions,
        approximations=tuple(dict.fromkeys(line for run in runs for line in run.approximations)),
        by_itself=by_itself(runs),
        series=series_of(runs, clients=clients, major=major),
        model=() if runs[0].model is None else (runs[0].model,),
        order=order_of([run.order for run in runs]),
        rewrites=work_of(runs),
        turns=turns,
        failed=failed,
        failed_frac=failed_frac(runs),
        worked_each=_each(runs, sum(run.worked for run in runs)),
        pauses_each=_each(runs, sum(run.pauses for run in runs)),
        wide_by=wide.reasons(
            clients=clients,
            by_clock=by_itself(runs) is not None,
            sampled=sample is not None,
            made_up=made_up_of(profile).times > 0,
            images=plan.images_only(cell, runs[0]),
            draws=plan.draws_only(cell, runs[0]),
        ),
    )


def _each(runs: Sequence[_core.Simulated], total: float) -> float:
    return total / max(1, sum(run.transactions for run in runs))


def _outcome(
    plan: RunPlan,
    cell: int,
    runs: Sequence[_core.Simulated],
    wholes: Sequence[Outcome],
    least: Mapping[str, LeastPages],
) -> Outcome:
    """
    The figures of a cell's runs: a run's own where others have the same, else intervals.

    Args:
        plan: Of all cells.
        cell: Which.
        runs: The twin's runs of it.
        wholes: Each run's figures, of the whole where it is a sample's.
        least: Pages that tables have for certain (`least_pages_of`).
    """
    profile, major = plan.cells[cell].profile, plan.version.major
    clients = profile.workload.run.clients
    sample = None if plan.samples is None else plan.samples[cell]
    doubt = WHOLE if sample is None else sample.doubt
    if plan.images_only(cell, runs[0]):
        doubts = {
            table.name: Doubt(table.doubtful_header_bytes, table.doubtful_image_bytes)
            for table in runs[0].tables
        }
        return images_estimated(wholes[0], doubts)
    if len(wholes) == 1:
        return wholes[0]
    if plan.draws_only(cell, runs[0]):
        return over_draws(wholes)
    is_loaded = sample is None and plan.model.engine == "heap"
    is_drawn_only = all(len(run.approximations) == 1 for run in runs)
    found = spread(
        wholes,
        clients=clients,
        major=major,
        samples=doubt,
        by_clock=by_itself(runs) is not None,
        logs_hints=plan.model.storage == "local" and _logs_hints(profile, major),
        made_up=made_up_of(profile),
        beside=beside_maintenance(profile),
        upserted=upserted_of(profile),
        contended=contended_of(profile),
        with_gin={
            table.name
            for table in profile.tables
            if any(index.method == "gin" for index in table.indexes)
        },
        least=least,
        of_clients_only=is_loaded and clients > 1 and is_drawn_only,
    )
    return with_pins(found, cut_off_of(profile))


def said_before(profile: Profile, cells: Sequence[Simulation]) -> tuple[str, ...]:
    """What a reader has to know before the figures."""
    return (
        *running_out.sentences(profile, max((cell.transactions for cell in cells), default=0)),
        *without_row.sentences(profile, [cell.turns for cell in cells]),
        *failing.sentences([cell.failed_frac for cell in cells]),
        *wide.sentences((cell.outcome, cell.wide_by) for cell in cells),
    )


def _logs_hints(profile: Profile, major: int) -> bool:
    """Whether the first hint on a page after a checkpoint is logged with the page's image."""
    server = profile.server
    checksums = server.data_checksums
    if checksums is None:
        checksums = major >= CHECKSUMS_FROM_MAJOR
    return server.full_page_writes and (checksums or server.wal_log_hints)


def whole(run: _core.Simulated) -> Outcome:
    """A run's figures, of all tables and of each."""
    tables: Mapping[str, dict[str, int | None]] = {
        table.name: {key: int(getattr(table, key)) for key in SUMMED} for table in run.tables
    }
    clients = {"wal_records": run.transaction_records, "wal_bytes": run.transaction_bytes}
    return put_together(tables, clients)
