"""
The file of a history: moments of one database, and what was answered at each.

SQLite, one transaction a moment, with its rollback journal and its syncs as they are: whoever is
killed leaves the moment before. Moments come in groups of an hour whose first is whole and the
others refer to it (`rows.py`); what is too old goes by groups, and its pages are given back.

The file may be anything: each value is checked where it is read.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pgheadroom.errors import DiskFull, InputError
from pgheadroom.files import file_error
from pgheadroom.history.rows import NotRows, packed, unpacked
from pgheadroom.sources.recording import AnswerRow

APPLICATION_ID = 0x70676872  # "pghr"
VERSION = 1
GROUP_S = 3600.0
_WAIT_S = 10.0
_TABLES = """
CREATE TABLE origin (system_identifier TEXT NOT NULL, database_oid INTEGER NOT NULL,
                     database TEXT NOT NULL, server TEXT NOT NULL);
CREATE TABLE moment (id INTEGER PRIMARY KEY AUTOINCREMENT, at_epoch_s REAL NOT NULL,
                     base INTEGER NOT NULL, life TEXT NOT NULL, changes TEXT NOT NULL);
CREATE INDEX moment_at ON moment (at_epoch_s);
CREATE TABLE answer (moment INTEGER NOT NULL, name TEXT NOT NULL, failed TEXT, body BLOB,
                     PRIMARY KEY (moment, name)) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryOrigin:
    """
    Whose history it is.

    Attributes:
        system_identifier: The cluster's own number; empty where the role may not see it.
        database_oid: The database's.
        database: Its name.
        server: The version that wrote the first moment.
    """

    system_identifier: str
    database_oid: int
    database: str
    server: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptMoment:
    """
    A moment of a history.

    Attributes:
        number: In the file.
        at_s: The server's clock, seconds since 1970.
        base: The number of the moment that it refers to; its own for one that is whole.
        life: The same text as long as counters count from the same beginning.
        changes: What happened since the moment before, of all tables and of the server, for a
            chart; None where that cannot be told.
    """

    number: int
    at_s: float
    base: int
    life: str
    changes: Mapping[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAnswer:
    """An answer: its rows, or why there are none."""

    rows: tuple[AnswerRow, ...]
    failed: str | None = None


class History:
    """
    A history that is open.

    Attributes:
        path: Its file.
        origin: Whose it is.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, origin: HistoryOrigin) -> None:
        self.path = path
        self.origin = origin
        self._connection = connection
        self._base: dict[str, Sequence[AnswerRow]] = {}
        self._base_number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    @classmethod
    def open(cls, path: Path) -> Self:
        """
        Open one to read.

        Raises:
            InputError: There is none, it is none, damaged, or of a later version.
        """
        if not path.is_file():
            raise InputError(f"no such file: {path}; expected a history")
        connection = _connected(path)
        try:
            with _told(path):
                return cls(path, connection, _checked(connection, path))
        except BaseException:
            connection.close()
            raise

    @classmethod
    def extend(cls, path: Path, origin: HistoryOrigin) -> Self:
        """
        Open one to write, or begin one.

        Raises:
            InputError: The file is no history, damaged, or of another database.
        """
        is_new = not path.exists() or path.stat().st_size == 0
        connection = _connected(path)
        try:
            with _told(path):
                if is_new:
                    _begin(connection, origin)
                    return cls(path, connection, origin)
                found = _checked(connection, path)
                refuse_other(path, found, origin)
                return cls(path, connection, found)
        except BaseException:
            connection.close()
            raise

    def moments(self) -> tuple[KeptMoment, ...]:
        """All of them, in the order of time."""
        with _told(self.path):
            rows = self._connection.execute(
                "SELECT id, at_epoch_s, base, life, changes FROM moment ORDER BY at_epoch_s, id"
            ).fetchall()
        return tuple(self._moment(row) for row in rows)

    def add(
        self,
        at_s: float,
        life: str,
        changes: Mapping[str, float | None],
        answers: Mapping[str, KeptAnswer],
        *,
        keep_s: float,
    ) -> None:
        """
        Keep a moment, and let go of what is older than `keep_s` before it.

        Raises:
            DiskFull: No room; the moment is not there, all before it are.
            InputError: The file cannot be written.
        """
        with _told(self.path):
            self._keep(at_s, life, changes, answers)
            # Whole groups alone: what is kept refers to its first.
            old = self._connection.execute(
                "SELECT base FROM moment GROUP BY base HAVING max(at_epoch_s) < ?", (at_s - keep_s,)
            ).fetchall()
            if old:
                with self._connection:
                    for (base,) in old:
                        self._connection.execute(
                            "DELETE FROM answer WHERE moment IN "
                            "(SELECT id FROM moment WHERE base = ?)",
                            (base,),
                        )
                        self._connection.execute("DELETE FROM moment WHERE base = ?", (base,))
                self._connection.execute("PRAGMA incremental_vacuum").fetchall()

    def _keep(
        self,
        at_s: float,
        life: str,
        changes: Mapping[str, float | None],
        answers: Mapping[str, KeptAnswer],
    ) -> None:
        with self._connection:
            base = self._group(at_s, life)
            cursor = self._connection.execute(
                "INSERT INTO moment (at_epoch_s, base, life, changes) VALUES (?, ?, ?, ?)",
                (at_s, base, life, json.dumps(dict(changes))),
            )
            number = int(cursor.lastrowid or 0)
            if not base:
                self._connection.execute("UPDATE moment SET base = id WHERE id = ?", (number,))
                base = number
                self._base, self._base_number = {}, number
            for name, answer in answers.items():
                first = self._base.get(name) if base != number else None
                if base == number:
                    self._base[name] = answer.rows
                body = None if answer.failed is not None else packed(answer.rows, first)
                self._connection.execute(
                    "INSERT INTO answer VALUES (?, ?, ?, ?)", (number, name, answer.failed, body)
                )

    def _group(self, at_s: float, life: str) -> int:
        """The number of the moment that a new one refers to; 0: it begins a group."""
        row = self._connection.execute(
            "SELECT at_epoch_s, life FROM moment WHERE id = ?", (self._base_number,)
        ).fetchone()
        if row is None or row[1] != life or not 0 <= at_s - row[0] < GROUP_S:
            return 0
        return self._base_number

    def answers(self, moment: KeptMoment) -> dict[str, KeptAnswer]:
        """
        What was answered at a moment, by name.

        Raises:
            InputError: The file is damaged there.
        """
        with _told(self.path):
            own = self._rows_of(moment.number)
            first = self._rows_of(moment.base) if moment.base != moment.number else {}
        found: dict[str, KeptAnswer] = {}
        try:
            for name, (failed, body) in own.items():
                if failed is not None or body is None:
                    found[name] = KeptAnswer(rows=(), failed=failed or "not kept")
                    continue
                before = first.get(name, (None, None))[1]
                base = None if before is None else unpacked(before, None)
                found[name] = KeptAnswer(rows=tuple(unpacked(body, base)))
        except NotRows as error:
            raise _damaged(self.path, f"{name} of moment {moment.number}: {error}") from None
        return found

    def _rows_of(self, number: int) -> dict[str, tuple[str | None, bytes | None]]:
        rows = self._connection.execute(
            "SELECT name, failed, body FROM answer WHERE moment = ?", (number,)
        ).fetchall()
        for name, failed, body in rows:
            texts = isinstance(name, str) and isinstance(failed, str | None)
            if not texts or not isinstance(body, bytes | None):
                raise _damaged(self.path, f"an answer of moment {number}")
        return {name: (failed, body) for name, failed, body in rows}

    def _moment(self, row: Sequence[Any]) -> KeptMoment:
        number, at_s, base, life, changes = row
        try:
            read = json.loads(changes)
            return KeptMoment(
                number=int(number),
                at_s=float(at_s),
                base=int(base),
                life=str(life),
                changes={
                    str(name): None if value is None else float(value)
                    for name, value in read.items()
                },
            )
        except (TypeError, ValueError, AttributeError, RecursionError):
            raise _damaged(self.path, f"moment {number!r}") from None


def refuse_other(path: Path, found: HistoryOrigin, wanted: HistoryOrigin) -> None:
    """
    Refuse a history of another database.

    Raises:
        InputError: It is; the name of the database may have changed.
    """
    same = found.database_oid == wanted.database_oid
    if found.system_identifier and wanted.system_identifier:
        same = same and found.system_identifier == wanted.system_identifier
    if not same:
        raise InputError(
            f"{path} is the history of another database, {found.database} of the cluster "
            f"{found.system_identifier or '?'}: expected {wanted.database} of "
            f"{wanted.system_identifier or '?'}; each database has a file of its own"
        )


def _connected(path: Path) -> sqlite3.Connection:
    try:
        # The reader's thread writes, another one has opened it; never both at a time.
        return sqlite3.connect(path, timeout=_WAIT_S, check_same_thread=False)
    except sqlite3.Error as error:
        raise InputError(f"cannot open {path}: {error}") from None


def _begin(connection: sqlite3.Connection, origin: HistoryOrigin) -> None:
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    with connection:
        for statement in _TABLES.split(";\n"):
            connection.execute(statement)
        connection.execute(
            "INSERT INTO origin VALUES (?, ?, ?, ?)",
            (origin.system_identifier, origin.database_oid, origin.database, origin.server),
        )


def _checked(connection: sqlite3.Connection, path: Path) -> HistoryOrigin:
    ((ours,),) = connection.execute("PRAGMA application_id").fetchall()
    if ours != APPLICATION_ID:
        raise InputError(
            f"{path} is a database of SQLite, but no history: expected one that was kept before"
        )
    ((version,),) = connection.execute("PRAGMA user_version").fetchall()
    if version > VERSION:
        raise InputError(
            f"{path} is a history of version {version}: expected {VERSION}; a later pgheadroom "
            "has written it"
        )
    ((state,),) = connection.execute("PRAGMA quick_check(1)").fetchall()
    if state != "ok":
        raise _damaged(path, str(state))
    rows = connection.execute(
        "SELECT system_identifier, database_oid, database, server FROM origin"
    ).fetchall()
    if len(rows) != 1 or [type(value) for value in rows[0]] != [str, int, str, str]:
        raise _damaged(path, "nothing says whose it is")
    identifier, oid, database, server = rows[0]
    return HistoryOrigin(
        system_identifier=identifier, database_oid=oid, database=database, server=server
    )


def _damaged(path: Path, what: str) -> InputError:
    return InputError(
        f"{path} is damaged ({what}): expected a history as it was written; begin another"
    )


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """SQLite's errors as ours."""
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "")
        if name == "SQLITE_FULL":
            raise _full(path) from None
        if name == "SQLITE_NOTADB":
            raise InputError(f"{path} is no history: expected one that was kept before") from None
        if name.startswith("SQLITE_CORRUPT") or (
            isinstance(error, sqlite3.DatabaseError)
            and ("malformed" in str(error) or "no such" in str(error))
        ):
            raise _damaged(path, str(error)) from None
        raise InputError(f"the history {path} cannot be used: {error}") from None


def _full(path: Path) -> DiskFull | InputError:
    import errno  # noqa: PLC0415 - rarely

    with suppress(OSError):
        return file_error(OSError(errno.ENOSPC, "no room"), path)
    return InputError(f"no room to write {path}")
