"""
Commands of maintenance that another session runs in the middle of a run.

With one client and a number of transactions pgbench stands still meanwhile: each script counts, and
behind the last transaction before a command waits in a shell until a file is gone. The client's
session is idle then, in no transaction and with no snapshot, so that the command meets what the
twin's does. Otherwise a command runs when it is due by the run's progress, beside the clients, and
the server's log says from when to when it did; on busy cores it may wait for hundreds of
transactions after it was sent. All that these sessions run but VACUUM has a snapshot meanwhile, our
questions to the catalogue too.

Source: `PlannedStmtRequiresSnapshot`, src/backend/tcop/pquery.c; `vacuum_rel`,
src/backend/commands/vacuum.c (REL_18_STABLE).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgheadroom import quoting
from pgheadroom.errors import MeasurementInvalid
from pgheadroom.play.ended import Ended
from pgheadroom.play.gates import GATE, GATE_FILE, moments
from pgheadroom.play.measured import Relations, read_relations
from pgheadroom.play.plans import check_plans
from pgheadroom.play.snapshots import RunProgress
from pgheadroom.play.statements_run import LOGS_ITSELF, Ran, read_ran
from pgheadroom.play.workers import Hold
from pgheadroom.profile import Maintenance, Profile
from pgheadroom.profile.maintaining import due_after, is_counted
from pgheadroom.profile.unpriced import left_out_gins
from pgheadroom.types import Span

if TYPE_CHECKING:
    import psycopg

_HOLDS_FROM_S = 0.001
"""Shorter statements hold the horizon as those of any client do."""

_LOCK_WAIT_INTERVAL_S = 0.05
"""
From one try to lock the end to the next; shorter VACUUMs have had it at once.

Source: VACUUM_TRUNCATE_LOCK_WAIT_INTERVAL, src/backend/access/heap/vacuumlazy.c (REL_18_STABLE).
"""

_WITHOUT_SNAPSHOT = ("VACUUM ", "SET ")
_FULL = "VACUUM (FULL)"


def statement(command: Maintenance) -> str:
    """The SQL of a command."""
    table = quoting.identifier(command.table)
    match command.do:
        case "vacuum":
            options = ["FREEZE"] * command.freeze
            if command.parallel:
                options.append(f"PARALLEL {command.parallel}")
            return f"VACUUM ({', '.join(options)}) {table}" if options else f"VACUUM {table}"
        case "vacuum full":
            return f"VACUUM (FULL) {table}"
        case "analyze":
            return f"ANALYZE {table}"
        case "truncate":
            return f"TRUNCATE {table}"
        case "reindex" if command.index is not None:
            return f"REINDEX INDEX {quoting.identifier(command.index)}"
        case "reindex":
            return f"REINDEX TABLE {table}"
        case "cluster":
            assert command.index is not None, "the format wants one"
            return f"CLUSTER {table} USING {quoting.identifier(command.index)}"


def workers_of(command: Maintenance) -> str:
    """The SQL by which a session has the parallel workers of a command, and no others."""
    return f"SET max_parallel_maintenance_workers = {command.parallel}"


def _holds(ran: Ran) -> bool:
    """Whether a statement of ours keeps clients from pruning for longer than theirs do."""
    has_snapshot = ran.sql.startswith(_FULL) or not ran.sql.startswith(_WITHOUT_SNAPSHOT)
    return has_snapshot and ran.ended_s[0] - ran.began_s[0] >= _HOLDS_FROM_S


def _span(ran: Ran, ended: Ended) -> Span:
    """
    When a command did its work, at the earliest and at the latest.

    A VACUUM may spend the most of its time on waiting for the lock on its table's end.
    """
    began, done = ran.shares(ended)
    is_vacuum = ran.sql.startswith("VACUUM ") and not ran.sql.startswith(_FULL)
    may_wait = is_vacuum and ran.ended_s[0] - ran.began_s[0] >= _LOCK_WAIT_INTERVAL_S
    return began if may_wait else (began[0], done[1])


def _hold(ran: Ran, ended: Ended) -> Hold:
    began, done = ran.shares(ended)
    return Hold(began=began, ended=done)


@dataclass(slots=True)
class Maintainer:
    """
    Runs a profile's commands; a context manager around the run, `step` is to be called often.

    Attributes:
        profile: The profile.
        connect: Opens a session in the database under test.
        progress: Of the run.
        folder: pgbench's working directory.
        table_of: The tables of all relations that there were after a command.
    """

    profile: Profile
    connect: Callable[[], psycopg.Connection[Any]]
    progress: RunProgress
    folder: Path
    table_of: dict[str, str] = field(default_factory=dict)
    _left: list[int] = field(default_factory=list)
    _ran: list[int] = field(default_factory=list)
    _pids: list[int] = field(default_factory=list)
    _session: psycopg.Connection[Any] | None = None
    _asking: psycopg.Connection[Any] | None = None

    def __enter__(self) -> Maintainer:
        """Shut the gates before pgbench begins."""
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        for session in (self._session, self._asking):
            if session is not None:
                session.close()
        self._session = self._asking = None

    def placed(
        self, log: Path, start_bytes: int, ended: Ended
    ) -> tuple[tuple[Span, ...], tuple[Hold, ...]]:
        """
        When each command ran beside the clients, and what these sessions held meanwhile.

        Args:
            log: The server's log.
            start_bytes: Where the run begins in it.
            ended: When the clients' transactions ended.

        Returns:
            From when to when each command ran, in the order of the file, and the holds, all as
            shares of the transactions; nothing where transactions are counted.

        Raises:
            MeasurementInvalid: The log does not tell.
        """
        if not self._ran:
            return (), ()
        ran = read_ran(log, start_bytes, self._pids)
        found: dict[int, Span] = {}
        lines = iter(ran)
        for n in self._ran:
            sql = statement(self.profile.workload.run.maintenance[n])
            line = next((one for one in lines if one.sql == sql), None)
            if line is None:
                raise MeasurementInvalid(f"the server's log does not say when it ran {sql}")
            found[n] = _span(line, ended)
        holds = [_hold(one, ended) for one in ran if _holds(one)]
        return tuple(found[n] for n in sorted(found)), tuple(holds)

    def _start(self) -> None:
        run = self.profile.workload.run
        if not run.maintenance:
            return
        if is_counted(run):
            self._left = moments(self.profile)
            (self.folder / GATE_FILE).write_text(GATE, encoding="utf-8")
            for after in self._left:
                (self.folder / f"gate-{after}").touch()
        else:
            self._left = sorted(
                range(len(run.maintenance)), key=lambda n: run.maintenance[n].at_frac or 0.0
            )
            # Under load it takes hundredths of a second to connect.
            self._session = self._open()
            self._asking = self.connect()
            for session in (self._session, self._asking):
                session.execute(LOGS_ITSELF)
                self._pids.append(session.info.backend_pid)

    def step(self) -> None:
        """Run what is due."""
        if not self._left:
            return
        run = self.profile.workload.run
        if is_counted(run):
            if (self.folder / f"asked-{self._left[0]}").exists():
                self._pass_gate(self._left.pop(0))
            return
        while self._left:
            command = run.maintenance[self._left[0]]
            done = self.progress.now()
            if done < (command.at_frac or 0.0):
                return
            self._ran.append(self._left.pop(0))
            self._run([command])

    def end(self) -> None:
        """Run what is due after the last transaction."""
        run = self.profile.workload.run
        while self._left:
            due = self._left.pop(0)
            if is_counted(run):
                self._pass_gate(due)
            else:
                self._ran.append(due)
                self._run([run.maintenance[due]])

    def _pass_gate(self, after: int) -> None:
        run = self.profile.workload.run
        due = [command for command in run.maintenance if due_after(command, run) == after]
        self._session = self._open()
        self._run(due)
        self._session.close()
        self._session = None
        (self.folder / f"gate-{after}").unlink()

    def _open(self) -> psycopg.Connection[Any]:
        session = self.connect()
        # CLUSTER sorts then, and prunes no page by a scan of the index.
        session.execute("SET enable_indexscan = off")
        return session

    def _run(self, commands: Iterable[Maintenance]) -> None:
        assert self._session is not None, "it was opened before"
        for command in commands:
            self._session.execute(workers_of(command).encode())
            self._session.execute(statement(command).encode())
            found: Relations = read_relations(
                self._session, self.profile.table_names, left_out_gins(self.profile)
            )
            self.table_of |= found.table_of
        # Clients plan anew, from what the catalogue has now.
        if self.profile.workload.builtin is None:
            if self._asking is not None:
                self._check_plans(self._asking)
            else:
                with self.connect() as other:
                    self._check_plans(other)

    def _check_plans(self, session: psycopg.Connection[Any]) -> None:
        try:
            check_plans(session, self.profile)
        except MeasurementInvalid as error:
            raise MeasurementInvalid(f"after maintenance {error}") from None
