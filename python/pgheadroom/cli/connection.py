"""
Options of the commands that talk to a live database, spelled as psql spells them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

HostOption = Annotated[str | None, typer.Option("--host", "-h", help="As psql.")]
PortOption = Annotated[str | None, typer.Option("--port", "-p", help="As psql.")]
UserOption = Annotated[str | None, typer.Option("--username", "-U", help="As psql.")]
DbnameOption = Annotated[str | None, typer.Option("--dbname", "-d", help="As psql.")]
LogOption = Annotated[
    list[Path] | None,
    typer.Option("--log", help="A server log with statements: csvlog, jsonlog or stderr."),
]
StatementsOption = Annotated[
    list[Path] | None,
    typer.Option("--statements", help="A file of statements or a pgbench script; FILE@N."),
]


def parameters_of(
    host: str | None, port: str | None, user: str | None, dbname: str | None
) -> dict[str, str]:
    """Those that were given, under libpq's names."""
    given = {"host": host, "port": port, "user": user, "dbname": dbname}
    return {name: value for name, value in given.items() if value is not None}
