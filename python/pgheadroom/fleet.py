"""
Several servers at once, side by side: which they are, and what each answers.

    asked_of(CONN..., service_file) -> targets -> ask_all(question, targets) -> answers, in order

A server that does not answer stops nothing: its error is its answer. The work goes through
`schedule`, a thread for each server that is being asked: threads wait for servers and do little
else. Ctrl-C ends everybody's pause, so that each tells what it has found until then. An executor
that is given asks from elsewhere, where no password goes.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from pgheadroom.errors import InputError, SourceError
from pgheadroom.input_file import read_text
from pgheadroom.redaction import redacted, redacted_argument, secrets_of
from pgheadroom.schedule import run_pieces

AT_ONCE = 16
"""Servers that are asked at a time: each holds one connection and one thread here. Arbitrary."""
_FILE_BYTES_MAX = 1024**2  # thousands of services; arbitrary
_SECTION = re.compile(r"\[(?P<name>[^\]]*)\]")

ValueT = TypeVar("ValueT")
Pause = Callable[[float], None]
"""Waits so many seconds; raises KeyboardInterrupt where somebody ends all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetServer:
    """
    A server to ask.

    Attributes:
        name: As it was asked for, without a password; no two of a fleet have the same.
        conninfo: As libpq takes it.
        parameters: Of the connection, beside it.
    """

    name: str
    conninfo: str
    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAnswer(Generic[ValueT]):
    """
    What a server answered.

    Attributes:
        server: It.
        value: The answer; None: there is none.
        error: Why there is none, fit to be shown.
    """

    server: FleetServer
    value: ValueT | None
    error: str | None


def asked_of(
    connections: Sequence[str],
    parameters: Mapping[str, str],
    service_file: Path | None = None,
) -> tuple[FleetServer, ...]:
    """
    The servers that somebody names.

    Args:
        connections: Each as libpq takes it; none and no file: the one of libpq's own variables.
        parameters: Of all of them.
        service_file: Each of its sections is a server too (see `services_from`).

    Raises:
        InputError: The file is none of services, or a server is named twice.
    """
    named = [(redacted_argument(each), each) for each in connections]
    if service_file is not None:
        named += [(name, f"service={_quoted(name)}") for name in services_in(service_file)]
    if not named:
        named = [("", "")]
    names = [name for name, _ in named]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{twice or 'an empty connection'} is named twice: expected each once")
    return tuple(
        FleetServer(name=name, conninfo=conninfo, parameters=parameters) for name, conninfo in named
    )


def services_in(path: Path) -> tuple[str, ...]:
    """
    The sections of a service file, in their order.

    Source: `parseServiceFile`, fe-connect.c: a section's line begins with `[`, blanks before it
    aside; of two with one name the first counts.

    Raises:
        InputError: It cannot be read, or has no section.
    """
    text = read_text(path, bytes_max=_FILE_BYTES_MAX, expected="a service file (pg_service.conf)")
    found: dict[str, None] = {}
    for line in text.splitlines():
        match = _SECTION.match(line.lstrip())
        if match is not None and match["name"]:
            found[match["name"]] = None
    if not found:
        raise InputError(
            f"{path} names no service: expected sections such as [shop], each with host=..., as "
            "in pg_service.conf"
        )
    return tuple(found)


@contextmanager
def services_from(path: Path | None) -> Iterator[None]:
    """
    Have libpq look services up in this file.

    Where it does that is a variable of the process: connect inside, and end with it.
    """
    before = os.environ.get("PGSERVICEFILE")
    if path is not None:
        os.environ["PGSERVICEFILE"] = str(path.absolute())
    try:
        yield
    finally:
        if path is not None and before is None:
            del os.environ["PGSERVICEFILE"]
        elif path is not None:
            os.environ["PGSERVICEFILE"] = str(before)


def check_sendable(targets: Sequence[FleetServer]) -> None:
    """
    Make sure that no password goes to other machines with a connection.

    They keep what they are sent in memory, and write it into their logs when a call fails.

    Raises:
        InputError: A connection has one.
    """
    for target in targets:
        if secrets_of([target.conninfo], {}):
            raise InputError(
                f"{target.name} has a password, which is not sent to a cluster's workers: expected "
                "a connection without one, and the password in ~/.pgpass or a service file there"
            )


def ask_all(
    question: Callable[[FleetServer, Pause], ValueT],
    targets: Sequence[FleetServer],
    *,
    at_once: int = AT_ONCE,
    executor: Executor | None = None,
) -> tuple[ServerAnswer[ValueT], ...]:
    """
    Ask every server, side by side.

    Args:
        question: Asks one; waits by the pause that it is given, if it has to. Importable, where it
            is asked elsewhere.
        targets: The servers.
        at_once: How many at a time here.
        executor: Asks from elsewhere, where each connection has to be known; None: from here.

    Returns:
        An answer for each, in their order.

    Raises:
        HeadroomError: What was asked for is wrong, whatever the server. A SourceError is a
            server's own, and its answer.
        InputError: A connection that would be sent elsewhere has a password.
    """
    if executor is not None:
        check_sendable(targets)
        return _in_order(targets, _answers_from(executor, question, targets))
    stop = threading.Event()
    answers: dict[str, ServerAnswer[ValueT]] = {}
    running: set[str] = set()
    changed = threading.Condition()

    def pause(length_s: float) -> None:
        if stop.wait(length_s):
            raise KeyboardInterrupt

    def asked(target: FleetServer) -> None:
        with changed:
            if stop.is_set():
                return
            running.add(target.name)
        try:
            answers[target.name] = _answer(question, target, pause)
        except KeyboardInterrupt:
            pass  # its pause was ended
        finally:
            with changed:
                running.discard(target.name)
                changed.notify_all()

    with ThreadPoolExecutor(max_workers=min(at_once, len(targets))) as pool:
        try:
            for _ in run_pieces(asked, targets, executor=pool, in_flight=len(targets)):
                pass
        except (KeyboardInterrupt, SystemExit):
            # Those that run say what they have. The pool does not wait for a thread in whose very
            # start it was interrupted.
            with changed:
                stop.set()
                changed.wait_for(lambda: not running)
        except BaseException:
            stop.set()
            raise
    return _in_order(targets, answers)


def _answer(
    question: Callable[[FleetServer, Pause], ValueT], target: FleetServer, pause: Pause
) -> ServerAnswer[ValueT]:
    try:
        return ServerAnswer(server=target, value=question(target, pause), error=None)
    except SourceError as error:
        why = redacted(str(error), secrets_of([target.conninfo], os.environ))
        return ServerAnswer(server=target, value=None, error=why)


def _answer_there(
    question: Callable[[FleetServer, Pause], ValueT], target: FleetServer
) -> ServerAnswer[ValueT]:
    """On a worker, where nobody ends a pause."""
    return _answer(question, target, time.sleep)


def _answers_from(
    executor: Executor,
    question: Callable[[FleetServer, Pause], ValueT],
    targets: Sequence[FleetServer],
) -> Mapping[str, ServerAnswer[ValueT]]:
    """Those that came before Ctrl-C, if it came."""
    answers: dict[str, ServerAnswer[ValueT]] = {}
    asked = partial(_answer_there, question)
    with suppress(KeyboardInterrupt, SystemExit):
        for target, answer in run_pieces(asked, targets, executor=executor, in_flight=len(targets)):
            answers[target.name] = answer
    return answers


def _in_order(
    targets: Sequence[FleetServer], answers: Mapping[str, ServerAnswer[ValueT]]
) -> tuple[ServerAnswer[ValueT], ...]:
    return tuple(
        answers.get(target.name)
        or ServerAnswer(server=target, value=None, error="interrupted before it had answered")
        for target in targets
    )


def _quoted(value: str) -> str:
    """As a value of a connection string."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
