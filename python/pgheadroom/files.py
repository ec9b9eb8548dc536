"""
Files that are replaced whole or not at all, and leave nothing behind when the program is killed.

The new content goes into a file without a name where the file system has that (O_TMPFILE): a kill
leaves nothing of it. To take the place of another file it needs a name for a moment; whoever is
killed just then leaves `.NAME.<16 digits>.partial`, which the next writer of the same file removes.
A name that a living writer holds is locked, and stays.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from pgheadroom.errors import DiskFull, InputError

_NO_UNNAMED = (
    errno.EOPNOTSUPP,
    errno.EISDIR,
    errno.ENOENT,
    errno.EINVAL,
    errno.EPERM,
    errno.EXDEV,
    errno.ELOOP,
)
"""How file systems and kernels say that they have no unnamed files, or cannot name
them later."""


def write_atomically(path: Path, text: str) -> None:
    """
    Replace a file whole or not at all, synced.

    A symbolic link stays and its target is replaced; what is no regular file, a pipe or a device,
    is written to as it is.

    Raises:
        DiskFull: No room; the old file is untouched.
        InputError: The file cannot be written.
    """
    try:
        target = path.resolve()
        if target.exists() and not target.is_file():
            target.write_text(text, encoding="utf-8")
            return
        _replace(target, text.encode())
    except OSError as error:
        raise file_error(error, path) from error


def _replace(target: Path, content: bytes) -> None:
    sweep(target)
    partial = target.with_name(f".{target.name}.{secrets.token_hex(8)}.partial")
    with _opened(target.parent, os.O_RDONLY | os.O_DIRECTORY) as folder:
        try:
            if not _replace_by_unnamed(partial, target, content, folder):
                with _named(partial) as descriptor:
                    _write(descriptor, content)
                    partial.replace(target)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        os.fsync(folder)


def _replace_by_unnamed(partial: Path, target: Path, content: bytes, folder: int) -> bool:
    """Whether it was done: not where there are no unnamed files."""
    flag = getattr(os, "O_TMPFILE", None)
    if flag is None:
        return False
    try:
        with _opened(target.parent, flag | os.O_WRONLY) as descriptor:
            _write(descriptor, content)
            # Locked before it has a name: nobody takes it for that of a dead writer.
            _lock(descriptor)
            # With a folder it is linkat, which follows the link of /proc to the file itself.
            os.link(f"/proc/self/fd/{descriptor}", partial.name, dst_dir_fd=folder)
            partial.replace(target)
    except OSError as error:
        if error.errno in _NO_UNNAMED and not partial.exists():
            return False
        raise
    return True


def sweep(target: Path) -> None:
    """Remove what killed writers of a file left beside it; what a living one holds stays."""
    ours = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{16}}\.partial")
    with contextlib.suppress(OSError):
        left = [entry.path for entry in os.scandir(target.parent) if ours.fullmatch(entry.name)]
        for path in left:
            _remove_if_dead(Path(path))


def _remove_if_dead(path: Path) -> None:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    with contextlib.suppress(OSError), _opened(path, flags) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()  # one that became its target meanwhile has this name no more


@contextlib.contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o666)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _named(partial: Path) -> Iterator[int]:
    """A new file under a name nobody can have prepared, locked."""
    while True:
        with _opened(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as descriptor:
            _lock(descriptor)
            # A sweeper that came before the lock has taken it for a dead writer's.
            if partial.exists():
                yield descriptor
                return


def _lock(descriptor: int) -> None:
    with contextlib.suppress(OSError):  # a file system without locks: nobody sweeps there either
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def _write(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    os.fsync(descriptor)


def file_error(error: OSError, path: Path) -> DiskFull | InputError:
    """What a failure to write a file is to its user."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        free_bytes = shutil.disk_usage(path.parent).free
        if path.exists() and not path.is_file():  # a device, a pipe: the folder's room is not its
            return InputError(f"cannot write {path}: {error.strerror}")
        return DiskFull(
            f"no room to write {path}: {free_bytes / 1e6:,.0f} MB are free; free some and run the "
            "same command again",
            path=path,
            free_bytes=free_bytes,
        )
    return InputError(f"cannot write {path}: {error.strerror}")
