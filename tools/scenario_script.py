"""
Plays a scenario's steps on a server, in one session or several: what pgbench does for a profile.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import psycopg

from pgheadroom import quoting
from pgheadroom.errors import MeasurementInvalid
from pgheadroom.play import DATABASE
from pgheadroom.play.maintenance import statement, workers_of
from pgheadroom.play.scripts import FIND_SETTINGS, session_find, statements
from pgheadroom.play.values import column_list, row_values
from pgheadroom.profile import Maintenance, Profile
from pgheadroom.servers import Cluster

from scenario_session import AT_ONCE, NEVER, Done, Session, Sessions  # isort: skip

_PLAIN = {
    "commit": "COMMIT",
    "rollback": "ROLLBACK",
    "checkpoint": "CHECKPOINT",
    "savepoint": "SAVEPOINT {name}",
    "rollback_to": "ROLLBACK TO SAVEPOINT {name}",
    "release_savepoint": "RELEASE SAVEPOINT {name}",
    "fetch": "FETCH {rows} FROM c",
    "close": "CLOSE c",
}


class Script:
    """
    Steps to be played; called with a loaded cluster.

    `copied` has the lengths of the lines of each COPY, in order: they decide where its batches
    end. `done` says of each statement what became of it.
    """

    def __init__(self, profile: Profile, steps: tuple[dict[str, Any], ...]) -> None:
        self.profile = profile
        self.steps = steps
        self.copied: list[list[int]] = []
        self.done: list[Done] = []
        self._sql = [_with_parameters(statement.sql) for statement in statements(profile)]
        self._held: psycopg.Connection[Any] | None = None

    def __call__(self, cluster: Cluster) -> int:
        """Play all steps; the number of statements."""
        with cluster.connect() as monitor:
            sessions = Sessions(lambda number: self._session(cluster, number), monitor)
            try:
                for number, step in enumerate(self.steps):
                    self._step(cluster, sessions, number, step)
            finally:
                sessions.close()
                self._release()
        kinds = [self.steps[done.step]["do"] for done in self.done]
        played = [len(done.outcomes) for done in self.done]
        return sum(n for kind, n in zip(kinds, played, strict=True) if kind == "statement")

    def _step(self, cluster: Cluster, sessions: Sessions, n: int, step: dict[str, Any]) -> None:
        number = step.get("session", 0)
        match step["do"]:
            case "hold":
                self._held = cluster.connect(DATABASE)
                self._held.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
                self._held.execute("SELECT count(*) FROM pg_class")
            case "release":
                assert self._held is not None, "a snapshot is held"
                self._release()
            case "reconnect":
                sessions.reconnect(number)
                sessions.get(number)
            case _:
                session = sessions.get(number)
                done = Done(n, number, waits=step.get("waits", False))
                self.done.append(done)
                work = self._work(cluster, session, step, done.outcomes)
                session.begin(done, lambda: _expecting(step, work, done.outcomes))
                sessions.settle(n, waits=done.waits, session=session)

    def _release(self) -> None:
        if self._held is not None:
            # Its backend ends some time after the connection does.
            self._held.execute("ROLLBACK")
            self._held.close()
            self._held = None

    def _work(
        self, cluster: Cluster, session: Session, step: dict[str, Any], outcomes: list[int | str]
    ) -> Callable[[], None]:
        """What a step does in its session."""
        connection = session.connection
        if step.get("seeks_deadlocks"):
            connection.execute(f"SET deadlock_timeout = '{AT_ONCE}'".encode())
        match step["do"]:
            case "statement":
                return lambda: self._statements(session, step, outcomes)
            case "copy":
                lines = self._lines(cluster, step)
                self.copied.append([len(line) for line in lines])
                return lambda: self._copy(session, step["table"], lines)
            case "begin":
                sql = f"BEGIN ISOLATION LEVEL {step.get('isolation', 'read committed').upper()}"
            case "vacuum":
                command = Maintenance(
                    do="vacuum",
                    table=step["table"],
                    freeze=step.get("freeze", False),
                    parallel=step.get("parallel", 0),
                )
                connection.execute(workers_of(command).encode())
                sql = statement(command)
            case "rewrite":
                sql = f"VACUUM FULL {quoting.identifier(step['table'])}"
            case "fillfactor":
                name = quoting.identifier(step["table"])
                sql = f"ALTER TABLE {name} SET (fillfactor = {int(step['percent'])})"
            case plain:
                sql = _PLAIN[plain].format_map(step)

        def run() -> None:
            rows = connection.execute(sql.encode()).rowcount
            if step["do"] == "fetch":
                outcomes.append(rows)

        return run

    def _statements(
        self, session: Session, step: dict[str, Any], outcomes: list[int | str]
    ) -> None:
        operation = self.profile.workload.operations[step["operation"]]
        if operation.pick is not None:
            _find(session, operation.find)
        rows = operation.rows_per_statement
        assert isinstance(rows, int), "a scenario's keys are given, so nothing is drawn"
        sql = self._sql[step["operation"]]
        if operation.kind == "lock":
            sql = sql.removesuffix(" FOR UPDATE") + f" FOR {step.get('strength', 'update').upper()}"
            sql += {"skip": " SKIP LOCKED", "nowait": " NOWAIT", None: ""}[step.get("locked")]
        if step.get("cursor"):
            sql = f"DECLARE c CURSOR FOR {sql}"
        if operation.find != "index":
            sql += f" /* {operation.find} */"  # one text would be one prepared plan
        for key in step["keys"]:
            is_prepared = step.get("prepared", True) and not step.get("cursor")
            outcomes.append(_run(session.connection, sql, key, key + rows - 1, is_prepared))

    def _session(self, cluster: Cluster, number: int) -> Session:
        session = Session(number, cluster.connect(DATABASE))
        if any("session" in step for step in self.steps):
            session.connection.execute(f"SET deadlock_timeout = '{NEVER}'".encode())
            # Before any transaction, whose rollback would take the settings back.
            _find(session, session_find(self.profile))
        elif any(table.foreign_keys for table in self.profile.tables):
            # Their checks are planned with the first insert, and then kept.
            _find(session, session_find(self.profile))
        return session

    def _lines(self, cluster: Cluster, step: dict[str, Any]) -> list[bytes]:
        """The rows as COPY's text, made by the server in another session that then ends."""
        table = self.profile.table(step["table"])
        values = row_values(table, 'g."row"')
        series = f"generate_series({step['from']}::int8, {step['to']}::int8)"
        query = f'COPY (SELECT {values} FROM {series} AS g("row")) TO STDOUT'
        with (
            cluster.connect(DATABASE) as connection,
            connection.cursor() as cursor,
            cursor.copy(query.encode()) as copy,
        ):
            return b"".join(bytes(data) for data in copy).splitlines()

    def _copy(self, session: Session, name: str, lines: list[bytes]) -> None:
        columns = column_list(self.profile.table(name))
        query = f"COPY {quoting.identifier(name)} ({columns}) FROM STDIN"
        with session.connection.cursor() as cursor, cursor.copy(query.encode()) as copy:
            copy.write(b"".join(line + b"\n" for line in lines))


def _expecting(step: dict[str, Any], work: Callable[[], None], outcomes: list[int | str]) -> None:
    """
    Do a step that fails as it says, or not at all.

    Raises:
        MeasurementInvalid: It does not fail, or with another SQLSTATE.
    """
    wanted, found = step.get("fails"), None
    try:
        work()
    except psycopg.Error as error:
        if wanted is None:
            raise
        found = error.sqlstate
        outcomes.append(str(found))
    if found != wanted:
        raise MeasurementInvalid(f"{step} ended with SQLSTATE {found}, expected {wanted}")


def _find(session: Session, find: str) -> None:
    if session.found != find:
        for name, value in FIND_SETTINGS[find].items():
            session.connection.execute(f"SET {name} = {value}".encode())
        session.found = find


def _with_parameters(sql: str) -> str:
    return re.sub(r":([km])\d+\b", lambda match: {"k": "$1", "m": "$2"}[match[1]], sql)


def _run(
    connection: psycopg.Connection[Any], sql: str, low: int, high: int, is_prepared: bool
) -> int:
    if not is_prepared:
        text = sql.replace("$1", str(low)).replace("$2", str(high))
        # DECLARE CURSOR finds nothing yet, and has no number.
        return max(0, connection.execute(text.encode()).rowcount)
    # As text, so that the server finds the types, as it does for pgbench.
    parameters = [str(low), str(high)][: 2 if "$2" in sql else 1 if "$1" in sql else 0]
    with psycopg.RawCursor(connection) as cursor:
        return cursor.execute(sql.encode(), parameters, prepare=True).rowcount
