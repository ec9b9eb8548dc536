"""
An application's database on a throw-away server, under its own statements, observed.

The schema and the rows are loaded, pgbench runs the application's statements, and
`pgheadroom observe` watches, as a user calls it: what it sees of statements is in
pg_stat_statements, where the server has it, and in the server's log.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from pgheadroom.errors import LabError
from pgheadroom.servers import Cluster, Host, ServerPrograms, find_client, find_programs
from pgheadroom.servers.programs import fetched
from public_schemas.manifest import Application

DATABASE = "application"
_SETTINGS = {
    "shared_buffers": "256MB",
    "log_transaction_sample_rate": "1",  # the source of update classes beside the module
    "log_min_duration_statement": "-1",
    "autovacuum_naptime": "10s",  # seconds stand for minutes
    "max_wal_size": "4GB",
    "synchronize_seqscans": "off",
}
_STATISTICS = {
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track": "all",  # functions' own statements, as its manual advises
}


def server_for_applications(major: int = 18) -> ServerPrograms:
    """A server with contrib modules where one is at hand, else the wheel's."""
    for programs in fetched():
        if programs.version.major == major and has_modules_at(programs):
            return programs
    return find_programs(str(major))


def has_modules_at(programs: ServerPrograms) -> bool:
    """Whether pg_stat_statements is beside the server."""
    shared = programs.program("pg_config")
    if not Path(shared).exists():
        return False
    said = subprocess.run([shared, "--sharedir"], capture_output=True, text=True, check=False)
    folder = Path(said.stdout.strip()) / "extension"
    return (folder / "pg_stat_statements.control").exists()


def observed(
    application: Application, texts: Mapping[str, str], programs: ServerPrograms, profile: Path
) -> dict[str, Any]:
    """
    Load an application, put it under load, and write the profile that `observe` makes of it.

    Returns:
        What is kept beside the profile: the server's version, what observe said, what it could
        not read, how many transactions ran.

    Raises:
        LabError: The schema could not be loaded, or a statement of the workload failed.
    """
    has_modules = has_modules_at(programs)
    settings = _SETTINGS | (_STATISTICS if has_modules else {})
    with Host(programs, label="public-schemas") as host:
        cluster = host.cluster("application")
        cluster.start(settings)
        try:
            load(application, texts, cluster, has_modules=has_modules)
            with under_load(application, texts, host, cluster):
                time.sleep(application.warm_s)
                said = _observe(application, cluster, profile)
        finally:
            if cluster.running:
                cluster.stop("immediate")
    return {"server": str(programs.version), "said": said}


def load(
    application: Application, texts: Mapping[str, str], cluster: Cluster, *, has_modules: bool
) -> None:
    """
    Make the application's database: its schema, its rows, vacuumed and analyzed.

    Raises:
        LabError: The schema or the rows could not be loaded.
    """
    with cluster.connect() as connection:
        connection.execute(f"CREATE DATABASE {DATABASE}".encode())
    with cluster.connect(DATABASE) as connection:
        if has_modules:
            connection.execute("CREATE EXTENSION pg_stat_statements")
        try:
            connection.execute(application.schema_text(texts).encode())
            connection.execute(application.rows.encode())
        except psycopg.Error as error:
            raise LabError(f"{application.name}: {error}") from error
    with cluster.connect(DATABASE) as connection:
        connection.execute("VACUUM ANALYZE")
    with cluster.connect(DATABASE) as connection:
        connection.execute("CHECKPOINT")
        if has_modules:
            connection.execute("SELECT pg_stat_statements_reset()")


def _observe(application: Application, cluster: Cluster, profile: Path) -> list[str]:
    env = cluster.client_env()
    target = f"host={env['PGHOST']} port={env['PGPORT']} user=postgres dbname={DATABASE}"
    code, said = command(
        *("observe", target, "--for", f"{application.watch_s}s", "--wal"),
        *("--log", str(cluster.log_path), "-o", str(profile)),
    )
    if code != 0:
        raise LabError(f"{application.name}: observe ended with {code}: {' '.join(said)[-1000:]}")
    return [line for line in said if " of " not in line or not line.endswith(" s")]


def command(*words: str) -> tuple[int, list[str]]:
    """A command of ours, as a user calls it: its exit code, what it said on standard error."""
    run = subprocess.run(
        [sys.executable, "-m", "pgheadroom", *words], capture_output=True, text=True, check=False
    )
    return run.returncode, [line for line in run.stderr.splitlines() if line.strip()]


@contextmanager
def under_load(
    application: Application, texts: Mapping[str, str], host: Host, cluster: Cluster
) -> Iterator[None]:
    """
    While one client of pgbench runs the application's statements at its rate.

    Raises:
        LabError: It has ended by itself.
    """
    program, _ = find_client("pgbench", host.programs)
    length_s = 3600
    arguments: list[str | Path] = ["-n", "-c", "1", "-j", "1", "-M", "simple"]
    arguments += ["-R", str(application.rate_per_s), "-T", str(length_s), "--random-seed=1"]
    for number, (weight, script) in enumerate(application.scripts(texts)):
        path = host.scratch / f"{number}.sql"
        path.write_text(script, encoding="utf-8")
        arguments += ["-f", f"{path.name}@{weight}"]
    said = host.scratch / "pgbench.err"
    with said.open("wb") as errors:
        process = host.popen(
            [program, *arguments, DATABASE],
            env=cluster.client_env(),
            cwd=host.scratch,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
        try:
            yield
            ended = process.poll()
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
    if ended is not None:
        text = said.read_text(errors="replace").strip()[-1500:]
        raise LabError(f"{application.name}: the workload ended by itself: {text}")
