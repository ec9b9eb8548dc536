"""
Carrying out a plan: check, show, ask, one statement at a time, and write down each.

The only part of pgheadroom that changes a database. Nothing is written before everything has been
checked: the database, every table's fingerprint, the rights. A statement that may have happened
without our seeing its end is found out from the catalog, never repeated blindly.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pgheadroom.errors import InputError, SourceError
from pgheadroom.plan.guard import SqueezeGuard
from pgheadroom.plan.marks import Catalog, Found
from pgheadroom.plan.record import Effect, Record, State, StepRecord
from pgheadroom.plan.session import check_rights, foreign_owners, heap_bytes, holders, look_now
from pgheadroom.plan.statements import TRAITS, name_of, one_line
from pgheadroom.plan.values import Mark, Plan, Step, StepKind
from pgheadroom.progress import Say

if TYPE_CHECKING:
    import psycopg

_AGAIN = ("55P03", "40P01")  # lock_not_available, deadlock_detected: try again
_DONE = ("done", "undoing")
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
class ApplyOutcome:
    """
    What a call did.

    Attributes:
        done: Steps that it carried out (or undid), in order.
        before: Steps that were done already, and still are.
        left: Steps that were not reached or failed.
        yours: Commands of clients, which are left to you.
        changed: Steps that cannot be undone, with why: their tables have changed since.
        skipped: Steps of tables that were to be left alone.
        stopped: Why it stopped; None when it went through.
    """

    done: tuple[int, ...] = ()
    before: tuple[int, ...] = ()
    left: tuple[int, ...] = ()
    yours: tuple[int, ...] = ()
    changed: tuple[tuple[int, str], ...] = ()
    skipped: tuple[int, ...] = ()
    stopped: str | None = None


class Stopped(Exception):  # noqa: N818 - how a step ends, not an error of ours
    """A step failed, or its end is not known."""


class Changed(Stopped):
    """Its table has changed since the plan, so that nothing was tried."""


class Applier:
    """
    One call of `apply`, on one connection.

    Args:
        plan: As it was read and checked.
        record: Of what was done of it.
        connection: A writing session.
        keep: Saves the record.
        say: Tells the user.
        options: How to wait.
        skip: OIDs of tables that are left alone.
    """

    def __init__(
        self,
        plan: Plan,
        record: Record,
        connection: psycopg.Connection[Any],
        *,
        keep: Callable[[Record], None],
        say: Say,
        options: ApplyOptions,
        skip: AbstractSet[int] = frozenset(),
    ) -> None:
        self._plan = plan
        self._skip = skip
        self._changed: dict[int, str] = {}
        self._record = record
        self._connection = connection
        self._keep = keep
        self._say = say
        self._options = options
        self._messages: list[str] = []
        connection.add_notice_handler(
            lambda notice: self._messages.append(
                one_line(f"{notice.severity}: {notice.message_primary}")
            )
        )

    @property
    def record(self) -> Record:
        """As far as this call has got."""
        return self._record

    @property
    def changed(self) -> Mapping[int, str]:
        """Steps that cannot be undone, with why: what `prepare` and `run` have found."""
        return self._changed

    @property
    def skipped(self) -> tuple[Step, ...]:
        """Steps of tables that are left alone."""
        return tuple(step for step in self._plan.steps if step.table.oid in self._skip)

    def prepare(self, *, undo: bool) -> tuple[Step, ...]:
        """
        Check everything, find out what was in doubt, and say what is to be done.

        Returns:
            The steps that this call would carry out, in its order.

        Raises:
            InputError: The plan is for another database, a standby, or a table has changed.
            PrivilegeMissing: A table belongs to somebody else.
            SourceError: The catalog could not be read.
        """
        catalog = look_now(self._connection)
        self._check_target(catalog)
        self._find_out(catalog)
        steps = [step for step in self._plan.steps if step.table.oid not in self._skip]
        if undo:
            return self._to_undo(catalog, steps)
        todo = tuple(step for step in steps if self._state(step) not in _DONE)
        self._refuse_changed(catalog, steps, todo)
        running = tuple(step.table for step in todo if step.run_by == "apply")
        if running:
            check_rights(self._connection, running)
        return todo

    def _state(self, step: Step) -> State:
        return self._record.step(step.number).state

    def _to_undo(self, catalog: Catalog, steps: Sequence[Step]) -> tuple[Step, ...]:
        """What can be taken back; what cannot be is kept with its reason."""
        done = [s for s in reversed(steps) if self._state(s) in _DONE and s.undo is not None]
        foreign = foreign_owners(self._connection, [step.table for step in done]) if done else {}
        self._changed = {}
        for step in done:
            said = self._differences(catalog, step, undo=True)
            if not said and step.table.oid in foreign:
                said = (f"its owner is {foreign[step.table.oid]}, whom this role is no member of",)
            if said:
                self._changed[step.number] = "; ".join(said)
        return tuple(step for step in done if step.number not in self._changed)

    def run(self, todo: tuple[Step, ...], *, undo: bool) -> ApplyOutcome:
        """
        Carry out the steps that `prepare` has given, until one fails.

        Raises:
            DiskFull, InputError: The record could not be written; nothing happened unrecorded.
        """
        before = tuple(
            step.number
            for step in self._plan.steps
            if step not in todo
            and step.table.oid not in self._skip
            and step.number not in self._changed
            and self._record.step(step.number).state == "done"
        )
        skipped = tuple(step.number for step in self.skipped)
        info = self._connection.info
        self._record = replace(
            self._record,
            connection={
                "host": info.host,
                "port": str(info.port),
                "user": info.user,
                "database": info.dbname,
            },
        )
        self._set_timeouts()
        done: list[int] = []
        yours: list[int] = []
        stopped: str | None = None
        for step in todo:
            try:
                if step.run_by == "you":
                    self._leave(step)
                    yours.append(step.number)
                else:
                    self._carry_out(step, undo=undo)
                    done.append(step.number)
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
                if (number := step.number) not in (*done, *yours, *self._changed)
            ),
            yours=tuple(yours),
            changed=tuple(self._changed.items()),
            skipped=skipped,
            stopped=stopped,
        )

    def cancel(self) -> None:
        """Ask the server to end what it is doing for us, as far as it can be reached."""
        import psycopg  # noqa: PLC0415 - loads libpq, which most commands do not need

        with contextlib.suppress(psycopg.Error):
            self._connection.cancel_safe(timeout=5)

    # Checks -------------------------------------------------------------------------------------

    def _check_target(self, catalog: Catalog) -> None:
        different = self._plan.target.differs(catalog.target)
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
        if None in (self._plan.target.system_identifier, catalog.target.system_identifier):
            self._say(
                "the cluster's identifier could not be compared (pg_control_system() is not "
                "allowed to the role): database, its OID and the tables were"
            )

    def _find_out(self, catalog: Catalog) -> None:
        """A step in doubt becomes one that is known."""
        for step in self._plan.steps:
            known = self._record.step(step.number)
            if known.state not in ("running", "undoing", "yours"):
                continue
            found = catalog.tables.get(step.table.oid)
            if found is None:
                continue  # the check of the tables says so
            now = _effect(found)
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
                self._say(f"step {step.number} was in doubt: the catalog says that it {what} run")
            self._record = self._record.with_step(
                replace(
                    known,
                    state=state,  # type: ignore[arg-type]  # one of the three above
                    found_out=happened,
                    finished_at=_now() if happened else known.finished_at,
                    after=now if happened else known.after,
                )
            )

    def _refuse_changed(
        self, catalog: Catalog, steps: Sequence[Step], todo: Sequence[Step]
    ) -> None:
        refused: dict[str, None] = {}  # in order, each table once
        for step in steps:
            different = self._differences(catalog, step, undo=False, done=step not in todo)
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

    def _differences(
        self, catalog: Catalog, step: Step, *, undo: bool, done: bool = False
    ) -> tuple[str, ...]:
        """What is different about a step's own table, its number and its name, in words."""
        mark = step.table
        found = catalog.tables.get(mark.oid)
        if found is None:
            return ("it is gone: dropped, or made anew",)
        if found.relkind != "r":
            return ("it is no ordinary table, which alone can have a fillfactor",)
        states = {
            other.kind: (other, self._record.step(other.number).state)
            for other in self._plan.steps
            if other.table.oid == mark.oid
        }
        different = _differs(mark, states, found.mark)
        if undo or done:  # what else has changed since is nobody's matter
            different = tuple(d for d in different if d.startswith(_KEPT))
        return tuple(map(one_line, different))

    # Carrying out -------------------------------------------------------------------------------

    def _set_timeouts(self) -> None:
        timeouts = {"lock_timeout": self._options.lock_timeout_s}
        if self._options.statement_timeout_s is not None:
            timeouts["statement_timeout"] = self._options.statement_timeout_s
        for name, seconds in timeouts.items():
            value = f"{max(1, round(seconds * 1000))}ms"
            self._connection.execute("SELECT set_config(%s, %s, false)", (name, value))

    def _leave(self, step: Step) -> None:
        known = self._record.step(step.number)
        self._put(replace(known, state="yours", statement=step.command))
        self._say(f"step {step.number} is yours: {one_line(step.command or '')}")

    def _carry_out(self, step: Step, *, undo: bool) -> None:
        statement = step.undo if undo else step.sql
        assert statement is not None, "steps without a statement are left out"
        self._say(f"step {step.number}: {one_line(statement)}")
        known = self._record.step(step.number)
        before = self._check_now(step, undo=undo)
        began = replace(
            known,
            state="undoing" if undo else "running",
            statement=statement,
            started_at=_now(),
            finished_at=None,
            error=None,
            before=known.before if undo else before,
            found_out=False,
        )
        for attempt in range(1, self._options.retries + 2):
            self._messages.clear()
            began = replace(began, attempts=attempt)
            self._put(began)
            error = self._execute(step, statement, began, undo=undo)
            if error is None:
                return
            if attempt <= self._options.retries:
                pause_s = min(
                    self._options.backoff_s * 2 ** (attempt - 1), self._options.backoff_max_s
                )
                self._say(f"step {step.number}: {error}; again in {pause_s:.3g} s")
                time.sleep(pause_s)
        self._fail(step, began, f"{error}; {self._options.retries + 1} tries", undo=undo)

    def _execute(self, step: Step, statement: str, began: StepRecord, *, undo: bool) -> str | None:
        """Run it; None when it is done, else why it may be tried again."""
        import psycopg  # noqa: PLC0415 - loads libpq, which most commands do not need

        start_s = time.monotonic()
        gave_up = False
        try:
            if step.kind == "rewrite":
                # Functions in indexes may rest on the role's own path.
                self._connection.execute("RESET search_path")
            gave_up = self._run_guarded(step, statement)
            if step.kind == "rewrite":
                self._connection.execute("SET search_path = pg_catalog")
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
            if error.sqlstate not in _AGAIN:
                self._fail(step, began, f"{said}{hint} [{error.sqlstate}]", undo=undo)
            return self._without_lock(step, began, said, start_s, undo=undo)
        if gave_up:
            said = "pg_squeeze's worker waited longer than lock_timeout and was cancelled"
            return self._without_lock(step, began, said, start_s, undo=undo)
        now = self._effect_now(step)
        wanted = step.table.fillfactor if undo else step.fillfactor
        if step.kind == "rewrite":
            acted = began.before is None or now.relfilenode != began.before.relfilenode
        else:
            acted = now.fillfactor == wanted
        if not acted:
            seen = f"; the server said: {'; '.join(self._messages)}" if self._messages else ""
            self._fail(step, began, f"it ended well but changed nothing{seen}", undo=undo)
        self._put(
            replace(
                began,
                state="undone" if undo else "done",
                finished_at=_now(),
                duration_s=round(time.monotonic() - start_s, 3),
                messages=tuple(self._messages),
                after=replace(now, heap_bytes=heap_bytes(self._connection, step.table)),
            )
        )
        return None

    def _run_guarded(self, step: Step, statement: str) -> bool:
        """Run it; whether a worker of pg_squeeze that did it was ended, for it waited too long."""
        import psycopg  # noqa: PLC0415 - loads libpq, which most commands do not need

        if step.tool != "pg_squeeze":
            self._connection.execute(statement.encode())
            return False
        with SqueezeGuard(self._connection, step.table.oid, self._options.lock_timeout_s) as guard:
            try:
                self._connection.execute(statement.encode())
            except psycopg.Error:
                if not guard.cancelled or self._connection.broken:
                    raise
                return True
        return False

    def _without_lock(
        self, step: Step, began: StepRecord, said: str, start_s: float, *, undo: bool
    ) -> str:
        """What is said when a lock was not had; a copy that was long in the making is the end."""
        held = holders(self._connection, step.table)
        said += "" if held is None else f"; held: {one_line(held)}"
        worked_s = time.monotonic() - start_s - self._options.lock_timeout_s
        if TRAITS[step.tool].lock_is_last and worked_s >= _CHEAP_S:
            said += f"; a copy of {worked_s:.0f} s was in vain, so it is not tried again by itself"
            self._fail(step, began, said, undo=undo)
        return said

    def _fail(self, step: Step, began: StepRecord, error: str, *, undo: bool) -> None:
        self._put(
            replace(
                began,
                state="done" if undo else "failed",
                finished_at=_now(),
                messages=tuple(self._messages),
                error=error,
            )
        )
        raise Stopped(f"step {step.number} failed: {error}")

    def _check_now(self, step: Step, *, undo: bool) -> Effect:
        """The table just before its statement: still the one of this number, name and shape."""
        try:
            catalog = look_now(self._connection)
        except SourceError as error:
            raise Stopped(f"step {step.number}: {one_line(str(error))}") from None
        if step.table.oid not in catalog.tables:
            raise Changed("the table is gone: it was dropped meanwhile")
        different = self._differences(catalog, step, undo=undo)
        if different:
            raise Changed(f"the table has changed meanwhile: {'; '.join(different)}")
        return _effect(catalog.tables[step.table.oid])

    def _effect_now(self, step: Step) -> Effect:
        try:
            found = look_now(self._connection).tables.get(step.table.oid)
        except SourceError as error:
            raise Stopped(f"step {step.number}: {one_line(str(error))}") from None
        if found is None:
            raise Stopped(f"step {step.number}: the table is gone: it was dropped meanwhile")
        return _effect(found)

    def _put(self, step: StepRecord) -> None:
        self._record = self._record.with_step(step)
        self._keep(self._record)


_KEPT = ("storage parameter fillfactor", "name", "OID", "it is gone", "it is no ordinary")


def _differs(
    mark: Mark, states: Mapping[StepKind, tuple[Step, State]], now: Mark
) -> tuple[str, ...]:
    """What is different from what the plan and its steps so far have made of the table."""
    options = {name: value for name, value in mark.reloptions.items() if name != "fillfactor"}
    expected = mark.fillfactor
    if "set_fillfactor" in states:
        step, state = states["set_fillfactor"]
        expected = step.fillfactor if state in _DONE else mark.fillfactor
    if expected is not None:
        options["fillfactor"] = str(expected)
    touched = "rewrite" in states and states["rewrite"][1] in ("done", "yours")
    return replace(
        mark, reloptions=options, relfilenode=now.relfilenode if touched else mark.relfilenode
    ).differs(now)


def _effect(found: Found) -> Effect:
    return Effect(
        fillfactor=found.mark.fillfactor,
        relfilenode=found.mark.relfilenode,
        inserts=found.inserts,
        updates=found.updates,
        deletes=found.deletes,
        vacuums=found.vacuums,
    )


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
