"""
`pgheadroom wal`: the write-ahead log by relation and cause.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from pgheadroom.cli import output
from pgheadroom.cli.connection import (
    DbnameOption,
    HostOption,
    PortOption,
    UserOption,
    parameters_of,
    profile_or_connection,
)
from pgheadroom.cli.idle import refuse
from pgheadroom.cli.on_cluster import executor_at
from pgheadroom.cli.options import Format, FormatOption, OutputOption, SchedulerOption
from pgheadroom.defaults import COMPLETION_TARGET
from pgheadroom.errors import InputError, WalIncomplete
from pgheadroom.input_file import exists
from pgheadroom.redaction import command_line
from pgheadroom.units import parse_duration_s, parse_setting_bytes

if TYPE_CHECKING:
    from rich.console import Console

    from pgheadroom.wal import Names, WalStats
    from pgheadroom.wal.what_if_values import WhatIf

Number = TypeVar("Number", int, float)

app = typer.Typer(
    help="The write-ahead log: which relation writes it, and why.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


_PathsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        help="Segments, folders of them (pg_wal, an archive; .partial, .gz, .lz4 and .zst too) "
        "or patterns; - for standard input; with --for a connection.",
    ),
]
_BeginOption = Annotated[
    str | None,
    typer.Option(
        "--from",
        help="Records from this position (16/B374D848) or time (2026-11-23T08:30; UTC where "
        "no zone is named) on.",
    ),
]
_EndOption = Annotated[
    str | None, typer.Option("--to", help="Records that end there or before; as --from.")
]
_TimelineOption = Annotated[
    int | None,
    typer.Option(min=1, max=2**32 - 1, help="Follow this timeline instead of the newest."),
]
_NamesOption = Annotated[
    str | None,
    typer.Option(
        "--names",
        help="What relations are called: a file of `wal names`, a profile of `observe`, or a "
        "connection, whose databases are asked; with --for it is the server's own without it.",
    ),
]
_ByOption = Annotated[
    str | None,
    typer.Option(
        "--by",
        help="And by checkpoint cycle (checkpoint), by transaction (transaction), or in slices "
        "of time (10m).",
    ),
]
_RestoreCommandOption = Annotated[
    str | None,
    typer.Option(
        "--restore-command",
        help="Instead of files: fetch segments by this program, as servers have it "
        "('wal-g wal-fetch %f %p'), from --from on until one is lacking (timeline 1 unless "
        "--timeline).",
    ),
]
_LengthOption = Annotated[
    str | None,
    typer.Option("--for", help="Read a running server for so long (5m); PATH is a connection."),
]
_PrintGrantsOption = Annotated[
    bool,
    typer.Option("--print-grants", help="Print what would let the role read a server's log."),
]
_AllowGapsOption = Annotated[
    bool, typer.Option("--allow-gaps", help="Exit with 0 although a part could not be read.")
]
_HtmlOption = Annotated[
    Path | None,
    typer.Option("--html", help="Write an HTML page here too: bars, and WAL over time."),
]


@app.command("stats", short_help="Sum the WAL by table and cause.")
def stats(
    paths: _PathsArgument = None,
    begin: _BeginOption = None,
    end: _EndOption = None,
    timeline: _TimelineOption = None,
    names: _NamesOption = None,
    by: _ByOption = None,
    restore_command: _RestoreCommandOption = None,
    length: _LengthOption = None,
    print_grants: _PrintGrantsOption = False,
    allow_gaps: _AllowGapsOption = False,
    scheduler: SchedulerOption = None,
    form: FormatOption = Format.TEXT,
    to: OutputOption = None,
    html: _HtmlOption = None,
) -> None:
    """Sum WAL by relation and cause; a part that is missing or damaged is named (exit code 3)."""
    from pgheadroom.wal import read_archive, read_wal

    if scheduler is not None:
        refuse(
            {"--for": length, "--restore-command": restore_command, "--html": html},
            where="with --scheduler, whose workers read files that they have",
            instead="give segments and folders by the names that the workers have for them",
        )

    if print_grants:
        _print_grants(paths or [""])
        return
    if bool(paths) == bool(restore_command):
        raise InputError("expected either files and folders of WAL, or --restore-command")
    asked: dict[str, Any] = {"begin": begin, "end": end, "timeline": timeline, "by": by}
    if html is not None:
        output.check_writable(html)
    if length is not None:
        result = _of_server(paths or [], length, asked, names)
    elif restore_command:
        result = read_archive(restore_command, **asked, names=_names(names))
    else:
        with executor_at(scheduler) as executor:
            result = read_wal(paths or (), **asked, names=_names(names), executor=executor)
    _put(result, form, to, by)
    if html is not None:
        _write_page(result, () if length else paths or (), timeline, html)
    if result.gaps and not allow_gaps:
        first = result.gaps[0]
        more = f", and {len(result.gaps) - 1} more such parts" if len(result.gaps) > 1 else ""
        raise WalIncomplete(
            f"{first.from_lsn} to {first.to_lsn} was not read ({first.path}: {first.why}){more}: "
            "the sums hold what is before and behind; give the files that are missing, or "
            "whole ones, or --allow-gaps",
            lsn=first.from_lsn,
            path=first.path,
        )


TimeoutsOption = Annotated[
    str | None,
    typer.Option("--timeouts", help="checkpoint_timeout to try, with commas: 5m,15m,1h."),
]
SizesOption = Annotated[
    str | None,
    typer.Option("--sizes", help="max_wal_size to try, with commas: 1GB,8GB; each with each."),
]


@app.command("what-if", short_help="The log at other checkpoint distances and compressions.")
def what_if(
    paths: Annotated[
        list[str], typer.Argument(help="Segments, folders of them or patterns; no pipe.")
    ],
    begin: Annotated[
        str | None, typer.Option("--from", help="Records from this position on.")
    ] = None,
    end: Annotated[str | None, typer.Option("--to", help="Records that end there.")] = None,
    timeline: Annotated[
        int | None,
        typer.Option(min=1, max=2**32 - 1, help="Follow this timeline instead of the newest."),
    ] = None,
    names: Annotated[
        str | None,
        typer.Option(
            "--names",
            help="What relations are called, as in wal stats; indexes are told by it.",
        ),
    ] = None,
    timeouts: TimeoutsOption = None,
    sizes: SizesOption = None,
    target: Annotated[
        float, typer.Option("--completion-target", help="checkpoint_completion_target.")
    ] = COMPLETION_TARGET,
    timeout_now: Annotated[
        str | None, typer.Option("--timeout-in-force", help="checkpoint_timeout of the log.")
    ] = None,
    size_now: Annotated[
        str | None, typer.Option("--size-in-force", help="max_wal_size of the log.")
    ] = None,
    form: FormatOption = Format.TEXT,
    to: OutputOption = None,
) -> None:
    """What the log would be at other checkpoint distances, compressions, without an index."""
    from pgheadroom.report import text
    from pgheadroom.report.wal import what_if as what_if_report
    from pgheadroom.wal import wal_what_if
    from pgheadroom.wal.other_checkpoints import SIZES_BYTES, TIMEOUTS_S, Grid

    if not 0 < target <= 1:
        raise InputError(f"--completion-target {target}: expected more than 0 and up to 1")
    grid = Grid(
        timeouts_s=_each(timeouts, parse_duration_s) or TIMEOUTS_S,
        sizes_bytes=_each(sizes, parse_setting_bytes) or SIZES_BYTES,
        completion_target=target,
        timeout_in_force_s=None if timeout_now is None else parse_duration_s(timeout_now),
        size_in_force_bytes=None if size_now is None else parse_setting_bytes(size_now),
    )
    result = wal_what_if(
        paths, begin=begin, end=end, timeline=timeline, names=_names(names), grid=grid
    )
    output.put(
        form,
        to,
        json=lambda: text.as_json(result.to_json()),
        csv=lambda: what_if_report.as_csv(result),
        markdown=lambda: text.as_markdown(what_if_report.tables(result, every=True)),
        show=lambda console, in_file: _print_what_if(result, console, every=in_file),
    )


def _each(given: str | None, parse: Callable[[str], Number]) -> tuple[Number, ...]:
    return tuple(map(parse, given.split(","))) if given else ()


def _print_what_if(result: WhatIf, console: Console, *, every: bool) -> None:
    from pgheadroom.report import text
    from pgheadroom.report.wal import what_if as what_if_report

    console.print(what_if_report.headline(result), markup=False, soft_wrap=True)
    for note in result.notes:
        console.print(f"! {note}", markup=False, soft_wrap=True)
    console.print()
    text.print_tables(what_if_report.tables(result, every=every), console)


def _of_server(
    targets: Sequence[str], length: str, asked: dict[str, Any], names: str | None
) -> WalStats:
    from pgheadroom.wal.live import read_live
    from pgheadroom.wal.names import NamesMeanwhile

    by = asked.pop("by")
    if len(targets) != 1 or profile_or_connection(targets[0], {}) is not None:
        raise InputError("--for reads one running server: expected one connection")
    if any(value is not None for value in asked.values()):
        raise InputError("--for begins now: --from, --to and --timeline belong to files")
    seconds = parse_duration_s(length)
    asks = names is not None and profile_or_connection(names, {}) is None
    known = NamesMeanwhile(names, {}) if names is not None and asks else _names(names)
    return read_live(targets[0], {}, seconds=seconds, names=known, by=by)


def _print_grants(targets: Sequence[str]) -> None:
    from pgheadroom.wal.live import grants

    found = grants(targets[0], {})
    output.write_out(f"{found or '-- The role may read the log.'}\n")


def _write_page(result: WalStats, paths: Sequence[str], timeline: int | None, to: Path) -> None:
    from pgheadroom.report.wal import html as wal_html
    from pgheadroom.wal.course import over_time

    # What cannot be read again has a page without the chart over time.
    is_pipe = not paths or paths[0] == "-" or Path(paths[0]).is_fifo()
    course = None if is_pipe else over_time(list(paths), result, timeline=timeline)
    output.write(wal_html.render(result, course, command=command_line(sys.argv[1:])), to)
    sys.stderr.write(f"Page: {to.absolute()}\n")


def _names(given: str | None) -> Names | None:
    if given is None:
        return None
    from pgheadroom.wal import names_of_server, read_names

    path = profile_or_connection(given, {})
    return names_of_server(given, {}) if path is None else read_names(path)


def _put(result: WalStats, form: Format, to: Path | None, by: str | None) -> None:
    from pgheadroom.report import text
    from pgheadroom.report.wal import stats as wal_report

    output.put(
        form,
        to,
        json=lambda: text.as_json(result.to_json()),
        csv=lambda: wal_report.as_csv(result, by),
        markdown=lambda: text.as_markdown(wal_report.tables(result, every=True)),
        show=lambda console, in_file: _print(result, console, every=in_file),
    )


def _print(result: WalStats, console: Console, *, every: bool) -> None:
    from pgheadroom.report import text
    from pgheadroom.report.wal import stats as wal_report

    console.print(wal_report.headline(result), markup=False, soft_wrap=True)
    for note in result.notes:
        console.print(f"! {note}", markup=False, soft_wrap=True)
    if result.total.records:
        console.print()
        text.print_tables(wal_report.tables(result, every=every), console)


@app.command("names", short_help="Write down what relations are called.")
def names_command(
    target: Annotated[str, typer.Argument(help="A connection; without one, as libpq's PG*.")] = "",
    to: Annotated[
        Path,
        typer.Option("--output", "-o", help="The names file; one that is there is added to."),
    ] = Path("names.json"),
    host: HostOption = None,
    port: PortOption = None,
    user: UserOption = None,
    dbname: DbnameOption = None,
) -> None:
    """Write down what relations are called, in every database that can be reached."""
    from pgheadroom.report import text
    from pgheadroom.wal import Names, add_names, names_of_server, read_names

    output.check_writable(to)
    before = read_names(to) if exists(to) else Names(relations=())
    now = names_of_server(target, parameters_of(host, port, user, dbname))
    together = add_names(before, now)
    output.write(text.as_json(together.to_json()), to)
    sys.stderr.write(
        f"{to}: {len(together.relations)} files of relations, "
        f"{len(together.relations) - len(before.relations)} of them new\n"
    )
    for database, why in now.not_reached.items():
        sys.stderr.write(f"! {database} could not be asked: {why}\n")
