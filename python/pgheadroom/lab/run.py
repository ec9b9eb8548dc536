"""
Run an experiment: plan, play each trial, keep every sample, summarise.

Nothing here knows a particular experiment. A run that ends early, by Ctrl-C, by its budget or by
an error, keeps its finished trials; asking the same again goes on with the rest.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pgheadroom
from pgheadroom.errors import InputError, LabError
from pgheadroom.lab import budget, conduct, guards
from pgheadroom.lab.borrowed_place import BorrowedPlace
from pgheadroom.lab.design import Request, Trial, cell_key, check_request
from pgheadroom.lab.environment import describe_machine
from pgheadroom.lab.environment_form import Environment, joined
from pgheadroom.lab.experiment import Experiment
from pgheadroom.lab.experiments import get
from pgheadroom.lab.place import OwnPlace, Place
from pgheadroom.lab.record import Record, TrialSample
from pgheadroom.lab.result import ExperimentResult, SeriesFile, Surroundings, levels_of
from pgheadroom.lab.several_places import SeveralPlaces
from pgheadroom.progress import RunState
from pgheadroom.schedule import run_pieces
from pgheadroom.servers import BorrowedServer, Host, find_programs, is_connection
from pgheadroom.types import PgVersion

_STOPPED_AMONG_FURTHER = (
    "The run was stopped among the blocks that its budget adds: the same command goes on with "
    "them, and without a budget it ends here."
)


@contextmanager
def place_for(server: str) -> Iterator[Place]:
    """
    The place that `--server` names: a version, a folder, or a connection.

    Raises:
        LabError: No such server, or it does not start.
        SourceError: The connection fails, or lacks the right to create a database.
    """
    if is_connection(server):
        with BorrowedServer(server) as borrowed:
            yield BorrowedPlace(borrowed)
    else:
        with Host(find_programs(server)) as host:
            yield OwnPlace(host)


@contextmanager
def places_for(servers: Sequence[str]) -> Iterator[Place]:
    """
    One place of several throw-away servers, for an experiment that compares them.

    Raises:
        LabError: No such server.
        InputError: One is a connection.
    """
    with ExitStack() as stack:
        places: dict[str, OwnPlace] = {}
        for server in servers:
            if is_connection(server):
                raise InputError(
                    "a server that is a level of a factor must be one of ours: expected a version "
                    "or a folder with server programs, not a connection"
                )
            places[server] = OwnPlace(stack.enter_context(Host(find_programs(server))))
        yield SeveralPlaces(places)


def find_record(request: Request, *, parent: Path, fresh: bool) -> Path:
    """
    The folder for this request: an unfinished record of the same request, else a new one.

    Args:
        request: What is asked.
        parent: Where records lie by default.
        fresh: Begin anew whatever lies there.
    """
    if not fresh and parent.is_dir():
        for folder in sorted(parent.glob(f"*-{request.experiment}*"), reverse=True):
            if _is_unfinished(folder, request):
                return folder
    stamp = datetime.datetime.now().astimezone().strftime("%Y-%m-%d-%H%M%S")
    folder = parent / f"{stamp}-{request.experiment}"
    number = 2
    while folder.exists():
        folder = parent / f"{stamp}-{request.experiment}-{number}"
        number += 1
    return folder


def _is_unfinished(folder: Path, request: Request) -> bool:
    try:
        record = Record.open(folder)
        return record.request == request and not _is_settled(record, request)
    except (InputError, KeyError):
        return False  # a damaged record is left alone, a new one begins


def _is_settled(record: Record, request: Request) -> bool:
    """Whether a result says all: of the whole plan, and of a budget's blocks that have ended."""
    if not (record.folder / "result.json").exists() or not record.read_result().complete:
        return False
    return conduct.read(record, request).ended


def run(
    request: Request,
    folder: Path,
    *,
    server: str,
    command: str,
    report: Callable[[RunState], None],
    budget_s: float | None = None,
    executor: Executor | None = None,
) -> ExperimentResult:
    """
    Play all trials of a request that the record does not hold yet, and write the result.

    Args:
        request: What to run.
        folder: The record folder; created, or gone on with.
        server: Where: a version, a folder, or a connection with whatever it needs to connect.
        command: The command line, for the record, without secrets.
        report: Called before the first and after each trial.
        budget_s: No block of trials begins after this time; what is left of it after the planned
            blocks goes to further ones, until every comparison is answered.
        executor: Where trials run; one at a time in this thread when None.

    Returns:
        The result, as in `result.json`.

    Raises:
        HeadroomError: Whatever stops the run; the finished trials are kept.
    """
    experiment = get(request.experiment)
    started = time.monotonic()
    with ExitStack() as stack:
        # The place first: a server that cannot be had leaves no empty record behind.
        servers = [str(level) for level in request.levels.get("server", ())]
        place = stack.enter_context(places_for(servers) if servers else place_for(server))
        experiment.check(request, place.version, throw_away=place.throw_away)
        record = stack.enter_context(Record.create(folder, request))
        _check_server(record, place)
        trials = _remaining(experiment, request, record)
        player = _Player(experiment, request, place, record, command)
        total = len(experiment.trials(request))
        report(_progress(experiment, request, record, total, "loading"))
        ends = None if budget_s is None else started + budget_s
        keep = budget_s is not None and request.repetitions > 1
        for trial, sample in run_pieces(player.play, _within(trials, ends), executor=executor):
            record.append(sample)
            if not keep:
                player.drop_unneeded(trial, trials)
            report(_progress(experiment, request, record, total, trial.id))
        whole = not _remaining(experiment, request, record)
        if whole and keep and ends is not None:
            conduct.write(record, conduct.so_far(record, request), ended=False)
            further = _further(experiment, request, record, place.version, ends)
            for trial, sample in run_pieces(player.play, further, executor=executor):
                record.append(sample)
                total = len(record.samples)
                report(_progress(experiment, request, record, total, trial.id))
            why = conduct.why_stopped(_open(experiment, request, record, place.version))
            conduct.write(record, f"{conduct.so_far(record, request)}; {why}")
        elif whole and budget_s is None and not conduct.read(record, request).ended:
            said = conduct.so_far(record, request)
            conduct.write(record, f"{said}; stopped there, and ended without a budget")
        return summarise_into(experiment, request, record, place.version)


def _within(trials: Sequence[Trial], ends: float | None) -> Iterator[Trial]:
    """Trials until the budget is spent; a block that has begun is finished, unless it is all."""
    last = None
    one_block = len({trial.repetition for trial in trials}) == 1
    for trial in trials:
        over = ends is not None and time.monotonic() > ends
        if over and last is not None and (one_block or trial.repetition != last):
            return
        last = trial.repetition
        yield trial


def _further(
    experiment: Experiment, request: Request, record: Record, version: PgVersion, ends: float
) -> Iterator[Trial]:
    """Trials of further blocks, while there is time and something is not answered."""
    number = 1 + max((sample.repetition for sample in record.samples), default=0)
    while time.monotonic() < ends:
        open_ = _open(experiment, request, record, version)
        if not open_:
            return
        pilot = [replace(trial, repetition=number) for trial in experiment.one_block(request)]
        yield from budget.next_block(request, pilot, open_)
        number += 1


def _open(
    experiment: Experiment, request: Request, record: Record, version: PgVersion
) -> list[budget.Open]:
    """What is not answered: comparisons, or the controls of an experiment that has only those."""
    summary = experiment.summarise(request, version, record.samples)
    return budget.unanswered(summary.comparisons or summary.controls)


def _check_server(record: Record, place: Place) -> None:
    """A record that goes on must go on with the same server version."""
    environment = record.read_environment()
    if environment is not None and environment.server != str(place.version):
        raise InputError(
            f"{record.folder} was begun on PostgreSQL {environment.server} and the server is "
            f"now {place.version}: name the former by `server`, or begin anew by `fresh`",
            mentions=("server", "fresh"),
        )


def _remaining(experiment: Experiment, request: Request, record: Record) -> list[Trial]:
    done = {sample.trial for sample in record.samples}
    return [trial for trial in experiment.trials(request) if trial.id not in done]


def _progress(
    experiment: Experiment, request: Request, record: Record, total: int, text: str
) -> RunState:
    done = len(record.samples)
    mean_s = (
        sum(sample.duration_s for sample in record.samples) / done
        if done
        else experiment.trial_s(request)
    )
    left_s = (total - done) * mean_s
    return RunState(done=done, total=total, left_s=left_s, text=text)


class _Player:
    """Plays one trial after another and writes what surrounds the samples."""

    def __init__(
        self, experiment: Experiment, request: Request, place: Place, record: Record, command: str
    ) -> None:
        self._experiment = experiment
        self._request = request
        self._place = place
        self._record = record
        self._command = command

    def play(self, trial: Trial) -> TrialSample:
        """Run one trial; an error of the server or the workload ends the run."""
        started_at = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        start = time.monotonic()
        busy_frac = guards.host_busy_frac()
        try:
            outcome = self._experiment.measure(self._request, self._place, trial)
        except LabError as error:
            error.add_note(f"in trial {trial.id}")
            raise
        if outcome.environment is not None:
            known = self._record.read_environment()
            if known is None:
                machine = describe_machine(self._place.folder or self._record.folder)
                known = Environment.of(
                    outcome.environment,
                    machine,
                    server=str(self._place.version),
                    command=self._command,
                )
                self._record.write_environment(known)
            elif (both := joined(known, outcome.environment)) != known:
                self._record.write_environment(both)
        if outcome.series is not None:
            self._record.write(f"series/{trial.id}.json", outcome.series.to_json())
        return TrialSample(
            trial=trial.id,
            cell=dict(trial.cell),
            repetition=trial.repetition,
            arm=trial.arm,
            started_at=started_at,
            duration_s=round(time.monotonic() - start, 3),
            measures={**outcome.measures, guards.BUSY_MEASURE: busy_frac},
            notes=outcome.notes,
            assumed=outcome.assumed,
        )

    def drop_unneeded(self, trial: Trial, trials: Sequence[Trial]) -> None:
        """Free the shape of `trial` when no later one starts from it."""
        name = self._experiment.shape_name(trial)
        later = trials[trials.index(trial) + 1 :]
        if all(self._experiment.shape_name(other) != name for other in later):
            self._place.drop(name)


def summarise_into(
    experiment: Experiment, request: Request, record: Record, version: PgVersion
) -> ExperimentResult:
    """
    Summarise the samples of a record into `result.json`.

    Returns:
        The result; `complete` is false when trials of the plan are missing, or a budget's further
        blocks were stopped.
    """
    samples = record.samples
    missing = _missing(experiment, request, record)
    environment = record.read_environment()
    summary = experiment.summarise(request, version, samples)
    known = conduct.read(record, request)
    assumed = {name: how for sample in samples for name, how in sample.assumed.items()}
    if known.repetitions is not None:
        assumed["repetitions"] = known.repetitions
    warnings = [
        *known.warnings,
        *([] if environment is None else guards.assertions(environment)),
        *summary.warnings,
    ]
    if any(measure.is_clock for measure in experiment.measures):
        warnings.extend(guards.quiet_host(samples))
    warnings.extend(dict.fromkeys(note for sample in samples for note in sample.notes))
    if missing:
        warnings.insert(0, f"{missing} of the planned trials have not run: the result is partial.")
    elif not known.ended:
        warnings.insert(0, _STOPPED_AMONG_FURTHER)
    result = ExperimentResult(
        tool_version=pgheadroom.__version__,
        name=experiment.name,
        title=experiment.title,
        question=experiment.question,
        source=experiment.source,
        server=str(version),
        command=None if environment is None else environment.command,
        seed=request.seed,
        scale=request.scale,
        repetitions=request.repetitions,
        started_at=samples[0].started_at if samples else None,
        duration_s=round(sum(sample.duration_s for sample in samples), 1),
        complete=missing == 0 and known.ended,
        factors=tuple(
            levels_of(factor, request.levels[factor.name])
            for factor in experiment.factors_for(request.levels)
            if factor.name in request.levels
        ),
        options=dict(request.options),
        measures=experiment.measures,
        cells=tuple(summary.cells),
        comparisons=tuple(summary.comparisons),
        controls=tuple(summary.controls),
        references=tuple(summary.references),
        findings=tuple(summary.findings),
        warnings=tuple(warnings),
        assumed=assumed,
        environment=Surroundings() if environment is None else environment.surroundings(),
        series=tuple(_series(record)),
    )
    shown = experiment.presentation(result).to_json()
    result = replace(result, presentation=shown)
    record.write("result.json", result.to_json())
    return result


def _series(record: Record) -> Iterator[SeriesFile]:
    """Where the series of each sample lie, those of the measured arm first."""
    for sample in sorted(record.samples, key=lambda sample: sample.arm != "measured"):
        name = f"series/{sample.trial}.json"
        if (record.folder / name).exists():
            yield SeriesFile(cell=sample.cell, repetition=sample.repetition, file=name)


def _missing(experiment: Experiment, request: Request, record: Record) -> int:
    """
    How many trials of the plan have not run.

    Raises:
        InputError: A sample is of no trial of the plan, nor of a further block.
    """
    trials = experiment.trials(request)
    planned = {trial.id for trial in trials}
    arms = {(cell_key(trial.cell), trial.arm) for trial in trials}
    for sample in record.samples:
        further = sample.repetition > request.repetitions
        if sample.trial not in planned and not (
            further and (cell_key(sample.cell), sample.arm) in arms
        ):
            raise InputError(
                f"{record.folder / 'samples.jsonl'} is damaged: {sample.trial} is no trial of its "
                "request; restore the record from a copy, or remove that line"
            )
    return len(planned - {sample.trial for sample in record.samples})


def summarise_record(folder: Path) -> Record:
    """
    Open a record and make sure it has a result: that of a stopped run is made from its samples.

    Raises:
        InputError: No record, a damaged one, or one without a finished trial.
    """
    record = Record.open(folder)
    request = record.request
    if _is_settled(record, request):
        return record
    environment = record.read_environment()
    if environment is None or not record.samples:
        raise InputError(
            f"{folder} has no finished trial yet: run it on with the command that began it"
        )
    experiment = get(request.experiment)
    check_request(request, experiment.factors_for(request.levels), experiment.options)
    summarise_into(experiment, request, record, PgVersion.parse(environment.server))
    return record
