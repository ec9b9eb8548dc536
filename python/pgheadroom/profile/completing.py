"""
What a table's or an operation's fields say of each other: what follows, and what cannot be.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pgheadroom.forms import FieldError, expected_of, fail
from pgheadroom.profile.change import GROWTH_BYTES_MAX, SETS_EXPECTED, Change
from pgheadroom.profile.column_types import (
    PATTERN_OPS,
    Kind,
    assumed_width,
    is_toastable,
    width_range,
)
from pgheadroom.profile.elements import completed_elements, payload_range
from pgheadroom.profile.enums import check_labels, check_target
from pgheadroom.profile.keys import check_ordered, named_columns
from pgheadroom.profile.pages import completed_pages
from pgheadroom.profile.queue_head import check_head
from pgheadroom.profile.spelling import Raw
from pgheadroom.profile.stating import with_stated
from pgheadroom.profile.tables import (
    INTEGER_MAX,
    STRING_BYTES_MAX,
    ColumnProfile,
    IndexProfile,
    TableProfile,
    Values,
    Width,
)
from pgheadroom.profile.workload import (
    AGE_ROWS_MAX,
    OPTIONAL_PARAMETERS,
    PARAMETERS,
    STATEMENT_ROWS_MAX,
    Operation,
    Pick,
    RowRange,
)

_SYSTEM_COLUMNS = frozenset({"tableoid", "cmax", "xmax", "cmin", "xmin", "ctid"})
_ORDERED = re.compile(
    r"(?P<name>.+?)\s+(?P<order>(?:ASC|DESC)(?:\s+NULLS\s+(?:FIRST|LAST))?|NULLS\s+(?:FIRST|LAST))",
    re.IGNORECASE,
)
_OPCLASS = re.compile(r"[a-z_0-9]{0,63}")
_BTREE_ONLY = ("unique", "fillfactor", "deduplicate_items", "nulls_not_distinct", "order")
_ON_BY_ITSELF = ("deduplicate_items", "fastupdate")
_NOT_FILLED = tuple(field for field in _BTREE_ONLY if field != "fillfactor")
_GIN_ONLY = ("fastupdate", "gin_pending_list_limit")
_NOT_OF: Mapping[str, tuple[str, ...]] = {
    "btree": ("pages_per_range", *_GIN_ONLY),
    "brin": (*_BTREE_ONLY, "include", *_GIN_ONLY),
    "hash": (*_NOT_FILLED, "include", "pages_per_range", *_GIN_ONLY),
    "gin": (*_BTREE_ONLY, "include", "pages_per_range"),
    "gist": (*_NOT_FILLED, "pages_per_range", *_GIN_ONLY),
    "spgist": (*_NOT_FILLED, "pages_per_range", *_GIN_ONLY),
}
"""Fields that an index of a method does not have."""
_RELOPTION = re.compile(r"(toast\.)?[a-z_]{1,60}")


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
    indexes = [completed_index(index, names) for index in table.indexes]
    for n, index in enumerate(indexes):
        _check_index(index, raw["indexes"][n], f"{path}.indexes[{n}]", names)
        _check_keys(index, f"{path}.indexes[{n}]", table)
        if index.is_key and not any(other.is_key for other in indexes[:n]):
            _check_ascending(index, f"{path}.indexes[{n}]")
    table = replace(table, indexes=tuple(indexes))
    named = named_columns(table, raw["columns"])
    columns = tuple(
        _completed_column(column, raw["columns"][n], f"{path}.columns[{n}]", table, named)
        for n, column in enumerate(table.columns)
    )
    for option in table.reloptions:
        if not _RELOPTION.fullmatch(option) or option == "fillfactor":
            fail(
                f"{path}.reloptions.{option}",
                option,
                "a storage parameter (fillfactor has a field of its own)",
            )
    target = table.reloptions.get("toast_tuple_target")
    if target is not None and not (target.isdecimal() and 128 <= int(target) <= 8160):
        fail(f"{path}.reloptions.toast_tuple_target", target, "a whole number from 128 to 8160")
    return with_stated(completed_pages(replace(table, columns=columns), raw, path), path)


def _check_index(index: IndexProfile, raw: Raw, path: str, names: Sequence[str]) -> None:
    if not index.columns and not index.expressions:
        raise FieldError(path, "expected columns or expressions, at least one of them")
    for field, listed in (("columns", index.columns), ("include", index.include)):
        for name in listed:
            if name not in names:
                fail(f"{path}.{field}", name, "a column of this table: " + ", ".join(names))
    several = len(index.columns) + len(index.expressions) + len(index.include)
    if several > 32:
        fail(path, several, "at most 32 index columns")
    for field in _NOT_OF[index.method]:
        # What is off by itself is said by leaving it out, but for what is on by itself.
        if raw.get(field) or (raw.get(field) is False and field in _ON_BY_ITSELF):
            method = {"brin": "BRIN", "btree": "a B-tree"}.get(index.method, index.method)
            fail(f"{path}.{field}", raw[field], f"nothing, which {method} does not have")
    if index.nulls_not_distinct and not index.unique:
        fail(f"{path}.nulls_not_distinct", True, "a unique index")
    if index.method == "hash" and several > 1:
        fail(path, several, "one column, which is what a hash index has")


def completed_index(index: IndexProfile, names: Sequence[str]) -> IndexProfile:
    """
    An index whose columns are names alone, with their order apart.

    Args:
        index: As the file has it: `w DESC` among its columns, if no column is called so.
        names: The columns of its table.
    """
    found = [
        (name, "") if name in names or match is None else (match["name"], match["order"])
        for name in index.columns
        for match in (_ORDERED.fullmatch(name),)
    ]
    spelled = [order for _, order in found]
    if not any(spelled):
        spelled = list(index.order)
    order = [" ".join(text.upper().split()) for text in spelled]
    while order and order[-1] in ("", "ASC", "ASC NULLS LAST", "NULLS LAST"):
        order.pop()
    opclass = list(index.opclass)
    while opclass and opclass[-1] == "":
        opclass.pop()
    return replace(
        index,
        columns=tuple(name for name, _ in found),
        order=tuple(order),
        opclass=tuple(opclass),
    )


def _check_keys(index: IndexProfile, path: str, table: TableProfile) -> None:
    """What is said of an index's key columns, one by one."""
    keys = len(index.columns) + len(index.expressions)
    for field, listed in (("order", index.order), ("opclass", index.opclass)):
        if len(listed) > keys:
            fail(f"{path}.{field}", list(listed), f"at most {keys}, one for each key column")
    for order in index.order:
        if _ORDERED.fullmatch(f"c {order}") is None and order:
            fail(f"{path}.order", order, "ASC or DESC, NULLS FIRST or NULLS LAST, or both")
    for n, name in enumerate(index.opclass):
        if not _OPCLASS.fullmatch(name):
            fail(f"{path}.opclass", name, "the name of an operator class, or an empty string")
        if index.method == "brin" and not name.endswith("_minmax_ops"):
            fail(f"{path}.opclass", name, "none or one of minmax, which is what is played of BRIN")
        if index.method != "btree" or not name or n >= len(index.columns):
            continue
        base = table.column(index.columns[n]).base_type
        known = (f"{base.strip(chr(34))}_ops", PATTERN_OPS.get(base))
        if name not in known:
            expected = " or ".join(filter(None, known))
            fail(f"{path}.opclass", name, f"{expected}, for how others order is not played")


def _check_ascending(index: IndexProfile, path: str) -> None:
    if any("DESC" in order for order in index.order):
        fail(f"{path}.order", list(index.order), "ascending columns, for rows are found by it")


def _completed_column(
    column: ColumnProfile, raw: Raw, path: str, table: TableProfile, named: Sequence[str]
) -> ColumnProfile:
    is_key = list(named[-1:]) == [column.name]
    if column.name in named and column.null_frac > 0:
        fail(f"{path}.null_frac", column.null_frac, "0, for this column is the key, or part of it")
    values = _values(column, raw, path, table, is_key=is_key)
    largest = {"serial": table.rows, "random": (values.ndistinct or 1) - 1}.get(values.kind, 0)
    if column.kind is Kind.INTEGER and largest > INTEGER_MAX[column.base_type]:
        fail(f"{path}.values", largest, f"values that fit {column.type}")
    if column.elements is not None:
        column = _with_elements(column, raw, path, table)
    width = _completed_width(column, raw, f"{path}.width")
    if column.compression is not None and not is_toastable(column.type, column.labels):
        fail(f"{path}.compression", column.compression, f"none, for {column.type} has none")
    if column.storage is not None and not is_toastable(column.type, column.labels):
        fail(f"{path}.storage", column.storage, f"none, for {column.type} has plain")
    if column.stands_for is not None and column.name in named:
        expected = "none, for this column is the key, or part of it, and so what it is"
        fail(f"{path}.stands_for", column.stands_for, expected)
    check_labels(replace(column, values=values), path)
    completed = replace(column, values=values, width=width)
    check_ordered(completed, path)
    return completed


def _with_elements(
    column: ColumnProfile, raw: Raw, path: str, table: TableProfile
) -> ColumnProfile:
    assert column.elements is not None, "it has elements"
    elements = completed_elements(column.elements, column.base_type, f"{path}.elements")
    least, most = payload_range(elements, column.base_type)
    width = Width(min_bytes=least, max_bytes=most)
    if column.width not in (None, width):
        fail(f"{path}.width", raw["width"], "none, for it follows from elements")
    for n, index in enumerate(table.indexes):
        if index.method != "gin" and column.name in (*index.columns, *index.include):
            place = f"{path}.elements"
            expected = f"none, for {index.method} {table.name}.indexes[{n}] orders whole values"
            fail(place, column.name, expected)
    return replace(column, elements=elements, width=width)


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
        if column.labels:
            ndistinct = len(column.labels)
        return values if values.ndistinct is not None else replace(values, ndistinct=ndistinct)
    if is_key:
        return Values(kind="serial")
    # Strings are digits of hashes, so they differ from row to row without an index too.
    indexed = any(column.name in index.columns for index in table.indexes)
    if indexed or column.kind in (Kind.STRING, Kind.WRAPPED):
        return Values(kind="random", ndistinct=len(column.labels) or ndistinct)
    return Values(kind="constant")


def _completed_width(column: ColumnProfile, raw: Raw, path: str) -> Width | None:
    width = column.width
    if column.elements is not None:
        return width
    if not column.form.width:
        if width is not None:
            fail(path, raw["width"], f"no width, which {column.type} has by itself")
        return None
    if width is None:
        assumed = assumed_width(column.type, STRING_BYTES_MAX)
        if assumed is None:
            raise FieldError(path, f"missing, expected min_bytes and max_bytes for {column.type}")
        return Width(min_bytes=assumed[0], max_bytes=assumed[1])
    least, most = width_range(column.type, STRING_BYTES_MAX)
    ends = ("min_bytes", width.min_bytes), ("max_bytes", width.max_bytes)
    if width.min_bytes < least:
        fail(path, raw["width"], f"at least {least} bytes, which the smallest {column.type} has")
    _check_range(path, *ends, least, most)
    return width


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
    if column in table.key_columns:
        fail(
            path, column.name, "a column that is not the key, nor part of it, which stays as it is"
        )
    given = raw[column.name] if isinstance(raw, Mapping) else {}
    check_target(change, path, column)
    if "grows_bytes" not in given:
        return
    place = f"{path}.{column.name}.grows_bytes"
    if not column.form.grows or column.type_length is not None or column.elements is not None:
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
