"""
The watchdog of a borrowed database: drops it when the run that made it is gone.

Run as a program of its own, in its own session, like `watchdog.py`, which says more. The job comes
through the pipe, since it may hold a password: one line of JSON with the module search path, the
connection's parameters, the database's name and its lock's key. An end of file without the word
"dropped" before it means that the run was killed.

The run holds an advisory lock in the maintenance database. We wait for that lock before we drop:
the dead run's session may still be busy, with CREATE DATABASE even, and only when it has ended is
there nothing that could come after us.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg

DROPPED = b"dropped"
"""What the run says when it has dropped the database itself."""

_PERSISTENCE_S = 300.0  # a restart of the server is survived; then the next run's sweep does it
_PAUSE_S = 1.0


def main() -> int:
    """Wait until the run is over; drop the database if the run did not."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        return 0  # The run died before it had made anything.
    job = json.loads(line)
    sys.path[:] = job["module_path"]
    import psycopg  # noqa: PLC0415 - found by the path that the job brings

    said = b""
    while chunk := os.read(sys.stdin.fileno(), 4096):
        said += chunk
    if DROPPED in said:
        return 0
    deadline = time.monotonic() + _PERSISTENCE_S
    while True:
        try:
            with psycopg.connect(**job["parameters"], autocommit=True) as connection:
                drop(connection, job["dbname_quoted"], job["lock_key"])
        except psycopg.Error:
            if time.monotonic() > deadline:
                return 1
            time.sleep(_PAUSE_S)
        else:
            return 0


def prepare(connection: psycopg.Connection[Any]) -> None:
    """Let a maintenance session wait as long as it takes, whatever the role's settings are."""
    connection.execute("SET statement_timeout = 0")
    connection.execute("SET lock_timeout = 0")
    if connection.info.server_version >= 140000:
        connection.execute("SET idle_session_timeout = 0")


def drop(connection: psycopg.Connection[Any], dbname_quoted: str, lock_key: int) -> None:
    """Drop the database once nobody holds its lock; `dbname_quoted` is a quoted identifier."""
    prepare(connection)
    connection.execute("SELECT pg_advisory_lock(%s)", (lock_key,))
    # FORCE: clients of the dead run may still be connected. Nobody else uses this database.
    connection.execute(f"DROP DATABASE IF EXISTS {dbname_quoted} WITH (FORCE)")


if __name__ == "__main__":
    sys.exit(main())
