"""
What names files of WAL: files, folders, patterns, and a segment by its name.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pgheadroom.errors import InputError, ParameterError
from pgheadroom.input_file import exists

STANDARD_INPUT = Path("-")
_SEGMENT = re.compile(r"[0-9A-Fa-f]{8}([0-9A-Fa-f]{8})([0-9A-Fa-f]{8})(?![0-9A-Za-z_])")


def existing(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    """Files that there are, patterns expanded; `-` alone is standard input."""
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    if any(os.fspath(path) == "-" for path in given):
        if len(given) > 1:
            raise InputError("-: standard input goes with no other file")
        return [STANDARD_INPUT]
    found: list[Path] = []
    for path in map(Path, given):
        matches = [path]
        if not exists(path):
            matches = sorted(map(Path, glob.glob(str(path))))  # noqa: PTH207 - a whole path
        if not matches:
            raise InputError(f"no such file: {path}; expected WAL: a segment, or a folder of them")
        found += matches
    if not found:
        raise InputError("no file is named: expected WAL, a segment or a folder of them")
    return found


def named(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    """
    What names files of another machine: whole, since it has another current folder.

    Raises:
        ParameterError: Standard input, which is here.
    """
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    if any(os.fspath(path) == "-" for path in given):
        raise ParameterError("scheduler", "does nothing for standard input: expected files")
    return [Path(os.path.abspath(path)) for path in given]  # noqa: PTH100 - as the name says


def segment_starts(paths: Iterable[Path], segment_bytes: int) -> Iterator[int]:
    """
    Where segments begin, as the names of files and of those in folders say, in no order.

    Args:
        paths: That there are.
        segment_bytes: `wal_segment_size`.

    Source: `XLogFromFileName`, src/include/access/xlog_internal.h.
    """
    for path in paths:
        for file in path.iterdir() if path.is_dir() else [path]:
            found = _SEGMENT.match(file.name)
            if found is not None:
                log, segment = (int(part, 16) for part in found.groups())
                yield (log << 32) + segment * segment_bytes
