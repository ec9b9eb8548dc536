"""
Statements of an interval out of a server's log.

    LogWatch.at("start")     remembers where the log ends
    LogWatch.at("end")       again: what lies between belongs to the interval
    LogWatch.read            reads it, by time and database (_core.LogScan)

Without those moments (an interval that psql has watched) the place is looked for by time.

The log's own scanner puts literals away, so that few texts are kept of many lines: at 220 MB/s.
By the grammar's text or fingerprint (`sources.statements`) that would be 16 or 13 MB/s (18.4's
grammar, statements of 60 to 100 bytes), and a cache by raw text finds nothing where every line has
another key. What equal statements are is still said in one place: each distinct text goes through
the grammar once, to which the scanner's `''` and `0` are the constants that stood there.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from pgheadroom import _core
from pgheadroom.errors import InputError
from pgheadroom.progress import Say
from pgheadroom.sources.encoding import codec_of
from pgheadroom.sources.log import StatementCounts
from pgheadroom.sources.log_files import FilePart, LogPlace, check_log, parts_since, places
from pgheadroom.sources.recording import AnswerRow, Recording

PREFIX_EXPECTED = "%m [%p] %q%u@%d "
"""Debian's `log_line_prefix`: time and database stand in it."""
_PREFIXES = (
    PREFIX_EXPECTED,
    "%t [%p]: [%l-1] user=%u,db=%d,app=%a,client=%h ",
    "%m%a",
    "%a",
)
"""Where the server was not asked; the last ones, time and anything, or anything, fit any line."""
_READ_BYTES_MAX = 16 * 1024**3  # a minute or two of reading; arbitrary
_CHUNK_BYTES = 8 * 1024**2
_SAY_EACH_S = 2.0
_HEAD_BYTES = 65_536
_SEARCH_BYTES = 1024**2
_SLACK_MS = 10_000  # entries of many sessions are in order of time but for moments
_CSV = re.compile(rb'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [^\s,"]+,(?:"|,)')
_STAMP = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? [A-Za-z0-9+-]+")
_STATEMENT = re.compile(
    rb"(?:statement|execute [^:\n]*|duration: [\d.]+ ms  (?:statement|execute [^:\n]*)): "
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Logged:
    """How a server writes its log; None where it was not asked."""

    prefix: str | None = None
    zones: tuple[tuple[bytes, int], ...] = ()
    zone_offset_s: int | None = None
    encoding: str = "UTF8"
    file_name: str | None = None
    sampled: str | None = None


def logged_of(row: AnswerRow | None, *, around_s: float) -> Logged:
    """
    Out of a row of the query `log_settings`.

    Args:
        row: None where it has no answer.
        around_s: A time of the interval, in seconds since 1970.
    """
    if row is None:
        return Logged()
    return Logged(
        prefix=str(row["line_prefix"]),
        zones=_zones(str(row["zone"]), around_s),
        zone_offset_s=int(row["zone_offset_s"]),
        encoding=str(row["encoding"]),
        file_name=None if row["file_name"] is None else str(row["file_name"]),
        sampled=_sampled(row),
    )


def _zones(name: str, around_s: float) -> tuple[tuple[bytes, int], ...]:
    """The abbreviations of a zone within half a year of a time, for clocks are put back there."""
    try:
        zone = ZoneInfo(name)
    except (
        OSError,
        ValueError,
        KeyError,
    ):  # not of this machine's zone data: the server's offset holds
        return ()
    found: dict[bytes, int] = {}
    middle = datetime.fromtimestamp(around_s, UTC)
    for days in (-183, 183, -1, 1, 0):
        local = (middle + timedelta(days=days)).astimezone(zone)
        offset = local.utcoffset()
        if offset is not None:
            found[(local.tzname() or "").encode()] = round(offset.total_seconds())
    return tuple(found.items())


def _sampled(row: AnswerRow) -> str | None:
    """What of the statements the server logs, where it is not all that write."""
    if row["statements"] in ("mod", "all") or str(row["min_duration"]) == "0":
        return None
    if float(row["transaction_sample_rate"]) > 0:
        return f"the log has a share of {row['transaction_sample_rate']} of the transactions"
    if str(row["min_duration"]) != "-1":
        return f"the log has only statements that took {row['min_duration']} or longer"
    if str(row["min_duration_sample"]) != "-1":
        return f"the log has a sample of statements that took {row['min_duration_sample']} or more"
    return "log_statement = 'mod' or log_min_duration_statement = 0 is not set for everybody"


class LogWatch:
    """The logs of one interval."""

    def __init__(self, paths: Sequence[Path]) -> None:
        """
        Check the files before the interval.

        Raises:
            InputError: One is no file, cannot be read or is compressed.
        """
        for path in paths:
            check_log(path)
        self._paths = tuple(paths)
        self._before: dict[Path, tuple[LogPlace, ...]] = {}
        self._parts: dict[Path, tuple[FilePart, ...]] = {}
        self._lost: dict[Path, tuple[str, ...]] = {}

    def at(self, moment: str, recording: Recording) -> None:
        """Called by `watch` when the interval begins and when it has ended."""
        name = (recording.row("log_settings", "shape") or {}).get("file_name")
        for path in self._paths:
            if moment == "start":
                self._before[path] = places(path, name)
            elif moment == "end":
                found = parts_since(path, name, self._before[path])
                self._parts[path], self._lost[path] = found.parts, found.lost

    def read(self, recording: Recording, say: Say) -> list[StatementCounts]:
        """
        Count each log's statements of the interval.

        Args:
            recording: Of the interval.
            say: Told how far it is, and what is not there, with names of files.

        Raises:
            InputError: A log cannot be read, or is none.
        """
        times = [
            float((recording.row("instant", moment) or {})["at_epoch_s"])
            for moment in ("start", "end")
        ]
        interval_ms = (int(times[0] * 1000), int(times[1] * 1000) + 1)
        logged = logged_of(recording.row("log_settings", "shape"), around_s=times[1])
        database = str((recording.row("identity", "shape") or {}).get("database"))
        made = []
        for path in self._paths:
            parts = self._parts.get(path)
            if parts is None:
                parts = (_part_of_interval(path, interval_ms, logged),)
            for lost in self._lost.get(path, ()):
                say(f"! {lost}")
            reading = _Reading(logged, database, interval_ms, say)
            made.append(reading.read(path, parts, is_whole=not self._lost.get(path)))
        return made


def read_log(path: Path, database: str, logged: Logged | None = None) -> StatementCounts:
    """
    Count the executed statements of a whole log file.

    Args:
        path: csvlog, jsonlog or stderr, recognised by its first lines.
        database: Only statements of this database, where the log names it.
        logged: How the server writes it; guessed if None.

    Raises:
        InputError: Not readable, or without any executed statement of the database.
    """
    check_log(path)
    reading = _Reading(logged or Logged(), database, None, lambda _: None)
    size = path.stat().st_size
    found = reading.read(path, (FilePart(path=path, begin=0, end=size),), is_whole=True)
    if not found.seen:
        raise InputError(
            f"{path} ({found.source}) holds no executed statement of this database: expected lines "
            "of log_statement = 'mod' or log_min_duration_statement, with lc_messages = 'C'"
        )
    return found


class _Reading:
    def __init__(
        self,
        logged: Logged,
        database: str,
        interval_ms: tuple[int, int] | None,
        say: Say,
    ) -> None:
        self._logged = logged
        self._database = database
        self._interval_ms = interval_ms
        self._say = say
        self._codec = codec_of(logged.encoding)

    def read(self, path: Path, parts: Sequence[FilePart], *, is_whole: bool) -> StatementCounts:
        head = b"".join(_head(part) for part in parts[:1])
        form, prefix = form_of(head), None
        if form == "stderr":
            prefix = self._logged.prefix if self._logged.prefix is not None else _prefix_of(head)
        scan = _core.LogScan(
            form,
            prefix=None if prefix is None else prefix.encode(),
            database=self._database.encode(self._codec, "replace"),
            interval_ms=self._interval_ms,
            zones=self._logged.zones,
            zone_offset_s=self._logged.zone_offset_s,
        )
        left_out = self._feed(scan, path, parts)
        found = scan.found()
        counts: Counter[str] = Counter()
        for text, number in found.counts:
            counts[text.decode(self._codec, "replace")] += number
        return StatementCounts(
            source="stderr log" if form == "stderr" else form,
            counts=counts,
            seen=found.selected,
            cut=found.cut,
            lost=_lost(found),
            notes=tuple(self._notes(found, prefix, left_out, is_whole=is_whole)),
        )

    def _feed(self, scan: _core.LogScan, path: Path, parts: Sequence[FilePart]) -> int:
        """Read the parts up to the bound; gives how many bytes are left out."""
        total = sum(part.end - part.begin for part in parts)
        bound = min(total, _READ_BYTES_MAX)
        done, said_at = 0, time.monotonic()
        for part in parts:
            try:
                with part.path.open("rb") as file:
                    file.seek(part.begin)
                    left = min(part.end - part.begin, bound - done)
                    while left > 0 and (chunk := file.read(min(left, _CHUNK_BYTES))):
                        scan.feed(chunk)
                        left -= len(chunk)
                        done += len(chunk)
                        if time.monotonic() - said_at > _SAY_EACH_S:
                            said_at = time.monotonic()
                            self._say(f"{path.name}: {done / 1e6:,.0f} of {bound / 1e6:,.0f} MB")
            except OSError as error:
                self._say(f"! {part.path} cannot be read: {error.strerror}")
            scan.end_file()
        return total - done

    def _notes(
        self, found: _core.LogFound, prefix: str | None, left_out: int, *, is_whole: bool
    ) -> list[str]:
        """What makes the counts say less; no names, for a profile may be masked."""
        notes = []
        if not is_whole:
            notes.append("a part of the log of this interval is gone: it was rotated away")
        if left_out:
            notes.append(f"{left_out / 1e6:,.0f} MB of the log were not read: that is the bound")
        if prefix is not None and found.executed:
            has_time, has_database = _core.log_prefix_has(prefix.encode())
            expected = f"with log_line_prefix = '{PREFIX_EXPECTED}' it would"
            if not has_time:
                notes.append(f"the log's lines have no time: selected by place; {expected}")
            if not has_database:
                notes.append(
                    "the log's lines do not name their database, statements of all databases are "
                    f"counted; {expected}"
                )
        if found.unprefixed:
            notes.append(
                f"{found.unprefixed} lines with statements do not begin with the server's "
                "log_line_prefix: is it this server's log, and was the prefix changed?"
            )
        if self._interval_ms is not None and found.untimed:
            notes.append(f"the time of {found.untimed} statements is not known: counted")
        if not found.selected:
            where = f"; {found.elsewhere} are of other databases" if found.elsewhere else ""
            notes.append(
                f"the log holds no executed statement of this database and interval{where}: "
                "expected lines of log_statement = 'mod' or log_min_duration_statement, with "
                "lc_messages = 'C'"
            )
        if self._logged.sampled is not None:
            notes.append(self._logged.sampled)
        return notes


def _lost(found: _core.LogFound) -> dict[str, int]:
    """Statements that say nothing, by reason."""
    lost = {
        "its text is too long, or there are too many different ones": found.not_kept,
        "its line does not begin with log_line_prefix": found.unprefixed,
        "its line is not of the log's format": found.unreadable,
    }
    return {why: number for why, number in lost.items() if number}


def _head(part: FilePart) -> bytes:
    try:
        with part.path.open("rb") as file:
            file.seek(part.begin)
            return file.read(min(part.end - part.begin, _HEAD_BYTES))
    except OSError as error:
        raise InputError(f"{part.path} cannot be read: {error.strerror}") from None


def form_of(head: bytes) -> str:
    """The format of a log, by its first bytes."""
    if head.lstrip()[:1] == b"{":
        return "jsonlog"
    # A stderr log's first statement may have as many commas: csvlog has one behind the time.
    return "csvlog" if _CSV.match(head) else "stderr"


def _prefix_of(head: bytes) -> str:
    """The first of the usual prefixes that most lines have."""
    best, most = _PREFIXES[-1], 0
    for prefix in _PREFIXES:
        scan = _core.LogScan("stderr", prefix=prefix.encode())
        scan.feed(head)
        scan.end_file()
        if (number := scan.found().executed) > most:
            best, most = prefix, number
    return best


def _part_of_interval(path: Path, interval_ms: tuple[int, int], logged: Logged) -> FilePart:
    """
    The part of a file that was written inside an interval, looked for by time.

    Raises:
        InputError: Its lines have no time.
    """
    size = path.stat().st_size
    head = _head(FilePart(path=path, begin=0, end=size))
    if size and _STAMP.search(head) is None:
        raise InputError(
            f"{path}: its lines have no time, so those of the interval cannot be told: expected "
            f"csvlog, jsonlog, or a log_line_prefix with %m, such as '{PREFIX_EXPECTED}'"
        )
    begin = _offset_at(path, size, interval_ms[0] - _SLACK_MS, logged)
    end = _offset_at(path, size, interval_ms[1] + _SLACK_MS, logged)
    return FilePart(path=path, begin=begin, end=min(end + 2 * _SEARCH_BYTES, size))


def _offset_at(path: Path, size: int, at_ms: int, logged: Logged) -> int:
    """A place before which all is older; at most a megabyte too early."""
    low, high = 0, size
    with path.open("rb") as file:
        while high - low > _SEARCH_BYTES:
            middle = (low + high) // 2
            file.seek(middle)
            found = _first_time(file.read(_SEARCH_BYTES // 2), logged)
            if found is None:
                break
            place, found_ms = found
            if found_ms < at_ms:
                low = middle + place
            else:
                high = middle
    return low


def _first_time(text: bytes, logged: Logged) -> tuple[int, int] | None:
    """Where the first entry with a time begins in a piece of a log, and that time."""
    for line in re.finditer(rb"\n(?=[^\t\n])", text):
        stamp = _STAMP.search(text, line.end(), line.end() + 200)
        if stamp is None:
            continue
        found = _core.log_time_ms(stamp[0], zones=logged.zones, zone_offset_s=logged.zone_offset_s)
        if found is not None:
            return line.end(), found
    return None
