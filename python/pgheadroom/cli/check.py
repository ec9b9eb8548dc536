"""
`pgheadroom check`: would a migration end HOT on a table that lives from it?
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pgheadroom.cli import output
from pgheadroom.cli.options import Format, FormatOption, OutputOption
from pgheadroom.input_file import read_standard_input, read_text
from pgheadroom.progress import RunState
from pgheadroom.units import parse_setting_bytes

if TYPE_CHECKING:
    from rich.console import Console

    from pgheadroom.migration import MigrationCheck

FINDINGS = 1
_SQL_BYTES_MAX = 16 * 1024**2  # a migration, not a dump; arbitrary


def check_command(
    migration: Annotated[
        Path, typer.Argument(help="A file of SQL statements; - is standard input.")
    ],
    profile: Annotated[
        Path, typer.Option("--profile", help="What `observe` wrote of the database it is for.")
    ],
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Exit code 1 also where something is not judged or not understood, or where "
            "writers of a big table have to wait. For CI.",
        ),
    ] = False,
    rewrite_over: Annotated[
        str,
        typer.Option(
            metavar="SIZE",
            help="From which size on a table is big: rewriting, reading or indexing it under a "
            "lock that stops writers is then a finding of --strict.",
        ),
    ] = "1GB",
    table: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Answer for this table alone."),
    ] = None,
    form: FormatOption = Format.TEXT,
    to: OutputOption = None,
) -> None:
    """
    Say which tables would lose HOT by a migration, what that costs, and who has to wait for it.

    The verdict is by rule: from the columns that statements assign and those that indexes read.
    Only figures are played, of tables whose verdict changes: the HOT share in the long run, beside
    the measured one; where nothing can be played it is estimated from that. Exit code 1 if a table
    loses HOT, 0 if none does. Nothing is executed, no server is needed.
    """
    # Help does without the work.
    from pgheadroom.migration import check_migration, read_migration
    from pgheadroom.profile import read_profile

    over = parse_setting_bytes(rewrite_over)
    if to is not None:
        output.check_writable(to)
    statements = read_migration(_read(migration))
    read = read_profile(profile)
    with output.progress("check") as step:
        found = check_migration(
            read,
            statements,
            table=table,
            rewrite_over_bytes=over,
            say=lambda done, total, name: step(
                RunState(done=done, total=max(total, 1), left_s=0.0, text=name)
            ),
        )
    _put(found, form, to)
    if found.findings or (strict and found.strict_findings):
        raise typer.Exit(FINDINGS)


def _read(path: Path) -> str:
    if str(path) == "-":
        return read_standard_input(bytes_max=_SQL_BYTES_MAX, expected="SQL")
    return read_text(path, bytes_max=_SQL_BYTES_MAX, expected="a file of SQL")


def _put(result: MigrationCheck, form: Format, to: Path | None) -> None:
    from pgheadroom.report import migration as migration_report
    from pgheadroom.report import text

    output.put(
        form,
        to,
        json=lambda: text.as_json(result.to_json()),
        csv=lambda: migration_report.as_csv(result),
        markdown=lambda: _markdown(result),
        show=lambda console, _: _print(result, console),
    )


def _markdown(result: MigrationCheck) -> str:
    from pgheadroom.report import migration as migration_report
    from pgheadroom.report import text

    listed = [f"- {text.markdown_text(line)}" for line in migration_report.lines(result)]
    head = [f"# {migration_report.summary(result)}", "", *listed, ""]
    return "\n".join([*head, text.as_markdown(migration_report.tables(result))])


def _print(result: MigrationCheck, console: Console) -> None:
    from pgheadroom.report import migration as migration_report
    from pgheadroom.report import text

    console.print(migration_report.summary(result), style="bold", markup=False)
    for line in migration_report.lines(result):
        console.print(f"* {line}", markup=False)
    found = migration_report.tables(result)
    if found:
        console.print()
        text.print_tables(found, console)
