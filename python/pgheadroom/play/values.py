"""
SQL expressions for column values: made from the row number when loading, changed by updates.

Everything pseudo-random comes from `hashint8extended(row, column number)`, columns counted from
1, so that every server and the twin make the same rows. "Modulo" is the mathematical one, never
negative:

    value     hash mod ndistinct (random), the row (serial), 0 (constant), 1 + hash mod the rows of
              the table that a foreign key refers to (parent)
    label     the first whose share, with those before it, is above hash mod 999,983
    width     min_bytes + hash mod (max_bytes - min_bytes + 1)
    NULL      hash mod 1,000,000 < round(null_frac * 1,000,000)
    string    md5('VALUE:0') || md5('VALUE:1') || ..., cut to the width
    ordered   VALUE in decimal behind zeros
    bpchar    the letter number VALUE mod 26, blank-padded
    others    `type_values.py`, `elements.py`
"""

from __future__ import annotations

from collections.abc import Mapping

from pgheadroom import quoting
from pgheadroom.play import elements, type_values
from pgheadroom.profile import Change, ColumnProfile, Kind, TableProfile

MILLION = 1_000_000
SHARES = 999_983
"""A prime beside the million of NULLs, so that the two say nothing of each other."""
_MD5_DIGITS = 32
_CHUNKS_WRITTEN_OUT_MAX = 64  # longer strings are put together by a subquery; arbitrary


def million(frac: float) -> int:
    """A frequency as the bound of a draw from 1 to 1,000,000."""
    return round(frac * MILLION)


def column_list(table: TableProfile) -> str:
    """All columns of the table, quoted."""
    return ", ".join(quoting.identifier(column.name) for column in table.columns)


def row_values(table: TableProfile, row: str, newest: Mapping[str, str] | None = None) -> str:
    """
    The values of all columns as a select list.

    Args:
        table: The table.
        row: SQL of the row number, an int8; the key's value.
        newest: SQL of the key that columns take which refer to a client's newest row, by column;
            None while loading.
    """
    given = newest or {}
    return ", ".join(
        _value(column, n, row, given.get(column.name), table.rows)
        for n, column in enumerate(table.columns, start=1)
    )


def key_value(table: TableProfile, column: ColumnProfile, number: str) -> str:
    """
    What a column has in the row of a number.

    Args:
        table: The table.
        column: One that follows from the number alone.
        number: SQL of the number, of no type yet.
    """
    if column == table.key and column.kind in (Kind.INTEGER, Kind.NUMBER):
        return number
    return _value(
        column, 1 + table.columns.index(column), f"CAST({number} AS int8)", None, table.rows
    )


def _value(column: ColumnProfile, number: int, row: str, newest: str | None, rows: int) -> str:
    hashed = f"hashint8extended({row}, {number})"
    number_sql = (
        newest
        or {
            "serial": row,
            "constant": "0::int8",
            "random": type_values.modulo(hashed, column.values.ndistinct or 1),
            "parent": f"1 + {type_values.modulo(hashed, column.values.ndistinct or 1)}",
        }[column.values.kind]
    )
    if column.labels:
        number_sql = _label_number(column, number_sql, row, hashed, rows)
    value = _typed(column, number_sql, hashed)
    if column.null_frac > 0:
        bound = million(column.null_frac)
        value = f"CASE WHEN {type_values.modulo(hashed, MILLION)} >= {bound} THEN {value} END"
    return value


def _label_number(column: ColumnProfile, number: str, row: str, hashed: str, rows: int) -> str:
    """The number of an enum's label: by its share, and of new rows what is said of them."""
    values = column.values
    if values.shares:
        part, total, cases = type_values.modulo(hashed, SHARES), 0.0, []
        for n, share in enumerate(values.shares[:-1]):
            total += share
            cases.append(f"WHEN {part} < {round(total * SHARES)} THEN {n}::int8")
        last = f"{len(values.shares) - 1}::int8"
        number = f"CASE {' '.join(cases)} ELSE {last} END" if cases else last
    if values.new is None:
        return number
    new = column.labels.index(values.new)
    return f"CASE WHEN {row} > {rows}::int8 THEN {new}::int8 ELSE {number} END"


def _typed(column: ColumnProfile, number: str, hashed: str) -> str:
    if column.kind in (Kind.INTEGER, Kind.NUMBER):
        return f"CAST({number} AS {column.type})"
    if column.kind is Kind.BOOLEAN:
        return f"(mod({number}, 2) <> 0)"
    if column.kind is Kind.TIMESTAMP:
        zone = "+00" if column.base_type == "timestamptz" else ""
        start = f"CAST('2000-01-01 00:00:00{zone}' AS {column.type})"
        return f"({start} + {number} * interval '1 second')"
    if column.kind is Kind.PADDED:
        return f"CAST(chr(97 + CAST(mod({number}, 26) AS int4)) AS {column.type})"

    def width(less: int) -> str:
        """Bytes of the row's value less so many."""
        assert column.width is not None, "it has a width"
        low, high = column.width.min_bytes, column.width.max_bytes
        if low == high:
            return str(low - less)
        return f"CAST({low - less} + {type_values.modulo(hashed, high - low + 1)} AS int4)"

    if column.elements is not None:
        return elements.made(column, column.elements, number, hashed)
    if column.kind is not Kind.STRING:
        return type_values.made(column, number, width, _digits)
    assert column.width is not None, "strings have a width"
    if column.values.ordered:
        return f"lpad(CAST({number} AS text), {width(0)}, '0')"
    return f"left({_digits(number, column.width.max_bytes)}, {width(0)})"


def _digits(number: str, most: int) -> str:
    """Hexadecimal digits of hashes, at least `most` of them."""
    chunks = -(-most // _MD5_DIGITS)
    if chunks <= _CHUNKS_WRITTEN_OUT_MAX:
        parts = [f"md5(CAST({number} AS text) || ':{n}')" for n in range(max(chunks, 1))]
        return "(" + " || ".join(parts) + ")"
    return (
        f"(SELECT string_agg(md5(CAST({number} AS text) || ':' || n), '' ORDER BY n) "
        f"FROM generate_series(0, {chunks - 1}) AS n)"
    )


def changed(column: ColumnProfile, change: Change, old: str, draw: str, growth: str) -> str:
    """
    What an update assigns to a column.

    Args:
        column: The column.
        change: What the update does to it.
        old: SQL of the old value.
        draw: SQL of the draw that decides whether it changes; used if `changed_frac` is below 1.
        growth: SQL of the bytes that a string grows by; used if it grows.
    """
    new = _changed(column, change, old, growth)
    if change.changed_frac < 1:
        return f"CASE WHEN {draw} <= {million(change.changed_frac)} THEN {new} ELSE {old} END"
    return new


def _changed(column: ColumnProfile, change: Change, old: str, growth: str) -> str:
    if change.changed_frac == 0:
        return old  # of a uuid that refers there is no next
    if column.values.kind == "parent":  # the next of the loaded keys, after the last the first
        return f"CAST(mod({old}, {column.values.ndistinct}::int8) + 1 AS {column.type})"
    if column.kind in (Kind.INTEGER, Kind.NUMBER):
        return f"CAST({old} + 1 AS {column.type})"
    if column.kind is Kind.BOOLEAN:
        return f"NOT {old}"
    if column.kind is Kind.TIMESTAMP:
        return f"{old} + interval '1 microsecond'"
    if change.to is not None:
        return type_values.label(column, change.to)
    if column.elements is not None:
        return elements.changed(column, column.elements, old)
    if column.kind in (Kind.COUNTED, Kind.WRAPPED):
        return type_values.changed(column, old, growth if change.grows_max_bytes else None)
    # md5 of a bpchar is that of its text, which has no trailing blanks.
    length = f"octet_length({old})" + (f" + {growth}" if change.grows_max_bytes else "")
    new = f"left(repeat(md5(CAST({old} AS text)), ({length} + 31) / 32), {length})"
    return f"CAST({new} AS {column.type})"
