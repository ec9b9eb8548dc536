"""
The log of a running server: what it flushes while we read, through one read-only connection.

`pg_read_binary_file` gives it in bounded chunks, from the segment in which the log stands up to
what is flushed, and on a standby up to what was received. No slot is made: segments that the
server removes before they were read are gaps, named and counted.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import pgheadroom
from pgheadroom.errors import ParameterError, PrivilegeMissing, SourceError, WalError, WalIncomplete
from pgheadroom.quoting import identifier
from pgheadroom.sources.session import read_only_session
from pgheadroom.wal import inspecting
from pgheadroom.wal.archive import segment_name
from pgheadroom.wal.names import Names, NamesMeanwhile
from pgheadroom.wal.reading import (
    LOG_ENDS,
    nameless_note,
    parsed_position,
    read_open,
    shown_lsn,
)
from pgheadroom.wal.values import Gap, Total, WalStats

CHUNK_BYTES = 1024**2
"""Read at once. Arbitrary: a server answers in milliseconds."""

_EVERY_S = 1.0
_ASKED_TWICE = (
    "names were asked before the interval and behind it, so a table that was made and dropped "
    "within it, or rewritten twice, has none, nor has one of a transaction that had not "
    "committed, or of a database that was not asked"
)
_FUNCTION = "pg_catalog.pg_read_binary_file(text,bigint,bigint,boolean)"
_FLUSHED = """
SELECT CASE WHEN pg_is_in_recovery()
            THEN coalesce(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())
            ELSE pg_current_wal_flush_lsn() END::text
"""
# GetCurrentLSN, contrib/pg_walinspect/pg_walinspect.c.
_REPLAYED = """
SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
            ELSE pg_current_wal_flush_lsn() END::text
"""
_SYSTEM = "SELECT system_identifier::text FROM pg_control_system()"
_SEGMENT_BYTES = "SELECT pg_size_bytes(current_setting('wal_segment_size'))"
# The control file has a new timeline only after the first checkpoint behind a promotion. What a
# standby receives is said to pg_read_all_stats alone; others have the last restart point's.
_TIMELINE = """
SELECT CASE WHEN pg_is_in_recovery()
            THEN greatest((SELECT timeline_id FROM pg_control_checkpoint()),
                          (SELECT received_tli FROM pg_stat_wal_receiver))
            ELSE ('x' || left(pg_walfile_name(pg_current_wal_flush_lsn()), 8))::bit(32)::int END
"""
_MAY = f"SELECT has_function_privilege('{_FUNCTION}', 'EXECUTE'), current_user"
_AVAILABLE = "SELECT FROM pg_available_extensions WHERE name = 'pg_walinspect'"
_READ = "SELECT pg_read_binary_file(%s, %s, %s, true)"


def grants(conninfo: str, parameters: Mapping[str, str]) -> str:
    """The statements that let the role read the log, by files or else; empty if it may."""
    with read_only_session(conninfo, parameters) as connection:
        files = _missing(connection)
        return _either(connection, files) if files and _inspected(connection)[1] else ""


def _either(connection: Any, files: str) -> str:
    (role,) = connection.execute("SELECT current_user").fetchone()
    schema, _ = _inspected(connection)
    lines = [files]
    if schema is None and connection.execute(_AVAILABLE).fetchone() is None:
        return files
    if schema is None:
        lines.append("-- Or, without files, in this database (a superuser installs it):")
        lines.append("CREATE EXTENSION pg_walinspect;")
    else:
        lines.append("-- Or, without files, by pg_walinspect:")
    names = [inspecting.RECORDS]
    if connection.info.server_version // 10000 >= inspecting.BLOCKS_FROM_MAJOR:
        names.append(inspecting.BLOCKS)
    place = "" if schema is None else f"{schema}."
    lines += [f"GRANT EXECUTE ON FUNCTION {place}{name} TO {identifier(role)};" for name in names]
    return "\n".join(lines)


def _inspected(connection: Any) -> tuple[str | None, bool]:
    """Where pg_walinspect is, and whether something is missing for its use."""
    schema = inspecting.schema_of(connection)
    return schema, schema is None or bool(inspecting.missing(connection, schema))


def read_live(
    conninfo: str,
    parameters: Mapping[str, str],
    *,
    seconds: float,
    names: Names | NamesMeanwhile | None = None,
    by: str | None = None,
) -> WalStats:
    """
    Sum what a server writes in an interval.

    Args:
        conninfo: A libpq URI or conninfo string, empty for the environment.
        parameters: libpq parameters that overrule it.
        seconds: How long.
        names: What relations are called; None: the server is asked, before the interval and behind
            it.
        by: `transaction`; what wants the log twice is not for a running server.

    Raises:
        ConnectionFailed: No connection.
        PrivilegeMissing: The role may not read the files of the log.
        WalIncomplete: The server was promoted meanwhile, or removed all that there was to be read.
    """
    with read_only_session(conninfo, parameters) as connection:
        schema = _check(connection)
        if isinstance(names, Names):
            return _read(connection, schema, seconds, lambda: names, by)
        asks = names or NamesMeanwhile(conninfo, parameters)
        found = _read(connection, schema, seconds, asks, by)
        return replace(found, notes=tuple(_asked_twice(found)))


def _asked_twice(stats: WalStats) -> Iterator[str]:
    """The sums' notes, the one of relations without a name with what is known of why."""
    nameless = tuple(nameless_note(stats.relations))
    yield from (note for note in stats.notes if note not in nameless)
    yield from nameless_note(stats.relations, _ASKED_TWICE)


def _read(
    connection: Any, schema: str | None, seconds: float, names: Callable[[], Names], by: str | None
) -> WalStats:
    if schema is None:
        with _followed(connection, seconds) as followed:
            return followed.read(names, by)
    if by is not None:
        raise ParameterError("by", f"{by}: pg_walinspect gives sums by relation alone")
    return inspecting.inspect(
        connection,
        schema,
        lambda: _replayed(connection),
        begin=_replayed(connection),
        seconds=seconds,
        wait=threading.Event().wait,
        names=names,
    )


def _no_names() -> Names:
    return Names(relations=())


class WalWatch:
    """
    The log of an interval whose end somebody else decides; a block, which ends it in any case.

    Raises:
        ConnectionFailed: No connection.
        PrivilegeMissing: The role may not read the files of the log.
    """

    def __init__(self, conninfo: str, parameters: Mapping[str, str]) -> None:
        self._open = contextlib.ExitStack()
        self._asked = (conninfo, dict(parameters))
        self._over = threading.Event()
        self._found: WalStats | None = None
        self._problem: Exception | None = None
        self._thread: threading.Thread | None = None
        with read_only_session(*self._asked) as connection:
            self._schema = _check(connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        with contextlib.suppress(Exception):  # what came before is what ended it
            self._open.close()

    def start(self) -> None:
        """Begin at what is flushed now."""
        connection = self._open.enter_context(read_only_session(*self._asked))
        if self._schema is not None:
            now = _replayed(connection)
            self._work(lambda: self._inspect(connection, now))
            return
        followed = self._open.enter_context(_followed(connection, math.inf, self._over))
        self._work(followed.read)

    def _inspect(self, connection: Any, begin: int) -> WalStats:
        assert self._schema is not None, "where pg_walinspect is"
        return inspecting.inspect(
            connection,
            self._schema,
            lambda: _replayed(connection),
            begin=begin,
            seconds=math.inf,
            wait=self._over.wait,
            names=_no_names,
        )

    def _work(self, read: Callable[[], WalStats]) -> None:
        def work() -> None:
            try:
                self._found = read()
            except Exception as problem:  # noqa: BLE001 - `finish` raises it
                self._problem = problem

        self._thread = threading.Thread(target=work, daemon=True)
        self._thread.start()

    def finish(self) -> WalStats:
        """
        End at what is flushed now.

        Raises:
            WalIncomplete: The server removed all that there was to be read.
        """
        assert self._thread is not None, "it was started"
        self._over.set()
        self._thread.join()
        self._open.close()
        if self._problem is not None:
            raise self._problem
        assert self._found is not None, "it was read, or there is a problem"
        return self._found


def _missing(connection: Any) -> str:
    may, role = connection.execute(_MAY).fetchone()
    return "" if may else f"GRANT EXECUTE ON FUNCTION {_FUNCTION} TO {identifier(role)};"


def _check(connection: Any) -> str | None:
    """None where the files may be read; else where pg_walinspect is, which may be called."""
    wanted = _missing(connection)
    if not wanted:
        return None
    schema, lacks = _inspected(connection)
    if not lacks:
        return schema
    raise PrivilegeMissing(
        f"the role may not read the log's files; a superuser can allow it: {wanted} "
        "(with it the role can read every file in the server's data directory), or grant "
        "EXECUTE on the functions of pg_walinspect instead"
    )


@contextmanager
def _followed(
    connection: Any, seconds: float, over: threading.Event | None = None
) -> Iterator[_Followed]:
    """The log from now on; `over` ends it before its time."""
    (segment_bytes,) = connection.execute(_SEGMENT_BYTES).fetchone()
    begin = flushed(connection)
    timeline = _timeline(connection)
    until = time.monotonic() + seconds
    feeder = _Feeder(connection, timeline, segment_bytes, begin, until, over or threading.Event())
    nothing = _nothing(connection, timeline)
    reading, writing = os.pipe()
    thread = threading.Thread(target=feeder.feed, args=(writing,), daemon=True)
    thread.start()
    failed: WalError | None = None
    try:
        yield _Followed(Path(f"/dev/fd/{reading}"), shown_lsn(begin), feeder, nothing)
    except WalError as error:
        failed = error
    finally:
        feeder.stopped.set()
        feeder.over.set()
        os.close(reading)  # a feeder that still writes learns of it
        thread.join()
    # What the reader misses is what it did not get: the feeder says why.
    problem = feeder.problem or failed
    if problem is not None:
        raise problem


def flushed(connection: Any) -> int:
    """
    Where the log stands: what is flushed, on a standby what was received.

    Raises:
        SourceError: A standby that has received nothing.
    """
    return _position(connection, _FLUSHED)


def _replayed(connection: Any) -> int:
    """The same for pg_walinspect, which on a standby knows what was replayed."""
    return _position(connection, _REPLAYED)


def _position(connection: Any, query: str) -> int:
    (shown,) = connection.execute(query).fetchone()
    lsn = None if shown is None else parsed_position(shown)
    if lsn is None:
        raise SourceError("the server says no position of its log: expected one that has received")
    return lsn


def _timeline(connection: Any) -> int:
    (timeline,) = connection.execute(_TIMELINE).fetchone()
    return int(timeline)


def _nothing(connection: Any, timeline: int) -> WalStats:
    """The sums of an interval in which nothing is flushed."""
    (system,) = connection.execute(_SYSTEM).fetchone()
    return WalStats(
        tool_version=pgheadroom.__version__,
        server=str(connection.info.server_version // 10_000),
        system_identifier=system,
        timeline=timeline,
        start_lsn=None,
        end_lsn=None,
        first_end=None,
        last_end=None,
        total=Total(records=0, bytes=0, fpi=0, fpi_bytes=0),
        overhead_bytes=0,
        by_cause={},
        relations=(),
        record_types=(),
        memo={},
        gaps=(),
        files=0,
    )


def _ended(stats: WalStats) -> WalStats:
    """Without the note that the log ends where the interval does."""
    return replace(stats, notes=tuple(one for one in stats.notes if not one.startswith(LOG_ENDS)))


@dataclass(frozen=True)
class _Followed:
    """A pipe of the log, where it begins, who writes it, and what it is if nothing comes."""

    pipe: Path
    begin: str
    feeder: _Feeder
    nothing: WalStats

    def read(self, names: Callable[[], Names] = _no_names, by: str | None = None) -> WalStats:
        """Sum it to its end."""
        try:
            found = _ended(read_open(self.pipe, begin=self.begin, names=names, by=by))
        except WalError:
            # Where the log stands at a segment's begin, there is none of it yet.
            if self.feeder.has_passed_on or self.feeder.problem is not None:
                raise
            if self.feeder.removed:
                name, lsn = self.feeder.removed[0]
                raise WalIncomplete(
                    self.feeder.said_removed(), lsn=shown_lsn(lsn), path=name
                ) from None
            return self.nothing
        if not self.feeder.removed:
            return found
        return replace(
            found,
            gaps=tuple(map(self.feeder.named, found.gaps)),
            notes=(*found.notes, self.feeder.said_removed()),
        )


class _Feeder:
    """Reads what is flushed, once a second, and writes it into a pipe."""

    def __init__(
        self,
        connection: Any,
        timeline: int,
        segment_bytes: int,
        begin: int,
        until: float,
        over: threading.Event,
    ) -> None:
        self.problem: Exception | None = None
        self.has_passed_on = False
        self.removed: list[tuple[str, int]] = []
        self.stopped = threading.Event()
        self.over = over
        self._connection = connection
        self._timeline = timeline
        self._segment_bytes = segment_bytes
        self._at = begin - begin % segment_bytes
        self._until = until

    def feed(self, writing: int) -> None:
        """Write until the time is over, or nobody reads."""
        with contextlib.suppress(BrokenPipeError), open(writing, "wb", buffering=0) as pipe:
            try:
                is_over = False
                while not is_over and not self.stopped.is_set():
                    left = self._until - time.monotonic()
                    is_over = left <= 0 or self.over.wait(min(left, _EVERY_S))
                    now = flushed(self._connection)
                    self._check_timeline()  # behind it: up to there it is this timeline's log
                    self._pass_on(pipe, now)
            except BrokenPipeError:
                raise
            except Exception as problem:  # noqa: BLE001 - the reader's thread raises it
                self.problem = problem

    def said_removed(self) -> str:
        """How many segments the server has removed, and which."""
        first, last = self.removed[0][0], self.removed[-1][0]
        which = f"the segment {first}"
        if len(self.removed) > 1:
            which = f"{len(self.removed)} segments, {first} to {last},"
        return (
            f"The server removed {which} before that was read: raise wal_keep_size, or read its "
            "archive."
        )

    def named(self, gap: Gap) -> Gap:
        """A gap with the first removed segment that is in it."""
        low, high = (parsed_position(one) or 0 for one in (gap.from_lsn, gap.to_lsn))
        for name, lsn in self.removed:
            if low < lsn + self._segment_bytes and lsn < high:
                return replace(gap, path=name, why="the server removed it before it was read")
        return replace(gap, path=segment_name(self._timeline, low, self._segment_bytes))

    def _check_timeline(self) -> None:
        now = _timeline(self._connection)
        if now != self._timeline:
            name = segment_name(now, self._at, self._segment_bytes)
            raise WalIncomplete(
                f"the server went from timeline {self._timeline} to {now} while its log was read "
                f"(a promotion), behind {shown_lsn(self._at)}: read it again, or its files from "
                f"there on ({name})",
                lsn=shown_lsn(self._at),
                path=name,
            )

    def _pass_on(self, pipe: Any, flushed: int) -> None:
        while self._at < flushed and not self.stopped.is_set():
            offset = self._at % self._segment_bytes
            length = min(CHUNK_BYTES, flushed - self._at, self._segment_bytes - offset)
            name = segment_name(self._timeline, self._at, self._segment_bytes)
            (content,) = self._connection.execute(
                _READ, (f"pg_wal/{name}", offset, length)
            ).fetchone()
            if content is None or len(content) < length:
                begin = self._at - offset
                self.removed.append((name, begin))
                self._at = begin + self._segment_bytes
                continue
            self.has_passed_on = True
            rest = memoryview(bytes(content))
            while rest:
                rest = rest[pipe.write(rest) :]
            self._at += length
