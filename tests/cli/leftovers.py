"""What a run leaves behind, once the watchdog has had its time."""

from __future__ import annotations

import time
from pathlib import Path


def eventually_empty(folder: Path) -> list[str]:
    """What is left after the watchdog has had its time."""
    deadline = time.monotonic() + 30
    while (left := [path.name for path in folder.iterdir()]) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left
