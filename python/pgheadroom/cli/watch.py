"""
`pgheadroom watch`: the counters that matter, live in the terminal or as lines for a script.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pgheadroom.cli import output
from pgheadroom.cli.connection import (
    DbnameOption,
    HostOption,
    PortOption,
    UserOption,
    parameters_of,
)
from pgheadroom.cli.idle import refuse
from pgheadroom.errors import InputError, ParameterError, SourceError
from pgheadroom.quoting import printable_json
from pgheadroom.units import parse_duration_s

if TYPE_CHECKING:
    from pgheadroom.watch import Order, Tick, Watcher

EVERY = "2s"
_EVERY_S_MIN = 0.5
"""A backend gives its counts to the statistics once a second at most (PGSTAT_MIN_INTERVAL,
pgstat.c): shorter intervals show how it does that, and not the load."""
_TABLES = 20


class Form(StrEnum):
    """Forms of what is not a screen."""

    TEXT = "text"
    JSON = "json"


class By(StrEnum):
    """By what tables are sorted."""

    UPDATES = "updates"
    HOT = "hot"
    NEWPAGE = "newpage"
    INSERTS = "inserts"
    DELETES = "deletes"
    DEAD = "dead"
    NAME = "name"


_EveryOption = Annotated[
    str, typer.Option("--every", help="How often the counters are read (at least 0.5s).")
]
_CountOption = Annotated[
    int | None, typer.Option("--count", min=1, help="Print so many readings as lines, and end.")
]
_LengthOption = Annotated[
    str | None, typer.Option("--for", help="Print lines for so long, and end, e.g. 10m.")
]
_FormOption = Annotated[
    Form | None,
    typer.Option(
        "--format", "-f", help="Lines instead of the screen: text, or json (one object a line)."
    ),
]
_SortOption = Annotated[
    By,
    typer.Option(
        "--sort", help="By updates, hot (lowest first), newpage, inserts, deletes, dead or name."
    ),
]
_FilterOption = Annotated[
    str, typer.Option("--filter", help="Only tables whose name, with schema, contains this.")
]
_TablesOption = Annotated[
    int | None,
    typer.Option("--tables", min=0, help="So many tables a reading (default: 20; json: all)."),
]
_PrometheusOption = Annotated[
    Path | None,
    typer.Option(
        "--prometheus", help="Write each reading here too, for node_exporter's textfile collector."
    ),
]
_HistoryOption = Annotated[
    Path | None,
    typer.Option(
        "--history",
        help="Keep all counters here every five minutes (SQLite), for `advise` and `doctor`.",
    ),
]
_KeepOption = Annotated[
    str | None,
    typer.Option("--keep", help="With --history: how long they are kept (default: 7d)."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """How readings are printed as lines, and how many."""

    form: Form
    every_s: float
    count: int | None
    length_s: float | None
    limit: int | None


def watch_command(
    target: Annotated[str, typer.Argument(help="A connection; without it, as libpq's PG*.")] = "",
    every: _EveryOption = EVERY,
    count: _CountOption = None,
    length: _LengthOption = None,
    sort: _SortOption = By.UPDATES,
    only: _FilterOption = "",
    tables: _TablesOption = None,
    prometheus: _PrometheusOption = None,
    history: _HistoryOption = None,
    keep: _KeepOption = None,
    form: _FormOption = None,
    host: HostOption = None,
    port: PortOption = None,
    user: UserOption = None,
    dbname: DbnameOption = None,
) -> None:
    """
    Show which tables are updated, how, and what the server is busy with, only reading.

    On a terminal a screen: q quits, / filters, letters sort. With --count, --for or --format, and
    where the output is no terminal, lines.
    """
    every_s = parse_duration_s(every)
    if every_s < _EVERY_S_MIN:
        raise ParameterError("every", f"{every}: expected at least {_EVERY_S_MIN} s")
    length_s = None if length is None else parse_duration_s(length)
    output.check_outputs(prometheus, history)
    if history is None:
        refuse({"--keep": keep}, where="without a history", instead="--history FILE keeps one")
    keep_s = None if keep is None else parse_duration_s(keep)
    from pgheadroom.watch import Order, Watcher

    order = Order(by=sort.value, only=only)
    wants_lines = not (count is None and length is None and form is None)
    is_screen = not wants_lines and sys.stdout.isatty() and sys.stdin.isatty()
    with Watcher(target, parameters_of(host, port, user, dbname)) as watcher:
        _open(watcher, prometheus)
        if history is not None:
            watcher.keep_in(history, keep_s)
        if is_screen:
            if tables is not None:
                raise InputError(
                    "--tables does nothing on the screen, which shows as many as it has room for: "
                    "give it with --count, --for or --format"
                )
            from pgheadroom.cli.watch_screen import watch_on_screen

            watch_on_screen(_recorded(watcher, prometheus), watcher, order, every_s)
            return
        form = form or Form.TEXT
        lines = Lines(
            form=form,
            every_s=every_s,
            count=count,
            length_s=length_s,
            limit=tables if tables is not None else {Form.TEXT: _TABLES, Form.JSON: None}[form],
        )
        _print_lines(_recorded(watcher, prometheus), order, lines)


def _open(watcher: Watcher, prometheus: Path | None) -> None:
    """Connect; a connection that cannot be made at all is told at once, also to the monitoring."""
    try:
        watcher.open()
    except SourceError:
        if prometheus is not None:
            _write_prometheus(prometheus, watcher, None)
        raise


def _recorded(watcher: Watcher, prometheus: Path | None) -> Iterator[Tick]:
    """Ticks, one whenever it is asked for, written down for others as they come."""
    while True:
        tick = watcher.tick()
        if prometheus is not None:
            _write_prometheus(prometheus, watcher, tick)
        yield tick


def _write_prometheus(path: Path, watcher: Watcher, tick: Tick | None) -> None:
    from pgheadroom.watch import exposition

    now = None if tick is None else tick.now
    output.write(exposition([(watcher.name, now)]), path)


def _print_lines(ticks: Iterator[Tick], order: Order, lines: Lines) -> None:
    """
    Print a block, or an object, a tick.

    The first reading has nothing before it, and is not counted.
    """
    from pgheadroom.report import watch as watch_report
    from pgheadroom.watch import line_of

    next(ticks)
    printed = 0
    began_s = time.monotonic()
    until_s = None if lines.length_s is None else began_s + lines.length_s
    number = 0
    while lines.count is None or printed < lines.count:
        number += 1
        due_s = began_s + number * lines.every_s
        if until_s is not None and due_s > until_s:
            return
        time.sleep(max(due_s - time.monotonic(), 0.0))
        if time.monotonic() > due_s + lines.every_s:  # one that took too long makes none the next
            began_s, number = time.monotonic(), 0
        tick = next(ticks)
        if lines.form is Form.JSON:
            data = line_of(tick, order, lines.limit).to_json()
            text = printable_json(json.dumps(data)) + "\n"
        else:
            limit = _TABLES if lines.limit is None else lines.limit
            text = "\n".join(watch_report.text_lines(tick, order, limit)) + "\n"
        output.write_out(text)
        sys.stdout.flush()
        printed += 1
