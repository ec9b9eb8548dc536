"""
What stands for a type that profiles do not have: another one of the same stored form.

    typlen, typalign                      stands for it
    1 c, 2 s, 4 i, 8 d                    bool, int2, int4, int8
    6 i, 12 d, 16 c, 16 d, 64 c           macaddr, timetz, uuid, point, name
    24 d, 32 d                            circle, box
    -1 d, of a header of 4 bytes          composite, a row type of one text
    -1 else, and every other length       text

A value whose header is of 1 byte has no alignment, so that a text is like it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pgheadroom import _core
from pgheadroom.profile.column_types import (
    COMPOSITE_BYTES,
    FORMS,
    SHORT_HEADER_MAX,
    is_toastable,
)
from pgheadroom.profile.tables import ColumnProfile, ColumnStorage, Width

_FIXED = {
    (1, "c"): "bool",
    (2, "s"): "int2",
    (4, "i"): "int4",
    (8, "d"): "int8",
    (6, "i"): "macaddr",
    (12, "d"): "timetz",
    (16, "c"): "uuid",
    (16, "d"): "point",
    (24, "d"): "circle",
    (32, "d"): "box",
    (64, "c"): "name",
}
_ORDERED = {"point": "interval"}
"""Of the same form, for those that a B-tree has no operators for."""
_STORAGES: Mapping[str, ColumnStorage] = {"e": "external", "x": "extended", "m": "main"}
"""Of pg_attribute.attstorage (`TYPSTORAGE_EXTERNAL`, pg_type.h); plain is not played."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableForm:
    """A type of variable length, and the bytes of its values."""

    type: str
    width: Width


def fixed_form(typlen: int, typalign: str, *, indexed: bool) -> str | None:
    """
    The type of this length and alignment; None where profiles have none.

    Args:
        typlen: Of the type that it stands for.
        typalign: Likewise.
        indexed: Some index has the column, which is or stands as a B-tree.
    """
    found = _FIXED.get((typlen, typalign))
    if found is None or not indexed or FORMS[found].btree:
        return found
    return _ORDERED.get(found)


def variable_form(payload: Width, typalign: str) -> VariableForm | None:
    """
    A type of variable length of this alignment; None where text has it, or is near enough.

    Args:
        payload: Bytes of the values without their header.
        typalign: Of the type that it stands for.
    """
    has_long = payload.max_bytes >= SHORT_HEADER_MAX
    if typalign != "d" or not has_long or payload.min_bytes <= COMPOSITE_BYTES:
        return None
    return VariableForm(type="composite", width=payload)


def own_storage(column: ColumnProfile, letter: str) -> ColumnProfile:
    """The column with the STORAGE that it has, where what is played of it says another."""
    storage = _STORAGES.get(letter)
    if storage is None or not is_toastable(column.type, column.labels):
        return column
    own = _core.Column(column.type, is_null=True).typstorage
    return column if letter == own else replace(column, storage=storage)
