"""
Bring a used copy of a cluster back to its original, by copying only what has changed since.

A trial changes some dozen of a cluster's thousand files; copying all of them again and again is
slow where creating files is (ext4 after many removals: a millisecond each). A file counts as
unchanged when its size and its time of last change, to the nanosecond, are those of the original:
the copy was made with `cp -p`, and everything that PostgreSQL writes later has a later time.
"""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from pgheadroom.errors import LabError
from pgheadroom.servers import disk

RunProgram = Callable[..., subprocess.CompletedProcess[str]]

_FILES_A_COMMAND = 500
"""Below every limit on the length of a command line (arbitrary)."""


def restore_folder(original: Path, used: Path, run: RunProgram) -> int:
    """
    Make `used` equal to `original`, of which it was once a copy.

    Args:
        original: The folder as it should be.
        used: The folder to restore.
        run: Runs a command in a folder (`cwd`) as the owner of the files: what the owner has put
            there, a symbolic link say, must not lead a mightier user elsewhere.

    Returns:
        How many files had to be copied.

    Raises:
        DiskFull: No room.
        LabError: A command failed.
    """
    wanted = dict(disk.entries(original))
    found = dict(disk.entries(used))
    surplus = [name for name in found if _kind(found[name]) != _kind(wanted.get(name))]
    gone = set(surplus)
    changed = [
        name
        for name, status in wanted.items()
        if not stat.S_ISDIR(status.st_mode)
        and (name in gone or name not in found or _is_changed(status, found[name]))
    ]
    empty = [
        name
        for name, status in wanted.items()
        if stat.S_ISDIR(status.st_mode) and (name in gone or name not in found)
    ]
    _in_parts(run, ["rm", "-rf", "--"], surplus, [], used)
    _in_parts(run, ["mkdir", "-p", "-m", "700", "--"], empty, [], used)
    _in_parts(run, ["cp", "-p", "--parents", "--"], changed, [str(used)], original)
    return len(changed)


def _kind(status: os.stat_result | None) -> int | None:
    return None if status is None else stat.S_IFMT(status.st_mode)


def _is_changed(original: os.stat_result, used: os.stat_result) -> bool:
    return (original.st_size, original.st_mtime_ns) != (used.st_size, used.st_mtime_ns)


def _in_parts(
    run: RunProgram, command: Sequence[str], names: Sequence[str], last: Sequence[str], folder: Path
) -> None:
    """Run a command on many names, a part of them at a time."""
    for start in range(0, len(names), _FILES_A_COMMAND):
        part = names[start : start + _FILES_A_COMMAND]
        done = run([*command, *part, *last], cwd=folder)
        if done.returncode != 0:
            if disk.NO_SPACE in done.stderr:
                raise disk.disk_full(folder, "restore a cluster")
            raise LabError(f"could not restore a cluster: {done.stderr.strip()[-500:]}")
