"""
Rows at the head of a queue: which operations take them, by which index.
"""

from __future__ import annotations

import json
import re

from pgheadroom import _core
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
    if index is None or index.where is None:
        return
    if pick.where is None or _are_unlike(pick.where, index.where, table):
        expected = f"{index.where!r}, for {index.name} has those rows alone"
        fail(f"{path}.pick.where", pick.where or "none", expected)


def _are_unlike(where: str, of_index: str, table: TableProfile) -> bool:
    """Whether two conditions surely are not the same; of casts and lists the twin is the judge."""
    texts = [_as_written(text, table) for text in (where, of_index)]
    if "" in texts or any("::" in text or " IN (" in text for text in texts):
        return False
    return texts[0] != texts[1]


def _as_written(condition: str, table: TableProfile) -> str:
    """One text for conditions that PostgreSQL's grammar reads alike; empty where it reads none."""
    return str(json.loads(_core.expression_reads(condition, table=table.name)).get("text", ""))


def other_ways(profile: Profile) -> tuple[str, ...]:
    """
    Heads that a server may as well walk by another index, as sentences.

    Where the first column of the index is a constant, the order is that of the columns behind it,
    which another index may have. Which of the two is taken then rests on statistics.
    """
    made = []
    for operation in profile.workload.operations:
        pick = operation.pick
        if pick is None or pick.distribution != "head" or pick.where is None:
            continue
        table = profile.table(operation.table)
        index = next(one for one in table.indexes if one.name == pick.using)
        first, *rest = index.columns
        if re.fullmatch(rf"{re.escape(first)} = \d+", _as_written(pick.where, table)) is None:
            continue
        others = [
            other.name
            for other in table.indexes
            if other is not index
            and is_walked(other)
            and other.where is None
            and list(other.columns[: len(rest)]) == rest
        ]
        if others:
            made.append(
                f"the head of {table.name} where {pick.where} is taken by {index.name}: a server "
                f"may as well walk {' or '.join(others)}, which has the same order, by what its "
                "statistics say; prove asks one"
            )
    return tuple(dict.fromkeys(made))


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
