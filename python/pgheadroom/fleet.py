"""
Several servers at once, side by side: which they are, and what each answers.

    asked_of(CONN..., service_file) -> targets -> ask_all(question, targets) -> answers, in order

A server that does not answer stops nothing: its error is its answer. The work goes through
`schedule`, a thread for each server that is being asked: threads wait for servers and do little
else. Ctrl-C ends everybody's pause, so that each tells what it has found until then.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
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


def ask_all(
    question: Callable[[FleetServer, Pause], ValueT],
    targets: Sequence[FleetServer],
    *,
    at_once: int = AT_ONCE,
) -> tuple[ServerAnswer[ValueT], ...]:
    """
    Ask every server, side by side.

    Args:
        question: Asks one; waits by the pause that it is given, if it has to.
        targets: The servers.
        at_once: How many at a time.

    Returns:
        An answer for each, in their order.

    Raises:
        HeadroomError: What was asked for is wrong, whatever the server. A SourceError is a
            server's own, and its answer.
    """
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
            value = question(target, pause)
            answers[target.name] = ServerAnswer(server=target, value=value, error=None)
        except SourceError as error:
            why = redacted(str(error), secrets_of([target.conninfo], os.environ))
            answers[target.name] = ServerAnswer(server=target, value=None, error=why)
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
    return tuple(
        answers.get(target.name)
        or ServerAnswer(server=target, value=None, error="interrupted before it had answered")
        for target in targets
    )


def _quoted(value: str) -> str:
    """As a value of a connection string."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
