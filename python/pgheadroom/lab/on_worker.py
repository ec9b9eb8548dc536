"""
Trials on a worker of a cluster: what runs there, and what it keeps from one trial to the next.

A worker plays one trial at a time, whatever threads it has. Of the run that it plays for it keeps
the place, a throw-away host with the shapes that are loaded, until the run lets go of it, another
run comes, or nothing has come for ten minutes. Nothing here sets a signal: a worker's calls are not
in its main thread. What a killed worker leaves is its watchdog's matter.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import ExitStack
from dataclasses import dataclass, replace

from pgheadroom.errors import HeadroomError, LabError
from pgheadroom.lab.design import Request, Trial
from pgheadroom.lab.environment import describe_machine
from pgheadroom.lab.environment_form import WorkerMachine
from pgheadroom.lab.experiments import get
from pgheadroom.lab.opening import opened, servers_of
from pgheadroom.lab.playing import PlayedTrial, play
from pgheadroom.lab.record import RanOn
from pgheadroom.servers import find_programs

IDLE_S = 600.0
"""How long a worker keeps a place that nobody uses: a run that was killed cannot let go of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialJob:
    """
    A trial for a worker.

    Attributes:
        run: Which run it is of.
        request: What was asked.
        server: A version, or a folder there.
        version: Of that server, the same on all workers.
        label: Of the worker.
        trial: What to play.
        needed: The shapes that later trials start from; None: all may be needed.
    """

    run: str
    request: Request
    server: str
    version: str
    label: str
    trial: Trial
    needed: frozenset[str] | None


async def look(request: Request, server: str) -> str:
    """
    The version of the server that this worker would play on.

    Raises:
        LabError: It has no such server.
    """
    servers = servers_of(request) or (server,)
    found = [await asyncio.to_thread(find_programs, each) for each in servers]
    return str(found[0].version)


def play_job(job: TrialJob) -> PlayedTrial:
    """
    Play a trial here.

    Raises:
        LabError: The run is over, or the server is another one, or the trial failed.
    """
    from distributed import get_worker  # noqa: PLC0415 - an extra, and we are on a worker

    name = str(get_worker().name)
    try:
        with _playing:
            held = _taken(job)
            try:
                played = held.play(job)
            finally:
                held.rest()
    except HeadroomError as error:
        error.add_note(f"on worker {name}, label {job.label}")
        raise
    return replace(
        played, sample=replace(played.sample, ran_on=RanOn(label=job.label, worker=name))
    )


async def let_go(run: str) -> None:
    """End a run on this worker: what it plays of it ends, and what it keeps for it is removed."""
    await asyncio.to_thread(_end, run)


class _Held:
    """The place of one run, open."""

    def __init__(self, job: TrialJob) -> None:
        self.run = job.run
        self._experiment = get(job.request.experiment)
        self._stack = ExitStack()
        self._place = self._stack.enter_context(opened(job.request, job.server))
        self._machine: WorkerMachine | None = None
        self._shapes: set[str] = set()
        self._timer: threading.Timer | None = None
        self.in_use = False

    def play(self, job: TrialJob) -> PlayedTrial:
        if str(self._place.version) != job.version:
            raise LabError(
                f"the server here is PostgreSQL {self._place.version}, and the run's is "
                f"{job.version}: expected the same on all workers"
            )
        if job.needed is not None:
            for name in self._shapes - job.needed:
                self._place.drop(name)
            self._shapes &= job.needed
        self._shapes.add(self._experiment.shape_name(job.trial))
        played = play(self._experiment, job.request, self._place, job.trial)
        if self._machine is None:
            assert self._place.folder is not None, "a throw-away host has a folder"
            self._machine = WorkerMachine(
                label=job.label,
                host=socket.gethostname(),
                machine=describe_machine(self._place.folder),
            )
        return replace(played, worker=self._machine)

    def wake(self) -> None:
        self.in_use = True
        if self._timer is not None:
            self._timer.cancel()

    def rest(self) -> None:
        self.in_use = False
        self._timer = threading.Timer(IDLE_S, _forget, [self])
        self._timer.daemon = True  # a worker that ends does not wait for it
        self._timer.start()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._stack.close()


_playing = threading.Lock()
_holding = threading.Lock()
"""Guards what follows."""
_held: list[_Held] = []
"""One, or none."""
_ended: set[str] = set()


def _taken(job: TrialJob) -> _Held:
    """The place of the job's run, opened if there is none yet; another run's is closed."""
    with _holding:
        if job.run in _ended:
            raise LabError("the run is over")
        if _held and _held[0].run != job.run:
            _held.pop().close()
        if not _held:
            _held.append(_Held(job))
        _held[0].wake()
        return _held[0]


def _end(run: str) -> None:
    with _holding:
        _ended.add(run)
        closing = [held for held in _held if held.run == run]
        _held[:] = [held for held in _held if held.run != run]
    for held in closing:
        held.close()


def _forget(held: _Held) -> None:
    """Close a place that nobody has used for a while."""
    with _holding:
        if held.in_use or held not in _held:
            return
        _held.remove(held)
    held.close()
