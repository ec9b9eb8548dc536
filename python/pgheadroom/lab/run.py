"""
Run an experiment: plan, play each trial, keep every sample, summarise.

Nothing here knows a particular experiment. A run that ends early, by Ctrl-C, by its budget or by
an error, keeps its finished trials; asking the same again goes on with the rest.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pgheadroom
from pgheadroom.errors import InputError
from pgheadroom.lab import conduct, guards, handout, playing
from pgheadroom.lab.design import Request, Trial, cell_key, check_request
from pgheadroom.lab.experiment import Experiment
from pgheadroom.lab.experiments import get
from pgheadroom.lab.on_cluster import PlayersOnCluster
from pgheadroom.lab.opening import opened
from pgheadroom.lab.playing import Players, PlayersHere
from pgheadroom.lab.record import Record
from pgheadroom.lab.result import ExperimentResult, SeriesFile, Surroundings, levels_of
from pgheadroom.lab.stored import RecordPlace
from pgheadroom.progress import RunState
from pgheadroom.schedule import run_lanes
from pgheadroom.schedule.scheduler import Scheduler
from pgheadroom.types import PgVersion

_STOPPED_AMONG_FURTHER = (
    "The run was stopped among the blocks that its budget adds: the same command goes on with "
    "them, and without a budget it ends here."
)


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
    place: RecordPlace,
    *,
    server: str,
    command: str,
    report: Callable[[RunState], None],
    budget_s: float | None = None,
    scheduler: str | None = None,
    labels: Sequence[str] = (),
) -> ExperimentResult:
    """
    Play all trials of a request that the record does not hold yet, and write the result.

    Args:
        request: What to run.
        place: Of the record; it is created, or gone on with.
        server: Where: a version, a folder, or a connection with whatever it needs to connect.
        command: The command line, for the record, without secrets.
        report: Called before the first and after each trial.
        budget_s: No block of trials begins after this time; what is left of it after the planned
            blocks goes to further ones, until every comparison is answered.
        scheduler: A Dask cluster's, whose workers play the trials; one at a time here when None.
        labels: Of the workers to use; nothing: all.

    Returns:
        The result, as in `result.json`.

    Raises:
        HeadroomError: Whatever stops the run; the finished trials are kept.
    """
    experiment = get(request.experiment)
    started = time.monotonic()
    with ExitStack() as stack:
        # The place first: a server that cannot be had leaves no empty record behind.
        players = stack.enter_context(_players(experiment, request, server, scheduler, labels))
        experiment.check(request, players.version, throw_away=players.throw_away)
        record = stack.enter_context(Record.create(place, request))
        _check_server(record, players.version)
        going = _Going(experiment, request, record, players, command, report)
        ends = None if budget_s is None else started + budget_s
        goes_on = ends is not None and request.repetitions > 1
        going.say("loading")
        going.play(handout.planned(going.remaining(), ends), keep=goes_on)
        whole = not going.remaining()
        if whole and ends is not None and goes_on:
            conduct.write(record, conduct.so_far(record, request), ended=False)
            going.play(
                handout.further(experiment, request, record, players.version, ends), keep=True
            )
            open_ = handout.unanswered(experiment, request, record, players.version)
            said = conduct.so_far(record, request)
            conduct.write(record, f"{said}; {conduct.why_stopped(open_)}")
        elif whole and ends is None and not conduct.read(record, request).ended:
            said = conduct.so_far(record, request)
            conduct.write(record, f"{said}; stopped there, and ended without a budget")
        return summarise_into(experiment, request, record, players.version)


@contextmanager
def _players(
    experiment: Experiment,
    request: Request,
    server: str,
    scheduler: str | None,
    labels: Sequence[str],
) -> Iterator[Players]:
    """Whoever plays the trials."""
    if scheduler is None:
        with opened(request, server) as place:
            yield PlayersHere(experiment, request, place)
        return
    with (
        Scheduler(scheduler) as found,
        found.translated(),
        PlayersOnCluster(request, server, found, labels) as players,
    ):
        yield players


class _Going:
    """A run on its way: plays blocks, keeps each trial, says how far it is."""

    def __init__(
        self,
        experiment: Experiment,
        request: Request,
        record: Record,
        players: Players,
        command: str,
        report: Callable[[RunState], None],
    ) -> None:
        self._experiment = experiment
        self._request = request
        self._record = record
        self._players = players
        self._command = command
        self._report = report
        self._planned = experiment.trials(request)

    def remaining(self) -> list[Trial]:
        """Trials of the plan that have not run."""
        done = {sample.trial for sample in self._record.samples}
        return [trial for trial in self._planned if trial.id not in done]

    def play(self, blocks: Iterator[list[Trial]], *, keep: bool) -> None:
        """
        Play blocks, each on machines of one label.

        Args:
            blocks: Taken when there is room for one.
            keep: Whether further blocks may start from any shape.
        """
        players, record = self._players, self._record
        owners = handout.owners_of(record.samples)
        handout.check_owners(record, self.remaining(), owners, players.labels)
        of_label = handout.Handout(blocks, owners).trials

        def needed() -> frozenset[str] | None:
            return None if keep else frozenset(map(self._experiment.shape_name, self.remaining()))

        by_id = {trial.id: trial for trial in self._planned}
        for _, played in run_lanes(
            players.play, players.lanes(of_label, needed), tick=players.tick
        ):
            playing.keep(record, played, players, command=self._command)
            trial = played.sample.trial
            if trial in by_id:
                players.drop_unneeded(by_id[trial], needed)
            self.say(trial)

    def say(self, text: str) -> None:
        """Report how far the run is."""
        done = len(self._record.samples)
        total = max(done, len(self._planned))
        mean_s = (
            sum(sample.duration_s for sample in self._record.samples) / done
            if done
            else self._experiment.trial_s(self._request)
        )
        left_s = (total - done) * mean_s / self._players.at_once()
        self._report(RunState(done=done, total=total, left_s=left_s, text=text))


def _check_server(record: Record, version: PgVersion) -> None:
    """A record that goes on must go on with the same server version."""
    environment = record.read_environment()
    if environment is not None and environment.server != str(version):
        raise InputError(
            f"{record.name} was begun on PostgreSQL {environment.server} and the server is "
            f"now {version}: name the former by `server`, or begin anew by `fresh`",
            mentions=("server", "fresh"),
        )


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
        warnings.extend([] if environment is None else guards.several_machines(environment))
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


def summarise_record(place: RecordPlace) -> Record:
    """
    Open a record and make sure it has a result: that of a stopped run is made from its samples.

    Raises:
        InputError: No record, a damaged one, or one without a finished trial.
    """
    record = Record.open(place)
    request = record.request
    if _is_settled(record, request):
        return record
    environment = record.read_environment()
    if environment is None or not record.samples:
        raise InputError(
            f"{place} has no finished trial yet: run it on with the command that began it"
        )
    experiment = get(request.experiment)
    check_request(request, experiment.factors_for(request.levels), experiment.options)
    summarise_into(experiment, request, record, PgVersion.parse(environment.server))
    return record
