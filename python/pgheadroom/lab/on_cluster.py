"""
Trials on the workers of a Dask cluster, seen from the run.

Only the run writes its record: a worker gives back a trial's sample, and one that dies before has
given nothing, so that its trial is played again, whole. Each trial is handed out once, and the
result of that call is taken once, however often it was played.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Self

from pgheadroom.errors import InputError, LabError
from pgheadroom.lab.design import Request, Trial
from pgheadroom.lab.environment_form import Machine
from pgheadroom.lab.on_worker import TrialJob, let_go, look, play_job
from pgheadroom.lab.opening import servers_of
from pgheadroom.lab.playing import Needed
from pgheadroom.lab.record import Record
from pgheadroom.schedule import Lane
from pgheadroom.schedule.scheduler import Scheduler
from pgheadroom.servers import is_connection
from pgheadroom.types import PgVersion


class PlayersOnCluster:
    """
    Plays trials on workers; a context manager, after which nothing of the run is left on them.

    Args:
        request: What was asked.
        server: A version, or a folder that each worker has.
        scheduler: Connected.
        labels: Of the workers to use; nothing: all.
    """

    throw_away = True

    def __init__(
        self,
        request: Request,
        server: str,
        scheduler: Scheduler,
        labels: Sequence[str],
    ) -> None:
        if any(map(is_connection, (server, *servers_of(request)))):
            raise InputError(
                "a cluster's workers start servers of their own, and `server` is a connection: "
                "expected a version or a folder with server programs",
                mentions=("server",),
            )
        self.play = play_job
        self.tick: Callable[[], None] | None = _tick
        self._request = request
        self._server = server
        self._scheduler = scheduler
        self._run = secrets.token_hex(8)
        chosen = scheduler.chosen(labels)
        self._labels = chosen
        self.labels: tuple[str | None, ...] = chosen
        self.version = PgVersion.parse(self._looked_at())

    def _looked_at(self) -> str:
        """The version of the server, which is the same on all workers."""
        found = self._scheduler.on_each(look, self._request, self._server, labels=self._labels)
        if not found:
            raise LabError("all workers have left the cluster: start them, and try again")
        first, expected = next(iter(found.items()))
        for name, version in found.items():
            if version != expected:
                raise LabError(
                    f"worker {name} has PostgreSQL {version} and worker {first} {expected}: "
                    "expected one version"
                )
        return expected

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._scheduler.tell_each(let_go, self._run)

    def lanes(
        self, trials: Callable[[str | None], Iterator[Trial]], needed: Needed
    ) -> list[Lane[TrialJob]]:
        """One for each label, as many trials at a time as it has workers."""
        return [
            Lane(
                pieces=self._jobs(label, trials(label), needed),
                executor=self._scheduler.executor(label),
                in_flight=partial(self._scheduler.count, label),
            )
            for label in self._labels
        ]

    def _jobs(self, label: str, trials: Iterator[Trial], needed: Needed) -> Iterator[TrialJob]:
        for trial in trials:
            yield TrialJob(
                run=self._run,
                request=self._request,
                server=self._server,
                version=str(self.version),
                label=label,
                trial=trial,
                needed=needed(),
            )

    def at_once(self) -> int:
        """All workers play."""
        return sum(map(self._scheduler.count, self._labels))

    def drop_unneeded(self, trial: Trial, needed: Needed) -> None:
        """Workers are told with each trial what is still needed."""

    def machine(self, record: Record) -> Machine:  # noqa: ARG002 - as those who play here
        """There is more than one, and each trial says which was its own."""
        raise AssertionError("a worker's trial comes with its machine")


def _tick() -> None:
    """Nothing, but so often that a label which has lost its last worker is noticed."""
