"""
Watching several databases side by side, each as a profile of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial

from pgheadroom.errors import ConnectionMisread, InputError, SourceError
from pgheadroom.fleet import FleetServer, Pause, ServerAnswer, ask_all
from pgheadroom.observe.live import observe_live
from pgheadroom.profile import Profile
from pgheadroom.progress import Say, unsaid_of
from pgheadroom.sources.observing import ObservationRequest


def _observed(
    server: FleetServer,
    pause: Pause,
    *,
    request: ObservationRequest,
    mask: bool,
    say: Callable[[str], Say],
) -> Profile:
    try:
        return observe_live(
            server.conninfo,
            server.parameters,
            request,
            mask=mask,
            say=say(server.name),
            sleep=pause,
        )
    except ConnectionMisread:
        raise
    except InputError as error:  # of that database: it has no table, or not the one named
        raise SourceError(str(error)) from None


def observe_fleet(
    servers: Sequence[FleetServer],
    request: ObservationRequest,
    *,
    mask: bool = False,
    say: Callable[[str], Say],
    executor: Executor | None = None,
) -> tuple[ServerAnswer[Profile], ...]:
    """
    Watch several databases over the same interval, only reading.

    Args:
        servers: Each of them.
        request: What to watch and how long.
        mask: Put pseudonyms for names.
        say: For a server's name: who is told what happens there.
        executor: Asks from elsewhere (see `ask_all`), where nothing is said meanwhile.

    Returns:
        A profile for each, or why there is none: a database without tables, or without the one
        that was named, is such a reason.
    """
    saying = say if executor is None else unsaid_of
    question = partial(_observed, request=request, mask=mask, say=saying)
    return ask_all(question, servers, executor=executor)
