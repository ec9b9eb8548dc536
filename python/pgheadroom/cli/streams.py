"""
Standard output and standard error of the program: full, closed, or read to the half.

Standard output that cannot be written is an error that the user sees (`OutputFailed`); a reader
who has enough (`| head`) is none: what is left goes nowhere, and the exit code stays the
command's own, so that `check ... | head` still says what it found. Standard error is for people:
where it cannot be written, nobody can be told.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import sys
from typing import Any

from pgheadroom.errors import OutputFailed


class _Output(io.FileIO):
    """Writes to standard output; a failure is `OutputFailed`, once."""

    def write(self, data: Any, /) -> int:
        """Write, and wait where the other end is not ready."""
        try:
            while (written := super().write(data)) is None:
                select.select([], [self.fileno()], [])
        except BrokenPipeError:
            _to_nowhere(self.fileno())
            return memoryview(data).nbytes
        except OSError as error:
            _to_nowhere(self.fileno())
            raise OutputFailed(
                f"standard output cannot be written: {error.strerror}; give it room, or write "
                "into a file with --output"
            ) from None
        return written


class _Messages(io.FileIO):
    """Writes to standard error as far as it can."""

    def write(self, data: Any, /) -> int:
        """Write; what cannot be written is lost."""
        try:
            while (written := super().write(data)) is None:
                select.select([], [self.fileno()], [])
        except OSError:
            return memoryview(data).nbytes
        return written


def guard_streams() -> None:
    """Put guarded streams in the place of the process's own; once, at its beginning."""
    # A descriptor that is closed would be given to the next file that we open.
    for number, flags in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        _occupy(number, flags)
    sys.stdout = _text(_Output(1, "w", closefd=False), sys.stdout)
    sys.stderr = _text(_Messages(2, "w", closefd=False), sys.stderr, by_line=True)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - for good


def _occupy(number: int, flags: int) -> None:
    try:
        os.fstat(number)
    except OSError:
        opened = os.open(os.devnull, flags)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)


def _text(raw: io.FileIO, before: Any, *, by_line: bool = False) -> io.TextIOWrapper:
    encoding = "utf-8" if before is None else before.encoding
    # A sign that the terminal does not have is no reason to stop.
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=encoding,
        errors="backslashreplace",
        line_buffering=by_line or raw.isatty(),
        write_through=by_line,
    )


def _to_nowhere(number: int) -> None:
    """What is written later, at the latest when the process ends, must not fail again."""
    with contextlib.suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)
