"""
`pgheadroom prove`: one profile on a real server and in the twin, figure by figure.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from pgheadroom.cli.options import Format, FormatOption, HtmlOption, OutputOption
from pgheadroom.cli.output import check_outputs, said
from pgheadroom.cli.predict import (
    EvaluateOption,
    FillfactorOption,
    ProfileArgument,
    SeedsOption,
    TableOption,
    counted,
    parse_fillfactors,
    read_or_evaluated,
)
from pgheadroom.cli.proof_output import put_proof
from pgheadroom.cli.variants import (
    BrinOption,
    FillOption,
    NarrowOption,
    WithoutOption,
    changes_of,
)
from pgheadroom.defaults import SEEDS_DEFAULT
from pgheadroom.quoting import printable
from pgheadroom.redaction import command_line


def prove_command(
    profile: ProfileArgument,
    fillfactor: FillfactorOption = None,
    table: TableOption = None,
    server: Annotated[
        str | None,
        typer.Option(
            help="Version of the throw-away server (18, 16.14), or a folder with server programs; "
            "it wins over the profile's."
        ),
    ] = None,
    fail_over: Annotated[
        bool,
        typer.Option(
            "--fail-over",
            help="Exit with 1 when an exact figure differs at all, or a statistical one by more "
            "than its bound (docs/accuracy.md).",
        ),
    ] = False,
    without_index: WithoutOption = None,
    narrow_index: NarrowOption = None,
    brin_index: BrinOption = None,
    index_fillfactor: FillOption = None,
    seeds: SeedsOption = None,
    evaluate: EvaluateOption = False,
    form: FormatOption = Format.TEXT,
    to: OutputOption = None,
    html: HtmlOption = None,
) -> None:
    """Play a profile on a real server and in the twin, and show both and the error."""
    from pgheadroom.prove import prove

    check_outputs(to, html)
    levels = parse_fillfactors(fillfactor)
    changes = changes_of(without_index, narrow_index, brin_index, index_fillfactor)
    read = read_or_evaluated(profile, server, evaluate=evaluate)
    with counted("twin") as report:
        found = prove(
            read,
            levels,
            table,
            server=server,
            changes=changes,
            seeds=seeds or SEEDS_DEFAULT,
            report=report,
            say=_say,
        )
    put_proof(found, form, to, page=html, command=command_line(sys.argv[1:]))
    said(html)
    if fail_over and found.beyond:
        count = len(found.beyond)
        sys.stderr.write(
            f"pgheadroom: {count} figure{'s are' if count > 1 else ' is'} beyond the bounds\n"
        )
        raise typer.Exit(1)


def _say(done: int, total: int, what: str) -> None:
    """What the server is doing, a line each: a cell takes seconds to minutes."""
    if done < total:
        cell = f"cell {done + 1} of {total}: " if total > 1 else ""
        sys.stderr.write(f"server: {cell}{printable(what)}\n")
        sys.stderr.flush()
