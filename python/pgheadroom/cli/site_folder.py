"""
Writes a site into its folder, whole or not at all.

The files go into a hidden folder beside, which takes the place of the old one at the end by a
rename: whoever reads meanwhile has the old site or the new one, and a killed run leaves the old.
Only a site of ours is replaced, and only if it holds nothing but what we wrote.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from pgheadroom.errors import DiskFull, InputError
from pgheadroom.lab.record import read_json
from pgheadroom.report import site


def check_replaceable(folder: Path) -> None:
    """
    Raise InputError for a folder that a site may not take the place of.

    Allowed are a name that is free, an empty folder, and a site of ours to which nobody added.
    """
    target = folder.resolve()
    if not target.parent.is_dir():
        raise InputError(f"{target.parent} does not exist: make the folder first")
    if not target.exists():
        return
    if not target.is_dir():
        raise InputError(f"{folder} is a file: expected a folder for the site, or a new name")
    if not any(target.iterdir()):
        return
    if not (target / site.MANIFEST).is_file():
        raise InputError(
            f"{folder} exists and is no site of pgheadroom (it has no {site.MANIFEST}): give a new "
            "name, or empty it"
        )
    listed = read_json(target / site.MANIFEST, kind=site.KIND, required=("files",))["files"]
    known = {site.MANIFEST, *(listed if isinstance(listed, dict) else ())}
    for path in sorted(target.rglob("*")):
        name = path.relative_to(target).as_posix()
        if (path.is_symlink() or not path.is_dir()) and name not in known:
            raise InputError(
                f"{path} is not of the site that pgheadroom wrote into {folder}, which would be "
                "replaced: take it away first"
            )


def write_site(files: Iterable[site.SiteFile], folder: Path) -> None:
    """
    Put a site's files into a folder, in the place of an older site of ours.

    Args:
        files: Made while they are written, so that only one is in memory.
        folder: A name that is free, an empty folder, or a site of ours.

    Raises:
        InputError: The folder holds something else, or cannot be written.
        DiskFull: No room; the old site is untouched.
    """
    check_replaceable(folder)
    target = folder.resolve()
    try:
        with _beside(target, "partial") as fresh:
            for file in files:
                _write(fresh / file.path, file.content)
            check_replaceable(folder)
            _swap(fresh, target)
        _sweep(target)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            free_bytes = shutil.disk_usage(target.parent).free
            raise DiskFull(
                f"no room to write {folder}: {free_bytes} bytes are free; free some and run the "
                "same command again",
                path=folder,
                free_bytes=free_bytes,
            ) from error
        raise InputError(f"cannot write {folder}: {error.strerror}") from error


@contextlib.contextmanager
def _beside(target: Path, what: str) -> Iterator[Path]:
    """A new hidden folder beside the target, locked while we live, and gone afterwards."""
    path = target.with_name(f".{target.name}.{secrets.token_hex(8)}.{what}")
    while True:
        path.mkdir()
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if path.exists():  # else a sweeper came before the lock
            break
        os.close(descriptor)
    try:
        yield path
    finally:
        os.close(descriptor)
        shutil.rmtree(path, ignore_errors=True)


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _swap(fresh: Path, target: Path) -> None:
    """Rename the new folder to its name; between two renames there is none, never half a one."""
    if not target.exists() or not any(target.iterdir()):
        fresh.replace(target)
        return
    old = fresh.with_suffix(".old")
    target.rename(old)
    try:
        fresh.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _sweep(target: Path) -> None:
    """Remove what killed runs left beside the target: folders of our naming that nobody holds."""
    ours = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{16}}\.(partial|old)")
    for path in target.parent.iterdir():
        if not ours.fullmatch(path.name) or path.is_symlink() or not path.is_dir():
            continue
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(descriptor)
