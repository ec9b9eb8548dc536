"""
The place that a request's server names: a throw-away host, several of them, or a connection.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from pgheadroom.errors import InputError
from pgheadroom.lab.borrowed_place import BorrowedPlace
from pgheadroom.lab.design import Request
from pgheadroom.lab.place import OwnPlace, Place
from pgheadroom.lab.several_places import SeveralPlaces
from pgheadroom.servers import BorrowedServer, Host, find_programs, is_connection


def servers_of(request: Request) -> tuple[str, ...]:
    """The servers that are levels of a factor; none where the request has one server."""
    return tuple(str(level) for level in request.levels.get("server", ()))


@contextmanager
def opened(request: Request, server: str) -> Iterator[Place]:
    """
    The place where a request's trials run.

    Raises:
        LabError: No such server, or it does not start.
        InputError: A level of the factor `server` is a connection.
        SourceError: The connection fails, or lacks the right to create a database.
    """
    servers = servers_of(request)
    with places_for(servers) if servers else place_for(server) as place:
        yield place


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
