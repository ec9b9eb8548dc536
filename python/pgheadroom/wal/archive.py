"""
Segments out of an archive behind any program, one after another.

The program is given as servers have it in `restore_command`: `wal-g wal-fetch %f %p`. Each segment
is fetched into a folder of ours, passed on, and removed; the first that is lacking ends the input.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pgheadroom.errors import WalCorrupt, WalIncomplete

SEGMENT_BYTES_DEFAULT = 16 * 1024**2
_SIZES = [1024**2 << shift for shift in range(11)]  # IsValidWalSegSize, xlog_internal.h
_FAILED_HARD = 125  # as RestoreArchivedFile: the program was not found, or a signal ended it
_STDERR_SHOWN = 500
CHUNK_BYTES = 1024**2
"""Passed on at once; arbitrary."""


def segment_name(timeline: int, lsn: int, segment_bytes: int) -> str:
    """The segment on which a position lies (XLogFileName, xlog_internal.h)."""
    high, low = divmod(lsn // segment_bytes, 2**32 // segment_bytes)
    return f"{timeline:08X}{high:08X}{low:08X}"


def filled_in(command: str, name: str, target: Path) -> str:
    """
    The command for one segment: `%f` its name, `%p` where it goes, `%%` a percent sign.

    `%r`, the last restart point's segment, is the one that is asked for: nothing before it is.
    """
    found = []
    rest = iter(command)
    for letter in rest:
        if letter != "%":
            found.append(letter)
            continue
        mark = next(rest, "")
        known = {"f": name, "p": str(target), "r": name, "%": "%"}
        found.append(known.get(mark, f"%{mark}"))
    return "".join(found)


@contextmanager
def fetched(command: str, *, timeline: int, from_lsn: int) -> Iterator[Fetched]:
    """
    A pipe of segments, from the one with a position on.

    Args:
        command: As `restore_command`, run by the shell.
        timeline: Of which the segments are.
        from_lsn: On the first segment.

    Yields:
        The pipe, to be read once.

    Raises:
        WalIncomplete: Not even the first segment is there.
        WalCorrupt: The command itself cannot be run.
    """
    with tempfile.TemporaryDirectory(prefix="pgheadroom-wal-") as folder:
        feeder = _Feeder(command, timeline, from_lsn, Path(folder))
        feeder.fetch_first()
        reading, writing = os.pipe()
        thread = threading.Thread(target=feeder.feed, args=(writing,), daemon=True)
        thread.start()
        try:
            yield Fetched(pipe=Path(f"/dev/fd/{reading}"), feeder=feeder)
        finally:
            feeder.stop()
            os.close(reading)  # a feeder that still writes learns of it
            thread.join()
        if feeder.problem is not None:
            raise feeder.problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A pipe of segments, and who writes it."""

    pipe: Path
    feeder: _Feeder

    def at_fault(self, begin: int, end: int) -> str:
        """Of the segments between two positions the first that came cut off, else the first."""
        return self.feeder.at_fault(begin, end)


class _Whole:
    """A pipe that takes all of what is written, which one without a buffer need not."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe

    def write(self, content: bytes) -> int:
        """Write it to its end."""
        rest = memoryview(content)
        while rest:
            rest = rest[self._pipe.write(rest) :]
        return len(content)


class _Feeder:
    """Runs the command for one segment after another and writes what came into a pipe."""

    def __init__(self, command: str, timeline: int, from_lsn: int, folder: Path) -> None:
        self.problem: WalCorrupt | None = None
        self._command = command
        self._timeline = timeline
        self._lsn = from_lsn
        self._target = folder / "segment"
        self._segment_bytes = SEGMENT_BYTES_DEFAULT
        self._stopped = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._came: int | None = None
        self._said = ""
        self._cut: list[int] = []

    def at_fault(self, begin: int, end: int) -> str:
        """As `Fetched.at_fault`."""
        first = begin - begin % self._segment_bytes
        at = next((lsn for lsn in self._cut if first <= lsn < end), begin)
        return segment_name(self._timeline, at, self._segment_bytes)

    def fetch_first(self) -> None:
        """The first segment tells the size of all; its name depends on it."""
        cut: tuple[int, str] | None = None
        for size in (SEGMENT_BYTES_DEFAULT, *_SIZES):
            self._segment_bytes = size
            self._came = self._fetch()
            if self._came == size:
                return
            if self._came is not None:
                cut = cut or (self._came, segment_name(self._timeline, self._lsn, size))
        if cut is not None:
            raise WalIncomplete(
                f"the archive gave {cut[0]:,} bytes for the segment {cut[1]}, which is no "
                "segment's size: expected the first segment of the range whole, since it tells "
                "where the others begin"
            )
        name = segment_name(self._timeline, self._lsn, SEGMENT_BYTES_DEFAULT)
        said = f"; it said: {self._said}" if self._said else ""
        raise WalIncomplete(
            f"the archive gave no segment {name}: {self._command!r} failed or wrote none{said}; "
            "expected the first segment of the range there (timeline and position decide its name)"
        )

    def feed(self, writing: int) -> None:
        """Write segments until one is lacking, or nobody reads."""
        with contextlib.suppress(OSError), open(writing, "wb", buffering=0) as pipe:
            try:
                while self._came is not None and not self._stopped.is_set():
                    if self._came != self._segment_bytes:
                        self._cut.append(self._lsn)
                    with self._target.open("rb") as segment:
                        shutil.copyfileobj(segment, _Whole(pipe), CHUNK_BYTES)
                    self._lsn += self._segment_bytes
                    self._came = self._fetch()
            except WalCorrupt as problem:
                self.problem = problem

    def stop(self) -> None:
        """No further segment."""
        self._stopped.set()
        process = self._process
        if process is not None and process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)

    def _fetch(self) -> int | None:
        """How long the segment at the position is; None where the archive lacks it."""
        if self._stopped.is_set():
            return None
        self._target.unlink(missing_ok=True)
        name = segment_name(self._timeline, self._lsn, self._segment_bytes)
        line = filled_in(self._command, name, self._target)
        self._process = subprocess.Popen(  # noqa: S602 - as a server runs its restore_command
            line,
            shell=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        _, said = self._process.communicate()
        self._said = said.decode(errors="replace").strip()[-_STDERR_SHOWN:]
        code = self._process.returncode
        if not (0 <= code <= _FAILED_HARD) and not self._stopped.is_set():
            raise WalCorrupt(
                f"the archive's program cannot be run, or a signal ended it (exit code {code}): "
                f"{line}; it said: {self._said or 'nothing'}; expected a command as in "
                "restore_command, with %f and %p"
            )
        if code != 0 or not self._target.exists():
            return None
        return self._target.stat().st_size
