"""
Reading a file that the user names: bounded, whatever stands there.

A path may name a folder, a device without end, a pipe that nobody writes, gigabytes. What is read
is bounded by what such a file can have; pipes are read, for `/dev/stdin` and a shell's `<(...)`
are pipes.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import re
import select
import stat
import time
from pathlib import Path
from typing import Any

from pgheadroom.errors import InputError

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # as JSON spells one; a pair is a character
_CHUNK_BYTES = 1024**2
_WRITER_WAIT_S = 2.0  # for `program > fifo & pgheadroom ... fifo`; arbitrary


def exists(path: Path) -> bool:
    """Whether something is there; a name that no file can have is not."""
    try:
        return path.exists()
    except (OSError, ValueError):  # too long, not to be entered, with a NUL
        return False


def read_text(path: Path, *, bytes_max: int, expected: str, errors: str = "strict") -> str:
    """
    The text of a file, UTF-8, with or without a byte order mark.

    Args:
        path: A file, or a pipe.
        bytes_max: What it may have.
        expected: What it should be, for messages.
        errors: As for `bytes.decode`.

    Raises:
        InputError: As `read_bytes`; or it is not UTF-8.
    """
    content = read_bytes(path, bytes_max=bytes_max, expected=expected)
    try:
        return content.decode("utf-8-sig", errors)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8 text ({error.reason} at byte {error.start}): expected {expected}"
        ) from None


def read_bytes(path: Path, *, bytes_max: int, expected: str) -> bytes:
    """
    The content of a file.

    Args:
        path: A file, or a pipe.
        bytes_max: What it may have.
        expected: What it should be, for messages.

    Raises:
        InputError: No such file, not readable, a folder, a device, a pipe without a writer, or
            larger than it may be.
    """
    try:
        # Without O_NONBLOCK a pipe that nobody writes would block already here.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise InputError(f"no such file: {path}; expected {expected}") from None
    except OSError as error:
        raise _unreadable(path, error, expected) from None
    except ValueError:  # a NUL in the name
        raise InputError(f"no file can be called {str(path)!r}: expected {expected}") from None
    try:
        _check_kind(path, os.fstat(handle), handle, bytes_max, expected)
        return _read(path, handle, bytes_max, expected)
    except OSError as error:
        raise _unreadable(path, error, expected) from None
    finally:
        os.close(handle)


def read_standard_input(*, bytes_max: int, expected: str) -> str:
    """
    All of standard input, as `read_text` reads a file.

    Raises:
        InputError: It cannot be read, is too large, or is not UTF-8.
    """
    path = Path("standard input")
    try:
        return _read(path, 0, bytes_max, expected).decode("utf-8-sig")
    except OSError as error:
        raise _unreadable(path, error, expected) from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8 text ({error.reason} at byte {error.start})"
        ) from None


def load_json(text: str) -> Any:
    """
    The data of a JSON text that holds only what we could write again.

    Raises:
        ValueError: No JSON, a number that is none or infinite, half of a surrogate pair.
        RecursionError: Nested too deep.
    """

    def finite(spelled: str) -> float:
        number = float(spelled)
        if not math.isfinite(number):
            raise ValueError(f"{spelled} is no finite number")
        return number

    data = json.loads(text, parse_constant=finite, parse_float=finite)
    if _SURROGATE.search(text) is not None:
        json.dumps(data, ensure_ascii=False).encode()
    return data


def _check_kind(
    path: Path, found: os.stat_result, handle: int, bytes_max: int, expected: str
) -> None:
    if stat.S_ISREG(found.st_mode):
        if found.st_size > bytes_max:
            raise _too_large(path, bytes_max, expected)
        return
    if stat.S_ISDIR(found.st_mode):
        raise InputError(f"{path} is a folder: expected {expected}")
    if not (stat.S_ISFIFO(found.st_mode) or stat.S_ISSOCK(found.st_mode) or os.isatty(handle)):
        raise InputError(f"{path} is a device: expected {expected}")


def _read(path: Path, handle: int, bytes_max: int, expected: str) -> bytes:
    content = bytearray()
    is_pipe = stat.S_ISFIFO(os.fstat(handle).st_mode)
    # Only a pipe by name, opened without waiting, has nothing yet because nobody writes yet.
    deadline = time.monotonic() + _WRITER_WAIT_S if is_pipe and handle != 0 else None
    while len(content) <= bytes_max:
        try:
            chunk = os.read(handle, min(_CHUNK_BYTES, bytes_max + 1 - len(content)))
        except BlockingIOError:  # somebody writes, but has not written yet
            select.select([handle], [], [])
            deadline = None
            continue
        if chunk:
            content += chunk
        elif content or deadline is None:
            return bytes(content)
        elif time.monotonic() > deadline:
            raise InputError(f"{path} is a pipe that nobody writes: expected {expected}")
        else:
            time.sleep(0.02)
    raise _too_large(path, bytes_max, expected)


def _too_large(path: Path, bytes_max: int, expected: str) -> InputError:
    return InputError(f"{path} is larger than {bytes_max // 1024**2} MiB: expected {expected}")


def _unreadable(path: Path, error: OSError, expected: str) -> InputError:
    with contextlib.suppress(OSError):
        if error.errno == errno.ENXIO and stat.S_ISSOCK(path.stat().st_mode):
            return InputError(f"{path} is a socket: expected {expected}")
    return InputError(f"{path} cannot be read: {error.strerror}; expected {expected}")
