"""Room on a file system: how much a folder takes, whether there is enough, copying a folder."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from pgheadroom.errors import DiskFull, LabError
from pgheadroom.units import show_bytes

SPARE_BYTES = 64 * 1024 * 1024
"""Kept free beside what is asked for: WAL segments, logs, temporary files. Arbitrary."""

NO_SPACE = os.strerror(errno.ENOSPC)
"""What PostgreSQL and cp say, under LC_ALL=C, when a file system is full."""


def entries(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """
    Every entry below a folder: its path relative to it, parents first, and its own status.

    Names are text, for a cluster has a thousand, and a `Path` costs more than its status.
    """
    waiting = [""]
    while waiting:
        parent = waiting.pop()
        with os.scandir(f"{folder}/{parent}") as found:
            for entry in found:
                name = f"{parent}{entry.name}"
                yield name, entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{name}/")


def folder_bytes(folder: Path) -> int:
    """Bytes on disk of all files in a folder; holes in files do not count."""
    return sum(
        status.st_blocks * 512 for _, status in entries(folder) if not stat.S_ISDIR(status.st_mode)
    )


def require_free(folder: Path, needed_bytes: int, purpose: str) -> None:
    """
    Make sure that `needed_bytes`, and a little to spare, fit on the file system of `folder`.

    Raises:
        DiskFull: They do not.
    """
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < needed_bytes + SPARE_BYTES:
        raise disk_full(folder, purpose, needed_bytes=needed_bytes + SPARE_BYTES)


def disk_full(folder: Path, purpose: str, *, needed_bytes: int | None = None) -> DiskFull:
    """The error that says how much room there is and how to use another file system."""
    free_bytes = shutil.disk_usage(folder).free
    needed = "more" if needed_bytes is None else f"about {show_bytes(needed_bytes)}"
    return DiskFull(
        f"no room to {purpose}: {show_bytes(free_bytes)} are free at {folder}, {needed} is "
        "needed; free some, load less, or let PGHEADROOM_TMPDIR name a larger one",
        path=folder,
        needed_bytes=needed_bytes,
        free_bytes=free_bytes,
    )


@contextlib.contextmanager
def full_means(folder: Path, purpose: str) -> Iterator[None]:
    """Turn an `OSError` that says that a file system or a quota is full into `DiskFull`."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise disk_full(folder, purpose) from error


@functools.cache
def _copy_command() -> tuple[str, ...]:
    """`cp`, sharing blocks where the file system can; only GNU's knows that option."""
    try:
        shown = subprocess.run(
            ["cp", "--help"], capture_output=True, text=True, check=False, timeout=60
        )
    except OSError as error:
        raise LabError(f"the program cp cannot be run: {error}") from error
    return ("cp", "-Rp", "--reflink=auto") if "--reflink" in shown.stdout else ("cp", "-Rp")


def copy_folder(
    source: Path,
    destination: Path,
    run: Callable[[list[str]], subprocess.CompletedProcess[str]],
) -> None:
    """
    Copy a folder with owners, modes and times; `destination` must not exist.

    Args:
        source: What to copy.
        destination: What to make of it.
        run: Runs the command so that the run's watchdog knows it.

    Raises:
        DiskFull: The copy does not fit; what was copied is removed.
        LabError: The copy failed for another reason; likewise.
    """
    assert not destination.exists(), destination
    purpose = f"copy {source.name} to {destination}"
    require_free(destination.parent, folder_bytes(source), purpose)
    try:
        done = run([*_copy_command(), "--", str(source), str(destination)])
    except BaseException:
        shutil.rmtree(destination, ignore_errors=True)
        raise
    if done.returncode != 0:
        shutil.rmtree(destination, ignore_errors=True)
        if NO_SPACE in done.stderr:
            raise disk_full(destination.parent, purpose)
        raise LabError(f"could not {purpose}: {done.stderr.strip()}")
