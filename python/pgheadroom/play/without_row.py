"""
Turns in which an operation found no row on a server, as far as its counters tell.

pgbench says how often each script ran, and a table how many rows were updated and deleted. Where
one operation alone moves a counter, by one row a turn, the difference found none. Of what only
reads, and of operations that share a counter, nothing is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pgheadroom.outcome import Outcome, mid
from pgheadroom.profile import Operation, Profile

_COUNTERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "update": ("n_tup_upd", ("update", "upsert")),
    "delete": ("n_tup_del", ("delete",)),
}
"""The counter of a kind, and who moves it."""


def turns_without_row(
    profile: Profile, counts: Sequence[int], by_table: Mapping[str, Outcome]
) -> dict[str, tuple[int, int]]:
    """
    Turns, and those without a row, of each operation whose counter is its own.

    Args:
        profile: The profile.
        counts: How often each of its transactions ran.
        by_table: What each table counted.

    Returns:
        By the operation's number in the profile.
    """
    operations = profile.workload.operations
    if not operations:  # pgbench's own script
        return {}
    ran = {
        id(operation): count
        for transaction, count in zip(profile.workload.transactions(), counts, strict=True)
        for operation in transaction
    }
    found = {}
    for n, operation in enumerate(operations):
        if _is_alone(operation, operations):
            counter, _ = _COUNTERS[operation.kind]
            turns = ran[id(operation)]
            found[str(n)] = (turns, turns - int(mid(by_table[operation.table].value(counter))))
    return found


def _is_alone(operation: Operation, operations: Sequence[Operation]) -> bool:
    if operation.kind not in _COUNTERS or operation.rows_max > 1:
        return False
    _, kinds = _COUNTERS[operation.kind]
    others = (one for one in operations if one.table == operation.table and one.kind in kinds)
    return sum(1 for _ in others) == 1
