"""
`pgheadroom extension`: the server extension `clustered_heap`, built and installed.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from pgheadroom.cli import output
from pgheadroom.errors import InputError

app = typer.Typer(
    help="The server extension clustered_heap: rows kept in the order of an index.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback()
def _group() -> None:
    """So that one command is a group too."""


@app.command("install")
def install_command(
    server: Annotated[
        str,
        typer.Argument(
            metavar="BIN_DIR",
            help="The server's bin folder, its pg_config, or a version at hand (18).",
        ),
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Build and show everything; install nothing.")
    ] = False,
) -> None:
    """Build the extension by a server's own pg_config, show what goes where, ask, put it there."""
    from pgheadroom.extension import build
    from pgheadroom.extension.installing import install, state_of
    from pgheadroom.servers import find_programs

    if not (yes or dry_run or sys.stdin.isatty()):
        raise InputError(
            "nobody can be asked: standard input is no terminal. Expected --yes to go ahead, or "
            "--dry-run to look. Nothing was built or installed"
        )
    programs = find_programs(server)
    with tempfile.TemporaryDirectory(prefix="pgheadroom-extension-") as folder:
        built = build(programs, Path(folder))
        output.write_out(f"built for {programs}\n")
        states = {file: state_of(file) for file in built.files}
        for file, state in states.items():
            output.write_out(f"  {state:8}  {file.target}\n")
        if dry_run:
            output.write_out("Nothing was installed: --dry-run.\n")
            return
        if all(state == "the same" for state in states.values()):
            output.write_out("Nothing had to be installed: all of it is there.\n")
            return
        if not yes and not typer.confirm("Put them there?", err=True):
            output.write_out("Nothing was installed: the answer was no.\n")
            raise typer.Exit(1)
        written = install(built)
    output.write_out(
        f"{len(written)} files installed. In each database that is to have it:\n"
        "  CREATE EXTENSION clustered_heap;\n"
        "Sessions that have loaded an older library keep it until they end.\n"
    )
