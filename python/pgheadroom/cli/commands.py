"""
The program's commands by name: what the help lists, and where each is, loaded when it is called.
"""

from __future__ import annotations

import signal
import threading
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from pgheadroom.cli import leave
from pgheadroom.cli.help_page import lay_out
from pgheadroom.cli.plain_values import read_plainly


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """
    A command that is not loaded yet.

    Attributes:
        module: Of `pgheadroom.cli`.
        function: Its function there; None: the module's own commands (`app`).
        summary: Its line in the program's help, which is never cut at 80 columns.
    """

    module: str
    function: str | None
    summary: str


PANELS: dict[str, dict[str, Command]] = {
    "Start": {
        "demo": Command(
            module="demo",
            function="demo_command",
            summary="The whole loop on an embedded server under load, in minutes.",
        ),
    },
    "Look, only reading": {
        "observe": Command(
            module="observe",
            function="observe_command",
            summary="Watch a live database; write a profile of it.",
        ),
        "advise": Command(
            module="advise",
            function="advise_command",
            summary="Advise a fillfactor for each table, with its curve.",
        ),
        "doctor": Command(
            module="doctor",
            function="doctor_command",
            summary="Look for what costs or harms, each finding with its price.",
        ),
        "watch": Command(
            module="watch",
            function="watch_command",
            summary="The counters that matter, live: HOT, WAL, vacuums, the horizon.",
        ),
        "order": Command(
            module="order",
            function="order_command",
            summary="How well tables lie in index order, and what ranges read.",
        ),
        "settings": Command(
            module="settings",
            function="settings_command",
            summary="Settings to change, each with what it follows from.",
        ),
        "check": Command(
            module="check",
            function="check_command",
            summary="What a migration costs: HOT, WAL, rewrites, locks.",
        ),
    },
    "Change": {
        "apply": Command(
            module="apply",
            function="apply_command",
            summary="Carry out a plan step by step, or undo it.",
        ),
        "verify": Command(
            module="verify",
            function="verify_command",
            summary="Hold a plan's forecasts against what came of it.",
        ),
        "extension": Command(
            module="extension",
            function=None,
            summary="Build and install clustered_heap, which keeps rows in order.",
        ),
    },
    "Ask": {
        "predict": Command(
            module="predict",
            function="predict_command",
            summary="HOT, pages and WAL of a profile over fillfactors.",
        ),
        "layout": Command(
            module="layout",
            function="layout_command",
            summary="A row's bytes, and the room that each fillfactor leaves.",
        ),
        "prove": Command(
            module="prove",
            function="prove_command",
            summary="A profile on a real server and in the twin, side by side.",
        ),
    },
    "Serve": {
        "mcp": Command(
            module="mcp",
            function="mcp_command",
            summary="The read-only questions as tools for agents (stdio).",
        ),
    },
    "Log": {
        "wal": Command(
            module="wal",
            function=None,
            summary="Which table writes the WAL, why, and what would change it.",
        ),
    },
    "Measure": {
        "lab": Command(
            module="lab",
            function=None,
            summary="Experiments on real servers: run, report, compare, merge.",
        ),
    },
}
"""The commands under headings, in the order of work."""

COMMANDS: dict[str, Command] = {
    name: found for panel in PANELS.values() for name, found in panel.items()
}


class Commands(TyperGroup):
    """All commands; the help names them without loading any."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands.update(
            {name: TyperCommand(name, help=found.summary) for name, found in COMMANDS.items()}
        )

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - as click calls it
        """In the order of work."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command itself, with all that it needs."""
        found = COMMANDS.get(cmd_name)
        return super().get_command(ctx, cmd_name) if found is None else _loaded(cmd_name, found)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - as click calls it
        """A line each, under headings."""
        width = max(map(len, COMMANDS))
        for title, panel in PANELS.items():
            with formatter.section(title):
                for name, found in panel.items():
                    indent = " " * formatter.current_indent
                    formatter.write(f"{indent}{name:{width}}  {found.summary}\n")


def _loaded(name: str, found: Command) -> Any:
    module = _imported(f"pgheadroom.cli.{found.module}")
    if found.function is None:
        command = get_command(module.app)
    else:
        alone = typer.Typer(
            add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
        )
        alone.command(name)(getattr(module, found.function))
        command = get_command(alone)
    command.name = name
    lay_out(command, name)
    read_plainly(command)
    return command


def _imported(name: str) -> Any:
    """A module; meanwhile Ctrl-C ends the program at once, as while it starts."""
    polite = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if polite:
        signal.signal(signal.SIGINT, leave)
    try:
        return import_module(name)
    finally:
        if polite:
            signal.signal(signal.SIGINT, signal.default_int_handler)
