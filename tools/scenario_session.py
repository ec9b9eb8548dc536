"""
Sessions that work side by side, one statement at a time, in an order that is given.

Each has a thread that sends its statements, so that one that waits for another session holds up
nobody else. Whether it waits is asked of the server, in another database, so that asking disturbs
nothing: a statement is over, or some session blocks it, or it is still at work.

Source: `isolation_init` and `try_complete_step`, src/test/isolation/isolationtester.c
(REL_18_STABLE), for what has to be decided; nothing here depends on how long anything takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import psycopg

from pgheadroom.errors import MeasurementInvalid

_POLL_S = 0.002
_GIVE_UP_S = 60.0  # nothing here takes a tenth of a second; arbitrary

NEVER = "1d"
"""A session's deadlock_timeout where it is another one that looks for deadlocks."""
AT_ONCE = "10ms"
"""The same where it is this one; the others have waited for longer by then."""


@dataclass(slots=True)
class Done:
    """
    What became of a step.

    `outcomes` has for each statement the rows that it found, or the SQLSTATE that it failed with.
    Where it `waits`, `waited_for` are the sessions that blocked it when the next step began, and
    `ended_in` is the step in which it went on to its end.
    """

    step: int
    session: int
    waits: bool
    outcomes: list[int | str] = field(default_factory=list)
    waited_for: list[int] = field(default_factory=list)
    ended_in: int | None = None

    def as_json(self) -> list[Any]:
        """As in the golden file."""
        waited = [self.waited_for, self.ended_in] if self.waits else []
        return [self.step, self.session, self.outcomes, *waited]


class Session:
    """A session, which does one thing at a time."""

    def __init__(self, number: int, connection: psycopg.Connection[Any]) -> None:
        self.number = number
        self.connection = connection
        self.pid = connection.info.backend_pid
        self.found: str | None = None
        self.waiting: tuple[Future[None], Done] | None = None
        self._thread = ThreadPoolExecutor(1)

    def begin(self, done: Done, work: Callable[[], None]) -> None:
        """Start a step."""
        if self.waiting is not None:
            raise MeasurementInvalid(f"step[{done.step}] is of a session that still waits")
        self.waiting = (self._thread.submit(work), done)

    def is_over(self) -> bool:
        """Whether its step has ended; raises what went wrong in it."""
        if self.waiting is None:
            return True
        future, _ = self.waiting
        if not future.done():
            return False
        self.waiting = None
        future.result()
        return True

    def close(self) -> None:
        """End the session."""
        self.connection.close()
        self._thread.shutdown()


class Sessions:
    """All sessions of a history."""

    def __init__(self, connect: Callable[[int], Session], monitor: psycopg.Connection[Any]) -> None:
        self._connect = connect
        self._monitor = monitor
        self._open: dict[int, Session] = {}

    def get(self, number: int) -> Session:
        """A session, which begins with its first step."""
        if number not in self._open:
            self._open[number] = self._connect(number)
        return self._open[number]

    def reconnect(self, number: int) -> None:
        """A session ends, and another one goes on in its place."""
        self._open.pop(number).close()

    def close(self) -> None:
        """
        End all.

        Raises:
            MeasurementInvalid: One still waits.
        """
        waiting = [number for number, session in self._open.items() if session.waiting]
        for session in self._open.values():
            if waiting:
                self._monitor.execute("SELECT pg_terminate_backend(%s)", (session.pid,))
            session.close()
        self._open.clear()
        if waiting:
            raise MeasurementInvalid(f"the sessions {waiting} wait when all steps are played")

    def settle(self, step: int, *, waits: bool, session: Session) -> None:
        """
        Wait until a step has ended, or waits for another session, as it has to.

        Those that waited and are free again have then ended too, or wait anew.

        Raises:
            MeasurementInvalid: It ended where it had to wait, or the other way round.
        """
        deadline = time.monotonic() + _GIVE_UP_S
        while True:
            states = {number: self._state(one, step) for number, one in self._open.items()}
            own = states[session.number]
            if waits and own in ("ended", "idle"):
                raise MeasurementInvalid(f"step[{step}] had to wait for another session and ended")
            is_settled = not {"working", "ended"} & set(states.values())
            if is_settled and own == ("blocked" if waits else "idle"):
                return
            if time.monotonic() > deadline:
                raise MeasurementInvalid(f"step[{step}] does not come to its end: {states}")
            if "ended" not in states.values():
                time.sleep(_POLL_S)

    def _state(self, session: Session, step: int) -> str:
        if session.waiting is None:
            return "idle"
        done = session.waiting[1]
        blockers = self._blockers(session)
        if session.is_over():
            if done.waits:
                done.ended_in = step
            return "ended"
        if not blockers:
            return "working"
        if done.waits and not done.waited_for:
            done.waited_for = blockers
        return "blocked"

    def _blockers(self, session: Session) -> list[int]:
        """The sessions that it waits for."""
        row = self._monitor.execute("SELECT pg_blocking_pids(%s)", (session.pid,)).fetchone()
        assert row is not None, "a SELECT without FROM returns one row"
        numbers = {one.pid: number for number, one in self._open.items()}
        return sorted(numbers[pid] for pid in row[0])
