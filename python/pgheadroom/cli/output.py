"""
Where output goes: the format, the file, the HTML page; progress on standard error.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pgheadroom.cli.options import Format
from pgheadroom.errors import InputError
from pgheadroom.files import write_atomically
from pgheadroom.quoting import printable, printable_lines
from pgheadroom.units import show_duration

if TYPE_CHECKING:
    from rich.console import Console

    from pgheadroom.progress import RunState
    from pgheadroom.report.heading import Heading
    from pgheadroom.report.table import Table

_FILE_WIDTH = 120


def write_out(content: str) -> None:
    """Write to standard output: a terminal gets what it can show, a pipe gets all as it is."""
    sys.stdout.write(printable_lines(content) if sys.stdout.isatty() else content)


def put(
    form: Format,
    to: Path | None,
    *,
    json: Callable[[], str],
    csv: Callable[[], str],
    markdown: Callable[[], str],
    show: Callable[[Console, bool], None],
) -> None:
    """
    Write a result in one of its forms, to a file or standard output: the one way out.

    Args:
        form: The form.
        to: The file, or None for standard output.
        json: Makes that form.
        csv: Makes that form.
        markdown: Makes that form.
        show: Prints the text form; told whether it goes to a file, which has room for all.

    Raises:
        InputError: The file cannot be written.
    """
    made = {Format.JSON: json, Format.CSV: csv, Format.MARKDOWN: markdown}
    if form is not Format.TEXT:
        write(made[form](), to)
        return
    from pgheadroom.cli.terminal import Terminal

    if to is None:
        show(Terminal(highlight=False), False)
    else:
        stream = io.StringIO()
        show(Terminal(file=stream, width=_FILE_WIDTH, highlight=False), True)
        write(stream.getvalue(), to)


@contextmanager
def paged(console: Console) -> Iterator[None]:
    """Show what is printed within by the reader's pager, where a terminal has no room for it."""
    if not (console.is_terminal and sys.stdin.isatty()):
        yield
        return
    with console.capture() as printed:
        yield
    text = printed.get()
    if text.count("\n") < console.height:
        sys.stdout.write(text)
        return
    import pydoc

    # Of less, which shows colours only if it is told; a reader's own options stay.
    os.environ.setdefault("LESS", "-R")
    pydoc.pager(text)


def print_result(head: Heading, tables: Iterable[Table], console: Console) -> None:
    """Print a result: its title, the answer, what was found, what to beware of, its tables."""
    from pgheadroom.report import text

    console.print(f"{head.title}, PostgreSQL {head.server}", style="bold", markup=False)
    if head.answer is not None:
        console.print(f"= {head.answer}", markup=False)
    for mark, lines in (("*", head.findings), ("!", head.warnings), ("~", head.assumed)):
        for line in lines:
            console.print(f"{mark} {line}", markup=False)
    console.print()
    text.print_tables(tables, console)


def write(content: str, to: Path | None) -> None:
    """
    Write what is ready, to a file or standard output.

    Raises:
        InputError: The file cannot be written.
    """
    if to is None:
        write_out(content)
    else:
        check_writable(to)
        write_atomically(to, content)


def check_writable(path: Path) -> None:
    """Raise InputError for a path that cannot become a file."""
    if path.is_dir():
        raise InputError(f"{path} is a folder: expected a file to write")
    if not path.absolute().parent.is_dir():
        raise InputError(f"{path.parent} does not exist: make the folder first")


def check_outputs(*paths: Path | None) -> None:
    """Refuse files that cannot be written before the work and not after it."""
    for path in paths:
        if path is not None:
            check_writable(path)


def noted(warnings: Iterable[str]) -> None:
    """Tell on standard error what is to be read first, where the form has no place for it."""
    for line in warnings:
        sys.stderr.write(f"! {printable(line)}\n")


def said(page: Path | None) -> None:
    """Tell where the page lies."""
    if page is not None:
        sys.stderr.write(f"Report: {page.absolute()}\n")


@contextmanager
def progress(label: str) -> Iterator[Callable[[RunState], None]]:
    """
    Show progress on standard error: a bar on a terminal, plain lines elsewhere.

    Yields:
        What to call with each step.
    """
    if sys.stderr.isatty():
        from pgheadroom.cli.progress_bar import bar

        with bar(label) as show:
            yield show
        return

    shown = -1.0

    def say(step: RunState) -> None:
        nonlocal shown
        share = step.done / step.total if step.total else 1.0
        # A line each twentieth of the way: enough to see that it lives, few enough for a log.
        if shown < 0 or share >= shown + 0.05 or step.done == step.total:
            shown = share
            left = f", about {show_duration(step.left_s)} left" if step.left_s > 0 else ""
            sys.stderr.write(f"{printable(label)}: {step.done}/{step.total}{left}\n")
            sys.stderr.flush()

    yield say
