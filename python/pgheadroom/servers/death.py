"""
A child that does not outlive us, by the kernel's own hand (PR_SET_PDEATHSIG, Linux).

The watchdog cleans up after a run that was killed; this is for a run that was killed together with
its watchdog. The signal comes when the *thread* ends that has started the child, so it is set for
children of the main thread alone. A change of the user clears it, and so it is set last, after
that (`commit_creds`, kernel/cred.c); PostgreSQL's programs are not set-user-ID.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1  # include/uapi/linux/prctl.h
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def ends_with_us(number: signal.Signals) -> Callable[[], None] | None:
    """
    What a child calls between fork and exec; None where the kernel cannot, or we may not ask.

    Args:
        number: The signal that the child gets when we end, in whatever way.
    """
    if _LIBC is None or threading.current_thread() is not threading.main_thread():
        return None
    libc, us = _LIBC, os.getpid()

    def ask() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
        if os.getppid() != us:  # we ended before the kernel knew
            os._exit(128 + int(number))

    return ask
