"""
The place where trials run: a throw-away host, or a database of our own on somebody's server.

A `Shape` is a loaded database that several trials start from. A throw-away host loads it once,
stops the server and keeps the cluster; each trial runs on a copy. On a borrowed server each trial
loads anew, which gives the same pages and takes longer.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pgheadroom.errors import DiskFull, HeadroomError, LabError
from pgheadroom.lab.checkpoints import checkpoint
from pgheadroom.servers import Cluster, Host, find_client
from pgheadroom.types import PgVersion
from pgheadroom.units import show_bytes

if TYPE_CHECKING:
    import psycopg

DATABASE = "postgres"
"""The database under test; every further one is 300 files more to copy for each trial."""

SAMPLER_DATABASE = "template1"
"""What samples beside a run connects here: a snapshot in the database under test would hold its
horizon."""

KEPT_COPY_MAX_BYTES = 1024**3
"""A used copy of a shape up to this size is kept for the next trial, which restores it; above,
copying dominates anyway and the room may be missing (arbitrary)."""

CLUSTER_OVERHEAD_BYTES = 350 * 1024**2
"""Catalogs (40 MiB) and the WAL that a load leaves (max_wal_size below, and a little more)."""

LOAD_SETTINGS = {
    "autovacuum": "off",
    "fsync": "off",
    "full_page_writes": "off",
    "checkpoint_timeout": "1d",
    # A checkpoint while loading does no harm, gigabytes of recycled WAL in every copy would.
    "max_wal_size": "256MB",
    "min_wal_size": "32MB",
    "synchronize_seqscans": "off",
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "max_parallel_maintenance_workers": "0",
    "maintenance_work_mem": "256MB",
}


class Running(Protocol):
    """A running server with a loaded database, as an experiment sees it."""

    version: PgVersion
    scratch: Path
    assumed: dict[str, str]
    host: Host | None
    cluster: Cluster | None

    def connect(self, dbname: str | None = None) -> psycopg.Connection[Any]:
        """Connect in autocommit mode, to the database under test if no other is named."""
        ...

    def checkpoint(self) -> None:
        """Write everything out, so that the next change of each page is its first."""
        ...

    def run_client(self, arguments: Sequence[str], *, timeout_s: float) -> str:
        """Run a client program on the database under test and return what it printed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """
    A loaded database: its name, how to load it, about how many bytes it takes.

    `server` is for a run on several servers: the level of that factor. `data_checksums` is what
    the cluster is initialised with, None what initdb does by default; a borrowed server has its
    own.
    """

    name: str
    load: Callable[[Running], None]
    bytes_expected: int
    load_settings: Mapping[str, str] = field(default_factory=dict)
    server: str | None = None
    data_checksums: bool | None = None


class Place(Protocol):
    """Where trials run."""

    version: PgVersion
    throw_away: bool
    memory_bytes: int
    contrib: frozenset[str]
    folder: Path | None

    def running(self, shape: Shape, settings: Mapping[str, str]) -> AbstractContextManager[Running]:
        """A server with the shape loaded and the settings in force, for one trial."""
        ...

    def drop(self, shape_name: str) -> None:
        """Free what a shape keeps: no further trial needs it."""
        ...


def memory_bytes() -> int:
    """Physical memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@contextmanager
def translated_errors(cluster: Cluster | None, folder: Path | None) -> Iterator[None]:
    """Turn what a server says while it works for us into our errors, with its log."""
    import psycopg  # noqa: PLC0415 - loads libpq, which most commands do not need

    try:
        yield
    except HeadroomError:
        raise
    except psycopg.errors.DiskFull as error:
        path = folder or Path("/")
        raise DiskFull(
            f"the server ran out of disk space: {error}; free some, or let PGHEADROOM_TMPDIR name "
            "a folder on a larger file system",
            path=path,
            free_bytes=os.statvfs(path).f_bavail * os.statvfs(path).f_frsize,
        ) from error
    except psycopg.Error as error:
        said = "" if cluster is None else "\n".join(f"  | {line}" for line in cluster.log_tail(8))
        raise LabError(
            f"the server under test failed: {error}"
            + (f"\nIts log ends with:\n{said}" if said else "")
        ) from error


class _OwnRunning:
    """A running cluster of a throw-away host."""

    def __init__(self, host: Host, cluster: Cluster, scratch: Path) -> None:
        self.host: Host | None = host
        self.cluster: Cluster | None = cluster
        self._host, self._own = host, cluster
        self.version = cluster.version
        self.scratch = scratch
        self.assumed: dict[str, str] = {}

    def connect(self, dbname: str | None = None) -> psycopg.Connection[Any]:
        return self._own.connect(dbname or DATABASE)

    def checkpoint(self) -> None:
        with self.connect() as connection:
            checkpoint(connection, self.version)

    def run_client(self, arguments: Sequence[str], *, timeout_s: float) -> str:
        program, _ = find_client(arguments[0], self._host.programs)
        done = self._host.run(
            [program, *arguments[1:], DATABASE], env=self._own.client_env(), timeout=timeout_s
        )
        return client_output(arguments, done.returncode, done.stdout, done.stderr)


def client_output(arguments: Sequence[str], returncode: int, stdout: str, stderr: str) -> str:
    """What a client program printed; raises LabError with its last words when it failed."""
    if returncode != 0:
        last = "\n".join(f"  | {line}" for line in stderr.strip().splitlines()[-8:])
        raise LabError(
            f"{arguments[0]} ended with exit code {returncode}; "
            f"its command: {' '.join(arguments)}\nIt said:\n{last}"
        )
    return stdout


class OwnPlace:
    """A throw-away host: shapes are loaded once and copied."""

    throw_away = True

    def __init__(self, host: Host) -> None:
        self._host = host
        self._shapes: dict[str, Cluster] = {}
        self._copies: dict[str, Cluster] = {}
        self._trials = 0
        self.version = host.programs.version
        self.contrib = host.programs.contrib
        self.memory_bytes = memory_bytes()
        self.folder: Path | None = host.folder

    def _prepared(self, shape: Shape) -> Cluster:
        if shape.name not in self._shapes:
            self._require_room(shape.bytes_expected)
            cluster = self._host.cluster(
                f"shape-{len(self._shapes)}-{self._trials}", data_checksums=shape.data_checksums
            )
            cluster.start({**LOAD_SETTINGS, **shape.load_settings})
            try:
                with translated_errors(cluster, self.folder):
                    shape.load(_OwnRunning(self._host, cluster, self._host.scratch))
                cluster.stop()
            except BaseException:
                cluster.remove()
                raise
            self._shapes[shape.name] = cluster
        return self._shapes[shape.name]

    def _require_room(self, bytes_expected: int) -> None:
        """Two copies: the shape that stays and the one that a trial works on; each with its WAL."""
        needed_bytes = 2 * (bytes_expected + CLUSTER_OVERHEAD_BYTES)
        status = os.statvfs(self._host.folder)
        free_bytes = status.f_bavail * status.f_frsize
        if free_bytes < needed_bytes:
            raise DiskFull(
                f"{self._host.folder} has {show_bytes(free_bytes)} free, and a table of this "
                f"experiment needs about {show_bytes(needed_bytes)}: take a smaller `scale`, or "
                "let PGHEADROOM_TMPDIR name a folder on a larger file system",
                path=self._host.folder,
                needed_bytes=needed_bytes,
                free_bytes=free_bytes,
                mentions=("scale",),
            )

    @contextmanager
    def running(self, shape: Shape, settings: Mapping[str, str]) -> Iterator[Running]:
        """A copy of the shape's cluster, started, and removed afterwards."""
        prepared = self._prepared(shape)
        self._trials += 1
        cluster = self._copies.pop(shape.name, None)
        if cluster is None:
            cluster = self._host.copy(prepared, f"trial-{self._trials}")
        else:
            self._host.restore(cluster, prepared)
        scratch = self._host.scratch / f"trial-{self._trials}"
        scratch.mkdir()
        try:
            cluster.start(settings)
            with translated_errors(cluster, self.folder):
                yield _OwnRunning(self._host, cluster, scratch)
            cluster.stop("immediate")
            if shape.bytes_expected <= KEPT_COPY_MAX_BYTES:
                self._copies[shape.name] = cluster
        finally:
            if shape.name not in self._copies:
                cluster.remove()
            shutil.rmtree(scratch)

    def drop(self, shape_name: str) -> None:
        """Remove the shape's cluster and the copy of it."""
        for clusters in (self._shapes, self._copies):
            cluster = clusters.pop(shape_name, None)
            if cluster is not None:
                cluster.remove()
