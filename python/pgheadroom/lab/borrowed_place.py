"""
A place on somebody's server: a database of our own, loaded anew for each trial.

Settings are the server's and stay so; each that an experiment would have set otherwise is named
under `assumed`, where a reader finds why the numbers may differ.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgheadroom.errors import LabError, PrivilegeMissing
from pgheadroom.lab.checkpoints import checkpoint
from pgheadroom.lab.place import (
    Running,
    Shape,
    client_output,
    memory_bytes,
    translated_errors,
)
from pgheadroom.quoting import shown_identifier
from pgheadroom.servers import BorrowedServer, Cluster, Host, find_client
from pgheadroom.types import PgVersion

if TYPE_CHECKING:
    import psycopg

SET_IN_SESSION = frozenset({"synchronize_seqscans", "jit", "max_parallel_workers_per_gather"})
"""Settings that the experiment's own sessions change, so the server's value does not matter."""

NO_EFFECT_ON_RESULTS = frozenset({"fsync", "checkpoint_timeout", "max_wal_size", "max_connections"})
"""Settings that an experiment makes sure of in another way, or that change only the time."""


class _BorrowedRunning:
    """Our database on a borrowed server, loaded."""

    def __init__(self, server: BorrowedServer, scratch: Path, assumed: dict[str, str]) -> None:
        self._server = server
        self.version = server.version
        self.scratch = scratch
        self.assumed = assumed
        self.host: Host | None = None
        self.cluster: Cluster | None = None

    def connect(self, dbname: str | None = None) -> psycopg.Connection[Any]:
        if dbname not in (None, self._server.dbname):
            raise LabError(f"on a borrowed server nothing but our own database is used: {dbname}")
        return self._server.connect()

    def checkpoint(self) -> None:
        with self.connect() as connection:
            checkpoint(connection, self.version)

    def run_client(self, arguments: Sequence[str], *, timeout_s: float) -> str:
        program, _ = find_client(arguments[0], None)
        done = self._server.run([program, *arguments[1:], self._server.dbname], timeout=timeout_s)
        return client_output(arguments, done.returncode, done.stdout, done.stderr)


class BorrowedPlace:
    """A database of ours on a server that is not."""

    throw_away = False

    def __init__(self, server: BorrowedServer) -> None:
        self._server = server
        self._trials = 0
        self.version = server.version
        self.memory_bytes = memory_bytes()
        self.folder: Path | None = None
        with server.connect() as connection:
            _require_checkpoint(connection, server.version)
            rows = connection.execute("SELECT name FROM pg_available_extensions").fetchall()
        self.contrib = frozenset(name for (name,) in rows)

    @contextmanager
    def running(self, shape: Shape, settings: Mapping[str, str]) -> Iterator[Running]:
        """Empty the database, load the shape, hand it over."""
        self._trials += 1
        scratch = self._server.scratch / f"trial-{self._trials}"
        scratch.mkdir()
        try:
            with translated_errors(None, None):
                with self._server.connect() as connection:
                    connection.execute("DROP SCHEMA public CASCADE")
                    connection.execute("CREATE SCHEMA public")
                    assumed = _deviations(connection, settings)
                running = _BorrowedRunning(self._server, scratch, assumed)
                shape.load(running)
                yield running
        finally:
            shutil.rmtree(scratch)

    def drop(self, shape_name: str) -> None:
        """Nothing is kept between trials."""


def _require_checkpoint(connection: psycopg.Connection[Any], version: PgVersion) -> None:
    """
    Make sure that the role may force checkpoints: without, no trial has a defined beginning.

    Raises:
        PrivilegeMissing: It may not.
    """
    allowed = "pg_has_role(current_user, 'pg_checkpoint', 'USAGE')"
    row = connection.execute(
        f"SELECT rolsuper OR {allowed if version.major >= 15 else 'false'}, current_user "
        "FROM pg_roles WHERE rolname = current_user"
    ).fetchone()
    assert row is not None, "the current role has a row"
    if not row[0]:
        raise PrivilegeMissing(
            f"role {row[1]} may not force a checkpoint, which every trial begins with "
            "(it concerns the whole server)",
            grant=f"GRANT pg_checkpoint TO {shown_identifier(row[1])};"
            if version.major >= 15
            else None,
        )


def _deviations(connection: psycopg.Connection[Any], settings: Mapping[str, str]) -> dict[str, str]:
    """Settings of the server that differ from what the experiment would set."""
    found: dict[str, str] = {}
    for name, wanted in settings.items():
        if name in SET_IN_SESSION | NO_EFFECT_ON_RESULTS:
            continue
        row = connection.execute("SELECT current_setting(%s, true)", (name,)).fetchone()
        value = None if row is None else row[0]
        if value is not None and value != wanted and not _same_size(connection, value, wanted):
            found[name] = f"{value} on the borrowed server, {wanted} on a throw-away one"
    return found


def _same_size(connection: psycopg.Connection[Any], value: str, wanted: str) -> bool:
    """Whether two spellings of a memory setting mean the same size."""
    import psycopg  # noqa: PLC0415 - loads libpq, which most commands do not need

    try:
        with connection.transaction():
            row = connection.execute(
                "SELECT pg_size_bytes(%s) = pg_size_bytes(%s)", (value, wanted)
            ).fetchone()
    except psycopg.errors.DataError:
        return False
    return row is not None and bool(row[0])
