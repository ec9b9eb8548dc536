"""
Carrying out a plan: check, show, ask, one statement at a time, and write down each.

The only part of pgheadroom that changes a database, by the statements of `execution.py`. Nothing is
written before everything has been checked: the database, every table's fingerprint, the rights. A
statement that may have happened without our seeing its end is found out from the catalog, never
repeated blindly.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pgheadroom.plan.checking import (
    DONE,
    check_target,
    differences,
    found_out,
    refuse_changed,
    said_gone,
)
from pgheadroom.plan.execution import ApplyCall, Changed, Execution, Gone, Stopped
from pgheadroom.plan.marks import Catalog
from pgheadroom.plan.record import AppliedRecord, State
from pgheadroom.plan.session import check_rights, foreign_owners, look_now
from pgheadroom.plan.values import PlanStep, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyOutcome:
    """
    What a call did.

    Attributes:
        done: Steps that it carried out (or undid), in order.
        before: Steps that were done already, and still are.
        left: Steps that were not reached or failed.
        yours: Commands of clients, which are left to you.
        changed: Steps that cannot be undone, with why: their tables have changed since.
        gone: Steps that cannot be carried out, with why: their tables are not there any more.
        skipped: Steps of tables that were to be left alone.
        stopped: Why it stopped; None when it went through.
    """

    done: tuple[int, ...] = ()
    before: tuple[int, ...] = ()
    left: tuple[int, ...] = ()
    yours: tuple[int, ...] = ()
    changed: tuple[tuple[int, str], ...] = ()
    gone: tuple[tuple[int, str], ...] = ()
    skipped: tuple[int, ...] = ()
    stopped: str | None = None


class Applier:
    """
    One call of `apply`, on one connection.

    Args:
        call: What it works with.
    """

    def __init__(self, call: ApplyCall) -> None:
        self._call = call
        self._changed: dict[int, str] = {}
        self._gone: dict[int, str] = {}
        self._execution = self._executing(call)

    def _executing(self, call: ApplyCall) -> Execution:
        return Execution(call)

    @property
    def record(self) -> AppliedRecord:
        """As far as this call has got."""
        return self._execution.record

    @property
    def changed(self) -> Mapping[int, str]:
        """Steps that cannot be undone, with why: what `prepare` and `run` have found."""
        return self._changed

    @property
    def gone(self) -> Mapping[int, str]:
        """Steps whose tables are not there any more, with why; those that were done are among."""
        return self._gone

    @property
    def left_out(self) -> Mapping[int, str]:
        """Of these, those that were not done before."""
        return {n: why for n, why in self._gone.items() if self.record.step(n).state not in DONE}

    @property
    def skipped(self) -> tuple[PlanStep, ...]:
        """Steps of tables that are left alone."""
        return tuple(step for step in self._call.plan.work if step.skip_key in self._call.skip)

    def prepare(self, *, undo: bool) -> tuple[PlanStep, ...]:
        """
        Check everything, find out what was in doubt, and say what is to be done.

        Returns:
            The steps that this call would carry out, in its order.

        Raises:
            InputError: The plan is for another database, a standby, or a table has changed. One
                that is gone refuses none: its steps alone are left out.
            PrivilegeMissing: A table belongs to somebody else.
            SourceError: The catalog could not be read.
        """
        catalog = look_now(self._call.connection)
        check_target(self._call.plan, catalog, self._call.say)
        known = found_out(self._call.plan, self.record, catalog, self._call.say)
        self._execution.record = known
        steps = [step for step in self._call.plan.steps if step.table.oid not in self._call.skip]
        if undo:
            return self._to_undo(catalog, steps)
        self._gone = {
            step.number: said_gone(step.table, catalog.names)
            for step in steps
            if step.table.oid not in catalog.tables
        }
        steps = [step for step in steps if step.number not in self._gone]
        todo = tuple(step for step in steps if self._state(step) not in DONE)
        refuse_changed(self._call.plan, known, catalog, steps, todo)
        running = tuple(step.table for step in todo if step.run_by == "apply")
        if running:
            check_rights(self._call.connection, running)
        return todo

    def _state(self, step: PlanStep) -> State:
        return self.record.step(step.number).state

    def _to_undo(self, catalog: Catalog, steps: Sequence[Step]) -> tuple[Step, ...]:
        """What can be taken back; what cannot be is kept with its reason."""
        done = [s for s in reversed(steps) if self._state(s) in DONE and s.undo is not None]
        foreign = (
            foreign_owners(self._call.connection, [step.table for step in done]) if done else {}
        )
        self._changed = {}
        for step in done:
            said = differences(self._call.plan, self.record, catalog, step, undo=True)
            if not said and step.table.oid in foreign:
                said = (f"its owner is {foreign[step.table.oid]}, whom this role is no member of",)
            if said:
                self._changed[step.number] = "; ".join(said)
        return tuple(step for step in done if step.number not in self._changed)

    def run(self, todo: Sequence[PlanStep], *, undo: bool) -> ApplyOutcome:
        """
        Carry out the steps that `prepare` has given, until one fails.

        Raises:
            DiskFull, InputError: The record could not be written; nothing happened unrecorded.
        """
        before = tuple(
            step.number
            for step in self._call.plan.work
            if step not in todo
            and step.skip_key not in self._call.skip
            and step.number not in self._changed
            and self.record.step(step.number).state == "done"
        )
        skipped = tuple(step.number for step in self.skipped)
        info = self._call.connection.info
        self._execution.record = replace(
            self.record,
            connection={
                "host": info.host,
                "port": str(info.port),
                "user": info.user,
                "database": info.dbname,
            },
        )
        self._execution.set_timeouts()
        self.record_gone()
        done: list[int] = []
        yours: list[int] = []
        stopped: str | None = None
        for step in todo:
            try:
                if step.run_by == "you":
                    self._execution.leave(step)
                    yours.append(step.number)
                else:
                    self._execution.carry_out(step, undo=undo)
                    done.append(step.number)
            except Gone as gone:
                (self._changed if undo else self._gone)[step.number] = str(gone)
            except Changed as changed:
                if undo:  # the other tables are no worse for it
                    self._changed[step.number] = str(changed)
                    continue
                stopped = f"step {step.number}: {changed}"
                break
            except Stopped as stop:
                stopped = str(stop)
                break
        return ApplyOutcome(
            done=tuple(done),
            before=before,
            left=tuple(
                number
                for step in todo
                if (number := step.number) not in (*done, *yours, *self._changed, *self._gone)
            ),
            yours=tuple(yours),
            changed=tuple(self._changed.items()),
            gone=tuple(self.left_out.items()),
            skipped=skipped,
            stopped=stopped,
        )

    def record_gone(self) -> None:
        """
        Write down the steps that `prepare` has left out, for their tables are gone.

        Raises:
            DiskFull, InputError: The record could not be written.
        """
        for step in self._call.plan.work:
            if step.number in self.left_out and self._state(step) != "gone":
                self._execution.give_up(step, self._gone[step.number])

    def cancel(self) -> None:
        """Ask the server to end what it is doing for us, as far as it can be reached."""
        import psycopg  # noqa: PLC0415 - loads libpq, which most commands do not need

        with contextlib.suppress(psycopg.Error):
            self._call.connection.cancel_safe(timeout=5)
