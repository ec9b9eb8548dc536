"""
A host for throw-away clusters: one run folder with one watchdog, all clusters of a run inside it.

    with Host(find_programs("18")) as host:
        cluster = host.cluster("main")
        cluster.start({"shared_buffers": "1GB"})
        with cluster.connect() as connection:
            ...

At the end, however it comes, no process, no file and no shared memory of it is left.
"""

from __future__ import annotations

import functools
import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pgheadroom.errors import InputError
from pgheadroom.servers import disk
from pgheadroom.servers.cluster import Cluster
from pgheadroom.servers.programs import ServerPrograms, runnable
from pgheadroom.servers.restore import restore_folder
from pgheadroom.servers.run_folder import RunFolder
from pgheadroom.servers.templates import put_new_cluster
from pgheadroom.servers.user import arguments, server_user

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_FIRST_PORT = 5432  # names the socket only: there is no TCP


class Host:
    """
    The place where the clusters of one run live; a context manager, used once.

    Args:
        programs: Which PostgreSQL.
        data_checksums: None: as that version's initdb does by default (on from 18).
        label: A word about the run, kept in the run folder for whoever finds it.
    """

    def __init__(
        self, programs: ServerPrograms, *, data_checksums: bool | None = None, label: str = "lab"
    ) -> None:
        self.programs = programs
        self.data_checksums = data_checksums
        self._server_programs = programs
        self._run = RunFolder(label=label, user=server_user())
        self._cluster_count = 0

    @property
    def folder(self) -> Path:
        """The run folder; everything in it goes at the end."""
        return self._run.path

    @property
    def scratch(self) -> Path:
        """Working directory of client programs."""
        return self._run.scratch

    def __enter__(self) -> Host:
        self._server_programs = runnable(self.programs, self._run.user)
        self._run.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop everything and remove the run folder; again: nothing."""
        self._run.close()

    def cluster(self, name: str, *, data_checksums: bool | None = None) -> Cluster:
        """
        Make a new, stopped cluster: a copy of the cached template.

        Args:
            name: Its name, and its folder's.
            data_checksums: Whether it has checksums; None: as the host's clusters have them.

        Raises:
            InputError: The name is taken, or not one for a folder.
            DiskFull: No room.
        """
        cluster = self._new(name)
        with disk.full_means(self.folder, f"make cluster {name}"):
            self._run.make_folder(cluster.data_dir.parent)
            put_new_cluster(
                self._run,
                self._server_programs,
                cluster.data_dir,
                data_checksums=self.data_checksums if data_checksums is None else data_checksums,
            )
        return cluster

    def copy(self, source: Cluster, name: str) -> Cluster:
        """
        Make another, stopped cluster with the same data; the source must be stopped.

        Blocks are shared where the file system can. The port, and so the socket, is another.

        Raises:
            DiskFull: No room.
        """
        assert not source.running, f"cluster {source.name} must be stopped before it is copied"
        cluster = self._new(name)
        disk.require_free(
            self.folder, disk.folder_bytes(source.data_dir), f"copy cluster {source.name}"
        )
        with disk.full_means(self.folder, f"copy cluster {source.name}"):
            self._run.make_folder(cluster.data_dir.parent)
        disk.copy_folder(source.data_dir, cluster.data_dir, self._run.run)
        # Left by a server that was killed; it names the original's shared memory.
        (cluster.data_dir / "postmaster.pid").unlink(missing_ok=True)
        return cluster

    def restore(self, cluster: Cluster, source: Cluster) -> None:
        """
        Make a stopped cluster equal to `source`, of which it is a copy, again.

        Much quicker than another copy: only what has changed is copied.

        Raises:
            DiskFull: No room.
        """
        assert not source.running, f"cluster {source.name} must be stopped to restore from it"
        assert not cluster.running, f"cluster {cluster.name} must be stopped to be restored"
        run = functools.partial(self._run.run, **arguments(self._run.user))
        restore_folder(source.data_dir, cluster.data_dir, run)
        (cluster.data_dir / "postmaster.pid").unlink(missing_ok=True)

    def _new(self, name: str) -> Cluster:
        if not _NAME.fullmatch(name):
            raise InputError(
                f"{name!r} is not a cluster's name: expected letters, digits, '.', '_' and '-'"
            )
        port = _FIRST_PORT + self._cluster_count
        cluster = Cluster(self._run, self._server_programs, name, port)
        if cluster.data_dir.parent.exists():
            raise InputError(f"there is a cluster {name!r} in this run already")
        self._cluster_count += 1
        return cluster

    def run(
        self,
        args: Iterable[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        input: str | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> subprocess.CompletedProcess[str]:
        """Run a client program to its end; `RunFolder.run`."""
        return self._run.run(args, env=env, input=input, timeout=timeout, **options)

    def popen(
        self, args: Iterable[str | Path], *, env: Mapping[str, str] | None = None, **options: Any
    ) -> subprocess.Popen[Any]:
        """Start a client program that does not outlive the run; `RunFolder.popen`."""
        return self._run.popen(args, env=env, **options)
