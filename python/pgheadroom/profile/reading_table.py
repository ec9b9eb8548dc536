"""
A `[[table]]`: its columns with their types and values, and its indexes.
"""

from __future__ import annotations

import re
from typing import Any

from pgheadroom import _core
from pgheadroom.errors import InputError
from pgheadroom.profile.fields import FieldError, Fields, fail
from pgheadroom.profile.model import (
    INTEGER_MAX,
    KINDS,
    ColumnProfile,
    IndexProfile,
    Kind,
    TableProfile,
    Values,
    Width,
)
from pgheadroom.profile.observed import TABLE

_TABLE = ("name", "rows", "fillfactor", "columns", "indexes", "reloptions", "observed")
_COLUMN = ("name", "type", "values", "width", "null_frac")
_INDEX = (
    "name",
    "columns",
    "expressions",
    "unique",
    "method",
    "include",
    "where",
    "fillfactor",
    "deduplicate_items",
)
_ROWS_MAX = 2**40  # far beyond what one machine loads
_STRING_BYTES_MAX = 1024**2  # made of hashes row by row; longer ones would take for ever; arbitrary
_SYSTEM_COLUMNS = frozenset({"tableoid", "cmax", "xmax", "cmin", "xmin", "ctid"})
_RELOPTION = re.compile(r"(toast\.)?[a-z_]{1,60}")


def check_name(path: str, name: str) -> str:
    """
    Refuse a name that PostgreSQL or pgbench could not take.

    Colons and backslashes mean something in pgbench's scripts even inside quotes.
    """
    if len(name.encode()) > 63 or not name.isprintable() or ":" in name or "\\" in name:
        fail(path, name, "a name of at most 63 bytes, printable, without ':' and '\\'")
    return name


def read_table(value: object, path: str, assumed: dict[str, Any]) -> TableProfile:
    """
    Read one table.

    Args:
        value: What stands in the file.
        path: Its path, for messages.
        assumed: Where defaults are noted.

    Raises:
        FieldError: Something is wrong in it.
    """
    fields = Fields(value, path, _TABLE, assumed)
    name = check_name(fields.at("name"), fields.text("name"))
    rows = fields.integer("rows", 0, _ROWS_MAX)
    found = fields.items("columns", "a list of columns", required=True)
    raw = [
        Fields(item, f"{fields.at('columns')}[{n}]", _COLUMN, assumed)
        for n, item in enumerate(found)
    ]
    names = [check_name(column.at("name"), column.text("name")) for column in raw]
    for n, column_name in enumerate(names):
        if column_name in names[:n] or column_name in _SYSTEM_COLUMNS:
            fail(raw[n].at("name"), column_name, "a name that no other column has")
    indexes = tuple(
        _index(item, f"{fields.at('indexes')}[{n}]", names, assumed)
        for n, item in enumerate(fields.items("indexes", "a list of indexes"))
    )
    key = next((index.columns[0] for index in indexes if index.unique), None)
    indexed = {column for index in indexes for column in index.columns}
    columns = tuple(
        _column(column, name=column_name, rows=rows, key=key, indexed=column_name in indexed)
        for column, column_name in zip(raw, names, strict=True)
    )
    reloptions = fields.words("reloptions")
    for option in reloptions:
        if not _RELOPTION.fullmatch(option) or option == "fillfactor":
            fail(
                f"{fields.at('reloptions')}.{option}",
                option,
                "a storage parameter (fillfactor has a field of its own)",
            )
    return TableProfile(
        name=name,
        rows=rows,
        fillfactor=fields.integer("fillfactor", 10, 100, 100),
        columns=columns,
        indexes=indexes,
        reloptions=reloptions,
        observed=fields.checked("observed", TABLE),
    )


def _column(
    fields: Fields, *, name: str, rows: int, key: str | None, indexed: bool
) -> ColumnProfile:
    base = ColumnProfile(name=name, type=_type(fields), values=Values(kind="constant"))
    null_frac = fields.number("null_frac", 0, 1, 0.0)
    if name == key and null_frac > 0:
        fail(fields.at("null_frac"), null_frac, "0, for this column is the key")
    values = _values(fields, base, rows=rows, is_key=name == key, indexed=indexed)
    largest = {"serial": rows, "random": (values.ndistinct or 1) - 1}.get(values.kind, 0)
    if base.kind is Kind.INTEGER and largest > INTEGER_MAX[base.base_type]:
        fail(fields.at("values"), largest, f"values that fit {base.type}")
    return ColumnProfile(
        name=name, type=base.type, values=values, width=_width(fields, base), null_frac=null_frac
    )


def _type(fields: Fields) -> str:
    spelled = fields.text("type")
    path = fields.at("type")
    try:
        column = _core.Column(spelled, is_null=True)
    except InputError as error:
        raise FieldError(path, str(error)) from None
    base = column.type_name.partition("(")[0]
    if base not in KINDS or column.type_name.endswith("]"):
        fail(path, spelled, "one of " + ", ".join(KINDS))
    if KINDS[base] is Kind.TIMESTAMP and "(" in spelled:
        fields.assume("type", f"{base}, to the microsecond: the precision is not played")
    return column.type_name


def _width(fields: Fields, column: ColumnProfile) -> Width | None:
    path = fields.at("width")
    if column.kind is not Kind.STRING:
        if fields.has("width"):
            fail(path, fields.get("width"), f"no width, which {column.type} has by itself")
        return None
    if not fields.has("width"):
        raise FieldError(path, f"missing, expected min_bytes and max_bytes for {column.type}")
    inner = Fields(fields.get("width"), path, ("min_bytes", "max_bytes"), {})
    most = min(column.type_length or _STRING_BYTES_MAX, _STRING_BYTES_MAX)
    min_bytes = inner.integer("min_bytes", 0, most)
    return Width(min_bytes=min_bytes, max_bytes=inner.integer("max_bytes", min_bytes, most))


def _values(
    fields: Fields, column: ColumnProfile, *, rows: int, is_key: bool, indexed: bool
) -> Values:
    path = fields.at("values")
    if not fields.has("values"):
        # Strings are digits of hashes, so they differ from row to row without an index too.
        if is_key:
            default = Values(kind="serial")
        elif indexed or column.kind is Kind.STRING:
            default = Values(kind="random", ndistinct=max(rows, 1))
        else:
            default = Values(kind="constant")
        shown = {"kind": default.kind}
        fields.assume(
            "values",
            shown if default.ndistinct is None else {**shown, "ndistinct": default.ndistinct},
        )
        return default
    inner = Fields(fields.get("values"), path, ("kind", "ndistinct"), fields.noted)
    kind = inner.choice("kind", ("serial", "constant", "random"))
    if is_key and kind != "serial":
        fail(inner.at("kind"), kind, "serial, for this column is the key")
    if kind != "random":
        if inner.has("ndistinct"):
            fail(inner.at("ndistinct"), inner.get("ndistinct"), "none, except for kind random")
        return Values(kind=kind)
    return Values(kind=kind, ndistinct=inner.integer("ndistinct", 1, 2**62, max(rows, 1)))


def _index(value: object, path: str, names: list[str], assumed: dict[str, Any]) -> IndexProfile:
    fields = Fields(value, path, _INDEX, assumed)
    columns, expressions = fields.names("columns"), fields.names("expressions")
    if bool(columns) == bool(expressions):
        raise FieldError(path, "expected either columns or expressions, and at least one of them")
    include = fields.names("include")
    for field, listed in (("columns", columns), ("include", include)):
        for name in listed:
            if name not in names:
                fail(fields.at(field), name, "a column of this table: " + ", ".join(names))
    if len(columns) + len(expressions) + len(include) > 32:
        fail(path, len(columns) + len(expressions) + len(include), "at most 32 index columns")
    method = fields.choice("method", ("btree", "brin"), "btree")
    unique = fields.flag("unique", False)
    where = fields.text("where", None)
    index = IndexProfile(
        name=check_name(fields.at("name"), fields.text("name")),
        columns=columns,
        expressions=expressions,
        unique=unique,
        method=method,
        include=include,
        where=where,
        fillfactor=fields.integer("fillfactor", 10, 100, None),
        deduplicate_items=fields.flag("deduplicate_items", None),
    )
    if method == "brin":
        for field in ("unique", "include", "fillfactor", "deduplicate_items"):
            if fields.get(field):
                fail(fields.at(field), fields.get(field), "nothing, which BRIN does not have")
    elif not fields.has("fillfactor"):
        fields.assume("fillfactor", 90)
    if unique and (expressions or where):
        fail(path, index.name, "a unique index over columns, without expressions and where")
    return index
