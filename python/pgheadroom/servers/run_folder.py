"""
The run folder: everything that one run puts on disk, and the watchdog that removes it.

    PARENT/pgheadroom-XXXXXXXX/
        lock           held by the run and its watchdog (`locked_folder.py`)
        owner.json     what a later sweep must know to clean up
        clusters/      one folder per cluster (`cluster.py`)
        s/             sockets; in /tmp if this path is too long or odd for them
        scratch/       working directory of client programs

PARENT is `$PGHEADROOM_TMPDIR`, else `$TMPDIR`, else /var/tmp: a cluster may have gigabytes, and
/tmp is memory on many systems. The run's programs carry the folder in an environment variable, and
its servers work in it, so that the watchdog finds them.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from pgheadroom.errors import LabError
from pgheadroom.servers import disk, watchdog
from pgheadroom.servers.death import ends_with_us
from pgheadroom.servers.environment import client_environment
from pgheadroom.servers.locked_folder import LockedFolder, abandoned_folders, random_name
from pgheadroom.servers.signals import held_back
from pgheadroom.servers.user import ServerUser, can_traverse

_log = logging.getLogger(__name__)

# sun_path has 108 bytes on Linux and 104 on macOS, with the final NUL; PostgreSQL appends nothing.
_SOCKET_PATH_BYTES_MAX = 99
_SOCKET_NAME = "/.s.PGSQL.65535"
# libpq splits a host at commas, and PostgreSQL its list of folders; nothing else odd is tried.
_PLAIN_PATH = re.compile(r"[A-Za-z0-9._/+~-]+")
_CLEAN_UP_TIMEOUT_S = 120.0  # the watchdog waits 30 s for processes, then removes; arbitrary
_DEFAULT_PARENT = Path("/var/tmp")  # noqa: S108 - names in it are random, and locked


class RunFolder:
    """One run's folder with its watchdog; a context manager after which nothing of it is left."""

    def __init__(self, *, label: str, user: ServerUser | None) -> None:
        self.label = label
        self.user = user
        self.path = Path()
        self.socket_dir = Path()
        self._locked: LockedFolder | None = None
        self._watchdog: _Watchdog | None = None
        self._processes: list[subprocess.Popen[Any]] = []
        self._pid = os.getpid()
        self._finalizer: weakref.finalize[Any, Any] | None = None

    @property
    def scratch(self) -> Path:
        """Working directory of client programs; files that they write go with the run."""
        return self.path / "scratch"

    def __enter__(self) -> RunFolder:
        assert self._locked is None, "a run folder is used once"
        parent = run_parent(self.user)
        sweep(parent)
        self._pid = os.getpid()
        job: dict[str, Any] = {}

        def fill(hidden: Path) -> None:
            public = parent / hidden.name.removeprefix(".")
            self.socket_dir, outside = _socket_dir(public)
            job.update(
                folder=str(public),
                server_ids=None if self.user is None else [self.user.uid, self.user.gid],
                socket_folder=str(self.socket_dir) if outside else None,
            )
            about = job | {"pid": os.getpid(), "label": self.label, "started_at": time.time()}
            (hidden / "owner.json").write_text(json.dumps(about, indent=1))
            for name in ("clusters", "scratch"):
                (hidden / name).mkdir(mode=0o700)
                if name == "clusters":
                    _open_for(self.user, hidden / name)
            _open_for(self.user, hidden)

        # The folder's own mode is set last by `create`; _open_for has chosen its group.
        mode = 0o700 if self.user is None else 0o710
        try:
            with disk.full_means(parent, "make a run folder"):
                self._locked = LockedFolder.create(parent, fill=fill, mode=mode)
            self.path = self._locked.path
            self._watchdog = _Watchdog(job, self._locked.lock_fd)
            _open_runs.add(self)
            self._finalizer = weakref.finalize(self, _Watchdog.finish, self._watchdog)
            self.socket_dir.mkdir(mode=0o700)
            if self.user is not None:
                os.chown(self.socket_dir, self.user.uid, self.user.gid)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """
        End every process of the run and remove the folder; again: nothing.

        Raises:
            LabError: Something could not be ended or removed; it is named.
        """
        locked, self._locked = self._locked, None
        if locked is None or os.getpid() != self._pid:
            return  # In a forked child the run is the parent's.
        _open_runs.discard(self)
        if self._finalizer is not None:
            self._finalizer.detach()
        try:
            problems = self._clean_up(locked)
        finally:
            locked.unlock()
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=5)
        if problems:
            raise LabError("a throw-away server was not cleaned up: " + "; ".join(problems))

    def _clean_up(self, locked: LockedFolder) -> list[str]:
        if self._watchdog is None:  # interrupted before there was one: nothing was started
            shutil.rmtree(locked.path, ignore_errors=True)
            return []
        problems = self._watchdog.finish()
        if problems or locked.path.exists():  # it was killed: another one does its work
            problems = _Watchdog(self._watchdog.job, locked.lock_fd).finish()
        return problems

    # Programs

    def make_folder(self, path: Path) -> Path:
        """Make a folder that the server's user can go through, but nobody else."""
        path.mkdir(mode=0o700)
        _open_for(self.user, path)
        return path

    def run(
        self,
        args: Iterable[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        input: str | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> subprocess.CompletedProcess[str]:
        """
        Run a program to its end as `subprocess.run` does, with its output as text.

        Its working directory is `scratch`, unless `cwd` is given. If the run is interrupted, the
        program is killed; if we are killed, the watchdog kills it.
        """
        process = self.popen(
            args,
            env=env,
            stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            **options,
        )
        with process:
            try:
                output, errors = process.communicate(input, timeout=timeout)
            except BaseException:
                process.kill()
                raise
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    def popen(
        self,
        args: Iterable[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        at_our_end: signal.Signals = signal.SIGKILL,
        **options: Any,
    ) -> subprocess.Popen[Any]:
        """
        Start a program that does not outlive the run.

        The watchdog sees to that, and the kernel where we are killed together with it: it sends
        the program `at_our_end`.

        It gets a session of its own, so that Ctrl-C reaches only us, who then end it. Without
        `env` it gets our environment without PG* variables.
        """
        environment = dict(client_environment() if env is None else env)
        environment[watchdog.MARKER] = str(self.path)
        options.setdefault("cwd", self.scratch)
        with held_back():
            process: subprocess.Popen[Any] = subprocess.Popen(
                [str(arg) for arg in args],
                env=environment,
                start_new_session=True,
                preexec_fn=ends_with_us(at_our_end),  # noqa: PLW1509 - two calls of the kernel's
                **options,
            )
            self._processes = [other for other in self._processes if other.returncode is None]
            self._processes.append(process)
        return process


class _Watchdog:
    """The watchdog process of a run, seen from the run."""

    def __init__(self, job: dict[str, Any], lock_fd: int) -> None:
        self.job = job
        self._pid = os.getpid()
        # -I -S: quick, and nothing of the user's environment can change what it does.
        command = [sys.executable, "-I", "-S", str(Path(watchdog.__file__))]
        try:
            self._process: subprocess.Popen[bytes] = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # else a pipe behind us would wait for it
                cwd="/",
                pass_fds=(lock_fd,),
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            raise LabError(f"the watchdog cannot be started ({command[0]}): {error}") from error
        self._lifeline().write(json.dumps(job).encode() + b"\n")

    def _lifeline(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    def forget(self) -> None:
        """In a forked child: let go of the lifeline, which would hide our parent's end."""
        self._lifeline().close()

    def finish(self) -> list[str]:
        """Cut the lifeline and wait until the watchdog has cleaned up; what it could not do."""
        if os.getpid() != self._pid:
            return []
        self._lifeline().close()
        # communicate() would flush the closed pipe; the report is shorter than a pipe's buffer.
        self._process.stdin = None
        try:
            report, _ = self._process.communicate(timeout=_CLEAN_UP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return [f"the watchdog (process {self._process.pid}) has not finished yet"]
        return [line for line in report.decode(errors="replace").split("\n") if line]


_open_runs: weakref.WeakSet[RunFolder] = weakref.WeakSet()


def _forget_in_child() -> None:
    for run in list(_open_runs):
        if run._watchdog is not None:
            run._watchdog.forget()
        if run._locked is not None:
            run._locked.unlock()
    _open_runs.clear()


# A pool of forked worker processes must not keep the lock and the lifeline of a dead parent.
os.register_at_fork(after_in_child=_forget_in_child)


def _open_for(user: ServerUser | None, folder: Path) -> None:
    """Let the server's user go through a folder of ours, by its group, and nobody else."""
    if user is not None:
        os.chown(folder, -1, user.gid)
        folder.chmod(0o710)


def _socket_dir(run: Path) -> tuple[Path, bool]:
    """Where the run's sockets go, and whether that is outside the run folder."""
    inside = run / "s"
    short = len(os.fsencode(inside)) + len(_SOCKET_NAME) <= _SOCKET_PATH_BYTES_MAX
    if short and _PLAIN_PATH.fullmatch(str(inside)):
        return inside, False
    return Path("/tmp") / f"pgh-{random_name()}", True  # noqa: S108 - short; mode 0700, random


def run_parent(user: ServerUser | None) -> Path:
    """
    The folder that run folders are made in.

    Raises:
        LabError: `PGHEADROOM_TMPDIR` names a folder that cannot be used.
    """
    given = os.environ.get("PGHEADROOM_TMPDIR")
    if given:
        folder = Path(given).expanduser().absolute().resolve()
        if not (os.access(folder, os.W_OK | os.X_OK) and can_traverse(user, folder)):
            who = "you" if user is None else f"the user {user.name}, who runs the server,"
            raise LabError(
                f"PGHEADROOM_TMPDIR={given} cannot be used: it must be an existing folder that you "
                f"can write and {who} can enter"
            )
        return folder
    for candidate in _candidate_parents():
        if os.access(candidate, os.W_OK | os.X_OK) and can_traverse(user, candidate):
            return candidate
    raise LabError(
        "no folder for temporary files can be used: set PGHEADROOM_TMPDIR to one that you, and "
        "the user that runs the server, can enter"
    )


def _candidate_parents() -> Iterator[Path]:
    given = os.environ.get("TMPDIR")
    for folder in ([Path(given)] if given else []) + [_DEFAULT_PARENT, Path(tempfile.gettempdir())]:
        yield folder.absolute().resolve()


def sweep(parent: Path) -> None:
    """
    Clean up after runs that were killed together with their watchdogs.

    Looks in `parent` and in the usual places. Only folders of ours whose lock is free are touched;
    a job that is not as we write it is left alone.
    """
    for place in dict.fromkeys([parent, *_candidate_parents()]):
        for folder in abandoned_folders(place):
            try:
                job = _job_of(folder.path)
                if job is None:
                    _log.warning("%s is not a run folder as we make them: left alone", folder.path)
                    continue
                _log.info("cleaning up after a run that was killed: %s", folder.path)
                for problem in _Watchdog(job, folder.lock_fd).finish():
                    _log.warning("%s", problem)
            finally:
                folder.unlock()


def _job_of(path: Path) -> dict[str, Any] | None:
    """What a dead run's `owner.json` says, if it can be believed."""
    try:
        about = json.loads((path / "owner.json").read_text())
        ids, socket_folder = about["server_ids"], about["socket_folder"]
    except FileNotFoundError:
        ids = socket_folder = None  # removed just before the lock: nothing else is left
    except (OSError, ValueError, TypeError, KeyError):
        return None
    if ids is not None and not (
        isinstance(ids, list) and len(ids) == 2 and all(type(id_) is int for id_ in ids)
    ):
        return None
    if socket_folder is not None and not str(socket_folder).startswith("/tmp/pgh-"):  # noqa: S108
        return None
    return {"folder": str(path), "server_ids": ids, "socket_folder": socket_folder}
