"""
Watching several databases side by side, each as a profile of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pgheadroom.errors import ConnectionMisread, InputError, SourceError
from pgheadroom.fleet import FleetServer, Pause, ServerAnswer, ask_all
from pgheadroom.observe.live import observe_live
from pgheadroom.profile import Profile
from pgheadroom.progress import Say
from pgheadroom.sources.observing import ObservationRequest


def observe_fleet(
    servers: Sequence[FleetServer],
    request: ObservationRequest,
    *,
    mask: bool = False,
    say: Callable[[str], Say],
) -> tuple[ServerAnswer[Profile], ...]:
    """
    Watch several databases over the same interval, only reading.

    Args:
        servers: Each of them.
        request: What to watch and how long.
        mask: Put pseudonyms for names.
        say: For a server's name: who is told what happens there.

    Returns:
        A profile for each, or why there is none: a database without tables, or without the one
        that was named, is such a reason.
    """

    def observed(server: FleetServer, pause: Pause) -> Profile:
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

    return ask_all(observed, servers)
