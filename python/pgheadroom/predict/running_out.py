"""
Tables from which more rows are deleted than are inserted: they shrink, and one day are empty.

Told by the operations alone, before anything is played: of deletes that follow the rows that are
there each takes one, until there is none. A worker at the head of a queue comes more often than
there is something for him, so that heads tell nothing; nor do loaded keys, which go once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pgheadroom.profile import Operation, Profile
from pgheadroom.profile.workload import by_transaction
from pgheadroom.units import percent

SHRINKS_FROM_FRAC = 0.1
"""Said of a table that loses this share of its rows within a run; arbitrary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """Rows that come into a table and go from it, in the mean transaction of the run."""

    inserted: float
    deleted: float

    @property
    def more_deleted_frac(self) -> float:
        """How many more are deleted than inserted, as a share of these; 0 where none are."""
        return max(self.deleted / self.inserted - 1, 0.0) if self.inserted else 0.0


def flow_of(operations: Sequence[Operation], table: str) -> Flow | None:
    """The rows that come and go; None where the operations do not tell."""
    of_table = [one for one in operations if one.table == table]
    deletes = [one for one in of_table if one.kind == "delete"]
    if not all(one.is_living for one in deletes) or any(one.kind == "upsert" for one in of_table):
        return None
    scripts = by_transaction(operations)
    weights = math.fsum(script[0].weight for script in scripts)

    def rows(kind: str) -> float:
        return math.fsum(
            script[0].weight / weights * (1 - script[0].abort_frac) * one.rows_mean
            for script in scripts
            for one in script
            if one.table == table and one.kind == kind
        )

    return Flow(inserted=rows("insert"), deleted=rows("delete"))


def sentences(profile: Profile, transactions: float) -> tuple[str, ...]:
    """
    What a reader has to know before the figures of a run of so many transactions.

    Of a table that gets no rows it is plain that it shrinks, and nothing is said.
    """
    said = []
    for table in profile.tables:
        flow = flow_of(profile.workload.operations, table.name)
        if flow is None or flow.more_deleted_frac == 0 or not table.rows:
            continue
        each = flow.deleted - flow.inserted
        left = table.rows - each * transactions
        if left > (1 - SHRINKS_FROM_FRAC) * table.rows:
            continue
        until = (
            f"about {round(left):,} are left when the run ends"
            if left >= 1
            else f"none is left after about {round(table.rows / each):,} of the run's "
            f"{round(transactions):,} transactions"
        )
        said.append(
            f"{table.name} shrinks: {percent(flow.more_deleted_frac, 1)} more rows are deleted "
            f"from it than inserted, and of its {table.rows:,} {until}."
        )
    return tuple(said)
