"""
One trial played, and what becomes of it: the sample, its series, and the surroundings of the run.

`play` runs where the server is, which may be another machine; `keep` writes, and is the run's own.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from pgheadroom.errors import LabError
from pgheadroom.lab import guards
from pgheadroom.lab.design import Request, Trial
from pgheadroom.lab.environment import describe_machine
from pgheadroom.lab.environment_form import (
    Environment,
    Machine,
    ServerFound,
    WorkerMachine,
    joined,
    with_worker,
)
from pgheadroom.lab.experiment import Experiment
from pgheadroom.lab.place import Place
from pgheadroom.lab.record import Record, SecondsSeries, TrialSample
from pgheadroom.schedule import Lane
from pgheadroom.types import PgVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedTrial:
    """A trial's sample, series and server, and its worker's machine; None where it has none."""

    sample: TrialSample
    series: SecondsSeries | None = None
    environment: ServerFound | None = None
    worker: WorkerMachine | None = None


Needed = Callable[[], frozenset[str] | None]
"""Names of the shapes that trials which have not ended start from; None: all may be needed."""


class Players(Protocol):
    """
    What plays the trials of a run.

    Attributes:
        version: Of the server.
        throw_away: Whether it is one of ours.
        labels: Of the machines; the one of this machine is None.
        tick: Called several times a second while trials are played elsewhere, if there is one.
    """

    version: PgVersion
    throw_away: bool
    labels: tuple[str | None, ...]
    tick: Callable[[], None] | None

    @property
    def play(self) -> Callable[[Any], PlayedTrial]:
        """Plays a piece of one of the lanes."""
        ...

    def lanes(self, trials: Callable[[str | None], Iterator[Trial]], needed: Needed) -> list[Any]:
        """One for each label, with the trials that are for it."""
        ...

    def at_once(self) -> int:
        """How many trials are played at a time."""
        ...

    def drop_unneeded(self, trial: Trial, needed: Needed) -> None:
        """Free what a trial that has ended started from, unless others need it."""
        ...

    def machine(self, record: Record) -> Machine:
        """The machine that all of this runs on, where it is one."""
        ...


class PlayersHere:
    """Plays one trial after another in this thread."""

    labels: tuple[str | None, ...] = (None,)
    tick: Callable[[], None] | None = None

    def __init__(self, experiment: Experiment, request: Request, place: Place) -> None:
        self._experiment = experiment
        self._request = request
        self._place = place
        self.version = place.version
        self.throw_away = place.throw_away

    def play(self, trial: Trial) -> PlayedTrial:
        """Run one trial; an error of the server or the workload ends the run."""
        return play(self._experiment, self._request, self._place, trial)

    def lanes(
        self,
        trials: Callable[[str | None], Iterator[Trial]],
        needed: Needed,  # noqa: ARG002 - asked after each trial
    ) -> list[Lane[Trial]]:
        """All trials, one at a time."""
        return [Lane(pieces=trials(None))]

    def at_once(self) -> int:
        """Two at once would disturb each other."""
        return 1

    def drop_unneeded(self, trial: Trial, needed: Needed) -> None:
        """Free the shape of `trial` when no later one starts from it."""
        name, others = self._experiment.shape_name(trial), needed()
        if others is not None and name not in others:
            self._place.drop(name)

    def machine(self, record: Record) -> Machine:
        """This one, with the disk that trials use."""
        return describe_machine(self._place.folder or record.folder)


def play(experiment: Experiment, request: Request, place: Place, trial: Trial) -> PlayedTrial:
    """
    Play one trial.

    Raises:
        LabError: The server or the workload failed; it has a note of the trial.
    """
    started_at = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    start = time.monotonic()
    busy_frac = guards.host_busy_frac()
    try:
        outcome = experiment.measure(request, place, trial)
    except LabError as error:
        error.add_note(f"in trial {trial.id}")
        raise
    sample = TrialSample(
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
    return PlayedTrial(sample=sample, series=outcome.series, environment=outcome.environment)


def keep(record: Record, played: PlayedTrial, players: Players, *, command: str) -> None:
    """
    Write what a trial gave into the record, the sample last: with it the trial is done.

    Args:
        record: Open for writing.
        played: The trial.
        players: Who played it.
        command: The command line, without secrets.

    Raises:
        DiskFull: No room; the trial has then not run.
    """
    known = before = record.read_environment()
    if known is None and played.environment is not None:
        worker = played.worker
        known = Environment.of(
            played.environment,
            players.machine(record) if worker is None else worker.machine,
            server=str(players.version),
            command=command,
        )
    elif known is not None and played.environment is not None:
        known = joined(known, played.environment)
    if known is not None and played.worker is not None:
        assert played.sample.ran_on is not None, "a worker's sample says which one it was"
        known = with_worker(known, played.sample.ran_on.worker, played.worker)
    if known is not None and known != before:
        record.write_environment(known)
    if played.series is not None:
        record.write(f"series/{played.sample.trial}.json", played.series.to_json())
    record.append(played.sample)
