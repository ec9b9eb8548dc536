"""
`pgheadroom apply`: a plan is carried out, or taken back.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from pgheadroom.cli.connection import (
    DbnameOption,
    HostOption,
    PortOption,
    UserOption,
    parameters_of,
)
from pgheadroom.errors import InputError
from pgheadroom.plan.apply import Applier, Options, Outcome
from pgheadroom.plan.reading import read_plan
from pgheadroom.plan.record import Record, new_record, read_record, record_path, save
from pgheadroom.plan.session import writing_session
from pgheadroom.plan.statements import name_of, one_line
from pgheadroom.plan.text import with_likeness
from pgheadroom.plan.values import Plan, Step
from pgheadroom.units import parse_duration_s, show_bytes, show_duration

_RETRIES_MAX = 1000


def run(
    plan: Annotated[Path, typer.Argument(help="Of pgheadroom advise --plan.")],
    target: Annotated[str, typer.Argument(help="A connection; without it, as libpq's PG*.")] = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    undo: Annotated[
        bool, typer.Option("--undo", help="Take back what was done, last step first.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check and show everything; change nothing.")
    ] = False,
    lock_timeout: Annotated[
        str,
        typer.Option(help="How long a try waits for its lock; longer than deadlock_timeout (1 s)."),
    ] = "2s",
    lock_retries: Annotated[int, typer.Option(help="Further tries after the first.")] = 10,
    backoff: Annotated[
        str, typer.Option(help="Pause before the second try; it doubles up to 30 s.")
    ] = "1s",
    statement_timeout: Annotated[
        str | None, typer.Option(help="For each statement; without it, the role's own.")
    ] = None,
    host: HostOption = None,
    port: PortOption = None,
    user: UserOption = None,
    dbname: DbnameOption = None,
) -> None:
    """Carry out a plan: check it, show it, ask, and write down each step beside it."""
    if not 0 <= lock_retries <= _RETRIES_MAX:
        raise InputError(f"--lock-retries {lock_retries}: expected 0 to {_RETRIES_MAX}")
    options = Options(
        lock_timeout_s=parse_duration_s(lock_timeout),
        retries=lock_retries,
        backoff_s=parse_duration_s(backoff),
        statement_timeout_s=(
            None if statement_timeout is None else parse_duration_s(statement_timeout)
        ),
    )
    parameters = parameters_of(host, port, user, dbname)
    read = read_plan(plan)
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
        applier = Applier(
            read,
            new_record(read) if record is None else record,
            connection,
            keep=lambda found: save(found, kept),
            say=_say,
            options=options,
        )
        todo = applier.prepare(undo=undo)
        _show(read, applier.record, todo, undo=undo)
        if dry_run:
            sys.stdout.write("Nothing was changed: --dry-run.\n")
            return
        if not todo:
            if record is not None:
                save(applier.record, kept)
            return
        who = f"database {one_line(connection.info.dbname)} as {one_line(connection.info.user)}"
        if not yes and not typer.confirm(f"Run this on {who}?", err=True):
            sys.stdout.write("Nothing was changed: the answer was no.\n")
            raise typer.Exit(1)
        outcome = _run(applier, todo, undo=undo)
    _tell(read, outcome, kept, undo=undo)
    if outcome.stopped is not None:
        raise typer.Exit(1)


def _run(applier: Applier, todo: tuple[Step, ...], *, undo: bool) -> Outcome:
    """The steps; an interrupt says what is in doubt before it goes on its way."""
    try:
        return applier.run(todo, undo=undo)
    except (KeyboardInterrupt, SystemExit):
        applier.cancel()
        for step in applier.record.steps:
            if step.state in ("running", "undoing"):
                _say(
                    f"step {step.number} was interrupted: whether it has run, the same command "
                    "finds out from the catalog"
                )
        raise


def _show(plan: Plan, record: Record, todo: tuple[Step, ...], *, undo: bool) -> None:
    target = plan.target
    lines = [
        f"Plan of {plan.created_at} for database {one_line(target.database)} on PostgreSQL "
        f"{target.server_version}"
    ]
    for known in record.steps:
        if known.state == "done" and not undo:
            lines.append(f"Step {known.number} was done at {known.finished_at}, and still is.")
    for step, like in with_likeness(todo):
        statement = step.undo if undo else step.sql or step.command
        lines += ["", f"Step {step.number}, {'undo' if undo else step.kind.replace('_', ' ')}: "]
        lines[-1] += name_of(step.table)
        # Escaped for the terminal; what runs is the plan's text.
        lines.append(f"  {one_line(statement or '')}{'' if step.run_by == 'you' else ';'}")
        lock = f"blocks {step.blocks}" if like is None else f"as for step {like}"
        lines.append(f"  lock: {step.lock}; {lock}")
        if not undo:
            lines.append(
                f"  about {show_duration(step.duration_s.low)} to "
                f"{show_duration(step.duration_s.high)}, disk {show_bytes(step.disk_bytes)}, WAL "
                f"{show_bytes(step.wal_bytes)} (estimated)"
            )
            lines.append(f"  undo: {one_line(step.undo) + ';' if step.undo else step.undo_note}")
            lines.append(f"  risk: {step.risk if like is None else f'as for step {like}'}")
            if not step.verified:
                lines.append("  not verified by us on this version")
    if not todo:
        lines.append("Nothing is left to undo." if undo else "Nothing is left to do.")
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def _tell(plan: Plan, outcome: Outcome, kept: Path, *, undo: bool) -> None:
    done = "Undone" if undo else "Done"

    def named(numbers: tuple[int, ...]) -> str:
        steps = [plan.steps[number - 1] for number in numbers]
        return ", ".join(f"step {step.number} ({name_of(step.table)})" for step in steps) or "none"

    lines = [f"{done}: {named(outcome.done)}."]
    if outcome.before:
        lines.append(f"Done before: {named(outcome.before)}.")
    if outcome.yours:
        lines.append(f"Yours to run: {named(outcome.yours)}; then call this again.")
    if outcome.stopped is not None:
        lines.append(f"Stopped: {outcome.stopped}.")
        lines.append(f"Not {done.lower()}: {named(outcome.left)}.")
        lines.append("The same command goes on from there.")
    lines.append(f"Record: {kept}")
    sys.stdout.write("\n".join(lines) + "\n")


def _say(text: str) -> None:
    sys.stderr.write(f"apply: {text}\n")
    sys.stderr.flush()
