"""
Keys by which a profile's statements find rows: which columns those are, and which types they have.

The key counts the rows. Columns before it in its index, a tenant's number say, follow from the
number of the row as well, so that a statement names them too.
"""

from __future__ import annotations

from collections.abc import Sequence

from pgheadroom.forms import fail
from pgheadroom.profile.column_types import Kind
from pgheadroom.profile.spelling import Raw
from pgheadroom.profile.tables import INTEGER_MAX, ColumnProfile, TableProfile
from pgheadroom.profile.workload import Operation

HASHED_BYTES_MIN = 16
"""Digits of a hash as which the keys of many rows differ: 64 bits."""
ORDERED_BYTES_MIN = 10
"""Decimal digits that count any table's rows."""
_STRINGS = frozenset({"text", "varchar"})
_TIMES = frozenset({"date", "timestamp", "timestamptz"})
DAYS_MAX = 2_000_000_000
"""Days from 2000 on that a date has (to 5874897, `DATE_END_JULIAN`), with room for inserts."""


def named_columns(table: TableProfile, raw: Sequence[Raw]) -> tuple[str, ...]:
    """
    The columns by which statements name a row, the key last; none without a unique index.

    Args:
        table: As the file has it.
        raw: What stands in the file of each column.
    """
    index = table.key_index
    if index is None:
        return ()
    kinds = {str(given["name"]): given.get("values", {}).get("kind") for given in raw}
    referring = {key.column for key in table.foreign_keys if key.columns}
    first = index.columns[0]
    if first in referring or kinds[first] not in (None, "serial"):
        for n, name in enumerate(index.columns):
            if kinds[name] == "serial":
                return index.columns[: n + 1]
    return (first,)


def check_ordered(column: ColumnProfile, path: str) -> None:
    """
    Refuse an order of values that a column does not have by itself, or cannot have.

    Raises:
        FieldError: Names the field to change.
    """
    if not column.values.ordered:
        return
    place = f"{path}.values.ordered"
    if column.values.kind not in ("serial", "parent"):
        fail(place, True, f"none, for values of kind {column.values.kind} come in no order")
    if column.base_type not in (*_STRINGS, "uuid"):
        fail(place, True, f"none, for it is said of uuid, text and varchar, not of {column.type}")
    width = column.width
    if width is not None and not ORDERED_BYTES_MIN <= width.min_bytes == width.max_bytes:
        found = f"{width.min_bytes} to {width.max_bytes}"
        expected = f"one width of at least {ORDERED_BYTES_MIN} bytes, so that values have an order"
        fail(f"{path}.width", found, expected)


def check_key(path: str, table: TableProfile) -> None:
    """
    Refuse keys of types that no statement could name.

    Args:
        path: The table's path.
        table: Completed.

    Raises:
        FieldError: Names the field to change.
    """
    key = table.key
    if key is None:
        return
    place = f"{path}.columns[{table.columns.index(key)}]"
    others = (*_STRINGS, *_TIMES, "uuid", "numeric")
    if key.kind is not Kind.INTEGER and key.base_type not in others:
        expected = (
            "an integer, numeric, date, timestamp, timestamptz, uuid, text or varchar, for this "
            "column is the key"
        )
        fail(f"{place}.type", key.type, expected)
    if key.base_type == "date" and table.rows > DAYS_MAX:
        fail(f"{path}.rows", table.rows, f"at most {DAYS_MAX:,} keys of a date")
    if key.kind is Kind.INTEGER and table.rows > INTEGER_MAX[key.base_type]:
        fail(f"{path}.rows", table.rows, f"keys that fit {key.type}")
    width = key.width
    if width is not None and not key.values.ordered and width.min_bytes < HASHED_BYTES_MIN:
        expected = f"at least {HASHED_BYTES_MIN} bytes, so that keys, which are digits of hashes, "
        expected += "differ; or ordered = true among its values"
        fail(f"{place}.width.min_bytes", width.min_bytes, expected)
    for column in table.key_columns[:-1]:
        if column.values.pick is not None:
            place = f"{path}.columns[{table.columns.index(column)}].values.pick"
            fail(place, column.values.pick, "none, for this column is named to find a row")


def check_ranges(operation: Operation, path: str, table: TableProfile) -> None:
    """
    Refuse statements over the keys between two, where these lie anywhere.

    Raises:
        FieldError: Names the field to change.
    """
    if operation.kind in ("insert", "upsert") or table.has_ordered_keys:
        return
    why = f"keys of {table.name} are not in the order of its rows"
    if operation.is_head:
        fail(f"{path}.pick.distribution", "head", f"another distribution, for {why}")
    if operation.rows_max > 1:
        fail(f"{path}.rows_per_statement", operation.rows_max, f"1, for {why}")
