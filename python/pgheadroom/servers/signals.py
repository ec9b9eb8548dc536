"""
A polite end by signal: SIGTERM and SIGHUP unwind `with` blocks as Ctrl-C does, and none is lost.

By default they end Python at once. The watchdog would clean up all the same, but records of a run
could not be closed, and the caller would not wait until everything is gone.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
_ENDING = (signal.SIGINT, *_SIGNALS)


def _raise_exit(number: int, _frame: FrameType | None) -> None:
    # Exit codes of shells: 128 and the signal's number.
    raise SystemExit(128 + number)


@contextlib.contextmanager
def terminate_cleanly() -> Iterator[None]:
    """
    Turn SIGTERM and SIGHUP into `SystemExit` while the block runs; only in the main thread.

    A signal that is ignored, as under nohup, stays so. In another thread, which cannot receive
    signals, the block just runs.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        for number, handler in before.items():
            if handler != signal.SIG_IGN:
                signal.signal(number, _raise_exit)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """
    Let a signal that ends us wait until the block is done; only in the main thread.

    For blocks that fork. What a handler raises within a hook of `os.register_at_fork` Python prints
    and forgets (`run_at_forkers`, Modules/posixmodule.c, 3.11), `logging` has such a hook, and a
    signal that comes during the fork is handled first of all there: the run would not end.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    come: list[int] = []
    before = {number: signal.getsignal(number) for number in _ENDING}
    ours = {number: handler for number, handler in before.items() if callable(handler)}
    try:
        for number in ours:
            signal.signal(number, lambda number, _frame: come.append(number))
        yield
    finally:
        for number, handler in reversed(ours.items()):
            signal.signal(number, handler)
        for first in come[:1]:
            signal.raise_signal(first)
