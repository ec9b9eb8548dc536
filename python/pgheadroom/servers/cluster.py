"""
One cluster of a run: its data directory, its settings, and its server while that runs.

    RUN/clusters/NAME/
        data/            the data directory
        settings.conf    the settings of this start, included last by postgresql.conf
        server.log       standard error of all its starts

The postmaster is our own child, without pg_ctl between: so its end is noticed at once.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pgheadroom import quoting
from pgheadroom.errors import InputError, LabError, ServerStartFailed
from pgheadroom.servers import disk
from pgheadroom.servers.environment import (
    client_environment,
    server_environment,
    without_postgres_variables,
)
from pgheadroom.servers.programs import ServerPrograms
from pgheadroom.servers.run_folder import RunFolder
from pgheadroom.servers.templates import SETTINGS_FILE
from pgheadroom.servers.user import arguments
from pgheadroom.types import PgVersion

if TYPE_CHECKING:
    import psycopg

APPLICATION_NAME = "pgheadroom"

_DEFAULTS: Mapping[str, str] = {
    "fsync": "off",  # a throw-away server: whoever measures commits switches it on
    "log_line_prefix": "%m [%p] ",
    "log_checkpoints": "on",
    "log_autovacuum_min_duration": "0",
    "lc_messages": "C",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
_RESERVED = frozenset(
    {
        "config_file",
        "data_directory",
        "external_pid_file",
        "hba_file",
        "ident_file",
        "include",
        "include_dir",
        "include_if_exists",
        "listen_addresses",
        "log_destination",
        "logging_collector",
        "port",
        "unix_socket_directories",
        "unix_socket_permissions",
    }
)
"""Settings that would open the server to others, or hide its log or files from us."""
_SETTING_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*(\.[A-Za-z_][A-Za-z0-9_$]*)?")

_START_TIMEOUT_S = 600.0  # recovery of an immediately stopped cluster may read much WAL; arbitrary
_STOP_TIMEOUT_S = 1800.0  # a shutdown checkpoint may write all of shared_buffers; arbitrary
_POLL_S = 0.01
_TAIL_LINES = 20

_READY_LINE = 7  # LOCK_FILE_LINE_PM_STATUS, src/include/utils/pidfile.h, counted from 0


class Cluster:
    """A cluster of ours; made by `Host.cluster` and `Host.copy`, not directly."""

    def __init__(self, run: RunFolder, programs: ServerPrograms, name: str, port: int) -> None:
        self.name = name
        self.port = port
        self.data_dir = run.path / "clusters" / name / "data"
        self.log_path = self.data_dir.with_name("server.log")
        self._run = run
        self._programs = programs
        self._process: subprocess.Popen[Any] | None = None
        self._log_start_bytes = 0

    @property
    def version(self) -> PgVersion:
        """The server's version, with its minor."""
        return self._programs.version

    @property
    def running(self) -> bool:
        """Whether the postmaster is alive."""
        return self._process is not None and self._process.poll() is None

    def known_settings(self) -> frozenset[str]:
        """
        Names of the settings that its configuration file may have, as the program tells them.

        Raises:
            LabError: It does not.
        """
        program = self._programs.program("postgres")
        words: list[str | Path] = [program, "--describe-config"]
        said = self._run.run(words, env=server_environment(), **arguments(self._run.user))
        names = frozenset(line.split("\t")[0] for line in said.stdout.splitlines() if "\t" in line)
        if said.returncode != 0 or not names:
            raise LabError(f"{program} --describe-config: {said.stderr.strip()[-500:]}")
        return names

    def start(self, settings: Mapping[str, str]) -> None:
        """
        Start the server and wait until it takes connections.

        Args:
            settings: All settings of this start beside our defaults; those of an earlier start
                do not stay. Values as in postgresql.conf, without quotes.

        Raises:
            InputError: A setting is reserved (`listen_addresses`, ...) or not a name.
            ServerStartFailed: It did not start; with the end of this start's log.
            DiskFull: It did not start because the file system is full.
        """
        assert not self.running, f"cluster {self.name} is running already"
        with disk.full_means(self.data_dir, "start a server"):
            self._write_settings(settings)
        disk.require_free(self.data_dir, 0, "start a server")
        with self.log_path.open("ab") as log:
            self._log_start_bytes = log.tell()
            try:
                self._process = self._run.popen(
                    [self._programs.program("postgres"), "-D", self.data_dir],
                    env=server_environment(),
                    cwd=self.data_dir,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    # An immediate shutdown: with its children and its shared memory.
                    at_our_end=signal.SIGQUIT,
                    **arguments(self._run.user),
                )
                self._wait_until_ready(self._process)
            except BaseException:
                self._abandon_start()
                raise

    def _write_settings(self, settings: Mapping[str, str]) -> None:
        merged = dict(_DEFAULTS)
        for name, value in settings.items():
            if name.lower() in _RESERVED:
                raise InputError(f"the setting {name} is reserved: our servers decide on it")
            if not _SETTING_NAME.fullmatch(name):
                raise InputError(f"{name!r} is not a setting's name")
            merged[name.lower()] = str(value)
        folder = str(self._run.socket_dir).replace('"', '""')
        merged |= {
            "listen_addresses": "",
            "port": str(self.port),
            "unix_socket_directories": f'"{folder}"',
            "unix_socket_permissions": "0700",
            "logging_collector": "off",
            "log_destination": "stderr",
        }
        merged.setdefault("cluster_name", f"pgheadroom {self.name}")
        lines = [f"{name} = {quoting.conf_value(value)}\n" for name, value in merged.items()]
        path = self.data_dir.with_name(SETTINGS_FILE)
        path.write_text("".join(lines))
        path.chmod(0o644)  # the folder above is closed to others

    def _wait_until_ready(self, process: subprocess.Popen[Any]) -> None:
        """As pg_ctl does: the postmaster writes its state into postmaster.pid."""
        deadline = time.monotonic() + _START_TIMEOUT_S
        while process.poll() is None:
            try:
                lines = (self.data_dir / "postmaster.pid").read_text().split("\n")
            except (FileNotFoundError, PermissionError):
                lines = []
            ours = len(lines) > _READY_LINE and lines[0] == str(process.pid)
            if ours and lines[_READY_LINE].strip() == "ready":
                return
            if time.monotonic() > deadline:
                raise ServerStartFailed(
                    f"{self._programs} was not ready after {_START_TIMEOUT_S:.0f} s",
                    log_tail=self.log_tail(_TAIL_LINES),
                )
            time.sleep(_POLL_S)
        tail = self.log_tail(_TAIL_LINES)
        if any(disk.NO_SPACE in line for line in tail):
            raise disk.disk_full(self.data_dir, "start a server")
        raise ServerStartFailed(
            f"{self._programs} ended while it started, with {_ending(process.returncode)}",
            log_tail=tail,
        )

    def _abandon_start(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGQUIT)
            try:
                process.wait(timeout=10)  # a postmaster kills its stuck children after 5 s
            except subprocess.TimeoutExpired:
                process.kill()

    def stop(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        """
        Stop the server.

        Args:
            mode: "fast" ends the sessions and writes a checkpoint; "immediate" is a crash, after
                which the next start recovers from the WAL. A server that is not running is fine,
                but for "fast" it must not have ended by itself.

        Raises:
            LabError: The server had ended by itself, or does not end.
        """
        process = self._process
        if process is None:
            return
        if process.poll() is not None:
            self._process = None
            if mode == "immediate":
                return
            raise LabError(
                f"the server of cluster {self.name} ended by itself, with "
                f"{_ending(process.returncode)}; its log ends with:\n"
                + "\n".join(self.log_tail(_TAIL_LINES))
            )
        process.send_signal(signal.SIGINT if mode == "fast" else signal.SIGQUIT)
        try:
            process.wait(timeout=_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            raise LabError(
                f"the server of cluster {self.name} did not stop in {_STOP_TIMEOUT_S:.0f} s"
            ) from error
        self._process = None
        if mode == "fast" and process.returncode != 0:
            raise LabError(
                f"the server of cluster {self.name} did not stop cleanly, it ended with "
                f"{_ending(process.returncode)}; its log ends with:\n"
                + "\n".join(self.log_tail(_TAIL_LINES))
            )

    def remove(self) -> None:
        """Stop the server if it runs, and remove the cluster's files."""
        if self.running:
            self.stop("immediate")
        self._process = None
        shutil.rmtree(self.data_dir.parent)

    # Access

    def connect(self, dbname: str = "postgres", **kwargs: Any) -> psycopg.Connection[Any]:
        """
        Open a session as the superuser, in autocommit mode; `kwargs` as for `psycopg.connect`.

        Nothing of the user's PG* variables takes part.
        """
        import psycopg  # noqa: PLC0415 - loads libpq; finding programs does not need it

        parameters: dict[str, Any] = {
            "host": str(self._run.socket_dir),
            "port": self.port,
            "user": "postgres",
            "dbname": dbname,
            "application_name": APPLICATION_NAME,
            "autocommit": True,
        }
        with without_postgres_variables():
            return psycopg.connect(**(parameters | kwargs))

    def client_env(self) -> dict[str, str]:
        """The whole environment for a client program of this cluster, database `postgres`."""
        return client_environment() | {
            "PGHOST": str(self._run.socket_dir),
            "PGPORT": str(self.port),
            "PGUSER": "postgres",
            "PGDATABASE": "postgres",
            "PGAPPNAME": APPLICATION_NAME,
        }

    def relation_path(self, filepath: str) -> Path:
        """Path of the file that `pg_relation_filepath` named, which is relative to the data."""
        path = self.data_dir / filepath
        assert not os.path.isabs(filepath), filepath  # noqa: PTH117 - text from the server
        assert ".." not in path.parts, filepath
        return path

    def log_tail(self, line_count: int = _TAIL_LINES) -> tuple[str, ...]:
        """The last lines of the server's log, none from before the last start."""
        try:
            with self.log_path.open("rb") as log:
                # Enough for any tail that we show, however long the log has become.
                size = log.seek(0, os.SEEK_END)
                log.seek(max(self._log_start_bytes, size - 1000 * line_count))
                text = log.read().decode(errors="replace")
        except FileNotFoundError:
            return ()
        return tuple(text.splitlines()[-line_count:])


def _ending(returncode: int) -> str:
    if returncode >= 0:
        return f"exit code {returncode}"
    return f"signal {signal.Signals(-returncode).name}"
