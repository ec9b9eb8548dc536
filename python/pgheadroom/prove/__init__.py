"""
One profile, both players: a real server and the twin, figure by figure.

The only place where the two meet. What the server's run tells the twin (its duration, when
checkpoints and autovacuums took part) is handed over here and stands under `assumed`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial

import pgheadroom
from pgheadroom.accuracy import Figure, ProofAnswer, beyond, error, figures
from pgheadroom.defaults import SEEDS_DEFAULT
from pgheadroom.errors import InputError, LabError, MeasurementInvalid
from pgheadroom.forms import Filed, in_file
from pgheadroom.outcome import KEYS, Outcome
from pgheadroom.play import Played, play
from pgheadroom.predict import Cell, Given, RunPlan, loaded_anew, make_cells, predict_cells
from pgheadroom.predict.clock import clock_of
from pgheadroom.predict.fillfactors import Fillfactor, fillfactor_in_row
from pgheadroom.predict.run import approximated
from pgheadroom.predict.twin import Simulation, said_before
from pgheadroom.predict.variants import UNCHANGED, Difference, IndexChange, difference
from pgheadroom.predict.without_row import SAID_FROM_FRAC
from pgheadroom.profile import MachineTimes, Profile
from pgheadroom.profile.maintaining import is_counted
from pgheadroom.progress import Progress
from pgheadroom.prove.told import given_by, given_by_clients, times_count, told
from pgheadroom.servers import find_programs, is_connection
from pgheadroom.tabular import Row, Tabular, columns, even
from pgheadroom.types import Assumed, Version

_FEW = 300
"""Transactions of a client in a run of the twin that goes before the server's; arbitrary."""
_UNKNOWN = MachineTimes()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofCell:
    """
    Both players' figures at one fillfactor, and the error of the prediction.

    `variant` and `difference` are as in a predicted cell; the difference is each player's own.
    """

    fillfactor: Fillfactor
    variant: str | None = field(default=None, metadata=in_file(unless_none=True))
    predicted: Outcome
    measured: Outcome
    error: Outcome
    difference: Difference | None = field(default=None, metadata=in_file(unless_none=True))

    @property
    def figures(self) -> list[Figure]:
        """Every figure, the whole first, then table by table."""
        return list(figures(self.predicted, self.measured))

    @property
    def beyond(self) -> list[Figure]:
        """The figures that miss by more than the bounds allow."""
        return beyond(self.predicted, self.measured)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof(Tabular, Filed):
    """
    A profile as a server and the twin played it.

    `server` is the minor version of both; `assumed` has each default of the profile by its field's
    path, what the twin approximated, and what it was told of the server's run; `warnings` are to be
    read first. `answer` is None in files from before it was kept (`answered` has it of these too).
    """

    KIND = "proof"

    tool_version: str = pgheadroom.__version__
    server: Version
    assumed: Assumed
    warnings: tuple[str, ...] = field(default=(), metadata=in_file(unless_empty=True))
    answer: ProofAnswer | None = field(default=None, metadata=in_file(unless_none=True))
    cells: tuple[ProofCell, ...]

    @property
    def answered(self) -> ProofAnswer:
        """How far both agree, as it is kept; of a file from before it was, by its cells."""
        return self.answer or proof_answer(self.cells)

    @property
    def beyond(self) -> list[tuple[Fillfactor, Figure]]:
        """The figures that miss by more than the bounds allow, with their cell."""
        return [(cell.fillfactor, figure) for cell in self.cells for figure in cell.beyond]

    def rows(self) -> list[Row]:
        """One row a cell, table and figure; `table` is None for all together."""
        return even(
            [
                {
                    "fillfactor": fillfactor_in_row(cell.fillfactor, name),
                    "variant": cell.variant,
                    "table": name,
                    "figure": key,
                    **columns("predicted", part.value(key)),
                    "measured": measured.value(key),
                    **columns("error", error.value(key)),
                }
                for cell in self.cells
                for (name, part), (_, measured), (_, error) in zip(
                    cell.predicted.parts(), cell.measured.parts(), cell.error.parts(), strict=True
                )
                for key in KEYS
            ]
        )

    def summary(self) -> str:
        """How many figures agree."""
        missed = len(self.beyond)
        said = "every figure within its bound" if not missed else f"{missed} beyond their bounds"
        return f"Proof on PostgreSQL {self.server}: {said}"


def proof_answer(cells: Sequence[ProofCell]) -> ProofAnswer:
    """How far both players agree in all cells."""
    return ProofAnswer.of([(cell.fillfactor, cell.variant, cell.figures) for cell in cells])


def prove(
    profile: Profile,
    fillfactors: Sequence[int] | None = None,
    table: str | None = None,
    *,
    server: str | None = None,
    changes: Sequence[IndexChange] = (),
    seeds: int = SEEDS_DEFAULT,
    executor: Executor | None = None,
    report: Progress | None = None,
    say: Progress | None = None,
) -> Proof:
    """
    Play a profile on a throw-away server and in the twin, and compare.

    The twin goes first, so that what it cannot play ends at once and not after a long run; where
    it has to be told about the server's run, it first plays a run of a few transactions. Of several
    clients it is told how long their sessions took, how often one stood still and how each came on,
    and first plays two runs without, which also tell of what transactions consist. Of a run by
    duration it is told how many transactions were begun, at a rate too.

    Args:
        profile: The profile.
        fillfactors: Percent, 10 to 100, one cell each; None: the profile's own, one cell.
        table: The table to vary; every table that has updates when None.
        server: Version, or a folder with server programs; it wins over the profile's version.
        changes: What is changed of the profile's indexes in a variant, which both players play
            beside the unchanged profile at each fillfactor.
        seeds: Orders of the clients' transactions that the twin tries in a statistical cell.
        executor: Where the twin runs (`concurrent.futures`); a thread a core when None.
        report: Called with the twin's progress.
        say: Called with cells that the server has played, all of them, and what it does.

    Raises:
        InputError: A fillfactor, table or index that is none, a change that is not possible;
            `server` is a connection.
        ServerNotFound: That version is not at hand.
        TwinError: The twin cannot play the profile; the message names the field.
        LabError: The server failed, or its run is invalid.
    """
    spec = server or profile.server.version
    if is_connection(spec):
        raise InputError(
            "a profile is played on a throw-away server, whose WAL files can be read: expected a "
            "version or a folder with server programs, not a connection"
        )
    programs = find_programs(spec)
    version = programs.version
    profile = profile.as_built(version.major, programs.toast_compression)
    cells = make_cells(profile, fillfactors, table, changes)
    plan = RunPlan(cells=cells, version=version, seeds=seeds)
    twin = partial(predict_cells, executor=executor, report=report)
    given, simulated, played = _both(profile, plan, twin, lambda: _play(cells, server, say))
    assumed = dict(played[0].assumed)
    if profile.workload.builtin is not None:  # a profile of its own says how rows are found
        assumed |= {f"plans.{name}": plan for name, plan in played[0].plans.items()}
    assumed |= loaded_anew(cells)
    assumed |= approximated(profile, simulated, seeds)
    for n, (item, run) in enumerate(zip(given, played, strict=True)):
        assumed |= told(n, profile, item, run)
    made = _beside_unchanged(tuple(map(_cell, cells, simulated, played)))
    return Proof(
        server=played[0].server,
        assumed=assumed,
        warnings=said_before(profile, simulated),
        answer=proof_answer(made),
        cells=made,
    )


def _both(
    profile: Profile,
    plan: RunPlan,
    twin: Callable[[RunPlan], list[Simulation]],
    server: Callable[[], list[Played]],
) -> tuple[list[Given], list[Simulation], list[Played]]:
    """What the server's run told the twin, and the run of each player, in the order that fits."""
    given = [Given() for _ in plan.cells]
    if needs_the_run(profile):
        short = [_short(cell) for cell in plan.cells]
        nothing = [Given(events=(), machine=_UNKNOWN) for _ in short]
        firsts = predict_cells(replace(plan, cells=short, given=nothing, seeds=2))
        played = _or_why_not(server, plan, twin)
        given = list(map(given_by, plan.cells, played, firsts))
    elif times_count(profile) or profile.workload.run.duration_s is not None:
        firsts = twin(replace(plan, given=[Given(machine=_UNKNOWN) for _ in plan.cells], seeds=2))
        played = _or_why_not(server, plan, twin)
        given = list(map(given_by_clients, plan.cells, played, firsts))
    else:
        simulated = twin(plan)
        return given, simulated, server()
    return given, twin(replace(plan, given=given)), played


def _or_why_not(
    server: Callable[[], list[Played]], plan: RunPlan, twin: Callable[[RunPlan], list[Simulation]]
) -> list[Played]:
    """The server's runs; where it fails, what the twin says of whole ones, if it says why."""
    try:
        return server()
    except MeasurementInvalid:
        raise
    except LabError:
        # Nobody can tell it when the server did what it does by itself: that goes by the clock.
        profile = plan.cells[0].profile
        run = profile.workload.run
        has_length = run.operations is not None or run.rate_per_s is not None
        clock = clock_of(profile, None) if has_length else None
        with contextlib.suppress(InputError):  # a run whose length nobody knows
            twin(replace(plan, clock=clock))
        raise


def _beside_unchanged(cells: tuple[ProofCell, ...]) -> tuple[ProofCell, ...]:
    """The same cells; a variant's says how it differs from the cell before it, by each player."""
    found = []
    for n, cell in enumerate(cells):
        if cell.variant not in (None, UNCHANGED):
            before = cells[n - 1]
            sides = Difference(
                predicted=difference(cell.predicted, before.predicted),
                measured=difference(cell.measured, before.measured),
            )
            cell = replace(cell, difference=sides)  # noqa: PLW2901
        found.append(cell)
    return tuple(found)


def _cell(cell: Cell, simulation: Simulation, run: Played) -> ProofCell:
    predicted = _with_numbers(simulation, run)
    measured = run.measured
    if predicted.operations_without_row:
        told = {n: counted[1] for n, counted in run.turns.items()}
        found = {n: told.get(n) for n in predicted.operations_without_row}
        known = any(value is not None for value in found.values())
        measured = replace(measured, operations_without_row=found if known else None)
    if run.failed_transactions or predicted.failed_transactions is not None:
        measured = replace(measured, failed_transactions=run.failed_transactions)
        predicted = replace(predicted, failed_transactions=simulation.failed)
    return ProofCell(
        fillfactor=cell.fillfactor,
        predicted=predicted,
        measured=measured,
        error=error(predicted, measured),
        variant=cell.variant,
    )


def _with_numbers(simulation: Simulation, run: Played) -> Outcome:
    """What is predicted; also of operations that found no row often on the server alone."""
    often = {
        n for n, (turns, without) in run.turns.items() if without > SAID_FROM_FRAC * turns
    } - set(simulation.outcome.operations_without_row or ())
    said = dict(simulation.outcome.operations_without_row or {})
    said |= {n: simulation.turns[n].without_row for n in sorted(often)}
    return replace(simulation.outcome, operations_without_row=said)


def needs_the_run(profile: Profile) -> bool:
    """Whether the twin has to be told about the server's run: what came when, or its length."""
    server, run = profile.server, profile.workload.run
    return (
        profile.may_autovacuum
        or server.checkpoint_interval_s is not None
        or server.max_wal_size_bytes is not None
        or bool(run.snapshots)
        or (bool(run.maintenance) and not is_counted(run))
        or (run.duration_s is not None and run.rate_per_s is None)
    )


def _short(cell: Cell) -> Cell:
    """The same cell with a few transactions a client, which also tell what one consists of."""
    run = cell.profile.workload.run
    few = _FEW * run.clients
    short = replace(
        run, operations=min(few, run.operations or few), duration_s=None, rate_per_s=None
    )
    workload = replace(cell.profile.workload, run=short)
    return replace(cell, profile=replace(cell.profile, workload=workload))


def _play(cells: Sequence[Cell], server: str | None, say: Progress | None) -> list[Played]:
    played = []
    for n, cell in enumerate(cells):

        def tell(what: str, n: int = n) -> None:
            if say is not None:
                say(n, len(cells), what)

        played.append(play(cell.profile, server=server, say=tell))
    if say is not None:
        say(len(cells), len(cells), "done")
    return played
