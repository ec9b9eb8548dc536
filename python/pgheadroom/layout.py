"""
Where a row's bytes go: a table's columns become a layout, from a profile or a live table.

Arithmetic is the core's (`_core.RowLayout`); here it is decided which row is laid out: one
without NULLs, whose strings have their mean width.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pgheadroom
from pgheadroom import _core
from pgheadroom.errors import InputError
from pgheadroom.profile import ColumnProfile, Kind, Profile, TableProfile
from pgheadroom.sources.columns import Access, LiveColumn, LiveTable

FILLFACTORS = (100, 95, 90, 85, 80, 75, 70, 60, 50, 40, 30, 20, 10)
_UNKNOWN_WIDTH_BYTES = 32  # what PostgreSQL's planner assumes (get_typavgwidth, lsyscache.c)
_SUBSTITUTES = {
    (1, "c"): "bool",
    (2, "s"): "int2",
    (4, "i"): "int4",
    (8, "d"): "int8",
    (16, "c"): "uuid",
    (-1, "i"): "bytea",
    (-1, "d"): "path",
}
"""A built-in type of the same length and alignment, for types that only this database has."""


def of_profile(profile: Profile, table: str | None) -> dict[str, Any]:
    """
    Lay out the tables of a profile.

    Args:
        profile: A profile with tables of its own.
        table: Only this one.

    Raises:
        InputError: No such table, or a profile of pgbench's own tables.
    """
    names = [found.name for found in profile.tables]
    if not names:
        raise InputError("the profile has no [[table]]: pgbench's own tables are not laid out")
    if table is not None and table not in names:
        raise InputError(f"--table {table!r} is not in the profile: expected {', '.join(names)}")
    assumed: dict[str, str] = {}
    tables = []
    for found in profile.tables:
        if table not in (None, found.name):
            continue
        columns = profile_columns(found, assumed)
        keys: dict[str, tuple[str | None, ...]] = {
            index.name: (*index.columns, *index.include, *(None for _ in index.expressions))
            for index in found.indexes
            if index.method == "btree"
        }
        tables.append(_lay_out(found.name, columns, found.rows, found.fillfactor, keys))
    return _result(tables, assumed, access=None)


def of_live_tables(
    tables: Iterable[LiveTable], access: Access, *, server: str, table: str | None
) -> dict[str, Any]:
    """
    Lay out the tables of a live database.

    Raises:
        InputError: There is none, or none of that name.
    """
    assumed: dict[str, str] = {}
    laid_out = []
    for found in tables:
        name = found.name if found.schema == "public" else f"{found.schema}.{found.name}"
        columns = [_live_column(column, name, assumed) for column in found.columns]
        if not columns:
            continue
        laid_out.append(_lay_out(name, columns, found.rows, found.fillfactor, dict(found.indexes)))
    if not laid_out:
        what = "no table of its own" if table is None else f"no table {table!r}"
        raise InputError(f"the database has {what} that this role can see")
    return _result(laid_out, assumed, access=access) | {"server": server}


def profile_columns(table: TableProfile, assumed: dict[str, str]) -> list[_core.Column]:
    """A row of the table, without NULLs and with strings of their mean width, column by column."""
    return [_profile_column(column, table.name, assumed) for column in table.columns]


def _profile_column(column: ColumnProfile, table: str, assumed: dict[str, str]) -> _core.Column:
    path = f"{table}.{column.name}"
    width: int | None = None
    if column.width is not None:
        width = (column.width.min_bytes + column.width.max_bytes + 1) // 2
        if column.width.min_bytes != column.width.max_bytes:
            assumed[path] = f"{width} bytes, the mean of its widths"
    elif column.base_type == "numeric":
        width = 2 if column.values.kind == "constant" else 6
        assumed[path] = f"{width} bytes of a numeric value"
    elif column.kind is Kind.PADDED and column.type_length is None:
        width = 1
    if column.null_frac > 0:
        assumed[f"{path}, NULL"] = "a row without NULLs is shown"
    return _core.Column(column.type, payload_bytes=width, name=column.name)


def _live_column(column: LiveColumn, table: str, assumed: dict[str, str]) -> _core.Column:
    path = f"{table}.{column.name}"
    width: int | None = None
    if column.typlen < 0:
        if column.avg_width_bytes is None:
            width = _UNKNOWN_WIDTH_BYTES
            assumed[path] = f"{width} bytes: its average width cannot be seen"
        else:
            header_bytes = 1 if column.avg_width_bytes <= 127 else 4
            width = max(column.avg_width_bytes - header_bytes, 0)
    if column.null_frac:
        assumed[f"{path}, NULL"] = (
            f"a row without NULLs is shown; {column.null_frac:.0%} of its values are NULL"
        )
    try:
        return _core.Column(column.type, payload_bytes=width, name=column.name)
    except InputError:
        pass
    if column.typlen < 0 and column.avg_width_bytes is None:
        try:
            return _core.Column(column.type, name=column.name)  # bpchar(n) has its own width
        except InputError:
            pass
    substitute = _SUBSTITUTES.get((column.typlen, column.typalign), "bytea")
    if substitute == "bytea":
        width = width if width is not None else max(column.typlen, 0)
    assumed[path] = f"laid out as {substitute}, for {column.type} is not a built-in type"
    return _core.Column(substitute, payload_bytes=width, name=column.name)


def _lay_out(
    name: str,
    columns: list[_core.Column],
    rows: int | None,
    fillfactor: int,
    indexes: Mapping[str, tuple[str | None, ...]],
) -> dict[str, Any]:
    row = _core.RowLayout(columns)
    order = row.best_order()
    best = _core.RowLayout([columns[place] for place in order])
    fits = row.tuple_bytes <= 8160
    by_name = {column.name: column for column in columns}
    return {
        "name": name,
        "rows": rows,
        "fillfactor": fillfactor,
        "tuple_bytes": row.tuple_bytes,
        "hoff_bytes": row.hoff_bytes,
        "page_bytes": row.page_bytes,
        "inner_padding_bytes": row.inner_padding_bytes,
        "tail_padding_bytes": row.tail_padding_bytes,
        "needs_toast": row.needs_toast,
        "best_order": [columns[place].name for place in order],
        "best_order_tuple_bytes": best.tuple_bytes,
        "best_order_page_bytes": best.page_bytes,
        "columns": [
            {
                "name": laid.column.name,
                "type": laid.column.type_name,
                "offset_bytes": laid.offset_bytes,
                "padding_bytes": laid.padding_bytes,
                "header_bytes": laid.header_bytes,
                "payload_bytes": laid.payload_bytes,
            }
            for laid in row.columns
        ],
        "fillfactors": [
            {
                "fillfactor": percent,
                "rows_per_page": _core.rows_per_page(row.tuple_bytes, percent),
                "spare_versions": _core.spare_versions(row.tuple_bytes, percent),
                "heap_pages": None
                if rows is None
                else _core.heap_pages(rows, row.tuple_bytes, percent),
            }
            for percent in sorted({*FILLFACTORS, fillfactor}, reverse=True)
            if fits
        ],
        "indexes": [_index(index, listed, by_name) for index, listed in indexes.items()],
    }


def _index(
    name: str, listed: tuple[str | None, ...], by_name: Mapping[str, _core.Column]
) -> dict[str, Any]:
    """An entry's bytes; None where an expression's width, or a value too wide, decides."""
    tuple_bytes: int | None = None
    if None not in listed:
        try:
            tuple_bytes = _core.index_tuple_bytes([by_name[column or ""] for column in listed])
        except InputError:
            tuple_bytes = None
    return {
        "name": name,
        "columns": [column or "(expression)" for column in listed],
        "tuple_bytes": tuple_bytes,
        "page_bytes": None if tuple_bytes is None else tuple_bytes + 4,
    }


def _result(
    tables: list[dict[str, Any]], assumed: dict[str, str], *, access: Access | None
) -> dict[str, Any]:
    result: dict[str, Any] = {
        "schema_version": 1,
        "kind": "layout",
        "tool_version": pgheadroom.__version__,
        "assumed": assumed,
        "tables": tables,
    }
    if access is not None:
        result["access"] = {"level": access.level, "missing": list(access.missing)}
    return result
