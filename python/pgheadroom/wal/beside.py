"""
The log of an interval beside an observation of it, where that is wanted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pgheadroom.errors import ParameterError
from pgheadroom.profile import Profile
from pgheadroom.wal.from_files import FileLog
from pgheadroom.wal.live import WalWatch
from pgheadroom.wal.names import Names, NamesMeanwhile
from pgheadroom.wal.observed import with_log
from pgheadroom.wal.values import WalStats


class LogBeside:
    """The log of an interval; nothing where it is not wanted."""

    def __init__(
        self,
        target: str,
        parameters: Mapping[str, str],
        log: WalWatch | FileLog | None,
        *,
        source: str = "the server's files",
    ) -> None:
        self._asked = (target, parameters)
        self._source = source
        self._log = log
        self._names: NamesMeanwhile | None = None
        self._found: tuple[WalStats, Names] | None = None

    def at(self, moment: str) -> None:
        """Called before the first counters are read, with `start`, and after the last."""
        if self._log is not None and moment == "start":
            self._names = NamesMeanwhile(*self._asked)
            self._log.start()
        elif self._log is not None and self._names is not None and moment == "end":
            self._found = (self._log.finish(), self._names())

    def add(self, profile: Profile) -> Profile:
        """The profile with the log that was read."""
        if self._found is None:
            return profile
        return with_log(profile, *self._found, source=self._source)


@contextlib.contextmanager
def beside(
    target: str, parameters: Mapping[str, str], *, wanted: bool, files: Sequence[Path] = ()
) -> Iterator[LogBeside]:
    """
    Beside an observation.

    Args:
        target: A connection, as libpq takes it.
        parameters: Of the connection, beside it.
        wanted: Whether the server is asked for its log.
        files: Files and folders that the log is read from instead.

    Raises:
        ParameterError: Both are asked for.
        InputError: Files that are not there, or another server's.
        PrivilegeMissing: The role may not read the log; said before the interval is spent.
    """
    if files and wanted:
        raise ParameterError(
            "wal_files",
            "beside `wal`: the log is read once, expected one of them",
            mentions=("wal",),
        )
    if files:
        log = FileLog(target, parameters, files)
        yield LogBeside(target, parameters, log, source="files beside the connection")
        return
    if not wanted:
        yield LogBeside(target, parameters, None)
        return
    with WalWatch(target, parameters) as watch:
        yield LogBeside(target, parameters, watch)
