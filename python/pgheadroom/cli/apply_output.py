"""
What `pgheadroom apply` says, and which tables a user's words are.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Container, Mapping, Sequence
from pathlib import Path

from pgheadroom.errors import InputError
from pgheadroom.plan.apply import Applier, ApplyOutcome
from pgheadroom.plan.reading import digest
from pgheadroom.plan.steps import as_made
from pgheadroom.plan.text import claim_lines, disk_said, with_likeness
from pgheadroom.plan.values import Plan, PlanStep
from pgheadroom.progress import Say
from pgheadroom.quoting import called, printable, printable_lines
from pgheadroom.units import show_bytes, show_duration

_WIDTH_MIN = 20


def tables(plan: Plan, names: Sequence[str]) -> frozenset[int | str]:
    """
    What is to be left alone: tables that a user names, as the plan or as SQL has them, or settings.

    Raises:
        InputError: The plan has no step for a table of that name.
    """
    by_name: dict[str, int | str] = {}
    for step in plan.work:
        for name in _names(step):
            by_name[name] = step.skip_key
    for name in names:
        if name not in by_name:
            known = ", ".join(dict.fromkeys(_names(step)[0] for step in plan.work))
            raise InputError(
                f"--skip {printable(name)}: the plan has no step for a table of that name; "
                f"expected one of {known or 'none, it has no steps'}"
            )
    return frozenset(by_name[name] for name in names)


def _names(step: PlanStep) -> tuple[str, ...]:
    """How a step's table may be called; a setting has one name."""
    table = step.table
    if table is None:
        return (step.about,)
    named = printable(called(table.schema, table.name))
    return named, f"{table.schema}.{table.name}", table.qualified


def run(applier: Applier, todo: tuple[PlanStep, ...], *, undo: bool) -> ApplyOutcome:
    """The steps; an interrupt says what is in doubt before it goes on its way."""
    try:
        return applier.run(todo, undo=undo)
    except (KeyboardInterrupt, SystemExit):
        applier.cancel()
        for step in applier.record.steps:
            if step.state in ("running", "undoing"):
                say(
                    f"step {step.number} was interrupted: whether it has run, the same command "
                    "finds out from the catalog"
                )
        raise


def show_steps(
    plan: Plan,
    applier: Applier,
    todo: tuple[PlanStep, ...],
    *,
    undo: bool,
    write: Say,
) -> None:
    """Everything about the steps, made here of their checked fields and not read off the file."""
    target = plan.target
    lines = [
        f"Plan of {plan.created_at} for database {printable(target.database)} on PostgreSQL "
        f"{printable(target.server_version)}",
        f"Digest {digest(plan)}: the same as that of the plan which was agreed on?",
    ]
    whole: list[str] = []
    for known in applier.record.steps:
        if known.state == "done" and not undo:
            when = printable(str(known.finished_at))
            now = "its table is gone since" if known.number in applier.gone else "still is"
            lines.append(f"Step {known.number} was done at {when}, and {now}.")
    for step in applier.skipped:
        lines.append(f"Step {step.number} ({step.about}) is left alone: --skip.")
    made = {step.number: step for step in as_made(plan).work}
    for step, like in with_likeness(tuple(made[step.number] for step in todo)):
        statement = step.undo if undo else step.sql or step.command
        lines += ["", f"Step {step.number}, {'undo' if undo else step.kind.replace('_', ' ')}: "]
        lines[-1] += step.about
        # Escaped for the terminal; what runs is the statement itself.
        lines.append(f"  {printable(statement or '')}{'' if step.run_by == 'you' else ';'}")
        whole.append(lines[-1])
        lines += [f"  {line[0].lower()}{line[1:]}" for line in ([] if undo else claim_lines(step))]
        lock = f"blocks {step.blocks}" if like is None else f"as for step {like}"
        lines.append(f"  lock: {step.lock}; {lock}")
        if not undo:
            lines.append(
                f"  about {show_duration(step.duration_s.low)} to "
                f"{show_duration(step.duration_s.high)}, {disk_said(step)} "
                f"{show_bytes(step.disk_bytes)}, WAL {show_bytes(step.wal_bytes)} (estimated)"
            )
            lines.append(f"  undo: {printable(step.undo) + ';' if step.undo else step.undo_note}")
            lines.append(f"  risk: {step.risk if like is None else f'as for step {like}'}")
            if not step.verified:
                lines.append("  not verified by us on this version")
    lines += _unfit(plan, applier.changed)
    lines += _gone(plan, applier.left_out)
    if not todo:
        lines.append("Nothing is left to undo." if undo else "Nothing is left to do.")
    write("\n".join(wrapped(lines, whole)) + "\n")
    sys.stdout.flush()


def wrapped(lines: Sequence[str], whole: Container[str] = ()) -> list[str]:
    """
    As wide as the terminal; to a file as they are.

    Args:
        lines: To be shown.
        whole: Statements and commands among them, which are copied.
    """
    width = shutil.get_terminal_size((0, 0)).columns
    made: list[str] = []
    for line in lines:
        indent = line[: len(line) - len(line.lstrip())]
        if width < _WIDTH_MIN or len(line) <= width or line in whole:
            made.append(line)
        else:
            made += textwrap.wrap(
                line,
                width,
                subsequent_indent=f"{indent}  ",
                break_long_words=False,
                break_on_hyphens=False,
            )
    return made


def _unfit(plan: Plan, changed: Mapping[int, str]) -> list[str]:
    return [
        f"Cannot be undone: step {number} ({plan.work[number - 1].about}): {why}."
        for number, why in changed.items()
    ]


def _gone(plan: Plan, left_out: Mapping[int, str]) -> list[str]:
    return [
        f"Left out: step {number} ({plan.work[number - 1].about}): {why}."
        for number, why in left_out.items()
    ]


def tell(
    plan: Plan,
    outcome: ApplyOutcome,
    kept: Path,
    *,
    undo: bool,
    write: Say,
) -> None:
    """What was done and what is left, and where the record lies."""
    done = "Undone" if undo else "Done"

    def named(numbers: tuple[int, ...]) -> str:
        steps = [plan.work[number - 1] for number in numbers]
        return ", ".join(f"step {step.number} ({step.about})" for step in steps) or "none"

    lines = [f"{done}: {named(outcome.done)}."]
    if outcome.before:
        lines.append(f"Done before: {named(outcome.before)}.")
    if outcome.yours:
        lines.append(f"Yours to run: {named(outcome.yours)}; then call this again.")
    if outcome.skipped:
        lines.append(f"Left alone: {named(outcome.skipped)}.")
    lines += _unfit(plan, dict(outcome.changed))
    lines += _gone(plan, dict(outcome.gone))
    if outcome.stopped is not None:
        lines.append(f"Stopped: {outcome.stopped}.")
        lines.append(f"Not {done.lower()}: {named(outcome.left)}.")
        lines.append("The same command goes on from there.")
    lines.append(f"Record: {printable(str(kept))}")
    write("\n".join(wrapped(lines)) + "\n")


def write_beside(text: str) -> None:
    """What a person reads, where standard output is a program's."""
    sys.stderr.write(printable_lines(text))
    sys.stderr.flush()


def say(text: str) -> None:
    """A line beside the output, while steps run."""
    sys.stderr.write(f"apply: {printable(text)}\n")
    sys.stderr.flush()
