"""
`pgheadroom demo`: observe, advise, apply, verify on an embedded server under load.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pgheadroom.errors import InputError
from pgheadroom.servers import is_connection

DEMO_FOLDER = Path("demo-records")


def demo_command(
    folder: Annotated[
        Path, typer.Option(help="Where profile, advice, plan and report are kept.")
    ] = DEMO_FOLDER,
    server: Annotated[str, typer.Option(help="A version or a folder with server programs.")] = "18",
) -> None:
    """See the whole loop on an embedded server under load: observe, advise, apply, verify."""
    if is_connection(server):
        raise InputError(
            f"--server {server}: the demo changes what it finds, so it runs on a throw-away "
            "server; expected a version or a folder with server programs"
        )
    from pgheadroom.cli.demo_loop import play_demo

    if play_demo(folder, server):
        raise typer.Exit(1)
