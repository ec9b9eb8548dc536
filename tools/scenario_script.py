"""
Plays a scenario's steps on a server, in one session: what pgbench does for a profile.
"""

from __future__ import annotations

import re
from typing import Any

import psycopg

from pgheadroom import quoting
from pgheadroom.play import DATABASE
from pgheadroom.play.scripts import FIND_SETTINGS, session_find, statements
from pgheadroom.play.values import column_list, row_values
from pgheadroom.profile import Profile
from pgheadroom.servers import Cluster

_PLAIN = {"begin": "BEGIN", "commit": "COMMIT", "rollback": "ROLLBACK", "checkpoint": "CHECKPOINT"}


class Script:
    """
    Steps to be played; called with a loaded cluster.

    `copied` has the lengths of the lines of each COPY, in order: they decide where its batches end.
    """

    def __init__(self, profile: Profile, steps: tuple[dict[str, Any], ...]) -> None:
        self.profile = profile
        self.steps = steps
        self.copied: list[list[int]] = []

    def __call__(self, cluster: Cluster) -> int:
        """Play all steps; the number of statements."""
        sql = [self._with_parameters(statement.sql) for statement in statements(self.profile)]
        count = 0
        session, held = self._session(cluster), None
        for step in self.steps:
            match step["do"]:
                case "statement":
                    operation = self.profile.workload.operations[step["operation"]]
                    if operation.pick is not None:
                        self._find(session, operation.find)
                    rows = operation.rows_per_statement
                    assert isinstance(rows, int), "a scenario's keys are given, so nothing is drawn"
                    for key in step["keys"]:
                        self._run(session, sql[step["operation"]], key, key + rows - 1)
                        count += 1
                case "copy":
                    lines = self._lines(cluster, step)
                    self._copy(session, step["table"], lines)
                    self.copied.append([len(line) for line in lines])
                case "vacuum":
                    options = " (FREEZE)" if step.get("freeze") else ""
                    name = quoting.identifier(step["table"])
                    session.execute(f"VACUUM{options} {name}".encode())
                case "rewrite":
                    name = quoting.identifier(step["table"])
                    session.execute(f"VACUUM FULL {name}".encode())
                case "fillfactor":
                    name = quoting.identifier(step["table"])
                    alter = f"ALTER TABLE {name} SET (fillfactor = {int(step['percent'])})"
                    session.execute(alter.encode())
                case "hold":
                    held = cluster.connect(DATABASE)
                    held.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
                    held.execute("SELECT count(*) FROM pg_class")
                case "release":
                    assert held is not None, "a snapshot is held"
                    # Its backend ends some time after the connection does.
                    held.execute("ROLLBACK")
                    held.close()
                case "reconnect":
                    session.close()
                    session = self._session(cluster)
                case plain:
                    session.execute(_PLAIN[plain].encode())
        session.close()
        return count

    def _session(self, cluster: Cluster) -> psycopg.Connection[Any]:
        session = cluster.connect(DATABASE)
        self._found: str | None = None
        if any(table.foreign_keys for table in self.profile.tables):
            # Their checks are planned with the first insert, and then kept.
            self._find(session, session_find(self.profile))
        return session

    def _find(self, session: psycopg.Connection[Any], find: str) -> None:
        if self._found != find:
            for name, value in FIND_SETTINGS[find].items():
                session.execute(f"SET {name} = {value}".encode())
            self._found = find

    @staticmethod
    def _with_parameters(sql: str) -> str:
        return re.sub(r":([km])\d+\b", lambda match: {"k": "$1", "m": "$2"}[match[1]], sql)

    @staticmethod
    def _run(session: psycopg.Connection[Any], sql: str, low: int, high: int) -> None:
        # As text, so that the server finds the types, as it does for pgbench.
        parameters = [str(low), str(high)][: 2 if "$2" in sql else 1]
        with psycopg.RawCursor(session) as cursor:
            cursor.execute(sql.encode(), parameters, prepare=True)

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

    def _copy(self, session: psycopg.Connection[Any], name: str, lines: list[bytes]) -> None:
        columns = column_list(self.profile.table(name))
        query = f"COPY {quoting.identifier(name)} ({columns}) FROM STDIN"
        with session.cursor() as cursor, cursor.copy(query.encode()) as copy:
            copy.write(b"".join(line + b"\n" for line in lines))
