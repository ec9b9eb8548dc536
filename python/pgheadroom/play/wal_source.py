"""
Where a window's WAL is read: the server's own pg_waldump, else its pg_walinspect.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgheadroom.errors import LabError, ProgramMissing
from pgheadroom.play.waldump import (
    WindowWal,
    check_stats,
    read_waldump,
    sum_wal,
    window_arguments,
)
from pgheadroom.play.walinspect import is_available, read_walinspect
from pgheadroom.servers import Host, find_client

if TYPE_CHECKING:
    import psycopg

    from pgheadroom.servers import Cluster


class WalSource:
    """
    A reader of a running server's WAL; made before the run, so that a lack shows early.

    Args:
        host: Where the programs run.
        cluster: The server.
        monitor: A session outside the database under test.

    Raises:
        ProgramMissing: Neither a pg_waldump of the server's major version nor pg_walinspect.
    """

    def __init__(self, host: Host, cluster: Cluster, monitor: psycopg.Connection[Any]) -> None:
        self._host = host
        self._cluster = cluster
        self._monitor = monitor
        path, version = find_client("pg_waldump", host.programs)
        self._waldump = path if version.major == host.programs.version.major else None
        if self._waldump is None and not is_available(monitor):
            raise ProgramMissing(
                f"{host.programs} has no pg_waldump and no pg_walinspect, and the pg_waldump at "
                f"hand is of {version}, which does not read its WAL: expected one of them"
            )

    def read(self, start: str, end: str, table_of: Mapping[str, str]) -> WindowWal:
        """Sum up the records between two positions, which are in their files already."""
        if start == end:
            return read_waldump((), table_of)
        if self._waldump is None:
            # Not before: its OIDs would be those that the profile's types are to have.
            self._monitor.execute("CREATE EXTENSION IF NOT EXISTS pg_walinspect")
            return sum_wal(read_walinspect(self._monitor, start, end), table_of)
        return self._read_waldump(self._waldump, start, end, table_of)

    def _read_waldump(
        self, program: Path, start: str, end: str, table_of: Mapping[str, str]
    ) -> WindowWal:
        folder = self._cluster.data_dir / "pg_wal"
        arguments = [str(program), "-p", str(folder), *window_arguments(start, end)]
        errors_path = self._host.scratch / "pg_waldump.err"
        with errors_path.open("wb") as errors:
            process = self._host.popen(
                arguments,
                # It writes the times of transactions in its own zone.
                env={**self._cluster.client_env(), "TZ": "UTC"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                errors="replace",
            )
            with process:
                assert process.stdout is not None
                try:
                    wal = read_waldump(process.stdout, table_of)
                except BaseException:
                    process.kill()
                    raise
        if process.returncode != 0:
            said = errors_path.read_text(errors="replace").strip()[-500:]
            raise LabError(f"pg_waldump ended with exit code {process.returncode}: {said}")
        check_stats(wal, self._host.run([*arguments, "--stats"]).stdout)
        return wal
