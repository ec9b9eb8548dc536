"""
The script `accounts-update` as a profile, and what a profile cannot say of it.

A profile's update adds 1 to a number; the script adds a random number, which changes more bytes of
the row. The record of an update on the same page holds the bytes from the first to the last that
changed (`log_heap_update`, src/backend/access/heap/heapam.c), so it is longer by the difference.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache

from pgheadroom.lab.base.accounts_trial import ROWS_PER_SCALE, TABLE
from pgheadroom.lab.predicted import Data

DELTA_SPAN = 5000
"""The script's `random(-5000, 5000)`."""

_DRAWS = 20_000
"""Updates that are drawn for each window: the mean is off by about a hundredth of a byte."""

_COLUMNS = {"aid": "int4", "bid": "int4", "abalance": "int4", "filler": "bpchar(84)"}


def accounts_update(scale: int, fillfactor: int) -> Data:
    """`pgbench_accounts` and the script as parts of a profile."""
    return {
        "table": [
            {
                "name": TABLE,
                "rows": scale * ROWS_PER_SCALE,
                "fillfactor": fillfactor,
                "columns": [{"name": name, "type": type_} for name, type_ in _COLUMNS.items()],
                "indexes": [{"name": "pkey", "columns": ["aid"], "unique": True}],
            }
        ],
        "operation": [
            {
                "table": TABLE,
                "kind": "update",
                "sets": ["abalance"],
                "pick": {"distribution": "uniform"},
            }
        ],
    }


@lru_cache(maxsize=64)
def further_bytes(rows: int, updates: int, windows: int = 1) -> Sequence[float]:
    """
    By how many bytes more than a profile's update the script's changes a row, on average.

    Args:
        rows: Of the table.
        updates: In each window, uniform over the rows.
        windows: How many follow each other, from a freshly loaded table on.
    """
    draws = min(updates, _DRAWS)
    balances = [0] * max(1, round(rows * draws / updates))
    drawn = random.Random(1)  # noqa: S311 - a mean, not a secret
    found = []
    for _ in range(windows):
        total = 0
        for _ in range(draws):
            place = drawn.randrange(len(balances))
            changed = balances[place] + drawn.randint(-DELTA_SPAN, DELTA_SPAN)
            total += _changed_bytes(balances[place], changed) - 1
            balances[place] = changed
        found.append(total / draws)
    return found


def _changed_bytes(before: int, after: int) -> int:
    """Bytes from the first to the last that differ, of two int4 as they are stored."""
    different = (before ^ after) & 0xFFFFFFFF
    if not different:
        return 0
    first = ((different & -different).bit_length() - 1) // 8
    return (different.bit_length() - 1) // 8 - first + 1
