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
from pgheadroom.profile.change import Change
from pgheadroom.profile.model import SCHEMA_VERSION, ProfileFile, ServerSettings
from pgheadroom.profile.tables import ColumnProfile, IndexProfile, TableProfile, Values
from pgheadroom.profile.workload import Operation, Pick, Run

DELTA_SPAN = 5000
"""The script's `random(-5000, 5000)`."""

_DRAWS = 20_000
"""Updates that are drawn for each window: the mean is off by about a hundredth of a byte."""

_COLUMNS = (
    ColumnProfile(name="aid", type="int4", values=Values(kind="serial")),
    ColumnProfile(name="bid", type="int4"),
    ColumnProfile(name="abalance", type="int4"),
    ColumnProfile(name="filler", type="bpchar(84)"),
)
_UPDATE = Operation(
    table=TABLE,
    kind="update",
    sets=(Change(column="abalance"),),
    pick=Pick(distribution="uniform"),
)


def accounts_update(
    scale: int, fillfactor: int, run: Run, *, server: ServerSettings
) -> ProfileFile:
    """`pgbench_accounts` and the script as a profile."""
    table = TableProfile(
        name=TABLE,
        rows=scale * ROWS_PER_SCALE,
        fillfactor=fillfactor,
        columns=_COLUMNS,
        indexes=(IndexProfile(name="pkey", columns=("aid",), unique=True),),
    )
    return ProfileFile(
        schema_version=SCHEMA_VERSION,
        server=server,
        tables=(table,),
        operations=(_UPDATE,),
        run=run,
    )


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
