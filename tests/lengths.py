"""How many generated cases a run has."""

from __future__ import annotations

import os


def examples(count: int) -> int:
    """So many by `make test-long` (`LONG` is set), two fifths of them by `make test`."""
    return count if os.environ.get("LONG") else max(count * 2 // 5, 10)
