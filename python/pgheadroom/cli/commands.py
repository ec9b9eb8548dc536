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
from pgheadroom.cli.plain_values import read_plainly


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """
    A command that is not loaded yet.

    Attributes:
        module: Of `pgheadroom.cli`.
        function: Its function there; None: the module's own commands (`app`).
        help: The beginning of its help, which a test compares with the function's.
    """

    module: str
    function: str | None
    help: str


COMMANDS: dict[str, Command] = {
    "advise": Command(
        module="advise",
        function="advise_command",
        help="Advise a fillfactor for each table, with the curve it is picked from; nothing is "
        "changed.",
    ),
    "apply": Command(
        module="apply",
        function="apply_command",
        help="Carry out a plan: check it, show it, ask, and write down each step beside it.",
    ),
    "check": Command(
        module="check",
        function="check_command",
        help="Say which tables would lose HOT by a migration, what that costs, and who has to wait "
        "for it.",
    ),
    "demo": Command(
        module="demo",
        function="demo_command",
        help="See the whole loop on an embedded server under load: observe, advise, apply, verify.",
    ),
    "layout": Command(
        module="layout",
        function="layout_command",
        help="Show a row's bytes column by column, and the room that each fillfactor leaves.",
    ),
    "observe": Command(
        module="observe",
        function="observe_command",
        help="Watch a live database, only reading, and write a profile of its tables and workload.",
    ),
    "predict": Command(
        module="predict",
        function="predict_command",
        help="Predict HOT updates, pages and WAL of a profile over fillfactors; no server takes "
        "part.",
    ),
    "prove": Command(
        module="prove",
        function="prove_command",
        help="Play a profile on a real server and in the twin, and show both and the error.",
    ),
    "verify": Command(
        module="verify",
        function="verify_command",
        help="Observe again, only reading, and hold the plan's forecasts against it.",
    ),
    "wal": Command(
        module="wal",
        function=None,
        help="The write-ahead log: which relation writes it, and why.",
    ),
    "lab": Command(
        module="lab",
        function=None,
        help="Experiments on real PostgreSQL servers: run, report, compare, merge.",
    ),
}


class Commands(TyperGroup):
    """All commands; the help names them without loading any."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        listed = {name: TyperCommand(name, help=found.help) for name, found in COMMANDS.items()}
        self._listed = TyperGroup(name=self.name, commands=dict(listed))
        self.commands.update(listed)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command itself, with all that it needs."""
        found = COMMANDS.get(cmd_name)
        return super().get_command(ctx, cmd_name) if found is None else _loaded(cmd_name, found)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """A line each."""
        self._listed.format_commands(ctx, formatter)


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
