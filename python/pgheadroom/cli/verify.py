"""
`pgheadroom verify`: what a plan foresaw, beside what happened.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pgheadroom.cli import output
from pgheadroom.cli.connection import (
    DbnameOption,
    HostOption,
    PortOption,
    UserOption,
    WalFilesOption,
    WalOption,
    parameters_of,
)
from pgheadroom.cli.idle import refuse
from pgheadroom.cli.options import Format, FormatOption, OutputOption
from pgheadroom.quoting import printable
from pgheadroom.units import parse_duration_s

if TYPE_CHECKING:
    from rich.console import Console

    from pgheadroom.plan import Plan
    from pgheadroom.plan.record import AppliedRecord
    from pgheadroom.sources.recording import Recording
    from pgheadroom.verify import Verification

APPLICATION_NAME = "pgheadroom verify"

CANNOT_JUDGE = 6
"""Exit code where no forecast failed, and not all of them could be judged."""

_WINDOWS = 20
"""Windows of the interval: enough for an interval by how they differ, few enough to be cheap."""


def verify_command(
    plan: Annotated[Path, typer.Argument(help="Of pgheadroom advise --plan, or doctor --plan.")],
    target: Annotated[str, typer.Argument(help="A connection; without it, as libpq's PG*.")] = "",
    length: Annotated[
        str, typer.Option("--for", help="How long to watch; as long as before is best.")
    ] = "5m",
    no_sample: Annotated[
        bool,
        typer.Option("--no-sample", help="Read no rows: row lengths are then not compared."),
    ] = False,
    log: Annotated[
        list[Path] | None,
        typer.Option("--log", help="A server log with statements, as observe had it."),
    ] = None,
    statements: Annotated[
        list[Path] | None,
        typer.Option("--statements", help="A file of statements, as observe had it."),
    ] = None,
    wal: WalOption = False,
    wal_files: WalFilesOption = None,
    form: FormatOption = Format.TEXT,
    to: OutputOption = None,
    host: HostOption = None,
    port: PortOption = None,
    user: UserOption = None,
    dbname: DbnameOption = None,
) -> None:
    """
    Observe again, only reading, and hold the plan's forecasts against it.

    A plan of the doctor's has claims: what is given back, not written any more, or in force.

    Exit code 0: all held; 1: one failed; 6: none failed, and not all could be judged.
    """
    # Help does without the work.
    from pgheadroom.plan.reading import read_plan
    from pgheadroom.plan.record import read_record, record_path
    from pgheadroom.sources.log import read_statements
    from pgheadroom.sources.log_reading import LogWatch
    from pgheadroom.sources.observing import ObservationRequest, watch
    from pgheadroom.sources.session import read_only_session
    from pgheadroom.wal.beside import beside

    length_s = parse_duration_s(length)
    output.check_outputs(to)
    read = read_plan(plan)
    record = read_record(record_path(plan), read)
    parameters = parameters_of(host, port, user, dbname)
    if read.remedies is not None:
        _refuse_idle(log, statements, wal_files, no_sample=no_sample, wal=wal)
        _end(_of_remedies(read, record, target, parameters, length_s), form, to)
        return
    files = [read_statements(path) for path in statements or ()]
    logs = LogWatch(tuple(log or ()))
    request = ObservationRequest(
        duration_s=length_s, ticks=_WINDOWS, samples=not no_sample, tick_counters=True
    )
    with (
        read_only_session(
            target, {"application_name": APPLICATION_NAME, **parameters}
        ) as connection,
        beside(target, parameters, wanted=wal, files=tuple(wal_files or ())) as of_wal,
    ):

        def at(moment: str, known: Recording) -> None:
            logs.at(moment, known)
            of_wal.at(moment)

        recording = watch(connection, request, _say, at)
        # What only a verdict takes: a wrong plan or connection is told at once.
        from pgheadroom.observe import find_classes, observe
        from pgheadroom.verify import verify

        classes = find_classes(recording, logs.read(recording, _say), files)
        observed = observe(recording, classes, mask=False, sampled=not no_sample)
        profile = of_wal.add(observed)
    _end(verify(read, record, profile, recording, say=_say), form, to)


def _refuse_idle(
    log: list[Path] | None,
    statements: list[Path] | None,
    wal_files: list[Path] | None,
    *,
    no_sample: bool,
    wal: bool,
) -> None:
    """What tells nothing of claims, for counters and sizes do."""
    idle: dict[str, object] = {"--log": log, "--statements": statements}
    idle |= {"--no-sample": no_sample, "--wal": wal, "--wal-files": wal_files}
    refuse(idle, where="with a plan of the doctor's", instead="counters and sizes tell its claims")


def _of_remedies(
    plan: Plan,
    record: AppliedRecord | None,
    target: str,
    parameters: dict[str, str],
    length_s: float,
) -> Verification:
    from pgheadroom.sources.session import read_only_session
    from pgheadroom.verify.claims import verify_remedies

    named = {"application_name": APPLICATION_NAME, **parameters}
    with read_only_session(target, named) as connection:
        return verify_remedies(plan, record, connection, length_s, say=_say)


def _end(found: Verification, form: Format, to: Path | None) -> None:
    """Show it, and end with the code that it asks for."""
    _put(found, form, to)
    if found.failed:
        raise typer.Exit(1)
    if not found.held:
        raise typer.Exit(CANNOT_JUDGE)


def _put(result: Verification, form: Format, to: Path | None) -> None:
    from pgheadroom.report import text
    from pgheadroom.report import verification as verification_report

    output.put(
        form,
        to,
        json=lambda: text.as_json(result.to_json()),
        csv=lambda: verification_report.as_csv(result),
        markdown=lambda: verification_report.as_markdown(result),
        show=lambda console, _: _print(result, console),
    )


def _print(result: Verification, console: Console) -> None:
    from pgheadroom.report import text
    from pgheadroom.report import verification as verification_report

    console.print(verification_report.title(result), style="bold", markup=False)
    for line in verification_report.findings(result):
        console.print(f"* {line}", markup=False)
    for note in result.notes:
        console.print(f"! {note}", markup=False)
    console.print()
    text.print_tables(verification_report.tables(result), console)


def _say(what: str) -> None:
    sys.stderr.write(f"verify: {printable(what)}\n")
    sys.stderr.flush()
