"""
What other tables' statements lock in a table by foreign keys: said, for it is played by itself.
"""

from __future__ import annotations

import math

from pgheadroom.advise.table_advice import Remark
from pgheadroom.profile import Operation, Profile, TableProfile
from pgheadroom.profile.tables import ColumnProfile

_NAMED = 3
_FEW_FRAC = 0.1  # locks over updates, of which the WAL is little beside theirs; arbitrary


def locks_remark(table: TableProfile, profile: Profile) -> Remark | None:
    """
    How often rows are locked beside what the table's own figures have; None where seldom.

    Args:
        table: Of the profile, with `observed`.
        profile: An observed one.
    """
    assert profile.server.observed is not None, "remarks are on observed profiles"
    assert table.observed is not None, "remarks are on observed tables"
    locks = {
        child.name: found
        for child in profile.tables
        if (found := _locks(child, table.name, profile.workload.operations)) > 0
    }
    whole = math.fsum(locks.values())
    if whole <= _FEW_FRAC * (table.observed.counters.n_tup_upd or 0) or whole == 0:
        return None
    names = sorted(locks, key=lambda name: (-locks[name], name))
    more = len(names) - _NAMED
    listed = ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
    each_s = whole / float(profile.server.observed.interval_s)
    return Remark(
        kind="wal",
        text=f"Foreign keys of {listed} lock rows of this table, about {each_s:,.3g} times a "
        "second, each time with a record of WAL. The table is played by itself, so none of them is "
        "in its curve.",
        evidence="estimated",
        gain={},
    )


def _locks(child: TableProfile, parent: str, operations: tuple[Operation, ...]) -> float:
    """Rows that a table's operations look for in another one, in the whole interval."""
    columns = {child.column(key.column) for key in child.foreign_keys if key.references == parent}
    own = [one for one in operations if one.table == child.name] if columns else []
    return math.fsum(
        one.weight * one.rows_max * (1 - column.null_frac) * _looks_frac(one, column)
        for one in own
        for column in columns
    )


def _looks_frac(operation: Operation, column: ColumnProfile) -> float:
    if operation.kind == "insert":
        return 1.0
    of_one = column.values.ndistinct == 1  # the next key is the same then
    changed = (one.changed_frac for one in operation.sets if one.column == column.name)
    return 0.0 if of_one else max(changed, default=0.0)
