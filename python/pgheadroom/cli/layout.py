"""
`pgheadroom layout`: a row's bytes, column by column.
"""

from __future__ import annotations

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
    profile_or_connection,
)
from pgheadroom.cli.options import Format, FormatOption, OutputOption

if TYPE_CHECKING:
    from rich.console import Console

    from pgheadroom.layout.values import Layout


def layout_command(
    target: Annotated[
        str, typer.Argument(help="A profile, or a connection; without both, as libpq's PG*.")
    ] = "",
    table: Annotated[
        str | None, typer.Option("--table", "-t", help="Only this table (or schema.table).")
    ] = None,
    no_sample: Annotated[
        bool,
        typer.Option("--no-sample", help="Read no rows (at most 1,000 pages a table otherwise)."),
    ] = False,
    host: HostOption = None,
    port: PortOption = None,
    user: UserOption = None,
    dbname: DbnameOption = None,
    form: FormatOption = Format.TEXT,
    to: OutputOption = None,
) -> None:
    """Show a row's bytes column by column, and the room that each fillfactor leaves."""
    from pgheadroom.layout import of_live_tables, of_profile
    from pgheadroom.profile import read_profile
    from pgheadroom.sources.columns import read_tables
    from pgheadroom.sources.session import read_only_session

    parameters = parameters_of(host, port, user, dbname)
    path = profile_or_connection(target, parameters)
    if path is not None:
        result = of_profile(read_profile(path), table)
    else:
        with read_only_session(target, parameters) as connection:
            tables, access = read_tables(connection, table=table, samples=not no_sample)
            result = of_live_tables(
                tables,
                access,
                server=str(connection.info.parameter_status("server_version")),
                table=table,
            )
    _put(result, form, to)


def _put(result: Layout, form: Format, to: Path | None) -> None:
    from pgheadroom.report import layout as layout_report
    from pgheadroom.report import text

    output.put(
        form,
        to,
        json=lambda: text.as_json(result.to_json()),
        csv=lambda: layout_report.as_csv(result),
        markdown=lambda: text.as_markdown(layout_report.tables(result)),
        show=lambda console, _: _print(result, console),
    )


def _print(result: Layout, console: Console) -> None:
    from pgheadroom.report import layout as layout_report
    from pgheadroom.report import text

    if result.access is not None:
        console.print(f"Access: {result.access.level}", markup=False)
        for hidden in result.access.missing:
            console.print(f"! not seen: {hidden}", markup=False)
        console.print()
    text.print_tables(layout_report.tables(result), console)
