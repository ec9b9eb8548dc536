"""
The key of a live table as a profile's: uuids, strings, times and numerics that keep their type.

    correlation of pg_stats at least 0.8     values in the order of the rows (version 7, ULIDs)
    less, or none                            in an order of their own (version 4, md5)
"""

from __future__ import annotations

from pgheadroom.observe.widths import ColumnWidth, catalog_type, string_width
from pgheadroom.profile.column_types import base_of, numeric_bytes
from pgheadroom.profile.keys import DAYS_MAX, HASHED_BYTES_MIN, ORDERED_BYTES_MIN
from pgheadroom.profile.tables import ColumnProfile, Values, Width
from pgheadroom.sources.recording import AnswerRow

_TIMES = ("date", "timestamp", "timestamptz")
_NUMBERS = ("int2", "int4", "int8", "numeric", *_TIMES)
_ORDERED_FROM = 0.8  # of the correlation with the rows' places: most come in order; arbitrary


def key_entry(
    name: str, row: AnswerRow, width: ColumnWidth | None, statistics: AnswerRow | None, *, rows: int
) -> tuple[ColumnProfile, str | None] | None:
    """
    The profile's column of a key that is no integer, and how its order is known.

    None where an integer has to stand for it.

    Args:
        name: In the profile.
        row: Its row of the query `columns`.
        width: Stored bytes, for types of variable length.
        statistics: Its row of `column_statistics`, if it may be seen.
        rows: Rows of the table.
    """
    canonical = catalog_type(row)
    base = base_of(canonical or "")
    if (
        base == "numeric"
        and width is not None
        and abs(width.mean_bytes - 1 - numeric_bytes(rows)) <= 2
    ):
        return ColumnProfile(name=name, type=str(canonical), values=Values(kind="serial")), None
    if base in _TIMES and not (base == "date" and rows > DAYS_MAX):
        return ColumnProfile(name=name, type=base, values=Values(kind="serial")), None
    if canonical is None or base not in ("uuid", "text", "varchar"):
        return None
    found = None if statistics is None else statistics["correlation"]
    is_ordered = found is not None and abs(float(found)) >= _ORDERED_FROM
    bytes_ = None
    if base != "uuid":
        if width is None:
            return None
        bytes_ = string_width(width)
        if is_ordered:
            mean = round((bytes_.min_bytes + bytes_.max_bytes) / 2)
            bytes_ = Width(min_bytes=mean, max_bytes=mean)
        if bytes_.min_bytes < (ORDERED_BYTES_MIN if is_ordered else HASHED_BYTES_MIN):
            return None
        limit = canonical.partition("(")[2].rstrip(")")
        if limit and bytes_.max_bytes > int(limit):
            canonical = "text"
    values = Values(kind="serial", ordered=is_ordered)
    return ColumnProfile(name=name, type=canonical, values=values, width=bytes_), (
        "assumed to be another than that of the rows: no correlation in pg_stats"
        if found is None
        else f"{'as' if is_ordered else 'not as'} the rows lie: correlation {float(found):.2f}"
    )


def is_in_order(column: ColumnProfile) -> bool:
    """Whether ranges of such keys are those of neighbouring rows."""
    return column.values.ordered or column.base_type in _NUMBERS
