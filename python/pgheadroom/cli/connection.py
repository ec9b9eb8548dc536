"""
Options of the commands that talk to a live database, spelled as psql spells them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from pgheadroom.errors import InputError
from pgheadroom.input_file import exists

HostOption = Annotated[str | None, typer.Option("--host", "-h", help="As psql.")]
PortOption = Annotated[str | None, typer.Option("--port", "-p", help="As psql.")]
UserOption = Annotated[str | None, typer.Option("--username", "-U", help="As psql.")]
DbnameOption = Annotated[str | None, typer.Option("--dbname", "-d", help="As psql.")]
ServersArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[CONN]...",
        help="A connection, or several, which are asked side by side; without it, as libpq's PG*.",
    ),
]
ServiceFileOption = Annotated[
    Path | None,
    typer.Option(
        "--service-file",
        help="Each section of this file (pg_service.conf) is a server too: asked side by side.",
    ),
]
WalOption = Annotated[
    bool,
    typer.Option(
        "--wal",
        help="Read the write-ahead log of the interval too: WAL by table and cause, not sampled "
        "(--print-grants prints what that needs).",
    ),
]
WalFilesOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--wal-files",
        help="As --wal, out of files: the server's pg_wal, or the archive that it fills; needs no "
        "right beside.",
    ),
]
LogOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--log",
        help="The server's log (csvlog, jsonlog or stderr), read for the interval alone; its "
        "rotation is followed.",
    ),
]
StatementsOption = Annotated[
    list[Path] | None,
    typer.Option("--statements", help="A file of statements or a pgbench script; FILE@N."),
]

# What libpq takes for a connection string (`recognized_connection_string`, fe-connect.c), without
# names in which a path may hold a '='.
_CONNECTION = re.compile(r"postgres(ql)?://|\s*\w+\s*=")


def parameters_of(
    host: str | None, port: str | None, user: str | None, dbname: str | None
) -> dict[str, str]:
    """Those that were given, under libpq's names."""
    given = {"host": host, "port": port, "user": user, "dbname": dbname}
    return {name: value for name, value in given.items() if value is not None}


def profile_or_connection(target: str, parameters: dict[str, str]) -> Path | None:
    """
    The file or folder that a target names, None for a connection: what exists is a file.

    Raises:
        InputError: There is no such file, and it is no connection either.
    """
    if not target:
        return None
    path = Path(target)
    if exists(path):
        if parameters:
            raise InputError(
                f"{target} is a file: -h, -p, -U and -d belong to a connection, expected one of "
                "the two"
            )
        return path
    if _CONNECTION.match(target):
        return None
    raise InputError(
        f"no such file: {target}; expected a profile, or a connection: "
        "postgresql://user@host/dbname, 'host=... dbname=...', or -h, -p, -U, -d"
    )
