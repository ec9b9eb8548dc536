"""
How a command's help is laid out: words for values, options under headings, examples below.

Typer names a value by its type (`<str>`, `<list[Path]>`); a person asks what it is. One word is the
same in all commands, so they stand here, as do the headings; what an option does stands with it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from pgheadroom.cli.examples import EXAMPLES

METAVARS = {
    "--host": "HOST",
    "--port": "PORT",
    "--username": "NAME",
    "--dbname": "NAME",
    "--format": "FORM",
    "--output": "FILE",
    "--html": "FILE",
    "--plan": "FILE",
    "--profile": "FILE",
    "--log": "FILE",
    "--statements": "FILE",
    "--wal-files": "PATH",
    "--names": "NAMES",
    "--folder": "FOLDER",
    "--record": "PLACE",
    "--for": "TIME",
    "--lock-timeout": "TIME",
    "--statement-timeout": "TIME",
    "--backoff": "TIME",
    "--lock-retries": "N",
    "--budget": "TIME",
    "--timeouts": "TIMES",
    "--timeout-in-force": "TIME",
    "--sizes": "SIZES",
    "--size-in-force": "SIZE",
    "--completion-target": "SHARE",
    "--table": "TABLE",
    "--server": "SERVER",
    "--seeds": "N",
    "--seed": "N",
    "--scale": "N",
    "--repetitions": "N",
    "--timeline": "N",
    "--to": "POSITION",
    "--by": "WHAT",
    "--restore-command": "COMMAND",
    "--storage": "KIND",
    "--engine": "KIND",
    "--rewrite-how": "HOW",
    "--io": "LEVELS",
    "--explain": "RULE",
    "--fail-on": "SEVERITY",
    "--baseline": "FILE",
    "--accept": "RULE:OBJECT",
    "--until": "DATE",
    "--script": "LEVELS",
    "--connection": "NAME=CONN",
    "--every": "TIME",
    "--count": "N",
    "--sort": "WHAT",
    "--filter": "TEXT",
    "--tables": "N",
    "--prometheus": "FILE",
    "--service-file": "FILE",
    "--memory": "SIZE",
    "--cores": "N",
    "--connections": "N",
    "--disk": "KIND",
    "--workload": "KIND",
    "--history": "FILE",
    "--keep": "TIME",
    "--scheduler": "ADDRESS",
    "--label": "LABEL",
}
"""What to write behind an option, where its definition does not say."""

OF_ONE_COMMAND = {
    ("order", "--pages"): "N",
    ("order", "--page-read-ms"): "MS",
    ("order", "--page-write-ms"): "MS",
    ("order", "--page-hit-ms"): "MS",
    ("order", "--lock-cost"): "SECONDS",
    ("order", "--tool"): "NAME",
    ("observe", "--from"): "FOLDER",
    ("advise", "--from"): "TIME",
    ("advise", "--to"): "TIME",
    ("doctor", "--from"): "TIME",
    ("doctor", "--to"): "TIME",
    ("stats", "--from"): "POSITION",
    ("what-if", "--from"): "POSITION",
    ("merge", "--output"): "FOLDER",
    ("settings", "--wal"): "PATH",
}

PANELS = {
    "What is observed": (
        "--for",
        "--table",
        "--mask",
        "--no-sample",
        "--log",
        "--statements",
        "--wal",
        "--wal-files",
    ),
    "Other indexes, storage and engines": (
        "--without-index",
        "--narrow-index",
        "--brin-index",
        "--index-fillfactor",
        "--storage",
        "--engine",
    ),
    "Over time": (
        "--tps",
        "--series",
        "--windows",
        "--from-fillfactor",
        "--rewrite",
        "--rewrite-how",
        "--rewrite-for",
    ),
    "Other machines": ("--scheduler", "--label"),
    "Connection, as psql": ("--host", "--port", "--username", "--dbname", "--service-file"),
    "Output": ("--verbose", "--plan", "--all", "--format", "--output", "--html", "--site"),
}
"""Headings, and the options below them, in commands with many of them."""

MANY = 10
"""Options of a command that are too many for one list."""


def lay_out(command: Any, path: str) -> None:
    """
    Give a command's help, and that of those below it, its words, headings and examples.

    Args:
        command: As Typer made it.
        path: What to type for it behind `pgheadroom`.
    """
    below = getattr(command, "commands", None)
    if below:
        for name, deeper in below.items():
            lay_out(deeper, f"{path} {name}")
        return
    command.format_options = partial(_format_options, command)
    command.format_epilog = partial(_format_examples, EXAMPLES[path])


def _format_options(command: Any, ctx: Any, formatter: Any) -> None:
    arguments: list[tuple[str, str]] = []
    options: list[tuple[str, str]] = []
    panels: dict[str, list[tuple[str, str]]] = {panel: [] for panel in PANELS}
    found = [parameter for parameter in command.get_params(ctx) if not parameter.hidden]
    placed = [_panel(parameter) for parameter in found]
    for parameter, panel in zip(found, placed, strict=True):
        if parameter.param_type_name == "argument":
            arguments.append((parameter.name, parameter.get_help_record(ctx)[1]))
            continue
        if parameter.metavar is None and not parameter.is_flag:
            parameter.metavar = _metavar(command.name, parameter)
        # One option alone needs no heading.
        if panel is None or len(found) <= MANY or placed.count(panel) == 1:
            rows = options
        else:
            rows = panels[panel]
        rows.append(parameter.get_help_record(ctx))
    for title, rows in (("Arguments", arguments), ("Options", options), *panels.items()):
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows)


def _metavar(command: str, parameter: Any) -> str | None:
    names = parameter.opts
    for name in names:
        word = OF_ONE_COMMAND.get((command, name), METAVARS.get(name))
        if word is not None:
            return word
    return None


def _panel(parameter: Any) -> str | None:
    for panel, names in PANELS.items():
        if any(name in names for name in parameter.opts):
            return panel
    return None


def _format_examples(
    examples: tuple[tuple[str, str], ...],
    ctx: Any,  # noqa: ARG001 - as click calls it
    formatter: Any,
) -> None:
    with formatter.section("Examples"):
        for what, typed in examples:
            formatter.write_text(f"{what}:")
            formatter.write(f"{'':{formatter.current_indent + 2}}{typed}\n")
