"""
A folder that somebody alive holds: the one way to tell a running run's folder from a dead one's.

The folder contains a file `lock`; whoever made it holds an flock on it. The kernel gives the lock
up when the last process that inherited it is gone, however it went. So a free lock means that
nobody is alive: no process ids that may be used again, and it holds between containers that share
the file system. The folder gets its name only once it is locked, so that nobody ever sees an
unlocked one of a live run.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

_PREFIX = "pgheadroom-"
_UNFINISHED = ".pgheadroom-"
_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
_NAME = re.compile(rf"{_PREFIX}[a-z0-9]{{8}}")
_UNFINISHED_NAME = re.compile(rf"\{_UNFINISHED}[a-z0-9]{{8}}")
_UNFINISHED_AGE_S = 60.0
"""Making a folder and locking it takes a millisecond; younger ones may be on the way. Arbitrary."""


def random_name() -> str:
    """Eight letters and digits."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(8))


class LockedFolder:
    """A folder of ours and the lock on it; as a context manager it removes the folder."""

    def __init__(self, path: Path, lock_fd: int) -> None:
        self.path = path
        self.lock_fd = lock_fd

    @classmethod
    def create(
        cls,
        parent: Path,
        *,
        unfinished: bool = False,
        fill: Callable[[Path], None] | None = None,
        mode: int = 0o755,
    ) -> LockedFolder:
        """
        Make a new folder in `parent` and lock it.

        Args:
            parent: An existing folder.
            unfinished: Give it a hidden name that `sweep_unfinished` looks for, not the public
                one of a run.
            fill: Puts into the folder what must be there when others can see it.
            mode: Its permissions.
        """
        name = random_name()
        hidden = parent / f"{_UNFINISHED}{name}"
        hidden.mkdir(mode=0o700)
        lock_fd = -1
        try:
            lock_fd = os.open(hidden / "lock", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if fill is not None:
                fill(hidden)
            hidden.chmod(mode)
            path = hidden if unfinished else parent / f"{_PREFIX}{name}"
            if path != hidden:
                assert not path.exists(), path
                hidden.rename(path)
        except BaseException:
            shutil.rmtree(hidden, ignore_errors=True)
            if lock_fd >= 0:
                os.close(lock_fd)
            raise
        return cls(path, lock_fd)

    def unlock(self) -> None:
        """Close our copy of the lock; others that inherited it still hold it."""
        if self.lock_fd >= 0:
            os.close(self.lock_fd)
            self.lock_fd = -1

    def __enter__(self) -> LockedFolder:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self.unlock()


def abandoned_folders(parent: Path) -> Iterator[LockedFolder]:
    """
    Run folders in `parent` that belong to us and that nobody alive holds; now we hold them.

    The caller removes each. Folders of other users, links, and what only looks alike are passed
    over. A folder without a lock file is the last moment of a removal: if it is empty, it goes.
    """
    yield from _abandoned(parent, _NAME, age_s=0.0)
    sweep_unfinished(parent)


def sweep_unfinished(parent: Path) -> None:
    """Remove hidden folders of ours in `parent` whose makers died before they were done."""
    for folder in _abandoned(parent, _UNFINISHED_NAME, age_s=_UNFINISHED_AGE_S):
        with folder:
            pass


def _abandoned(parent: Path, name: re.Pattern[str], *, age_s: float) -> Iterator[LockedFolder]:
    try:
        with os.scandir(parent) as entries:
            paths = sorted(Path(entry.path) for entry in entries if name.fullmatch(entry.name))
    except OSError:
        return
    for path in paths:
        try:
            found = path.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
                continue
            if time.time() - found.st_mtime < age_s:
                continue
            lock_fd = os.open(path / "lock", os.O_RDWR | os.O_NOFOLLOW)
        except FileNotFoundError:
            _remove_if_empty(path)
            continue
        except OSError:
            continue
        if _take(lock_fd, path / "lock"):
            yield LockedFolder(path, lock_fd)
        else:
            os.close(lock_fd)


def _take(lock_fd: int, path: Path) -> bool:
    """Whether we got the lock, and on the file that still has that name."""
    try:
        fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        named = path.stat(follow_symlinks=False)
    except OSError:
        return False
    held = os.fstat(lock_fd)
    return (held.st_dev, held.st_ino) == (named.st_dev, named.st_ino)


def _remove_if_empty(path: Path) -> None:
    try:
        path.rmdir()
    except OSError:
        return
