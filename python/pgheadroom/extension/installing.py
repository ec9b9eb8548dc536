"""
Putting the built extension where its server looks for it.

Each file is written beside its place and renamed into it. A library that running sessions have
mapped is never written over: they keep theirs until they end.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from pgheadroom.errors import InputError
from pgheadroom.extension.building import Built, File


def state_of(file: File) -> str:
    """What putting the file there does: `new`, `replaces`, or `the same` bytes are there."""
    if not file.target.exists():
        return "new"
    return "the same" if _same(file) else "replaces"


def install(built: Built) -> tuple[File, ...]:
    """
    Put the files where they belong, those that are there already left alone.

    Returns:
        The files that were written.

    Raises:
        InputError: A folder cannot be written, or is missing; what was written before stays.
    """
    todo = tuple(file for file in built.files if state_of(file) != "the same")
    for file in todo:
        folder = file.target.parent
        if not folder.is_dir() or not os.access(folder, os.W_OK):
            what = "cannot be written by you" if folder.is_dir() else "does not exist"
            raise InputError(
                f"{folder} {what}, and nothing was installed: call this as whoever may write it "
                "(often root)"
            )
    for file in todo:
        _put(file)
    return todo


def _put(file: File) -> None:
    try:
        handle, name = tempfile.mkstemp(dir=file.target.parent, prefix=f".{file.target.name}.")
        beside = Path(name)
        try:
            with os.fdopen(handle, "wb") as out, file.source.open("rb") as source:
                shutil.copyfileobj(source, out)
                out.flush()
                os.fsync(out.fileno())
            beside.chmod(0o755 if file.target.suffix == ".so" else 0o644)
            beside.replace(file.target)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(f"{file.target} cannot be written: {error.strerror}") from error


def _same(file: File) -> bool:
    try:
        return file.source.read_bytes() == file.target.read_bytes()
    except OSError:
        return False
