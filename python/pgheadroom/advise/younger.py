"""
Operations on a share of the rows: ages, which count rows, are fewer by as much.

A queue with a tenth of the rows, and a tenth of the inserts, updates and deletes, is a queue whose
pages live as those of the whole do, as far as a page is small beside what comes between a row's
insert and its update. So some pages stay between them, if there were so many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pgheadroom.profile import Operation
from pgheadroom.profile.workload import Pick, by_transaction


def younger(
    operations: Sequence[Operation], rows: int, share: float, *, kept_rows: int = 0
) -> tuple[Operation, ...]:
    """
    The operations on so many rows, which are a share of the whole.

    Ages of one transaction that follow on each other, rows that are updated together, stay so.

    Args:
        operations: Of one table.
        rows: That it has now.
        share: Those over the rows that it had.
        kept_rows: An age is not made less than this.
    """
    made: dict[int, Operation] = {}
    for transaction in by_transaction(operations):
        least: int | None = None  # of the rows that are updated together, before it was shrunk
        for operation in reversed(transaction):
            pick = operation.pick
            if pick is None or share == 1:
                made[id(operation)] = operation
                continue
            low, high = pick.min_age_rows, pick.max_age_rows
            if low is not None and (
                least is None or low != high or not 0 <= low - least < len(transaction)
            ):
                least = low
            made[id(operation)] = replace(
                operation, pick=_younger(pick, rows, share, kept_rows, least or 0)
            )
    return tuple(made[id(operation)] for operation in operations)


def of_each(operations: Sequence[Operation], clients: int) -> tuple[Operation, ...]:
    """
    The operations of each of several clients, whose ages count its own rows.

    Args:
        operations: With ages in rows of all.
        clients: That insert alike.
    """
    made = []
    for operation in operations:
        pick = operation.pick
        if pick is not None and pick.min_age_rows is not None and pick.max_age_rows is not None:
            low, high = pick.min_age_rows // clients, pick.max_age_rows // clients
            pick = replace(pick, min_age_rows=low, max_age_rows=high)
        if pick is not None and pick.within_rows is not None:
            pick = replace(pick, within_rows=max(1, pick.within_rows // clients))
        made.append(replace(operation, pick=pick))
    return tuple(made)


def _younger(pick: Pick, rows: int, share: float, kept_rows: int, least: int) -> Pick:
    def shrunk(age: int) -> int:
        return min(max(round(age * share), min(age, kept_rows)), max(rows - 1, 0))

    low, high = pick.min_age_rows, pick.max_age_rows
    if low is not None and high is not None:
        start = shrunk(least) + low - least
        end = start if low == high else max(start, shrunk(high))
        pick = replace(pick, min_age_rows=start, max_age_rows=end)
    if pick.within_rows is not None:
        pick = replace(pick, within_rows=max(1, round(pick.within_rows * share)))
    return pick
