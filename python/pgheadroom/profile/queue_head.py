"""
Rows at the head of a queue: which operations take them, by which index.
"""

from __future__ import annotations

from pgheadroom.forms import fail
from pgheadroom.profile.model import Profile
from pgheadroom.profile.stating import check_taken
from pgheadroom.profile.tables import IndexProfile, TableProfile
from pgheadroom.profile.workload import Operation, Pick, RowRange


def is_walked(index: IndexProfile) -> bool:
    """Whether a head may be in its order: a B-tree over ascending columns."""
    return (
        index.method == "btree"
        and bool(index.columns)
        and not index.expressions
        and not index.order
    )


def check_head(operation: Operation, pick: Pick, path: str, table: TableProfile) -> None:
    """
    Refuse a head that PostgreSQL, pgbench or the contract does not have.

    Raises:
        FieldError: Names the field to change.
    """
    if operation.kind not in ("update", "delete"):
        found = f"head for {operation.kind}"
        fail(f"{path}.pick.distribution", found, "head for update or delete alone")
    if operation.find != "index":
        place = f"{path}.find"
        fail(place, operation.find, "index, for the rows of a head are found by their key")
    rows = operation.rows_per_statement
    if isinstance(rows, RowRange):
        found = f"{rows.min_rows} to {rows.max_rows}"
        fail(f"{path}.rows_per_statement", found, "a number, which is the limit of the query")
    if pick.where is not None:
        check_taken(pick.where, table, f"{path}.pick.where", is_condition=True)
    indexes = {one.name: one for one in table.indexes if is_walked(one)}
    if pick.using is not None and pick.using not in indexes:
        expected = f"a btree index of {table.name} over ascending columns: " + ", ".join(indexes)
        fail(f"{path}.pick.using", pick.using, expected)
    index = None if pick.using is None else indexes[pick.using]
    if index is not None and index.where is not None and pick.where is None:
        place = f"{path}.pick.where"
        fail(place, "none", f"{index.where!r}, for {index.name} has those rows alone")


def check_heads(profile: Profile) -> None:
    """
    Refuse deletes from a head that picks by age could not count.

    With one client a delete without `where` takes the oldest rows, and is counted as such.

    Raises:
        FieldError: Names the field to change.
    """
    operations = profile.workload.operations
    for n, operation in enumerate(operations):
        if operation.kind != "delete" or not operation.is_head:
            continue
        assert operation.pick is not None
        alone = profile.workload.run.clients == 1 and operation.pick.where is None
        for k, other in enumerate(operations):
            if other.table != operation.table or other.pick is None:
                continue
            is_oldest = other.pick.distribution == "oldest"
            is_counted = other.is_living and other.pick.within_rows is None
            if (is_oldest or other.is_living) and not (alone and is_counted):
                fail(
                    f"operation[{k}].pick",
                    other.pick.among or other.pick.distribution,
                    f"no pick by age beside operation[{n}], which deletes from the head of a "
                    "queue: what is there is then not counted (one client without where and "
                    "within, and one row by a statement, it is)",
                )
