"""
The doctor's steps on a connection: the same record, tries and manners as those of an advice.

What a stopped statement has left (an invalid index) is dropped before the next try, or by the undo.
"""

from __future__ import annotations

import time
from dataclasses import replace

from pgheadroom.errors import SourceError
from pgheadroom.plan.execution import Changed, Execution, Gone, Stopped
from pgheadroom.plan.record import StepRecord
from pgheadroom.plan.remedies import PlannedRelation, RemedyStep
from pgheadroom.plan.remedy_look import (
    Seen,
    changed,
    has_happened,
    is_half,
    is_undone,
    lacks_marks,
    look,
    not_undoable,
    why_gone,
)
from pgheadroom.plan.remedy_statements import drop_statement, marks_of
from pgheadroom.plan.statements import ORDERING, one_line
from pgheadroom.plan.values import PlanStep

_RELOADED_S = 10.0
"""A reload is a signal: our own session has the setting a moment later."""
_COUNTED = ("vacuum", "analyze")
"""What leaves nothing in the catalog to know it by, only a count."""
_OF_INDEXES = ("rewrite_table", "cluster_table", "rebuild_index", "create_index", "drop_index")


class RemedyExecution(Execution):
    """What one call carries out of a doctor's plan."""

    def leave(self, step: PlanStep) -> None:
        """A step that the user does: what it is about as it is before that."""
        known = self.record.step(step.number)
        if known.found_before is None:
            seen = self._seen(_remedy(step))
            self.record = self.record.with_step(replace(known, found_before=seen.state))
        super().leave(step)

    def _checked(self, step: PlanStep, *, undo: bool) -> StepRecord:
        step = _remedy(step)
        known = self.record.step(step.number)
        seen = self._seen(step)
        why = why_gone(step, seen)
        if undo:
            why = not_undoable(step, seen)
            if why is not None:
                self._put(replace(known, state="done", error=why))
                raise Changed(one_line(why))
            return known
        if why is not None:
            self.give_up(step, why)
            raise Gone(why)
        why = changed(step, seen, was_begun=known.attempts > 0)
        if why is not None:
            raise Changed(f"{step.about} has changed meanwhile: {one_line(why)}")
        return replace(known, found_before=seen.state)

    def _seen(self, step: RemedyStep) -> Seen:
        try:
            return look(self._connection, step)
        except SourceError as error:
            raise Stopped(f"step {step.number}: {one_line(str(error))}") from None

    def _statement(self, step: PlanStep, *, undo: bool) -> str:
        """As it is written down; a rebuild's undo has only what was left of it to drop."""
        step = _remedy(step)
        return "; ".join(self._statements(step, undo=undo)) or "nothing was left to drop"

    def _statements(self, step: RemedyStep, *, undo: bool) -> tuple[str, ...]:
        """Those of the plan, and before them what drops halves."""
        seen = self._seen(step)
        made = step.undo_statements if undo else step.statements
        if undo and step.index is not None and lacks_marks(step, seen):
            made = marks_of(step.index)
        drops: tuple[str, ...] = ()
        if step.index is not None and is_half(step, seen):
            of = step.index.relation
            if step.kind == "rebuild_index":
                left = (replace(of, name=name) for name in seen.state.leftovers)
                drops = tuple(map(_drop_if_there, left))
            elif (step.kind == "drop_index") == undo:
                drops = (_drop_if_there(of),)
        return (*drops, *made)

    def _run(self, step: PlanStep, statement: str, *, undo: bool) -> bool:
        step = _remedy(step)
        statements = self._statements(step, undo=undo)
        if step.kind == "rewrite_table" or step.tool in ORDERING:
            with self._own_path():
                return self._run_guarded(step, statement)
        if step.kind in _OF_INDEXES:
            with self._own_path():
                self._each(statements)
            return False
        if step.kind in _COUNTED:
            self._each(statements)
            return False
        if step.setting is None:
            with self._connection.transaction():  # of two, both or none
                self._each(statements)
            return False
        self._each(statements)
        self._await_setting(step, undo=undo)
        return False

    def _each(self, statements: tuple[str, ...]) -> None:
        for each in statements:
            self._connection.execute(each.encode())

    def _await_setting(self, step: RemedyStep, *, undo: bool) -> None:
        """Until the reload has reached this session."""
        end_s = time.monotonic() + _RELOADED_S
        while time.monotonic() < end_s:
            seen = self._seen(step)
            if is_undone(step, seen) if undo else has_happened(step, seen, None):
                return
            time.sleep(0.02)

    def _acted(self, step: PlanStep, began: StepRecord, *, undo: bool) -> StepRecord | None:
        step = _remedy(step)
        if step.kind in _COUNTED:
            # What it has counted is told to others a moment later.
            self._connection.execute("SELECT pg_stat_force_next_flush()")
        seen = self._seen(step)
        if not undo and step.kind in _COUNTED and self._was_skipped():
            return None
        acted = (
            is_undone(step, seen)
            if undo
            else step.kind in _COUNTED or has_happened(step, seen, began.found_before)
        )
        if not acted:
            return None
        return replace(began, found_after=seen.state)

    def _was_skipped(self) -> bool:
        """The server says so of what it may not vacuum or analyze, and ends well."""
        return any(message.startswith("WARNING") for message in self._messages)


def _drop_if_there(index: PlannedRelation) -> str:
    return drop_statement(index).replace("CONCURRENTLY ", "CONCURRENTLY IF EXISTS ", 1)


def _remedy(step: PlanStep) -> RemedyStep:
    assert isinstance(step, RemedyStep), "of the doctor"
    return step
