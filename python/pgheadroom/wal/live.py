"""
The log of a running server: what it flushes while we read, through one read-only connection.

`pg_read_binary_file` gives it in bounded chunks, from the segment in which the log stands up to
what is flushed, and on a standby up to what was received. No slot is made: a segment that the
server removes before it was read ends the reading, and is named.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pgheadroom.errors import PrivilegeMissing, SourceError, WalError, WalIncomplete
from pgheadroom.quoting import identifier
from pgheadroom.sources.session import read_only_session
from pgheadroom.wal.archive import segment_name
from pgheadroom.wal.names import Names
from pgheadroom.wal.reading import parsed_position, read_wal, shown_lsn
from pgheadroom.wal.values import WalStats

CHUNK_BYTES = 1024**2
"""Read at once. Arbitrary: a server answers in milliseconds."""

_EVERY_S = 1.0
_FUNCTION = "pg_catalog.pg_read_binary_file(text,bigint,bigint,boolean)"
_FLUSHED = """
SELECT CASE WHEN pg_is_in_recovery()
            THEN coalesce(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())
            ELSE pg_current_wal_flush_lsn() END::text
"""
_PLACE = """
SELECT timeline_id, pg_size_bytes(current_setting('wal_segment_size'))
  FROM pg_control_checkpoint()
"""
_MAY = f"SELECT has_function_privilege('{_FUNCTION}', 'EXECUTE'), current_user"
_READ = "SELECT pg_read_binary_file(%s, %s, %s, true)"


def grants(conninfo: str, parameters: Mapping[str, str]) -> str:
    """The statement that lets the role read the log; empty if it may."""
    with read_only_session(conninfo, parameters) as connection:
        return _missing(connection)


def read_live(
    conninfo: str,
    parameters: Mapping[str, str],
    *,
    seconds: float,
    names: Names | None = None,
    by: str | None = None,
) -> WalStats:
    """
    Sum what a server writes in an interval.

    Args:
        conninfo: A libpq URI or conninfo string, empty for the environment.
        parameters: libpq parameters that overrule it.
        seconds: How long.
        names: What relations are called.
        by: `transaction`; what wants the log twice is not for a running server.

    Raises:
        ConnectionFailed: No connection.
        PrivilegeMissing: The role may not read the files of the log.
        WalIncomplete: The server removed a segment before it was read.
    """
    with read_only_session(conninfo, parameters) as connection:
        wanted = _missing(connection)
        if wanted:
            raise PrivilegeMissing(
                f"the role may not read the log's files; a superuser can allow it: {wanted} "
                "(with it the role can read every file in the server's data directory)"
            )
        with _followed(connection, seconds) as (pipe, begin):
            return read_wal(pipe, begin=begin, names=names, by=by)


def _missing(connection: Any) -> str:
    may, role = connection.execute(_MAY).fetchone()
    return "" if may else f"GRANT EXECUTE ON FUNCTION {_FUNCTION} TO {identifier(role)};"


@contextmanager
def _followed(connection: Any, seconds: float) -> Iterator[tuple[Path, str]]:
    """A pipe of the log from now on, and where it is now."""
    timeline, segment_bytes = connection.execute(_PLACE).fetchone()
    begin = _flushed(connection)
    feeder = _Feeder(connection, timeline, segment_bytes, begin, time.monotonic() + seconds)
    reading, writing = os.pipe()
    thread = threading.Thread(target=feeder.feed, args=(writing,), daemon=True)
    thread.start()
    failed: WalError | None = None
    try:
        yield Path(f"/dev/fd/{reading}"), shown_lsn(begin)
    except WalError as error:
        failed = error
    finally:
        feeder.stopped.set()
        os.close(reading)  # a feeder that still writes learns of it
        thread.join()
    # What the reader misses is what it did not get: the feeder says why.
    problem = feeder.problem or failed
    if problem is not None:
        raise problem


def _flushed(connection: Any) -> int:
    (shown,) = connection.execute(_FLUSHED).fetchone()
    lsn = None if shown is None else parsed_position(shown)
    if lsn is None:
        raise SourceError("the server says no position of its log: expected one that has received")
    return lsn


class _Feeder:
    """Reads what is flushed, once a second, and writes it into a pipe."""

    def __init__(
        self, connection: Any, timeline: int, segment_bytes: int, begin: int, until: float
    ) -> None:
        self.problem: Exception | None = None
        self.stopped = threading.Event()
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
                    is_over = left <= 0 or self.stopped.wait(min(left, _EVERY_S))
                    self._pass_on(pipe, _flushed(self._connection))
            except BrokenPipeError:
                raise
            except Exception as problem:  # noqa: BLE001 - the reader's thread raises it
                self.problem = problem

    def _pass_on(self, pipe: Any, flushed: int) -> None:
        while self._at < flushed and not self.stopped.is_set():
            offset = self._at % self._segment_bytes
            length = min(CHUNK_BYTES, flushed - self._at, self._segment_bytes - offset)
            name = segment_name(self._timeline, self._at, self._segment_bytes)
            (content,) = self._connection.execute(
                _READ, (f"pg_wal/{name}", offset, length)
            ).fetchone()
            if content is None or len(content) < length:
                raise WalIncomplete(
                    f"the server removed the segment {name} before it was read, at "
                    f"{shown_lsn(self._at)}: raise wal_keep_size, or read its archive",
                    lsn=shown_lsn(self._at),
                    path=name,
                )
            rest = memoryview(bytes(content))
            while rest:
                rest = rest[pipe.write(rest) :]
            self._at += length
