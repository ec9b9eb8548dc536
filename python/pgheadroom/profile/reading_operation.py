"""
An `[[operation]]`: what it does to which rows, and what an update changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pgheadroom.profile.fields import FieldError, Fields, fail
from pgheadroom.profile.model import (
    Change,
    ColumnProfile,
    Kind,
    Operation,
    Pick,
    RowRange,
    TableProfile,
)

_OPERATION = (
    "table",
    "kind",
    "weight",
    "rows_per_statement",
    "abort_frac",
    "sets",
    "pick",
    "find",
    "transaction",
)
_KINDS = ("insert", "update", "delete", "select", "upsert", "lock")
_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "uniform": ("scatter",),
    "zipfian": ("theta", "scatter"),
    "gaussian": ("param", "scatter"),
    "hot_set": ("rows_frac", "weight", "scatter"),
    "sequential": (),
    "stride": ("n",),
    "newest": (),
    "oldest": (),
}
_ALL_PARAMETERS = ("distribution", "theta", "param", "rows_frac", "weight", "n", "scatter")
_STATEMENT_ROWS_MAX = 10_000  # one VALUES list in one script; arbitrary


def read_operation(
    value: object, path: str, tables: tuple[TableProfile, ...], assumed: dict[str, Any]
) -> Operation:
    """
    Read one operation.

    Args:
        value: What stands in the file.
        path: Its path, for messages.
        tables: The profile's tables, already read.
        assumed: Where defaults are noted.

    Raises:
        FieldError: Something is wrong in it, or does not fit the table.
    """
    fields = Fields(value, path, _OPERATION, assumed)
    name = fields.text("table")
    table = next((table for table in tables if table.name == name), None)
    if table is None:
        fail(fields.at("table"), name, "one of " + ", ".join(table.name for table in tables))
    kind = fields.choice("kind", _KINDS)
    if kind != "insert" and table.key is None:
        fail(fields.at("kind"), kind, f"insert, for {name} has no unique index to find rows by")
    if kind == "insert":
        for field in ("pick", "find"):
            if fields.has(field):
                fail(fields.at(field), fields.get(field), "nothing, for an insert finds no row")
    if kind == "upsert" and fields.has("find"):
        fail(fields.at("find"), fields.get("find"), "nothing, for an upsert finds rows by itself")
    changes = kind in ("update", "upsert")
    if not changes and fields.has("sets"):
        fail(fields.at("sets"), fields.get("sets"), f"nothing, for a {kind} sets no column")
    return Operation(
        table=name,
        kind=kind,
        weight=fields.integer("weight", 1, 2**31 - 1, 1),
        rows_per_statement=_rows(fields, assumed),
        abort_frac=fields.number("abort_frac", 0, 1, 0.0),
        sets=_sets(fields, table, assumed) if changes else (),
        pick=None if kind == "insert" else _pick(fields, table, assumed),
        find=(
            "index"
            if kind in ("insert", "upsert")
            else fields.choice("find", ("index", "seqscan"), "index")
        ),
        transaction=fields.text("transaction", None),
    )


def _rows(fields: Fields, assumed: dict[str, Any]) -> int | RowRange:
    """A number, or `{ min, max }`; the two being equal is that number."""
    name, most = "rows_per_statement", _STATEMENT_ROWS_MAX
    found = fields.get(name)
    if isinstance(found, Mapping):
        inner = Fields(found, fields.at(name), ("min", "max"), assumed)
        low = inner.integer("min", 1, most)
        high = inner.integer("max", low, most)
        return low if low == high else RowRange(min_rows=low, max_rows=high)
    if isinstance(found, int) or not fields.has(name):
        rows: int = fields.integer(name, 1, most, 1)
        return rows
    fail(fields.at(name), found, f"a whole number from 1 to {most}, or {{ min, max }} of such")


def _sets(fields: Fields, table: TableProfile, assumed: dict[str, Any]) -> tuple[Change, ...]:
    path, found = fields.at("sets"), fields.get("sets")
    if isinstance(found, list):
        found = dict.fromkeys(fields.names("sets")) if fields.names("sets") else {}
        if len(found) != len(fields.names("sets")):
            fail(path, fields.get("sets"), "each column once")
        found = {name: {} for name in found}
    if not isinstance(found, Mapping) or not found:
        fail(path, found, "a list of columns, or a table of columns and changes, not empty")
    changes = []
    for name, change in found.items():
        column = next((column for column in table.columns if column.name == name), None)
        if column is None:
            expected = ", ".join(column.name for column in table.columns)
            fail(path, name, f"a column of {table.name}: {expected}")
        if column == table.key:
            fail(path, name, "a column that is not the key, which stays as it is")
        changes.append(_change(change, f"{path}.{name}", column, assumed))
    return tuple(changes)


def _change(value: object, path: str, column: ColumnProfile, assumed: dict[str, Any]) -> Change:
    fields = Fields(value, path, ("changed_frac", "grows_bytes"), assumed)
    low = high = 0
    if fields.has("grows_bytes"):
        if column.kind is not Kind.STRING or column.type_length is not None:
            fail(
                fields.at("grows_bytes"),
                fields.get("grows_bytes"),
                f"nothing, for a {column.type} cannot grow without end",
            )
        inner = Fields(fields.get("grows_bytes"), fields.at("grows_bytes"), ("min", "max"), assumed)
        low = inner.integer("min", 0, 1_000_000)
        high = inner.integer("max", low, 1_000_000)
    return Change(
        column=column.name,
        changed_frac=fields.number("changed_frac", 0, 1, 1.0),
        grows_min_bytes=low,
        grows_max_bytes=high,
    )


def _pick(fields: Fields, table: TableProfile, assumed: dict[str, Any]) -> Pick:
    path = fields.at("pick")
    if not fields.has("pick"):
        fields.assume("pick", {"distribution": "uniform"})
        return Pick(distribution="uniform")
    inner = Fields(fields.get("pick"), path, _ALL_PARAMETERS, assumed)
    distribution = inner.choice("distribution", tuple(_PARAMETERS))
    for name in _ALL_PARAMETERS[1:]:
        if inner.has(name) and name not in _PARAMETERS[distribution]:
            raise FieldError(inner.at(name), f"does not belong to the distribution {distribution}")
    wanted = _PARAMETERS[distribution]
    if distribution == "hot_set" and table.rows < 2:
        fail(path, distribution, f"at least 2 rows in {table.name}, which has {table.rows}")
    below_one = 1 - 1e-9
    return Pick(
        distribution=distribution,
        # pgbench's own bounds: MIN_ZIPFIAN_PARAM, MAX_ZIPFIAN_PARAM, MIN_GAUSSIAN_PARAM.
        theta=inner.number("theta", 1.001, 1000) if "theta" in wanted else None,
        param=inner.number("param", 2, 1e6) if "param" in wanted else None,
        rows_frac=inner.number("rows_frac", 0, below_one) if "rows_frac" in wanted else None,
        weight=inner.number("weight", 0, 1) if "weight" in wanted else None,
        n=inner.integer("n", 1, 2**40) if "n" in wanted else None,
        scatter=inner.flag("scatter", False) if "scatter" in wanted else False,
    )
