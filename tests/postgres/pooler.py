"""A pooler before a server, as applications share one."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from footprint import DEADLINE_S

from pgheadroom.servers import Cluster, Host
from pgheadroom.servers.user import arguments, server_user


@contextmanager
def pooled(host: Host, cluster: Cluster, mode: str, *, more: str = "") -> Iterator[str]:
    """Pgbouncer in that mode; gives a connection through it."""
    program = shutil.which("pgbouncer")
    if program is None:
        pytest.skip("pgbouncer is not installed")
    env = cluster.client_env()
    folder = host.folder / "pool"
    folder.mkdir()
    folder.chmod(0o777)  # the run folder around it is closed to others
    file = folder / "pgbouncer.ini"
    file.write_text(
        f"[databases]\npostgres = host={env['PGHOST']} port={env['PGPORT']} user=postgres\n"
        f"[pgbouncer]\nunix_socket_dir = {folder}\nlisten_addr =\nlisten_port = 6432\n"
        f"auth_type = any\npool_mode = {mode}\nlogfile = {folder}/pgbouncer.log\n"
        f"pidfile = {folder}/pgbouncer.pid\n{more}"
    )
    file.chmod(0o644)
    process = host.popen(
        [program, file],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **arguments(server_user()),
    )
    try:
        deadline = time.monotonic() + DEADLINE_S
        while not (folder / ".s.PGSQL.6432").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        yield f"host={folder} port=6432 user=postgres dbname=postgres"
    finally:
        process.terminate()
        process.wait(timeout=20)
