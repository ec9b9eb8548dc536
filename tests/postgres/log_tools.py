"""What tests of the write-ahead log share: programs of the server's version, and positions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgheadroom.errors import ProgramMissing
from pgheadroom.servers import Cluster, Host, ServerPrograms, find_client
from pgheadroom.servers.user import arguments, server_user


def tool(name: str, programs: ServerPrograms) -> Path:
    """A program of the server's own major version; where there is none the test is skipped."""
    try:
        found, version = find_client(name, programs)
    except ProgramMissing as error:
        pytest.skip(str(error))
    if version.major != programs.version.major:
        pytest.skip(f"{name} of {version}")
    return found


def set_segment_size(host: Host, cluster: Cluster, megabytes: int) -> None:
    """Give a cluster that has not been started segments of this size."""
    program = tool("pg_resetwal", host.programs)
    command = [program, f"--wal-segsize={megabytes}", "-D", cluster.data_dir]
    done = host.run(command, **arguments(server_user()))
    assert done.returncode == 0, done.stderr


def position(connection: psycopg.Connection[Any]) -> int:
    """Where the next record will be, as a number."""
    row = connection.execute("SELECT pg_current_wal_insert_lsn() - '0/0'").fetchone()
    assert row is not None
    return int(row[0])
