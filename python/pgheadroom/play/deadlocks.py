"""
Deadlocks that the server finds while clients run: how many so far, and when there are too many.

One that waits for itself is found after `deadlock_timeout`, a second in which its client and those
behind it stand still. A few are part of a workload; where they follow each other the run would
take a second a transaction, and measure nothing but that.
"""

from __future__ import annotations

import time
from pathlib import Path

from pgheadroom.errors import MeasurementInvalid

_FOUND = b"ERROR:  deadlock detected"
_LOOK_EVERY_S = 0.5
FEW = 20
"""So many are borne however fast they come; arbitrary."""
_SHARE_S = 5
"""Beyond them one in so many seconds is: a fifth of the time then goes into waiting; arbitrary."""


class Deadlocks:
    """Those of one run; `step` is to be called often while it lasts."""

    def __init__(self, log: Path) -> None:
        self.count = 0
        self._log = log
        self._read_bytes = log.stat().st_size
        self._started = self._looked = time.monotonic()

    def step(self) -> None:
        """
        Look whether there are more, now and then.

        Raises:
            MeasurementInvalid: They follow each other.
        """
        now = time.monotonic()
        if now - self._looked < _LOOK_EVERY_S:
            return
        self._looked = now
        self.look()
        elapsed_s = now - self._started
        if self.count > max(FEW, elapsed_s / _SHARE_S):
            raise MeasurementInvalid(
                f"the server found {self.count} deadlock{'s' * (self.count > 1)} in "
                f"{elapsed_s:.0f} s, each after "
                "deadlock_timeout (1 s): clients lock the same rows in different orders, and the "
                "run would mostly wait; expected at most one in "
                f"{_SHARE_S} s. Let transactions lock rows in one order, fewer of them at once, "
                "or play one client"
            )

    def look(self) -> None:
        """Count what the log has by now."""
        with self._log.open("rb") as file:
            file.seek(self._read_bytes)
            # A line that is not whole yet is read the next time.
            text = file.read().rpartition(b"\n")[0]
        self._read_bytes += len(text)
        self.count += text.count(_FOUND)
