"""
A column as the core lays it out: its type, or what stands for that, and the width of its values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from pgheadroom import _core
from pgheadroom.errors import InputError
from pgheadroom.profile import ColumnProfile, Kind, TableProfile
from pgheadroom.profile.column_types import UNKNOWN_WIDTH_BYTES, payload_bytes
from pgheadroom.sources.columns import LiveColumn

_SUBSTITUTES = {
    (1, "c"): "bool",
    (2, "s"): "int2",
    (4, "i"): "int4",
    (8, "d"): "int8",
    (16, "c"): "uuid",
    (6, "i"): "macaddr",
    (12, "d"): "timetz",
    (16, "d"): "point",
    (24, "d"): "circle",
    (32, "d"): "box",
    (64, "c"): "name",
    (-1, "i"): "bytea",
    (-1, "d"): "path",
}
"""A built-in type of the same length and alignment, for types that only this database has."""


@dataclass(frozen=True, slots=True)
class LaidColumn:
    """
    A column as it is laid out; `type` is the server's spelling, `like` what stands for it.

    `assumed` has what is not known of it, by `table.column`.
    """

    core: _core.Column
    type: str
    like: str | None
    null_frac: float
    assumed: Mapping[str, str] = field(default_factory=dict)

    def null(self) -> _core.Column:
        """The same where it has no value."""
        return _core.Column(self.core.type_name, is_null=True, name=self.core.name)


def profile_columns(table: TableProfile) -> list[_core.Column]:
    """A row of the table, without NULLs and with strings of their mean width, column by column."""
    return [profile_column(column, table.name).core for column in table.columns]


def profile_column(column: ColumnProfile, table: str) -> LaidColumn:
    """A column of a profile's table, a string with its mean width."""
    width: int | None = None
    said = None
    if column.width is not None and column.mean_width_bytes is not None:
        width = math.floor(column.mean_width_bytes + 0.5)
        if column.width.min_bytes != column.width.max_bytes:
            said = f"{width} bytes, the mean of its widths"
    elif column.base_type == "numeric":
        width = 2 if column.values.kind == "constant" else 6
        said = f"{width} bytes of a numeric value"
    elif column.kind is Kind.PADDED and column.type_length is None:
        width = 1
    else:
        width = payload_bytes(column.type)
    core = _core.Column(column.type, payload_bytes=width, name=column.name)
    assumed = {} if said is None else {f"{table}.{column.name}": said}
    if column.stands_for is None:
        return LaidColumn(core, core.type_name, None, column.null_frac, assumed)
    return LaidColumn(core, column.stands_for, core.type_name, column.null_frac, assumed)


def live_column(column: LiveColumn, table: str) -> LaidColumn:
    """
    A column of a live table, with values of their mean width.

    Args:
        column: As the catalog has it.
        table: Its table's name.
    """
    path = f"{table}.{column.name}"
    assumed: dict[str, str] = {}
    width: int | None = None
    null_frac = min(max(column.null_frac or 0.0, 0.0), 1.0)
    if column.typlen < 0 and null_frac < 1:
        if column.stored_bytes is None:
            width = UNKNOWN_WIDTH_BYTES
            assumed[path] = f"{width} bytes: its average width cannot be seen"
        else:
            header_bytes = 1 if column.stored_bytes <= 127 else 4
            width = max(round(column.stored_bytes) - header_bytes, 0)
    if column.null_frac is None:
        assumed[f"{path}, NULL"] = "no value is NULL: its share of NULLs cannot be seen"
    core = None if column.is_user_type else _built_in(column, width)
    # Qualified where a search_path might not find it; public goes without saying, as for tables.
    spelled = column.declared.removeprefix("public.")
    like = None if column.declared == column.type else column.type.removeprefix("public.")
    if core is not None:
        return LaidColumn(core, spelled, like, null_frac, assumed)
    substitute = _SUBSTITUTES.get((column.typlen, column.typalign), "bytea")
    if substitute == "bytea" and column.typlen > 0:
        width = column.typlen - 1  # as many bytes, one of them taken for a header
    elif column.typlen < 0 and width is None:
        width = 1
    core = _core.Column(substitute, payload_bytes=width, name=column.name)
    # A built-in type of variable length is only wider than one value of it: it lies no otherwise.
    if column.is_user_type or column.typlen > 0:
        like = substitute if like is None else f"{like}, as {substitute}"
    return LaidColumn(core, spelled, like, null_frac, assumed)


def _built_in(column: LiveColumn, width: int | None) -> _core.Column | None:
    """The column by its own type; None where a value of that type is never so wide as the mean."""
    widths = (width, None) if column.stored_bytes is None else (width,)
    for tried in widths:  # bpchar(n) has a width of its own
        try:
            return _core.Column(column.type, payload_bytes=tried, name=column.name)
        except InputError:
            continue
    return None
