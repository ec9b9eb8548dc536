"""
`pgheadroom watch`: the counters that matter, live in the terminal or as lines for a script.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
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
    ServersArgument,
    ServiceFileOption,
    UserOption,
    parameters_of,
)
from pgheadroom.cli.idle import refuse
from pgheadroom.errors import InputError, ParameterError, SourceError
from pgheadroom.quoting import printable, printable_json
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
    targets: ServersArgument = None,
    service_file: ServiceFileOption = None,
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
    where the output is no terminal, lines; several servers, or a service file, are always lines.
    """
    every_s = parse_duration_s(every)
    if every_s < _EVERY_S_MIN:
        raise ParameterError("every", f"{every}: expected at least {_EVERY_S_MIN} s")
    length_s = None if length is None else parse_duration_s(length)
    output.check_outputs(prometheus, history)
    if history is None:
        refuse({"--keep": keep}, where="without a history", instead="--history FILE keeps one")
    keep_s = None if keep is None else parse_duration_s(keep)
    from pgheadroom.watch import Order

    order = Order(by=sort.value, only=only)
    parameters = parameters_of(host, port, user, dbname)
    lines = Lines(
        form=form or Form.TEXT,
        every_s=every_s,
        count=count,
        length_s=length_s,
        limit=tables if tables is not None or form is Form.JSON else _TABLES,
    )
    if service_file is not None or len(targets or ()) > 1:
        refuse(
            {"--history": history},
            where="with several servers, for it is of one database",
            instead="give it to a watch of that one",
        )
        _several(targets or (), parameters, service_file, prometheus, order, lines)
        return
    wants_lines = not (count is None and length is None and form is None)
    is_screen = not wants_lines and sys.stdout.isatty() and sys.stdin.isatty()
    if is_screen and tables is not None:
        raise InputError(
            "--tables does nothing on the screen, which shows as many as it has room for: give it "
            "with --count, --for or --format"
        )
    target = next(iter(targets or ()), "")
    _one(target, parameters, prometheus, (history, keep_s), lines, order, on_screen=is_screen)


def _one(
    target: str,
    parameters: dict[str, str],
    prometheus: Path | None,
    kept: tuple[Path | None, float | None],
    lines: Lines,
    order: Order,
    *,
    on_screen: bool,
) -> None:
    """One server, on the screen or as lines."""
    from pgheadroom.watch import Watcher

    with Watcher(target, parameters) as watcher:
        _open(watcher, prometheus)
        history, keep_s = kept
        if history is not None:
            watcher.keep_in(history, keep_s)
        if on_screen:
            from pgheadroom.cli.watch_screen import watch_on_screen

            watch_on_screen(_recorded(watcher, prometheus), watcher, order, lines.every_s)
        else:
            _print_lines(_alone(_recorded(watcher, prometheus)), order, lines)


def _alone(ticks: Iterator[Tick]) -> Iterator[list[tuple[str | None, Tick]]]:
    for tick in ticks:
        yield [(None, tick)]


def _several(
    targets: Sequence[str],
    parameters: dict[str, str],
    service_file: Path | None,
    prometheus: Path | None,
    order: Order,
    lines: Lines,
) -> None:
    """Several servers, as lines."""
    from pgheadroom.fleet import asked_of, services_from
    from pgheadroom.watch import Watchers, exposition

    def rounds() -> Iterator[list[tuple[str | None, Tick]]]:
        while True:
            found = watchers.tick()
            if prometheus is not None:
                readings = zip(watchers.names, (tick.now for tick in found), strict=True)
                output.write(exposition(readings), prometheus)
            yield list(zip(watchers.names, found, strict=True))

    servers = asked_of(targets, parameters, service_file)
    with services_from(service_file), Watchers(servers) as watchers:
        _print_lines(rounds(), order, lines)


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


def _print_lines(
    rounds: Iterator[list[tuple[str | None, Tick]]], order: Order, lines: Lines
) -> None:
    """
    Print a block, or an object, for each tick of a round.

    The first round has nothing before it, and is not counted.
    """
    next(rounds)
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
        for asked, tick in next(rounds):
            output.write_out(_lines_of(tick, asked, order, lines))
        sys.stdout.flush()
        printed += 1


def _lines_of(tick: Tick, asked: str | None, order: Order, lines: Lines) -> str:
    from pgheadroom.report import watch as watch_report
    from pgheadroom.watch import line_of

    if lines.form is Form.JSON:
        data = line_of(tick, order, lines.limit, asked=asked).to_json()
        return printable_json(json.dumps(data)) + "\n"
    limit = _TABLES if lines.limit is None else lines.limit
    head = [] if asked is None else [f"== {printable(asked)}"]
    return "\n".join([*head, *watch_report.text_lines(tick, order, limit)]) + "\n"
