"""
The log of an interval out of files: a server's `pg_wal`, or the archive that it fills.

The connection says where the log stands at both ends, which every role may ask; files are read
after the interval. An archive has a segment only when it is full, so what it lacks at the end is a
gap, named as every other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pgheadroom.errors import InputError
from pgheadroom.sources.session import read_only_session
from pgheadroom.wal.live import flushed
from pgheadroom.wal.paths import existing
from pgheadroom.wal.reading import LOG_ENDS, parsed_position, read_wal, shown_lsn
from pgheadroom.wal.values import Gap, WalStats

_SYSTEM = "SELECT system_identifier::text FROM pg_control_system()"
_LACKING = "the files do not have it"


class FileLog:
    """
    As `WalWatch`, by files.

    Raises:
        InputError: No such files, or those of another server; said before the interval is spent.
        ConnectionFailed: No connection.
    """

    def __init__(self, conninfo: str, parameters: Mapping[str, str], paths: Sequence[Path]) -> None:
        self._asked = (conninfo, dict(parameters))
        self._paths = tuple(existing(list(paths)))
        if self._paths == (Path("-"),):
            raise InputError("-: the log of an interval is in files that stay: expected a folder")
        self._begin = 0
        with read_only_session(*self._asked) as connection:
            self._check(connection)

    def start(self) -> None:
        """Begin at what is flushed now."""
        self._begin = self._now()

    def finish(self) -> WalStats:
        """End at what is flushed now, and read; what the files lack of the interval is a gap."""
        end = self._now()
        stats = read_wal(self._paths, begin=shown_lsn(self._begin), end=shown_lsn(end))
        return _to_the_end(stats, self._begin, end, self._paths[0])

    def _now(self) -> int:
        with read_only_session(*self._asked) as connection:
            return flushed(connection)

    def _check(self, connection: Any) -> None:
        now = shown_lsn(flushed(connection))
        (expected,) = connection.execute(_SYSTEM).fetchone()
        found = read_wal(self._paths, begin=now).system_identifier
        if found != expected:
            raise InputError(
                f"{', '.join(map(str, self._paths))}: the log of server {found}, and the "
                f"connection's is {expected} (system identifiers): expected its own log"
            )


def _to_the_end(stats: WalStats, begin: int, end: int, path: Path) -> WalStats:
    """With a gap where the files end before the interval does."""
    notes = tuple(one for one in stats.notes if not one.startswith(LOG_ENDS))
    shown = [stats.end_lsn, *(gap.to_lsn for gap in stats.gaps)]
    reached = [parsed_position(one) or 0 for one in shown if one is not None]
    last = max([begin, *reached])
    if last >= end:
        return replace(stats, notes=notes)
    gap = Gap(from_lsn=shown_lsn(last), to_lsn=shown_lsn(end), path=str(path), why=_LACKING)
    return replace(stats, notes=notes, gaps=(*stats.gaps, gap))
