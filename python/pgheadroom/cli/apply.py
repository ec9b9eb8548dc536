"""
`pgheadroom apply`: a plan is carried out, or taken back.
"""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pgheadroom.cli.connection import (
    DbnameOption,
    HostOption,
    PortOption,
    UserOption,
    parameters_of,
)
from pgheadroom.errors import InputError
from pgheadroom.quoting import printable
from pgheadroom.units import parse_duration_s

if TYPE_CHECKING:
    from pgheadroom.plan.execution import ApplyOptions

_RETRIES_MAX = 1000


_UndoOption = Annotated[
    bool, typer.Option("--undo", help="Take back what was done, last step first.")
]
_SkipOption = Annotated[
    list[str] | None,
    typer.Option(
        "--skip",
        metavar="TABLE",
        help="Leave this table (or, in a plan of the doctor's, setting) alone; may be repeated.",
    ),
]
_DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Check and show everything; change nothing.")
]
_LockTimeoutOption = Annotated[
    str,
    typer.Option(help="How long a try waits for its lock; longer than deadlock_timeout (1 s)."),
]
_BackoffOption = Annotated[
    str, typer.Option(help="Pause before the second try; it doubles up to 30 s.")
]
_StatementTimeoutOption = Annotated[
    str | None, typer.Option(help="For each statement; without it, the role's own.")
]


class _Form(StrEnum):
    TEXT = "text"
    JSON = "json"


_FormOption = Annotated[
    _Form,
    typer.Option(
        "--format",
        "-f",
        help="text, or json: the record on standard output, all words on standard error.",
    ),
]


def apply_command(
    plan: Annotated[Path, typer.Argument(help="Of pgheadroom advise --plan, or doctor --plan.")],
    target: Annotated[str, typer.Argument(help="A connection; without it, as libpq's PG*.")] = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    undo: _UndoOption = False,
    skip: _SkipOption = None,
    dry_run: _DryRunOption = False,
    lock_timeout: _LockTimeoutOption = "2s",
    lock_retries: Annotated[int, typer.Option(help="Further tries after the first.")] = 10,
    backoff: _BackoffOption = "1s",
    statement_timeout: _StatementTimeoutOption = None,
    host: HostOption = None,
    port: PortOption = None,
    user: UserOption = None,
    dbname: DbnameOption = None,
    form: _FormOption = _Form.TEXT,
) -> None:
    """Carry out a plan: check it, show it, ask, and write down each step beside it."""
    from pgheadroom.cli import apply_output, output
    from pgheadroom.plan.execution import ApplyCall
    from pgheadroom.plan.reading import read_plan
    from pgheadroom.plan.record import as_text, new_record, read_record, record_path, save
    from pgheadroom.plan.remedy_apply import applier_of
    from pgheadroom.plan.session import writing_session

    options = _options(lock_timeout, lock_retries, backoff, statement_timeout)
    parameters = parameters_of(host, port, user, dbname)
    is_json = form is _Form.JSON
    write = apply_output.write_beside if is_json else output.write_out
    read = read_plan(plan)
    skipped = apply_output.tables(read, skip or ())
    kept = record_path(plan)
    record = read_record(kept, read)
    if undo and record is None:
        raise InputError(f"{kept} does not exist: nothing of this plan was applied from here")
    if not (yes or dry_run or sys.stdin.isatty()):
        raise InputError(
            "nobody can be asked: standard input is no terminal. Expected --yes to go ahead, or "
            "--dry-run to look. Nothing was changed"
        )
    with writing_session(target, parameters) as connection:
        call = ApplyCall(
            plan=read,
            record=new_record(read) if record is None else record,
            connection=connection,
            keep=lambda found: save(found, kept),
            say=apply_output.say,
            options=options,
            skip=skipped,
        )
        applier = applier_of(call)
        todo = applier.prepare(undo=undo)
        apply_output.show_steps(read, applier, todo, undo=undo, write=write)
        if dry_run:
            write("Nothing was changed: --dry-run.\n")
            if is_json:
                output.write_out(as_text(applier.record))
            return
        if not todo:
            applier.record_gone()
            if record is not None:
                save(applier.record, kept)
            if is_json:
                output.write_out(as_text(applier.record))
            if applier.changed or applier.left_out:
                raise typer.Exit(1)
            return
        who = f"database {printable(connection.info.dbname)} as {printable(connection.info.user)}"
        if not yes and not typer.confirm(f"Run this on {who}?", err=True):
            write("Nothing was changed: the answer was no.\n")
            raise typer.Exit(1)
        outcome = apply_output.run(applier, todo, undo=undo)
    apply_output.tell(read, outcome, kept, undo=undo, write=write)
    if is_json:
        output.write_out(as_text(applier.record))
    if outcome.stopped is not None or outcome.changed or outcome.gone:
        raise typer.Exit(1)


def _options(
    lock_timeout: str, lock_retries: int, backoff: str, statement_timeout: str | None
) -> ApplyOptions:
    from pgheadroom.plan.execution import ApplyOptions

    if not 0 <= lock_retries <= _RETRIES_MAX:
        raise InputError(f"--lock-retries {lock_retries}: expected 0 to {_RETRIES_MAX}")
    return ApplyOptions(
        lock_timeout_s=parse_duration_s(lock_timeout),
        retries=lock_retries,
        backoff_s=parse_duration_s(backoff),
        statement_timeout_s=(
            None if statement_timeout is None else parse_duration_s(statement_timeout)
        ),
    )
