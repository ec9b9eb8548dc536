"""
The watchdog of one run: when the run is over, however it ended, nothing of it stays.

Run as a program of its own (`python -I -S watchdog.py`), so it knows the standard library only and
imports nothing of ours. It leads its own session, hence a Ctrl-C or a `kill -9` aimed at the run's
process group does not reach it. Its standard input is a pipe: one line of JSON, the job, and then
silence. The run keeps the other end open; end of file therefore means that the run is over, whether
it closed the pipe on purpose or was killed. Then, in this order:

1. end the processes of the run: postmasters by SIGQUIT, so that they remove their shared memory,
   everything else by SIGKILL, and what is left after a while by SIGKILL as well;
2. remove shared memory that a postmaster left because it was itself killed;
3. remove the socket folder, if it lies elsewhere, and the run folder; its lock file last.

The watchdog holds the run's lock (`run_folder.py`) until all of that is done. If it is killed too,
the lock is free, and the next run starts another watchdog for the stale folder.

Left out: systems without /proc, where processes of a dead run cannot be told from others.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import stat
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path

MARKER = "PGHEADROOM_RUN"
"""Environment variable of every process that a run starts; its value is the run folder."""

# A PostgreSQL server overwrites its environment when it sets its process title, so servers are
# known by their working directory, the data directory. The list keeps a user's shell that stands
# in the run folder alive.
_PROGRAMS = frozenset({"postgres", "postmaster", "initdb"})
_QUIT_GRACE_S = 10.0  # a postmaster kills its own stuck children after 5 s (postmaster.c)
_KILL_GRACE_S = 20.0  # a killed process in disk sleep may need this long; arbitrary
_POLL_S = 0.02


def main() -> int:
    """Wait until the run is over, then remove everything of it; 1 if something remained."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    os.chdir("/")
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        return 0  # The run died before it had anything to guard: its folder is swept later.
    job = json.loads(line)
    while os.read(sys.stdin.fileno(), 4096):
        pass
    problems = clean_up(
        Path(job["folder"]),
        server_ids=None if job["server_ids"] is None else tuple(job["server_ids"]),
        socket_folder=None if job["socket_folder"] is None else Path(job["socket_folder"]),
    )
    with contextlib.suppress(OSError):  # nobody reads when the run was killed
        os.write(sys.stdout.fileno(), "\n".join(problems).encode(errors="replace"))
    return 1 if problems else 0


def clean_up(
    folder: Path, *, server_ids: tuple[int, int] | None, socket_folder: Path | None
) -> list[str]:
    """
    End the processes of the run in `folder` and remove all that it left.

    Args:
        folder: The run folder, as /proc shows it (absolute, no symbolic links).
        server_ids: uid and gid of its servers when they differ from ours (we are root then).
        socket_folder: Folder of the sockets if it lies outside `folder`.

    Returns:
        What could not be done, in words; empty when nothing of the run is left.
    """
    problems: list[str] = []
    alive = end_processes(folder)
    if server_ids is not None:
        # In a container root often lacks CAP_SYS_PTRACE and cannot see where another user's
        # processes work; as that user it can. It also bounds what can be hit.
        alive += _end_processes_as(folder, *server_ids)
    if alive:
        problems.append(f"processes {sorted(set(alive))} of {folder} could not be ended")
    owner = os.geteuid() if server_ids is None else server_ids[0]
    for data_dir in sorted(folder.glob("clusters/*/data")):
        release_shared_memory(data_dir, owner)
    if socket_folder is not None:
        problems += _remove_tree(socket_folder, owners={os.geteuid(), owner})
    return problems + remove_run_folder(folder)


# Processes


def _belongs(pid: int, folder: str) -> bool:
    """Whether process `pid` is one that the run in `folder` started; False if not to be seen."""
    try:
        process = Path("/proc") / str(pid)
        if (process / "exe").readlink().name.removesuffix(" (deleted)") in _PROGRAMS:
            cwd = str((process / "cwd").readlink()).removesuffix(" (deleted)")
            if cwd == folder or cwd.startswith(folder + "/"):
                return True
        return os.fsencode(f"{MARKER}={folder}") in (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return False  # Gone meanwhile, a zombie, or another user's.


def processes_of(folder: Path) -> list[int]:
    """Pids of all live processes that the run in `folder` started, as far as we may see them."""
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
    except OSError:
        return []
    return [pid for pid in pids if pid != os.getpid() and _belongs(pid, str(folder))]


def _parent_and_name(pid: int) -> tuple[int, str]:
    """Pid of the parent, and the program's name; (0, "") when the process is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return 0, ""
    # The name stands in parentheses and may contain anything, parentheses too.
    name, _, rest = text.partition("(")[2].rpartition(")")
    return int(rest.split()[1]), name


def _signal(pid: int, number: signal.Signals, folder: Path) -> None:
    """Send a signal, but never to a later process that was given the same pid."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    except (AttributeError, OSError):  # before Linux 5.3, or forbidden: accept the tiny race
        with contextlib.suppress(OSError):
            os.kill(pid, number)
        return
    try:
        if _belongs(pid, str(folder)):
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(handle, number)
    finally:
        os.close(handle)


def end_processes(folder: Path) -> list[int]:
    """End every process of the run that we can see; returns the pids that outlived SIGKILL."""
    began = time.monotonic()
    asked: set[int] = set()
    while pids := processes_of(folder):
        elapsed_s = time.monotonic() - began
        if elapsed_s > _QUIT_GRACE_S + _KILL_GRACE_S:
            return pids
        family = set(pids)
        for pid in pids:
            parent, name = _parent_and_name(pid)
            if elapsed_s > _QUIT_GRACE_S or name not in ("postgres", "postmaster"):
                _signal(pid, signal.SIGKILL, folder)
            elif parent not in family and pid not in asked:
                # A postmaster ends its own children; asking them too would look like a crash.
                asked.add(pid)
                _signal(pid, signal.SIGQUIT, folder)
        time.sleep(_POLL_S)
    return []


def _end_processes_as(folder: Path, uid: int, gid: int) -> list[int]:
    """`end_processes` as another user, in a child process; only for a single-threaded root."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(gid)
            os.setuid(uid)
            os.write(writer, json.dumps(end_processes(folder)).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return [int(pid) for pid in json.loads(answer)] if answer else []


# Shared memory

_IPC_RMID, _SHM_RDONLY = 0, 0o10000  # <sys/ipc.h>, <sys/shm.h>
# PGShmemHeader, src/include/storage/pg_shmem.h, the same from 15 to 18: magic, creator's pid,
# total size, free offset, dsm_control.
_SHMEM_HEADER = struct.Struct("=iiQQI")
_SHMEM_MAGIC = 679834894
# dsm_control_header and dsm_control_item, src/backend/storage/ipc/dsm.c, the same from 14 to 18:
# magic, nitems, maxitems, (padding) / handle, refcnt, first_page, npages, address, pinned.
_DSM_HEADER = struct.Struct("=III4x")
_DSM_ITEM = struct.Struct("=IIQQQ?7x")
_DSM_MAGIC = 0x9A503D32


def release_shared_memory(data_dir: Path, owner: int) -> None:
    """
    Remove shared memory that the server of `data_dir` left because it was killed by SIGKILL.

    A server that ends in any other way removes it itself, and its postmaster.pid. Otherwise that
    file's seventh line names the System V segment, which names the control segment of the dynamic
    ones (files in /dev/shm). This is what the next start of that server would do
    (`PGSharedMemoryCreate`, sysv_shmem.c, and `dsm_cleanup_using_control_segment`, dsm.c). Whatever
    does not look exactly as expected is left alone.
    """
    try:
        lines = (data_dir / "postmaster.pid").read_text().split("\n")
        postmaster, segment = int(lines[0]), int(lines[6].split()[1])
    except (OSError, ValueError, IndexError):
        return
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    libc.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
    libc.shmdt.argtypes = [ctypes.c_void_p]
    address = libc.shmat(segment, None, _SHM_RDONLY)
    if address in (None, ctypes.c_void_p(-1).value):
        return
    try:
        header = ctypes.string_at(address, _SHMEM_HEADER.size)
    finally:
        libc.shmdt(address)
    magic, creator, _, _, dsm_control = _SHMEM_HEADER.unpack(header)
    if magic != _SHMEM_MAGIC or creator != postmaster:
        return
    if dsm_control != 0:
        for handle in [*_dsm_handles(dsm_control, owner), dsm_control]:
            with contextlib.suppress(OSError):
                path = _dsm_path(handle)
                if path.lstat().st_uid == owner:
                    path.unlink()
    libc.shmctl(segment, _IPC_RMID, None)


def _dsm_path(handle: int) -> Path:
    return Path(f"/dev/shm/PostgreSQL.{handle}")  # noqa: S108 - PostgreSQL's choice, dsm_impl.c


def _dsm_handles(dsm_control: int, owner: int) -> Iterator[int]:
    """Handles of the dynamic segments that a control segment lists as being in use."""
    path = _dsm_path(dsm_control)
    try:
        if path.lstat().st_uid != owner:
            return
        content = path.read_bytes()
    except OSError:
        return
    if len(content) < _DSM_HEADER.size:
        return
    magic, item_count, _ = _DSM_HEADER.unpack_from(content)
    if magic != _DSM_MAGIC or _DSM_HEADER.size + item_count * _DSM_ITEM.size > len(content):
        return
    for index in range(item_count):
        handle, refcount, *_ = _DSM_ITEM.unpack_from(
            content, _DSM_HEADER.size + index * _DSM_ITEM.size
        )
        if refcount > 0 and handle % 2 == 0:  # odd handles lie in the main segment
            yield handle


# Folders


def _remove_tree(folder: Path, *, owners: set[int]) -> list[str]:
    """Remove a folder that belongs to one of `owners`; it may be gone already."""
    last_error: OSError | None = None
    for _ in range(5):  # a file may appear while we remove: look again
        try:
            found = folder.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid not in owners:
                return [f"{folder} is not a folder of ours and was left alone"]
            shutil.rmtree(folder)
        except FileNotFoundError:
            return []
        except OSError as error:
            last_error = error
            time.sleep(_POLL_S)
        else:
            return []
    return [f"{folder} could not be removed: {last_error}"]


def remove_run_folder(folder: Path) -> list[str]:
    """
    Remove a run folder, the lock file last.

    So a folder without a lock file is empty: if we are killed here, the next sweep either finds
    the lock and goes on, or an empty folder.
    """
    try:
        entries = sorted(folder.iterdir())
    except FileNotFoundError:
        return []
    problems = []
    for entry in entries:
        if entry.name in ("lock", "owner.json"):
            continue
        if entry.is_dir() and not entry.is_symlink():
            problems += _remove_tree(entry, owners={entry.lstat().st_uid})
        else:
            entry.unlink(missing_ok=True)
    if problems:
        return problems
    for name in ("owner.json", "lock"):
        (folder / name).unlink(missing_ok=True)
    try:
        folder.rmdir()
    except OSError as error:
        return [f"{folder} could not be removed: {error}"]
    return []


if __name__ == "__main__":
    sys.exit(main())
