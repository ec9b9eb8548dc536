"""
Steps on a connection, one statement at a time, each written down before and after.

A lock is waited for shortly, and tried for again. Where the connection ends meanwhile nobody knows
whether a statement has run: `checking.py` finds out in the next call.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from pgheadroom.errors import SourceError
from pgheadroom.plan.checking import differences, effect_of, said_gone
from pgheadroom.plan.guard import SqueezeGuard
from pgheadroom.plan.marks import Catalog
from pgheadroom.plan.record import AppliedRecord, StepRecord, TableState
from pgheadroom.plan.session import heap_bytes, holders, look_now
from pgheadroom.plan.statements import ORDERING, TRAITS, one_line
from pgheadroom.plan.values import Plan, PlanStep, Step, now_text
from pgheadroom.progress import Say

if TYPE_CHECKING:
    import psycopg


_AGAIN = ("55P03", "40P01")  # lock_not_available, deadlock_detected: try again
_UNDEFINED_TABLE = "42P01"
_CHEAP_S = 1.0
"""A rewrite that has worked for longer before it missed its last lock is not begun again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyOptions:
    """
    How to wait.

    Attributes:
        lock_timeout_s: For each try; longer than deadlock_timeout, so that an autovacuum gives way.
        retries: Further tries after the first.
        backoff_s: Pause before the second try; it doubles each time.
        backoff_max_s: The longest pause.
        statement_timeout_s: None leaves the session's own.
    """

    lock_timeout_s: float = 2.0
    retries: int = 10
    backoff_s: float = 1.0
    backoff_max_s: float = 30.0
    statement_timeout_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyCall:
    """
    What one call of `apply` works with.

    Attributes:
        plan: As it was read and checked.
        record: Of what was done of it before.
        connection: A writing session.
        keep: Saves the record.
        say: Tells the user.
        options: How to wait.
        skip: What is left alone: OIDs of tables, or of the doctor's steps their `skip_key`.
    """

    plan: Plan
    record: AppliedRecord
    connection: psycopg.Connection[Any]
    keep: Callable[[AppliedRecord], None]
    say: Say
    options: ApplyOptions = ApplyOptions()
    skip: AbstractSet[int | str] = frozenset()


class Stopped(Exception):  # noqa: N818 - how a step ends, not an error of ours
    """A step failed, or its end is not known."""


class Changed(Stopped):
    """Its table has changed since the plan, so that nothing was tried."""


class Gone(Changed):
    """Its table is gone; the record says so, and the other steps are no worse for it."""


class Execution:
    """
    What one call carries out on its connection.

    Args:
        call: What it works with.

    Attributes:
        record: As far as this call has got.
    """

    def __init__(self, call: ApplyCall) -> None:
        self.record = call.record
        self._call = call
        self._connection = call.connection
        self._messages: list[str] = []
        self._connection.add_notice_handler(
            lambda notice: self._messages.append(
                one_line(f"{notice.severity}: {notice.message_primary}")
            )
        )

    def set_timeouts(self) -> None:
        """Of locks and statements, for the session."""
        timeouts = {"lock_timeout": self._call.options.lock_timeout_s}
        if self._call.options.statement_timeout_s is not None:
            timeouts["statement_timeout"] = self._call.options.statement_timeout_s
        for name, seconds in timeouts.items():
            value = f"{max(1, round(seconds * 1000))}ms"
            self._connection.execute("SELECT set_config(%s, %s, false)", (name, value))

    def leave(self, step: PlanStep) -> None:
        """A step that the user does."""
        known = self.record.step(step.number)
        self._put(replace(known, state="yours", statement=step.command))
        self._call.say(f"step {step.number} is yours: {one_line(step.command or '')}")

    def give_up(self, step: PlanStep, why: str) -> None:
        """A step whose table is gone."""
        known = self.record.step(step.number)
        self._put(replace(known, state="gone", error=why, finished_at=now_text()))

    def carry_out(self, step: PlanStep, *, undo: bool) -> None:
        """
        Do a step, or undo it.

        Raises:
            Gone: Its table is not there any more.
            Changed: Its table is another one by now; nothing was tried.
            Stopped: It failed, or its end is not known.
            DiskFull, InputError: The record could not be written; nothing happened unrecorded.
        """
        statement = self._statement(step, undo=undo)
        self._call.say(f"step {step.number}: {one_line(statement)}")
        began = replace(
            self._checked(step, undo=undo),
            state="undoing" if undo else "running",
            statement=statement,
            started_at=now_text(),
            finished_at=None,
            error=None,
            found_out=False,
        )
        for attempt in range(1, self._call.options.retries + 2):
            self._messages.clear()
            began = replace(began, attempts=attempt)
            self._put(began)
            error = self._execute(step, statement, began, undo=undo)
            if error is None:
                return
            if attempt <= self._call.options.retries:
                pause_s = min(
                    self._call.options.backoff_s * 2 ** (attempt - 1),
                    self._call.options.backoff_max_s,
                )
                self._call.say(f"step {step.number}: {error}; again in {pause_s:.3g} s")
                time.sleep(pause_s)
        self._fail(step, began, f"{error}; {self._call.options.retries + 1} tries", undo=undo)

    def _statement(self, step: PlanStep, *, undo: bool) -> str:
        statement = step.undo if undo else step.sql
        assert statement is not None, "steps without a statement are left out"
        return statement

    def _checked(self, step: PlanStep, *, undo: bool) -> StepRecord:
        """The step's record, with what it acts on as it is just before its statement."""
        assert isinstance(step, Step), "of an advice"
        before = self._check_now(step, undo=undo)
        known = self.record.step(step.number)
        return known if undo else replace(known, before=before)

    def _execute(
        self, step: PlanStep, statement: str, began: StepRecord, *, undo: bool
    ) -> str | None:
        """Run it; None when it is done, else why it may be tried again."""
        import psycopg  # noqa: PLC0415 - loads libpq, which most commands do not need

        start_s = time.monotonic()
        gave_up = False
        try:
            gave_up = self._run(step, statement, undo=undo)
        except SourceError as error:
            self._fail(step, began, one_line(str(error)), undo=undo)
        except psycopg.Error as error:
            if self._connection.broken or self._connection.closed or error.sqlstate is None:
                raise Stopped(
                    f"the connection ended in step {step.number}, so whether it has run is not "
                    "known; the same command finds out and goes on"
                ) from None
            said = one_line(f"{error.diag.message_primary or type(error).__name__}")
            hint = f" ({one_line(error.diag.message_hint)})" if error.diag.message_hint else ""
            if error.sqlstate == _UNDEFINED_TABLE and isinstance(step, Step):
                self._effect_now(step, undo=undo)  # it was dropped since it was checked
            if error.sqlstate not in _AGAIN:
                self._fail(step, began, f"{said}{hint} [{error.sqlstate}]", undo=undo)
            return self._without_lock(step, began, said, start_s, undo=undo)
        if gave_up:
            said = "pg_squeeze's worker waited longer than lock_timeout and was cancelled"
            return self._without_lock(step, began, said, start_s, undo=undo)
        acted = self._acted(step, began, undo=undo)
        if acted is None:
            seen = f"; the server said: {'; '.join(self._messages)}" if self._messages else ""
            self._fail(step, began, f"it ended well but changed nothing{seen}", undo=undo)
        self._put(
            replace(
                acted,
                state="undone" if undo else "done",
                finished_at=now_text(),
                duration_s=round(time.monotonic() - start_s, 3),
                messages=tuple(self._messages),
            )
        )
        return None

    def _acted(self, step: PlanStep, began: StepRecord, *, undo: bool) -> StepRecord | None:
        """The record with what it acts on as it is now; None where the statement did nothing."""
        assert isinstance(step, Step), "of an advice"
        now = self._effect_now(step, undo=undo)
        wanted = step.table.fillfactor if undo else step.fillfactor
        if step.kind == "rewrite":
            acted = began.before is None or now.relfilenode != began.before.relfilenode
        else:
            acted = now.fillfactor == wanted
        if not acted:
            return None
        return replace(
            began, after=replace(now, heap_bytes=heap_bytes(self._connection, step.table))
        )

    def _run(self, step: PlanStep, statement: str, *, undo: bool) -> bool:
        """Run it; whether it was ended, for it waited too long for a lock."""
        assert not undo or step.undo is not None, "what has no undo is not undone"
        if step.kind != "rewrite":
            return self._run_guarded(step, statement)
        with self._own_path():
            return self._run_guarded(step, statement)

    @contextmanager
    def _own_path(self) -> Iterator[None]:
        """Functions in indexes may rest on the role's own path."""
        self._connection.execute("RESET search_path")
        yield
        self._connection.execute("SET search_path = pg_catalog")

    def _run_guarded(self, step: PlanStep, statement: str) -> bool:
        """Run it; whether a worker of pg_squeeze that did it was ended, for it waited too long."""
        import psycopg  # noqa: PLC0415 - loads libpq, which most commands do not need

        if ORDERING.get(step.tool, step.tool) != "pg_squeeze" or step.table is None:
            self._connection.execute(statement.encode())
            return False
        with SqueezeGuard(
            self._connection, step.table.oid, self._call.options.lock_timeout_s
        ) as guard:
            try:
                self._connection.execute(statement.encode())
            except psycopg.Error:
                if not guard.cancelled or self._connection.broken:
                    raise
                return True
        return False

    def _without_lock(
        self, step: PlanStep, began: StepRecord, said: str, start_s: float, *, undo: bool
    ) -> str:
        """What is said when a lock was not had; a copy that was long in the making is the end."""
        held = None if step.table is None else holders(self._connection, step.table.oid)
        said += "" if held is None else f"; held: {one_line(held)}"
        worked_s = time.monotonic() - start_s - self._call.options.lock_timeout_s
        if _copies_first(step) and worked_s >= _CHEAP_S:
            said += f"; a copy of {worked_s:.0f} s was in vain, so it is not tried again by itself"
            self._fail(step, began, said, undo=undo)
        return said

    def _fail(self, step: PlanStep, began: StepRecord, error: str, *, undo: bool) -> NoReturn:
        self._put(
            replace(
                began,
                state="done" if undo else "failed",
                finished_at=now_text(),
                messages=tuple(self._messages),
                error=error,
            )
        )
        raise Stopped(f"step {step.number} failed: {error}")

    def _check_now(self, step: Step, *, undo: bool) -> TableState:
        """The table just before its statement: still the one of this number, name and shape."""
        try:
            catalog = look_now(self._connection)
        except SourceError as error:
            raise Stopped(f"step {step.number}: {one_line(str(error))}") from None
        self._require(step, catalog, undo=undo)
        different = differences(self._call.plan, self.record, catalog, step, undo=undo)
        if different:
            raise Changed(f"the table has changed meanwhile: {'; '.join(different)}")
        return effect_of(catalog.tables[step.table.oid])

    def _effect_now(self, step: PlanStep, *, undo: bool) -> TableState:
        assert isinstance(step, Step), "of an advice"
        try:
            catalog = look_now(self._connection)
        except SourceError as error:
            raise Stopped(f"step {step.number}: {one_line(str(error))}") from None
        self._require(step, catalog, undo=undo)
        return effect_of(catalog.tables[step.table.oid])

    def _require(self, step: Step, catalog: Catalog, *, undo: bool) -> None:
        """That the table of the plan is there; a name alone is none."""
        if step.table.oid in catalog.tables:
            return
        why = said_gone(step.table, catalog.names)
        if undo:  # what was done of it was done
            self._put(replace(self.record.step(step.number), state="done", error=why))
        else:
            self.give_up(step, why)
        raise Gone(why)

    def _put(self, step: StepRecord) -> None:
        self.record = self.record.with_step(step)
        self._call.keep(self.record)


def _copies_first(step: PlanStep) -> bool:
    """Whether it waits for the lock that stops everybody behind all its work."""
    if step.tool in ("CREATE INDEX", "REINDEX"):
        return True  # it waits for older transactions behind its build
    tool = ORDERING.get(step.tool, step.tool)
    traits = {str(each): found for each, found in TRAITS.items()}.get(tool)
    return traits is not None and traits.lock_is_last
