"""
What a table's or an operation's fields say of each other: what follows, and what cannot be.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pgheadroom.forms import FieldError, expected_of, fail
from pgheadroom.profile.model import (
    AGE_ROWS_MAX,
    GROWTH_BYTES_MAX,
    INTEGER_MAX,
    OPTIONAL_PARAMETERS,
    PARAMETERS,
    SETS_EXPECTED,
    STATEMENT_ROWS_MAX,
    STRING_BYTES_MAX,
    Change,
    ColumnProfile,
    IndexProfile,
    Operation,
    Pick,
    RowRange,
    TableProfile,
    Values,
)
from pgheadroom.profile.queue_head import check_head
from pgheadroom.profile.spelling import Kind

_SYSTEM_COLUMNS = frozenset({"tableoid", "cmax", "xmax", "cmin", "xmin", "ctid"})
_RELOPTION = re.compile(r"(toast\.)?[a-z_]{1,60}")

Raw = Mapping[str, Any]


def completed_table(table: TableProfile, raw: Raw, path: str) -> TableProfile:
    """
    A table with the values that follow from its key, its indexes and its rows.

    Args:
        table: As the file has it.
        raw: What stands in the file, which tells what was said from what was not.
        path: Its path, for messages.

    Raises:
        FieldError: Something does not fit.
    """
    if not table.columns:
        fail(f"{path}.columns", raw["columns"], "a list of columns")
    names = [column.name for column in table.columns]
    for n, name in enumerate(names):
        if name in names[:n] or name in _SYSTEM_COLUMNS:
            fail(f"{path}.columns[{n}].name", name, "a name that no other column has")
    for n, index in enumerate(table.indexes):
        _check_index(index, raw["indexes"][n], f"{path}.indexes[{n}]", names)
    columns = tuple(
        _completed_column(column, raw["columns"][n], f"{path}.columns[{n}]", table)
        for n, column in enumerate(table.columns)
    )
    for option in table.reloptions:
        if not _RELOPTION.fullmatch(option) or option == "fillfactor":
            fail(
                f"{path}.reloptions.{option}",
                option,
                "a storage parameter (fillfactor has a field of its own)",
            )
    return replace(table, columns=columns)


def _check_index(index: IndexProfile, raw: Raw, path: str, names: Sequence[str]) -> None:
    if bool(index.columns) == bool(index.expressions):
        raise FieldError(path, "expected either columns or expressions, and at least one of them")
    for field, listed in (("columns", index.columns), ("include", index.include)):
        for name in listed:
            if name not in names:
                fail(f"{path}.{field}", name, "a column of this table: " + ", ".join(names))
    several = len(index.columns) + len(index.expressions) + len(index.include)
    if several > 32:
        fail(path, several, "at most 32 index columns")
    if index.method == "brin":
        for field in ("unique", "include", "fillfactor", "deduplicate_items"):
            if raw.get(field):
                fail(f"{path}.{field}", raw[field], "nothing, which BRIN does not have")
    if index.unique and (index.expressions or index.where):
        fail(path, index.name, "a unique index over columns, without expressions and where")


def _completed_column(
    column: ColumnProfile, raw: Raw, path: str, table: TableProfile
) -> ColumnProfile:
    key = next((index.columns[0] for index in table.indexes if index.unique), None)
    is_key = column.name == key
    if is_key and column.null_frac > 0:
        fail(f"{path}.null_frac", column.null_frac, "0, for this column is the key")
    values = _values(column, raw, path, table, is_key=is_key)
    largest = {"serial": table.rows, "random": (values.ndistinct or 1) - 1}.get(values.kind, 0)
    if column.kind is Kind.INTEGER and largest > INTEGER_MAX[column.base_type]:
        fail(f"{path}.values", largest, f"values that fit {column.type}")
    _check_width(column, raw, f"{path}.width")
    return replace(column, values=values)


def _values(
    column: ColumnProfile, raw: Raw, path: str, table: TableProfile, *, is_key: bool
) -> Values:
    ndistinct = max(table.rows, 1)
    if "values" in raw:
        values = column.values
        if is_key and values.kind != "serial":
            fail(f"{path}.values.kind", values.kind, "serial, for this column is the key")
        if values.kind == "parent":
            return values
        if values.kind != "random":
            if values.ndistinct is not None:
                place = f"{path}.values.ndistinct"
                fail(place, values.ndistinct, "none, except for kind random")
            return values
        return values if values.ndistinct is not None else replace(values, ndistinct=ndistinct)
    if is_key:
        return Values(kind="serial")
    # Strings are digits of hashes, so they differ from row to row without an index too.
    indexed = any(column.name in index.columns for index in table.indexes)
    if indexed or column.kind is Kind.STRING:
        return Values(kind="random", ndistinct=ndistinct)
    return Values(kind="constant")


def _check_width(column: ColumnProfile, raw: Raw, path: str) -> None:
    width = column.width
    if column.kind is not Kind.STRING:
        if width is not None:
            fail(path, raw["width"], f"no width, which {column.type} has by itself")
        return
    if width is None:
        raise FieldError(path, f"missing, expected min_bytes and max_bytes for {column.type}")
    most = min(column.type_length or STRING_BYTES_MAX, STRING_BYTES_MAX)
    _check_range(path, ("min_bytes", width.min_bytes), ("max_bytes", width.max_bytes), 0, most)


def _check_range(
    path: str, lower: tuple[str, int], upper: tuple[str, int], low: int, high: int
) -> None:
    """Two ends of a range, in order and inside of another one."""
    if lower[1] > high:
        fail(f"{path}.{lower[0]}", lower[1], f"a whole number from {low} to {high}")
    if not lower[1] <= upper[1] <= high:
        fail(f"{path}.{upper[0]}", upper[1], f"a whole number from {lower[1]} to {high}")


def completed_operation(
    operation: Operation, raw: Raw, path: str, tables: tuple[TableProfile, ...]
) -> Operation:
    """
    An operation with the pick that stands where the file has none.

    Args:
        operation: As the file has it.
        raw: What stands in the file, which tells what was said from what was not.
        path: Its path, for messages.
        tables: The profile's tables, completed.

    Raises:
        FieldError: Something does not fit.
    """
    name, kind = operation.table, operation.kind
    table = next((table for table in tables if table.name == name), None)
    if table is None:
        fail(f"{path}.table", name, "one of " + ", ".join(table.name for table in tables))
    if kind != "insert" and table.key is None:
        fail(f"{path}.kind", kind, f"insert, for {name} has no unique index to find rows by")
    for field, kinds, why in (
        ("pick", ("insert",), "for an insert finds no row"),
        ("find", ("insert",), "for an insert finds no row"),
        ("find", ("upsert",), "for an upsert finds rows by itself"),
        ("sets", ("insert", "delete", "select", "lock"), f"for a {kind} sets no column"),
    ):
        if kind in kinds and field in raw:
            fail(f"{path}.{field}", raw[field], f"nothing, {why}")
    rows = operation.rows_per_statement
    if isinstance(rows, RowRange):
        ends = ("min", rows.min_rows), ("max", rows.max_rows)
        _check_range(f"{path}.rows_per_statement", *ends, 1, STATEMENT_ROWS_MAX)
    if kind in ("update", "upsert"):
        if not operation.sets:
            fail(f"{path}.sets", raw.get("sets"), SETS_EXPECTED)
        for change in operation.sets:
            _check_change(change, raw["sets"], f"{path}.sets", table)
    if kind == "insert":
        return operation
    pick = operation.pick or Pick(distribution="uniform")
    if pick.distribution == "head":
        check_head(operation, pick, path, table)
    _check_pick(pick, raw.get("pick", {}), f"{path}.pick", table)
    completed = replace(operation, pick=pick)
    if completed.is_living:
        _check_living(completed, pick, path)
    return completed


def _check_living(operation: Operation, pick: Pick, path: str) -> None:
    """What a pick that follows the rows that are there cannot have."""
    if pick.scatter:
        fail(f"{path}.pick.scatter", True, "none: living rows are picked in their order")
    if operation.kind == "upsert":
        where = f"{path}.pick.{'distribution' if pick.among is None else 'among'}"
        found = pick.distribution if pick.among is None else pick.among
        fail(where, found, "a pick among the loaded rows, for an upsert makes rows of its own")
    if operation.rows_max > 1:
        what = "age" if pick.distribution == "age" else "among" if pick.among else "within"
        fail(
            f"{path}.rows_per_statement",
            operation.rows_max,
            f"1, for a pick with {what} takes one living row",
        )


def _check_change(change: Change, raw: Any, path: str, table: TableProfile) -> None:
    column = next((column for column in table.columns if column.name == change.column), None)
    if column is None:
        expected = ", ".join(column.name for column in table.columns)
        fail(path, change.column, f"a column of {table.name}: {expected}")
    if column == table.key:
        fail(path, column.name, "a column that is not the key, which stays as it is")
    given = raw[column.name] if isinstance(raw, Mapping) else {}
    if "grows_bytes" not in given:
        return
    place = f"{path}.{column.name}.grows_bytes"
    if column.kind is not Kind.STRING or column.type_length is not None:
        fail(place, given["grows_bytes"], f"nothing, for a {column.type} cannot grow without end")
    ends = ("min", change.grows_min_bytes), ("max", change.grows_max_bytes)
    _check_range(place, *ends, 0, GROWTH_BYTES_MAX)


def _check_pick(pick: Pick, raw: Raw, path: str, table: TableProfile) -> None:
    wanted = PARAMETERS[pick.distribution]
    for name in raw:
        if name != "distribution" and name not in wanted:
            place = f"{path}.{name}"
            raise FieldError(place, f"does not belong to the distribution {pick.distribution}")
    if pick.distribution == "hot_set" and table.rows < 2:
        fail(path, "hot_set", f"at least 2 rows in {table.name}, which has {table.rows}")
    for name in wanted:
        if name not in OPTIONAL_PARAMETERS and name not in raw:
            raise FieldError(f"{path}.{name}", f"missing, expected {expected_of(Pick, name)}")
    if pick.min_age_rows is not None and pick.max_age_rows is not None:
        ends = ("min", pick.min_age_rows), ("max", pick.max_age_rows)
        _check_range(path, *ends, 0, AGE_ROWS_MAX)
