"""The program's commands as they are typed, and what they make of arguments, without running."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from pgheadroom.cli.app import app
from pgheadroom.cli.commands import COMMANDS


def _commands() -> Iterator[tuple[str, Any]]:
    program = get_command(app)
    context = program.make_context("pgheadroom", ["demo"])
    for name in COMMANDS:
        command = program.get_command(context, name)  # type: ignore[attr-defined]
        below = getattr(command, "commands", None)
        if below is None:
            yield name, command
        else:
            yield from ((f"{name} {deeper}", found) for deeper, found in below.items())


COMMANDS_BY_PATH: dict[str, Any] = dict(_commands())
"""What is typed behind `pgheadroom`, and the command."""


def path_of(typed: str) -> str:
    """The command of a line that begins with `pgheadroom`, with its group."""
    words = typed.split()[1:]
    return next((path for path in (" ".join(words[:2]), words[0]) if path in COMMANDS_BY_PATH), "")


def understood(typed: str) -> None:
    """Have the command read its arguments, or raise what it says against them."""
    path = path_of(typed)
    program, *arguments = shlex.split(typed)
    assert program == "pgheadroom"
    assert path, f"no such command: {typed}"
    COMMANDS_BY_PATH[path].make_context(path, arguments[len(path.split()) :])
