"""
Which bytes of a server's log were written inside an interval.

A log is a family of files: the one that was named, and those that rotation makes of it. Where each
ended when the interval began is remembered, with the last bytes before that place. At the end
every file of the family that grew, was truncated or is new gives a part:

    renamed and made anew (logrotate)     the old file from its place on, then the new one
    copied and truncated (copytruncate)   the copy from the old place on, then the file from 0
    a new name by log_filename            the old file from its place on, then the new one
    an old name used again (%a)           the file from 0
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pgheadroom.errors import ParameterError

_TAIL_BYTES = 256
_FAMILY_MAX = 10_000  # files of one folder that are looked at
_COMPRESSED = (".gz", ".xz", ".zst", ".bz2", ".lz4", ".zip")
_MAGIC = (b"\x1f\x8b", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"BZh", b"\x04\x22\x4d\x18", b"PK\x03\x04")
# What strftime puts for the escapes that people use in log_filename.
_ESCAPES: Mapping[str, str] = {
    **dict.fromkeys("YGs", r"\d+"),
    **dict.fromkeys("mdHIMSyjUVWgCe", r"[\d ]\d{0,2}"),
    **dict.fromkeys("FTDR", r"[\d:/-]+"),
    **dict.fromkeys("aAbBhpPZ", r"\w+"),
    "u": r"\d",
    "w": r"\d",
    "z": r"[+-]\d+",
}
_DATE = re.compile(
    r"\d{4}-\d\d-\d\d(?:[_T-]?\d\d[:_-]?\d\d(?:[:_-]?\d\d)?)?|\d{8}(?:[_T-]?\d{4,6})?"
)
_WEEKDAY = re.compile(r"(?<![A-Za-z])(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?![A-Za-z])")
# Where an entry begins, in any of the formats with a time.
_ENTRY = re.compile(rb"^(?:\{|[^\t\n]{0,200}?\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)", re.MULTILINE)
_BACK_BYTES = 65_536

_Identity = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPlace:
    """A file and where it ended, with the bytes before that place."""

    path: Path
    identity: _Identity
    size: int
    modified_ns: int
    tail: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePart:
    """Bytes of one file."""

    path: Path
    begin: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What to read, in order of time, and what of the interval cannot be read."""

    parts: tuple[FilePart, ...]
    lost: tuple[str, ...]


def check_log(path: Path) -> None:
    """
    Say in time that a log cannot be read.

    Raises:
        InputError: No file, not readable, or compressed.
    """
    expected = "expected csvlog, jsonlog or stderr log of the server, on this machine"
    try:
        if not path.is_file():
            raise ParameterError(
                "log",
                f"{path} is not a file: {expected}. If the server is on another machine, run "
                "observe there, or use `print_sql` there and `from` with a copy of the log here",
                mentions=("print_sql", "from"),
            )
        with path.open("rb") as file:
            head = file.read(8)
    except OSError as error:
        raise ParameterError(
            "log",
            f"{path} cannot be read: {error.strerror}. The server's log is its owner's "
            "(log_file_mode): run as that user, or let a group read it",
        ) from None
    if path.suffix.lower() in _COMPRESSED or head.startswith(_MAGIC):
        raise ParameterError("log", f"{path} is compressed: {expected}, not compressed")


def places(path: Path, file_name: str | None) -> tuple[LogPlace, ...]:
    """
    Where the files of a log end now.

    Args:
        path: The file that was named.
        file_name: The server's `log_filename`, None where it may not be seen.
    """
    return tuple(_place(found) for found in _family(path, file_name) if not _is_compressed(found))


def parts_since(path: Path, file_name: str | None, before: Sequence[LogPlace]) -> Parts:
    """
    What was written since then.

    Args:
        path: The file that was named.
        file_name: As for `places`.
        before: What `places` gave when the interval began.
    """
    known = {place.identity: place for place in before}
    now = places(path, file_name)
    found: list[tuple[int, FilePart]] = []
    continued: set[_Identity] = set()
    for place in now:
        old = known.get(place.identity) or _copied(place, before)
        if old is None or not _has_at(place.path, old):
            found.append((place.modified_ns, FilePart(path=place.path, begin=0, end=place.size)))
            continue
        continued.add(old.identity)
        if place.size > old.size:
            begin = _entry_before(place.path, old.size)
            part = FilePart(path=place.path, begin=begin, end=place.size)
            found.append((place.modified_ns, part))
    named = _identity_of(path, before)
    lost = []
    if named is not None and named not in continued:
        packed = [other.name for other in _family(path, file_name) if _is_compressed(other)]
        why = f": {', '.join(packed[:3])} is compressed, which is not read" if packed else ""
        lost.append(f"{path.name} was rotated and what it held of the interval is gone{why}")
    parts = tuple(part for _, part in sorted(found, key=lambda item: item[0]) if part.end)
    return Parts(parts=parts, lost=tuple(lost))


def _identity_of(path: Path, before: Sequence[LogPlace]) -> _Identity | None:
    return next((place.identity for place in before if place.path == path), None)


def _is_compressed(path: Path) -> bool:
    return path.suffix.lower() in _COMPRESSED


def _family(path: Path, file_name: str | None) -> Iterator[Path]:
    pattern = _name_pattern(path, file_name)
    yield path
    try:
        with os.scandir(path.parent) as entries:
            for number, entry in enumerate(entries):
                if number >= _FAMILY_MAX:
                    return
                if entry.name != path.name and pattern.fullmatch(entry.name) and entry.is_file():
                    yield path.parent / entry.name
    except OSError:
        return  # a folder that may be entered but not listed: the named file alone


def _name_pattern(path: Path, file_name: str | None) -> re.Pattern[str]:
    """
    Names of the family: as `log_filename` makes them, and what logrotate makes of each.

    Only what looks like a time varies: beside postgresql-15-main.log may lie the log of another
    server, postgresql-16-main.log.
    """
    own = re.escape(path.name)
    if file_name is not None and re.fullmatch(made := _of_escapes(file_name, path), path.name):
        own = made
    else:
        parts = [re.escape(text) for text in _DATE.split(path.name)]
        own = r"[\dT:_-]+".join(parts)
        if len(parts) == 1:
            own = r"\w{3}".join(re.escape(text) for text in _WEEKDAY.split(path.name))
    return re.compile(rf"{own}(?:[.-][\d._T-]+)?(?:{'|'.join(map(re.escape, _COMPRESSED))})?")


def _of_escapes(file_name: str, path: Path) -> str:
    """`log_filename` as a pattern; csvlog and jsonlog put their own ending for .log."""
    base = file_name.removesuffix(".log") + path.suffix if path.suffix else file_name
    made, place = "", 0
    while place < len(base):
        if base[place] == "%" and place + 1 < len(base):
            made += _ESCAPES.get(base[place + 1], re.escape(base[place + 1]))
            place += 2
        else:
            made += re.escape(base[place])
            place += 1
    return made


def _place(path: Path) -> LogPlace:
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            file.seek(max(status.st_size - _TAIL_BYTES, 0))
            tail = file.read(min(status.st_size, _TAIL_BYTES))
    except OSError:  # gone since it was listed, or not ours: it holds nothing
        return LogPlace(path=path, identity=(0, 0), size=0, modified_ns=0, tail=b"")
    return LogPlace(
        path=path,
        identity=(status.st_dev, status.st_ino),
        size=status.st_size,
        modified_ns=status.st_mtime_ns,
        tail=tail,
    )


def _has_at(path: Path, old: LogPlace) -> bool:
    """Whether a file still has what stood before the old place; a truncated one has not."""
    return _bytes_before(path, old.size, len(old.tail)) == old.tail


def _copied(place: LogPlace, before: Sequence[LogPlace]) -> LogPlace | None:
    """The file of which this new one is a copy, by the bytes before its old place."""
    for old in before:
        if 0 < old.size <= place.size and _has_at(place.path, old):
            return old
    return None


def _bytes_before(path: Path, size: int, length: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(max(size - length, 0))
            return file.read(length)
    except OSError:
        return b""


def _entry_before(path: Path, size: int) -> int:
    """
    Where the last entry begins that begins before a place; its time says whether it counts.

    A file's end may lie inside an entry while that is written.
    """
    back = _bytes_before(path, size, min(size, _BACK_BYTES))
    begins = [match.start() for match in _ENTRY.finditer(back)]
    return size - len(back) + begins[-1] if begins else size
