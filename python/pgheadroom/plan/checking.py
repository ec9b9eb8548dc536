"""
Whether a plan still fits: the database, its tables, and what became of steps in doubt.

A step in doubt is one whose statement was begun and whose end nobody saw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pgheadroom.errors import InputError
from pgheadroom.plan.marks import Catalog, FoundTable
from pgheadroom.plan.record import AppliedRecord, State, TableState
from pgheadroom.plan.statements import name_of, one_line
from pgheadroom.plan.values import Plan, Step, StepKind, TableMark, now_text
from pgheadroom.progress import Say

DONE: tuple[State, ...] = ("done", "undoing")
"""States of a step that is in force."""

_KEPT = ("storage parameter fillfactor", "name", "OID", "it is gone", "it is no ordinary")


def check_target(plan: Plan, catalog: Catalog, say: Say) -> None:
    """
    Refuse another database than the plan's, and a standby.

    Raises:
        InputError: It is one of these.
    """
    different = plan.target.differs(catalog.target)
    if different:
        raise InputError(
            f"the plan is for another database ({'; '.join(map(one_line, different))}): "
            "expected the one that was observed. Nothing was changed"
        )
    if catalog.in_recovery:
        raise InputError(
            "the server is a standby: expected its primary, where tables can be changed. "
            "Nothing was changed"
        )
    if None in (plan.target.system_identifier, catalog.target.system_identifier):
        say(
            "the cluster's identifier could not be compared (pg_control_system() is not "
            "allowed to the role): database, its OID and the tables were"
        )


def found_out(plan: Plan, record: AppliedRecord, catalog: Catalog, say: Say) -> AppliedRecord:
    """The record with each step in doubt as the catalog shows it: it has run, or has not."""
    for step in plan.steps:
        known = record.step(step.number)
        if known.state not in ("running", "undoing", "yours"):
            continue
        found = catalog.tables.get(step.table.oid)
        if found is None:
            continue  # the check of the tables says so
        now = effect_of(found)
        if step.kind == "rewrite":
            base = known.before.relfilenode if known.before else step.table.relfilenode
            happened = now.relfilenode != base
        else:
            wanted = step.table.fillfactor if known.state == "undoing" else step.fillfactor
            happened = now.fillfactor == wanted
        if known.state == "yours":
            state = "done" if happened else "yours"
        elif known.state == "undoing":
            state = "undone" if happened else "done"
        else:
            state = "done" if happened else "pending"
        if known.state != "yours" or happened:
            what = "has" if happened else "has not"
            say(f"step {step.number} was in doubt: the catalog says that it {what} run")
        record = record.with_step(
            replace(
                known,
                state=state,  # type: ignore[arg-type]  # one of the three above
                found_out=happened,
                finished_at=now_text() if happened else known.finished_at,
                after=now if happened else known.after,
            )
        )
    return record


def refuse_changed(
    plan: Plan, record: AppliedRecord, catalog: Catalog, steps: Sequence[Step], todo: Sequence[Step]
) -> None:
    """
    Refuse to begin where a table is not as the plan, and what was done of it, leave it.

    Args:
        plan: Of the steps.
        record: What was done of it.
        catalog: Now.
        steps: All that are not left alone.
        todo: Of these, what is to be done.

    Raises:
        InputError: A table has changed; all that have are named.
    """
    refused: dict[str, None] = {}  # in order, each table once
    for step in steps:
        different = differences(plan, record, catalog, step, undo=False, done=step not in todo)
        if different:
            refused[f"  {name_of(step.table)}: {'; '.join(different)}"] = None
    if refused:
        raise InputError(
            "the plan rests on tables that have changed since they were observed:\n"
            + "\n".join(refused)
            + "\nexpected them as they were: observe and advise again, or leave them out with "
            "`skip` TABLE. Nothing was changed",
            mentions=("skip",),
        )


def said_gone(mark: TableMark, names: Mapping[tuple[str, str], int]) -> str:
    """
    That a table is gone, and whether another one has its name: no step of a plan is for that.

    Args:
        mark: Of the plan; no table has its OID any more.
        names: OIDs of the tables that are there, by schema and name.
    """
    other = names.get((mark.schema, mark.name))
    if other is None:
        return "it is gone: dropped since it was observed"
    return (
        f"it is gone, and another table has its name (OID {other}, the plan's had {mark.oid}), "
        "which was not observed"
    )


def differences(
    plan: Plan,
    record: AppliedRecord,
    catalog: Catalog,
    step: Step,
    *,
    undo: bool,
    done: bool = False,
) -> tuple[str, ...]:
    """
    What is different about a step's own table, its number and its name, in words.

    What else has changed since counts only where the step is yet to be done.
    """
    mark = step.table
    found = catalog.tables.get(mark.oid)
    if found is None:
        return (said_gone(mark, catalog.names),)
    if found.relkind != "r":
        return ("it is no ordinary table, which alone can have a fillfactor",)
    states = {
        other.kind: (other, record.step(other.number).state)
        for other in plan.steps
        if other.table.oid == mark.oid
    }
    different = _differs(mark, states, found.mark)
    if undo or done:
        different = tuple(d for d in different if d.startswith(_KEPT))
    return tuple(map(one_line, different))


def _differs(
    mark: TableMark, states: Mapping[StepKind, tuple[Step, State]], now: TableMark
) -> tuple[str, ...]:
    """What is different from what the plan and its steps so far have made of the table."""
    options = {name: value for name, value in mark.reloptions.items() if name != "fillfactor"}
    expected = mark.fillfactor
    if "set_fillfactor" in states:
        step, state = states["set_fillfactor"]
        expected = step.fillfactor if state in DONE else mark.fillfactor
    if expected is not None:
        options["fillfactor"] = str(expected)
    touched = "rewrite" in states and states["rewrite"][1] in ("done", "yours")
    return replace(
        mark, reloptions=options, relfilenode=now.relfilenode if touched else mark.relfilenode
    ).differs(now)


def effect_of(found: FoundTable) -> TableState:
    """What the catalog says of a table, for the record."""
    return TableState(
        fillfactor=found.mark.fillfactor,
        relfilenode=found.mark.relfilenode,
        inserts=found.inserts,
        updates=found.updates,
        deletes=found.deletes,
        vacuums=found.vacuums,
    )
