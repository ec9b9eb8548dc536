"""
`pgheadroom mcp`: the read-only questions as tools for agents.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pgheadroom.errors import InputError

if TYPE_CHECKING:
    from pgheadroom.agents import Granted

_ConnectionOption = Annotated[
    list[str] | None,
    typer.Option(
        "--connection",
        help="A database that may be asked about, by this name; again for more. Passwords belong "
        "into a password file or a service.",
    ),
]
_ProfileOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--profile", help="A profile that may be asked about, by its file's name; again for more."
    ),
]
_NoSampleOption = Annotated[bool, typer.Option("--no-sample", help="Read no rows of any table.")]


def mcp_command(
    connection: _ConnectionOption = None,
    profile: _ProfileOption = None,
    no_sample: _NoSampleOption = False,
) -> None:
    """
    Serve layout, predict, check, doctor and advise to an agent (MCP, on standard input and output).

    It asks by the names that are given here, sees no connection string, and can change nothing.
    """
    from pgheadroom.agents.server import serve

    granted = _granted_of(tuple(profile or ()), tuple(connection or ()))
    serve(granted, samples=not no_sample)


def _granted_of(profiles: Sequence[Path], connections: Sequence[str]) -> Granted:
    """
    What a person names at the start.

    Args:
        profiles: Files, each named by its own name without the ending.
        connections: NAME=CONN each.

    Raises:
        InputError: Nothing is named, a name is none or twice there, a file is no profile.
    """
    from pgheadroom.agents import NAME, Granted
    from pgheadroom.profile import read_profile

    if not profiles and not connections:
        raise InputError(
            "nothing to ask about: expected --profile FILE or --connection NAME=CONN, each as "
            "often as there are"
        )
    files: dict[str, Path] = {}
    for path in profiles:
        _take(files, path.name.removesuffix(path.suffix), path)
        read_profile(path)  # a wrong file is told now, to the person
    servers: dict[str, str] = {}
    for given in connections:
        name, _, conninfo = given.partition("=")
        if not conninfo or not NAME.fullmatch(name):
            raise InputError(
                "--connection is not understood: expected NAME=CONN, such as "
                "shop=postgresql://user@host/shop or shop='host=db dbname=shop'"
            )
        _take(servers, name, conninfo)
        _check(conninfo, name)
    for name in files.keys() & servers.keys():
        raise InputError(f"{name} is a profile and a connection: expected different names")
    return Granted(files, servers)


def _take(into: dict[str, Path] | dict[str, str], name: str, value: Path | str) -> None:
    from pgheadroom.agents import NAME

    if not NAME.fullmatch(name):
        raise InputError(
            f"{name!r} cannot be a name: expected letters, digits, '_', '.' and '-', at most 64"
        )
    if name in into:
        raise InputError(f"{name} is named twice: expected different names")
    into[name] = value  # type: ignore[assignment]


def _check(conninfo: str, name: str) -> None:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        conninfo_to_dict(conninfo)
    except psycopg.ProgrammingError:
        raise InputError(
            f"--connection {name}=... is not understood: expected postgresql://user@host/dbname, "
            "or 'host=... dbname=...'"
        ) from None
