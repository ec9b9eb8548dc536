"""
How long a table is played: until it is steady, and no longer than anybody looks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pgheadroom.profile import Operation, ServerSettings
from pgheadroom.profile.tables import TableProfile
from pgheadroom.profile.workload import by_transaction

ROWS_MIN = 1000
"""A table with no more rows is played as it is."""

UPDATES_PER_ROW = 4.0
"""How long a run is, where nothing asks for more: after the first round of updates a page that was
full has room from the second on."""

_OPERATIONS_MAX = 120_000  # half a second of the twin's time, where it does not have to search
_OPERATIONS_FEW = 40_000  # of a table with few rows, each of which is updated all the time
_NAPTIMES_FEW = 3
_NAPTIMES_MIN = 6
_CHECKPOINTS_MIN = 4
HORIZON_S = 30 * 86_400.0
"""What comes later than in a month is no reason for a change now."""

_GROWTH_MAX = 1.0  # rows inserted over rows at the start: then it is another table
_DELETED_MAX = 0.5  # rows deleted over rows at the start, where operations know no later rows
_TURNOVERS = 4.0  # how often rows are replaced in a run, where operations follow them
_CYCLES_SHOWN_MAX = 40  # with more, where in a cycle a window ends makes no difference
_WINDOWS, _WINDOWS_MAX = 16, 120
_WINDOW_UPDATES = 0.2  # updates a row in a window, no more where that is possible


def follows_rows(operations: Sequence[Operation]) -> bool:
    """Whether all that updates and deletes rows of a table follows those that are there."""
    picked = [o for o in operations if o.is_update or o.kind == "delete"]
    return bool(picked) and all(o.is_living or o.is_head for o in picked)


def transactions_weight(operations: Sequence[Operation]) -> int:
    """Of all transactions; each has the weight of its first operation."""
    return sum(found[0].weight for found in by_transaction(operations))


def operations_max(table: TableProfile, work: WorkRate, server: ServerSettings) -> int:
    """
    Operations of a run at most.

    A table with few rows cannot be shrunk, and is steady soon: some naptimes of autovacuum do.
    """
    if table.rows > ROWS_MIN:
        return _OPERATIONS_MAX
    naptimes = _NAPTIMES_FEW * (server.autovacuum_naptime_s or 60.0) * work.per_s
    return round(min(max(naptimes, _OPERATIONS_FEW), _OPERATIONS_MAX))


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkRate:
    """
    What is done to a table: transactions a second; by transaction updates, more rows, deletes.

    `is_followed`: who updates and deletes follows the rows that are there.
    """

    rows: int
    per_s: float
    updates_frac: float
    growth_frac: float
    deletes_frac: float
    is_followed: bool

    @classmethod
    def of(cls, operations: Sequence[Operation], rows: int, interval_s: float) -> WorkRate:
        """Of a table with so many rows, by the operations of an interval of so many seconds."""
        weight = transactions_weight(operations)

        def is_of(one: Operation, kind: str) -> bool:
            return one.kind == kind or (kind == "update" and one.is_update)

        def touched(kind: str) -> float:
            weights = {id(o): t[0].weight for t in by_transaction(operations) for o in t}
            found = (weights[id(o)] * o.rows_mean for o in operations if is_of(o, kind))
            return sum(found) / weight

        return cls(
            rows=rows,
            per_s=weight / interval_s,
            updates_frac=touched("update"),
            growth_frac=max(0.0, touched("insert") - touched("delete")),
            deletes_frac=touched("delete"),
            is_followed=follows_rows(operations),
        )

    def duration_s(self, server: ServerSettings) -> float:
        """Of a run: enough for a steady state, and no more than is worth waiting for."""
        wanted = UPDATES_PER_ROW / self.updates_frac if self.updates_frac else 1.0
        found = wanted * self.rows / self.per_s
        if self.is_followed and self.deletes_frac:
            found = max(found, _TURNOVERS * self.rows / (self.deletes_frac * self.per_s))
        at_least = 0.0
        if server.autovacuum:
            at_least = _NAPTIMES_MIN * (server.autovacuum_naptime_s or 60.0)
        distance = server.checkpoint_interval_s
        assert distance is not None, "set for every scenario"
        at_least = max(at_least, _CHECKPOINTS_MIN * distance)
        found = min(max(found, at_least), max(HORIZON_S, at_least), self._another_table_s())
        # Checkpoints begin at multiples of their distance; the run ends between two of them.
        return distance * (max(1, round(found / distance)) + 0.5)

    def longest_s(self, server: ServerSettings) -> float:
        """Of any run."""
        return max(self.duration_s(server), min(HORIZON_S, self._another_table_s()))

    def _another_table_s(self) -> float:
        """Until so many rows have come or gone that it is another table."""
        found = math.inf
        if self.growth_frac:
            found = _GROWTH_MAX * self.rows / self.growth_frac / self.per_s
        if self.deletes_frac and not self.is_followed:
            found = min(found, _DELETED_MAX * self.rows / self.deletes_frac / self.per_s)
        return found


def windows_of(
    duration_s: float, server: ServerSettings, updates_per_row: float
) -> tuple[int, int]:
    """
    Windows of a run, and the first that counts as steady.

    Half a checkpoint's distance each, begun in the middle between two checkpoints: then chance does
    not decide whether the images of a checkpoint fall into what is looked at. Where rows are
    updated often meanwhile, windows are shorter, so that the table's age can be found.
    """
    wanted = min(_WINDOWS_MAX, updates_per_row / _WINDOW_UPDATES)
    distance = server.checkpoint_interval_s
    assert distance is not None, "set for every scenario"
    cycles = int(duration_s / distance)
    if not 1 <= cycles <= _CYCLES_SHOWN_MAX:
        windows = max(_WINDOWS, math.ceil(wanted))
        return windows, windows // 2
    parts = max(1, math.ceil(wanted / (2 * cycles + 1)))
    return parts * (2 * cycles + 1), parts * (2 * (cycles // 2) + 1)
