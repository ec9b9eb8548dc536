"""
A terminal that gives single keys, and is left as it was found, whatever happens.
"""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager

_NAMED = {
    b"\x1b[A": "up",
    b"\x1bOA": "up",
    b"\x1b[B": "down",
    b"\x1bOB": "down",
    b"\x1b[5~": "page up",
    b"\x1b[6~": "page down",
    b"\x1b[H": "home",
    b"\x1b[1~": "home",
    b"\x1b": "escape",
    b"\r": "enter",
    b"\n": "enter",
    b"\x7f": "backspace",
    b"\x08": "backspace",
}


@contextmanager
def single_keys() -> Iterator[int]:
    """
    Have keys come one by one and unseen while the block runs; Ctrl-C stays what it is.

    Yields:
        The descriptor to wait for.
    """
    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)
    try:
        tty.setcbreak(number, termios.TCSANOW)
        yield number
    finally:
        # What was typed and not read is for nobody, least of all for the shell.
        termios.tcsetattr(number, termios.TCSAFLUSH, before)


def pressed(number: int, wait_s: float) -> list[str]:
    """
    Keys that are pressed, the first of them awaited.

    Args:
        number: From `single_keys`.
        wait_s: For how long.

    Raises:
        EOFError: The terminal is gone.
    """
    ready, _, _ = select.select([number], [], [], wait_s)
    if not ready:
        return []
    data = os.read(number, 1024)
    if not data:
        raise EOFError
    return list(keys_in(data))


def keys_in(data: bytes) -> Iterator[str]:
    """The keys' names; a character is its own, and a sequence that nobody knows none."""
    place = 0
    while place < len(data):
        if data[place : place + 1] == b"\x1b":
            end = _sequence_end(data, place)
            name = _NAMED.get(data[place:end])
        else:
            end = place + _character_bytes(data[place])
            name = _NAMED.get(data[place:end])
            if name is None:
                text = data[place:end].decode("utf-8", "ignore")
                name = text if text.isprintable() and text else None
        if name is not None:
            yield name
        place = end


def _sequence_end(data: bytes, place: int) -> int:
    """Where an escape sequence ends: ESC alone, ESC O x, or ESC [ ... with a final byte."""
    if data[place + 1 : place + 2] == b"O":
        return min(place + 3, len(data))
    if data[place + 1 : place + 2] != b"[":
        return place + 1
    end = place + 2
    while end < len(data) and not 0x40 <= data[end] <= 0x7E:
        end += 1
    return min(end + 1, len(data))


def _character_bytes(first: int) -> int:
    """How many bytes of UTF-8 a character has, by its first."""
    if first < 0xC0:
        return 1
    return 2 if first < 0xE0 else 3 if first < 0xF0 else 4
