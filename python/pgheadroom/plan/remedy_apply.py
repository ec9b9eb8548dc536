"""
Carrying out a doctor's plan: the same call as for an advice, over settings, indexes and tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pgheadroom.errors import InputError, PrivilegeMissing
from pgheadroom.plan.apply import Applier
from pgheadroom.plan.checking import DONE, check_target
from pgheadroom.plan.execution import ApplyCall, Execution
from pgheadroom.plan.record import AppliedRecord
from pgheadroom.plan.remedies import RemedyStep
from pgheadroom.plan.remedy_execution import RemedyExecution
from pgheadroom.plan.remedy_look import (
    Seen,
    changed,
    has_happened,
    is_half,
    is_undone,
    look,
    not_undoable,
    why_gone,
)
from pgheadroom.plan.remedy_statements import as_mark
from pgheadroom.plan.session import check_rights, foreign_owners, look_now
from pgheadroom.plan.statements import one_line
from pgheadroom.plan.values import PlanStep, now_text
from pgheadroom.quoting import printable

if TYPE_CHECKING:
    import psycopg


def applier_of(call: ApplyCall) -> Applier:
    """What carries out the call's plan."""
    return Applier(call) if call.plan.remedies is None else RemedyApplier(call)


class RemedyApplier(Applier):
    """One call of `apply` of a doctor's plan."""

    def _executing(self, call: ApplyCall) -> Execution:
        return RemedyExecution(call)

    def prepare(self, *, undo: bool) -> tuple[PlanStep, ...]:
        """
        Check everything, find out what was in doubt, and say what is to be done.

        Raises:
            InputError: The plan is for another database, a standby, or something has changed.
            PrivilegeMissing: A table is another's, or a setting is not for this role to change.
            SourceError: The catalog could not be read.
        """
        self._execution.set_timeouts()
        check_target(self._call.plan, look_now(self._call.connection), self._call.say)
        remedies = self._call.plan.remedies or ()
        steps = [step for step in remedies if step.skip_key not in self._call.skip]
        seen = {step.number: look(self._call.connection, step) for step in steps}
        self._execution.record = self._found_out(steps, seen)
        if undo:
            return self._to_take_back(steps, seen)
        self._gone = {
            step.number: why
            for step in steps
            if self._state(step) not in DONE
            and (why := why_gone(step, seen[step.number])) is not None
        }
        steps = [step for step in steps if step.number not in self._gone]
        todo = tuple(step for step in steps if self._state(step) not in DONE)
        self._refuse(steps, todo, seen)
        self._check_rights([step for step in todo if step.run_by == "apply"], seen)
        return todo

    def _found_out(self, steps: Sequence[RemedyStep], seen: Mapping[int, Seen]) -> AppliedRecord:
        """The record with each step in doubt as the catalog shows it."""
        record = self.record
        for step in steps:
            known = record.step(step.number)
            if known.state not in ("running", "undoing", "yours"):
                continue
            found = seen[step.number]
            if known.state == "undoing":
                happened = is_undone(step, found)
                state = "undone" if happened else "done"
            else:
                happened = has_happened(step, found, known.found_before)
                state = "done" if happened else "yours" if known.state == "yours" else "pending"
            if known.state != "yours" or happened:
                what = "has" if happened else "has not"
                self._call.say(
                    f"step {step.number} was in doubt: the catalog says that it {what} run"
                )
            record = record.with_step(
                replace(
                    known,
                    state=state,  # type: ignore[arg-type]  # one of those above
                    found_out=happened,
                    finished_at=now_text() if happened else known.finished_at,
                    found_after=found.state if happened else known.found_after,
                )
            )
        return record

    def _to_take_back(
        self, steps: Sequence[RemedyStep], seen: Mapping[int, Seen]
    ) -> tuple[PlanStep, ...]:
        """What was done and has an undo, and what a stopped statement has left behind."""
        wanted = [
            step
            for step in reversed(steps)
            if (self._state(step) in DONE and step.undo is not None)
            or self._is_begun(step, seen[step.number])
        ]
        tables = [as_mark(step.table) for step in wanted if step.table is not None]
        foreign = foreign_owners(self._call.connection, tables) if tables else {}
        self._changed = {}
        wanted = [step for step in wanted if not self._is_back(step, seen[step.number])]
        for step in wanted:
            why = not_undoable(step, seen[step.number])
            if why is None and step.table is not None and step.table.oid in foreign:
                owner = foreign[step.table.oid]
                why = f"its owner is {owner}, whom this role is no member of"
            if why is not None:
                self._changed[step.number] = one_line(why)
        left = [step for step in wanted if step.number not in self._changed]
        _check_settings(self._call.connection, left, seen)
        return tuple(left)

    def _is_back(self, step: RemedyStep, seen: Seen) -> bool:
        """Whether somebody else has taken it back already; then it is so in the record."""
        by_others = step.kind in ("create_index", "drop_index", "set_storage")
        if not by_others or seen.table is None or not is_undone(step, seen):
            return False
        known = self.record.step(step.number)
        self._call.say(f"step {step.number}: {step.about} is as it was before it, by somebody else")
        self._execution.record = self.record.with_step(
            replace(known, state="undone", found_out=True, found_after=seen.state, error=None)
        )
        return True

    def _is_begun(self, step: RemedyStep, seen: Seen) -> bool:
        """Whether a statement that was stopped has left something, or may have."""
        known = self.record.step(step.number)
        if not known.attempts or known.state == "undone":
            return False
        return step.setting is not None or is_half(step, seen)

    def _refuse(
        self,
        steps: Sequence[RemedyStep],
        todo: Sequence[RemedyStep],
        seen: Mapping[int, Seen],
    ) -> None:
        said = []
        for step in steps:
            known, found = self.record.step(step.number), seen[step.number]
            if step in todo:
                why = changed(step, found, was_begun=known.attempts > 0)
            elif step.kind in ("vacuum", "analyze") or has_happened(
                step, found, known.found_before
            ):
                why = None
            else:
                why = "it was done, and is not so any more"
            if why is not None:
                said.append(f"  {step.about}: {one_line(why)}")
        if said:
            raise InputError(
                "the plan rests on what has changed since it was made:\n"
                + "\n".join(dict.fromkeys(said))
                + "\nexpected it as it was: let the doctor look and plan again, or leave it out "
                "with `skip`. Nothing was changed",
                mentions=("skip",),
            )

    def _check_rights(self, todo: Sequence[RemedyStep], seen: Mapping[int, Seen]) -> None:
        _check_settings(self._call.connection, todo, seen)
        tables = [as_mark(step.table) for step in todo if step.table is not None]
        if tables:
            check_rights(self._call.connection, tables)
        _check_creation(self._call.connection, todo, seen)


def _check_creation(
    connection: psycopg.Connection[Any], steps: Sequence[RemedyStep], seen: Mapping[int, Seen]
) -> None:
    """
    Refuse what the role could not make, or could not make again.

    Raises:
        PrivilegeMissing: It may make no index in the table's schema, or in the index's tablespace.
    """
    for step in steps:
        table, index = seen[step.number].table, seen[step.number].index
        if step.kind == "drop_index" and index is not None and not index["may_place"]:
            raise PrivilegeMissing(
                f"{step.about} has to be made again by the undo: found role "
                f"{printable(connection.info.user)}, which has no CREATE on tablespace "
                f"{printable(str(index['tablespace']))}; expected a role that has it. Nothing was "
                "changed"
            )
        if step.kind not in ("create_index", "drop_index") or table is None or table["may_create"]:
            continue
        role, schema = printable(connection.info.user), printable(str(table["schema"]))
        what = "made" if step.kind == "create_index" else "made again by the undo"
        raise PrivilegeMissing(
            f"{step.about} has to be {what}: found role {role}, which has no CREATE on schema "
            f"{schema}; expected a role that has it. Nothing was changed"
        )


def _check_settings(
    connection: psycopg.Connection[Any], steps: Sequence[RemedyStep], seen: Mapping[int, Seen]
) -> None:
    """
    Refuse before the first write what would fail for want of a right.

    Raises:
        PrivilegeMissing: The role may not change a setting of the server, or not reload it.
        InputError: The server refuses ALTER SYSTEM from anybody.
    """
    for step in steps:
        row = seen[step.number].setting
        if row is None:
            continue
        if not row["is_allowed"]:
            raise InputError(
                f"{step.about}: ALTER SYSTEM is not allowed on this server (allow_alter_system is "
                "off): set it where the configuration is kept. Nothing was changed"
            )
        if not (row["may_set"] and row["may_reload"]):
            role = printable(connection.info.user)
            raise PrivilegeMissing(
                f"{step.about} is a setting of the server: found role {role}, which may not "
                f"{'set' if not row['may_set'] else 'reload'} it; expected a superuser, or GRANT "
                f"ALTER SYSTEM ON PARAMETER {step.about} and EXECUTE on pg_reload_conf(). Nothing "
                "was changed"
            )
