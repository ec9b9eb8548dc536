"""
Foreign keys of a profile: which values follow from them, and what cannot be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pgheadroom.forms import fail
from pgheadroom.profile.column_types import Kind
from pgheadroom.profile.model import Profile
from pgheadroom.profile.spelling import Raw
from pgheadroom.profile.tables import INTEGER_MAX, ColumnProfile, ForeignKey, TableProfile, Values
from pgheadroom.profile.workload import Operation


def with_parents(tables: tuple[TableProfile, ...], raw: Sequence[Raw]) -> tuple[TableProfile, ...]:
    """
    The tables with the values that follow from their foreign keys.

    Args:
        tables: Completed, but for the values of columns that refer to another table.
        raw: What stands in the file.

    Raises:
        FieldError: Something does not fit.
    """
    made = []
    for n, table in enumerate(tables):
        parents: dict[str, TableProfile] = {}
        for k, foreign_key in enumerate(table.foreign_keys):
            path = f"table[{n}].foreign_keys[{k}]"
            parent = _parent(foreign_key, table, tables, path)
            if foreign_key.column in parents:
                fail(f"{path}.columns", list(foreign_key.columns), "each column once")
            parents[foreign_key.column] = parent
        columns = tuple(
            _column(column, raw[n]["columns"][k], f"table[{n}].columns[{k}]", parents, table)
            for k, column in enumerate(table.columns)
        )
        made.append(replace(table, columns=columns))
    return tuple(made)


def _parent(
    foreign_key: ForeignKey, table: TableProfile, tables: tuple[TableProfile, ...], path: str
) -> TableProfile:
    names = [column.name for column in table.columns]
    if len(foreign_key.columns) != 1 or foreign_key.column not in names:
        expected = "one column of this table: " + ", ".join(names)
        fail(f"{path}.columns", list(foreign_key.columns), expected)
    if table.key is not None and foreign_key.column == table.key.name:
        fail(f"{path}.columns", foreign_key.column, "a column that is not the key")
    column = table.column(foreign_key.column)
    others = [one for one in tables if one.name != table.name]
    parent = next((one for one in others if one.name == foreign_key.references), None)
    if parent is None:
        expected = "another table: " + ", ".join(one.name for one in others)
        fail(f"{path}.references", foreign_key.references, expected)
    index = parent.key_index
    if index is None or len(index.columns) != 1:
        expected = "a table whose first unique index is over its key alone"
        fail(f"{path}.references", parent.name, expected)
    assert parent.key is not None, "the key of its index"
    place, own = f"{path}.columns", f"{column.name} {column.type}"
    is_integer = {Kind.INTEGER} == {column.kind, parent.key.kind}
    if not is_integer and {column.type, parent.key.type} != {"uuid"}:
        expected = (
            f"integers on both sides, or uuids: the key of {parent.name} is {parent.key.type}"
        )
        fail(place, own, expected)
    if is_integer and parent.rows > INTEGER_MAX[column.base_type]:
        fail(place, own, f"a type that holds the keys of {parent.name}")
    return parent


def _column(
    column: ColumnProfile,
    raw: Raw,
    path: str,
    parents: Mapping[str, TableProfile],
    table: TableProfile,
) -> ColumnProfile:
    values, place = column.values, f"{path}.values"
    if column.name not in parents:
        if values.kind == "parent":
            fail(f"{place}.kind", "parent", "another kind, for no foreign key has this column")
        if values.pick is not None:
            fail(f"{place}.pick", values.pick, "none, except for kind parent")
        return column
    parent = parents[column.name]
    if "values" in raw and values.kind != "parent":
        fail(f"{place}.kind", values.kind, f"parent, for this column refers to {parent.name}")
    pick = values.pick if values.kind == "parent" else None
    if parent.rows == 0:
        if pick is None:
            found = f"{column.name}, which refers to {parent.name} with 0 rows"
            fail(path, found, f"rows in {parent.name}, or values of kind parent with pick newest")
        if table.rows > 0:
            found = f"{table.rows}, which refer to {parent.name} with 0 rows"
            fail(path.partition(".")[0] + ".rows", found, "0")
    ndistinct = max(parent.rows, 1)
    if "values" in raw and values.kind == "parent" and values.ndistinct is not None:
        if values.ndistinct > ndistinct:
            expected = f"at most {ndistinct:,}, the rows of {parent.name}"
            fail(f"{place}.ndistinct", values.ndistinct, expected)
        ndistinct = values.ndistinct
    assert parent.key is not None, "it was looked at before"
    is_ordered = parent.key.values.ordered
    if values.ordered and not is_ordered:
        fail(f"{place}.ordered", True, f"none, for the keys of {parent.name} are not")
    made = Values(kind="parent", ndistinct=ndistinct, pick=pick, ordered=is_ordered)
    return replace(column, values=made)


def without_foreign_keys(table: TableProfile, keys: Sequence[ForeignKey]) -> TableProfile:
    """The table without some of its foreign keys; their columns have as many values as before."""
    lost = {key.column for key in keys}
    columns = tuple(
        replace(column, values=Values(kind="random", ndistinct=column.values.ndistinct))
        if column.name in lost
        else column
        for column in table.columns
    )
    kept = tuple(key for key in table.foreign_keys if key not in keys)
    return replace(table, columns=columns, foreign_keys=kept)


def check_foreign_keys(profile: Profile) -> None:
    """
    Refuse operations that a foreign key does not allow, or whose check nobody could foresee.

    Raises:
        FieldError: Names the field to change.
    """
    referenced = {key.references: table for table in profile.tables for key in table.foreign_keys}
    for n, table in enumerate(profile.tables):
        for k, foreign_key in enumerate(table.foreign_keys):
            if profile.table(foreign_key.references).unlogged and not table.unlogged:
                fail(
                    f"table[{n}].foreign_keys[{k}].references",
                    foreign_key.references,
                    "a table that is not unlogged, for this one is not",
                )
    for n, operation in enumerate(profile.workload.operations):
        name = operation.table
        if operation.kind == "delete" and name in referenced:
            fail(
                f"operation[{n}].kind",
                "delete",
                f"no delete from {name}, which {referenced[name].name} refers to",
            )
        table = profile.table(name)
        for change in operation.sets:
            column = table.column(change.column)
            is_other = column.values.kind == "parent" and column.kind is not Kind.INTEGER
            if is_other and change.changed_frac > 0:
                fail(
                    f"operation[{n}].sets",
                    change.column,
                    "no column that refers to uuids, of which none is the next, or changed_frac = "
                    "0 for it",
                )
        if operation.kind == "update" and operation.find != "index" and table.foreign_keys:
            fail(
                f"operation[{n}].find",
                operation.find,
                f"index, for {name} has foreign keys, whose checks are planned by these settings",
            )
        if operation.kind in ("insert", "upsert"):
            for foreign_key in table.foreign_keys:
                if table.column(foreign_key.column).values.pick == "newest":
                    _check_newest(profile, n, operation, foreign_key)


def _check_newest(profile: Profile, n: int, operation: Operation, foreign_key: ForeignKey) -> None:
    """What this client inserted last has to be there when it is referred to."""
    parent = profile.table(foreign_key.references)
    operations = profile.workload.operations
    inserts = [
        k
        for k, other in enumerate(operations)
        if other.kind == "insert" and other.table == parent.name
    ]
    if operation.transaction is not None and any(
        k < n and operations[k].transaction == operation.transaction for k in inserts
    ):
        return
    if parent.rows == 0:
        fail(
            f"operation[{n}].table",
            operation.table,
            f"an insert into {parent.name}, which is loaded with 0 rows, before it in the same "
            "transaction",
        )
    for script in profile.workload.transactions():
        inserted = any(o.kind == "insert" and o.table == parent.name for o in script)
        if inserted and script[0].abort_frac > 0:
            at = next(k for k, other in enumerate(operations) if other is script[0])
            fail(
                f"operation[{at}].abort_frac",
                script[0].abort_frac,
                f"0, for operation[{n}] refers to the row of {parent.name} that was inserted last, "
                "which may have been rolled back; or both in one transaction",
            )
