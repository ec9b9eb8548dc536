"""
Rows of which nobody can say beforehand whether several clients' statements count them.

What the statements decide (`n_tup_ins`, `n_tup_upd`, `n_tup_del`) is equal in all of the twin's
runs and certain, except beside commands of maintenance that lock tables, in upserts, and where the
clients' order decides (`contended.py`).

    client:       SELECT FROM t [AccessShare, index too]      INSERT INTO t: waits for ShareLock
    maintenance:        REINDEX t [ShareLock]  waits for the index   <- a deadlock
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import product

from pgheadroom.profile import Operation, Profile, RowRange

# A client that is in a transaction when TRUNCATE asks for its lock, and one that waits behind it,
# have statements on either side of it that the twin draws otherwise.
_TURNS_BESIDE_TRUNCATE = 2
_WRITING = frozenset({"insert", "update", "delete", "upsert"})


def beside_maintenance(profile: Profile) -> Mapping[str, float]:
    """Rows of each table whose counts commands of maintenance make uncertain."""
    return Counter(truncated_of(profile)) + Counter(deadlocked_of(profile))


def truncated_of(profile: Profile) -> Mapping[str, float]:
    """
    Rows of each table that statements beside a TRUNCATE of it find or not, with several clients.

    With one client nothing runs beside it.
    """
    run = profile.workload.run
    rows: dict[str, float] = {}
    if run.clients == 1:
        return rows
    for command in run.maintenance:
        if command.do == "truncate":
            most = _rows_of_a_transaction(profile, command.table)
            beside = _TURNS_BESIDE_TRUNCATE * run.clients * most
            rows[command.table] = rows.get(command.table, 0) + beside
    return rows


def deadlocked_of(profile: Profile) -> Mapping[str, float]:
    """
    Rows of each table that transactions may lose in a deadlock with REINDEX.

    Who has read a table by an index in a transaction and then writes to it waits for the
    ShareLock of REINDEX, which waits for the index; whose `deadlock_timeout` ends first is rolled
    back.
    Each client may be in such a transaction. The twin's REINDEX waits until nobody is in one.

    Source: `ReindexIndex` and `reindex_index`, src/backend/commands/indexcmds.c and
    src/backend/catalog/index.c (REL_18_STABLE).
    """
    run = profile.workload.run
    rows: Counter[str] = Counter()
    if run.clients == 1:
        return rows
    reindexed = [command.table for command in run.maintenance if command.do == "reindex"]
    for table, transaction in product(reindexed, profile.workload.transactions()):
        if _reads_then_writes(transaction, table):
            for operation in _writing(transaction):
                rows[operation.table] += run.clients * _most_rows(operation)
    return rows


def upserted_of(profile: Profile) -> frozenset[str]:
    """
    Tables whose counts of inserted and deleted rows several clients' upserts make uncertain.

    A row that an upsert has inserted and then finds to be another one's counts as inserted and
    deleted, also where that one was replaced between a look into the index and one at the row. It
    is so seldom that the twin's runs may all have none.

    Source: `ExecInsert` and `heap_abort_speculative`, src/backend/executor/nodeModifyTable.c and
    src/backend/access/heap/heapam.c (REL_18_STABLE).
    """
    if profile.workload.run.clients == 1:
        return frozenset()
    operations = profile.workload.operations
    return frozenset(one.table for one in operations if one.kind == "upsert")


def _rows_of_a_transaction(profile: Profile, table: str) -> int:
    """How many rows of the table one transaction changes, at most."""
    found: dict[object, int] = {}
    for number, operation in enumerate(profile.workload.operations):
        if operation.table == table:
            key = number if operation.transaction is None else operation.transaction
            found[key] = found.get(key, 0) + _most_rows(operation)
    return max(found.values(), default=0)


def _reads_then_writes(transaction: tuple[Operation, ...], table: str) -> bool:
    """Whether it reads the table before it first writes to it, which it does."""
    of_table = [operation for operation in transaction if operation.table == table]
    return bool(_writing(of_table)) and of_table[0].kind not in _WRITING


def _writing(operations: Iterable[Operation]) -> list[Operation]:
    return [operation for operation in operations if operation.kind in _WRITING]


def _most_rows(operation: Operation) -> int:
    rows = operation.rows_per_statement
    return rows.max_rows if isinstance(rows, RowRange) else rows
