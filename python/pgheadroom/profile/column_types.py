"""
The types that a profile's columns may have: one line each.

What a value of them is made of stands in `pgheadroom.play.type_values` for servers, and in
`row/counted.rs` and `wrap.rs` of the twin; length, alignment and storage in `column_type/table.rs`
of the layout. A test holds the four together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pgheadroom import _core

UNKNOWN_WIDTH_BYTES = 32
"""What PostgreSQL's planner assumes of a type (`get_typavgwidth`, lsyscache.c)."""
SHORT_HEADER_MAX = 127
"""Stored bytes of a value with a header of one byte (`VARATT_SHORT_MAX`, varatt.h)."""
ARRAY_BYTES = 20
"""Of an array before its elements: dimensions, offset, element type, length, lower bound."""
COMPOSITE_BYTES = 20
"""Of a composite value before its fields, where none is NULL: a tuple's header without a length."""
INTEGER_ARRAYS: Mapping[str, int] = {"int2[]": 2, "int4[]": 4, "int8[]": 8}
"""Arrays of integers, and the bytes of an element."""
_TSVECTOR_WORD_MAX = 2046  # `MAXSTRLEN`, src/include/tsearch/ts_type.h
_LTREE_WORD_MIN = 1
_LTREE_BYTES_MAX = 6 + 255  # `LTREE_LABEL_MAX_CHARS`, contrib/ltree/ltree.h (15)
NAME_DIGITS = 32
"""Characters of a `name`, which a B-tree keeps as a cstring."""
BITS_MAX = 62
"""Bits of a bit string whose values are counted."""


class Kind(StrEnum):
    """What a column's values are, which decides how they are made and changed."""

    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"
    STRING = "string"
    PADDED = "padded"
    COUNTED = "counted"
    """Of one number, in a type's own way."""
    WRAPPED = "wrapped"
    """Digits of hashes, in a type's own way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnForm:
    """
    What a profile has to know of a type.

    `width` says whether values are as wide as the profile says, then at least and at most so many
    bytes; `payload_bytes` is what others of variable length take. `btree` and `brin` say whether
    an index may have it as a key column; `grows` whether an update may make it longer.
    """

    kind: Kind
    width: bool = False
    least_bytes: int = 0
    most_bytes: int | None = None
    payload_bytes: int | None = None
    btree: bool = True
    brin: bool = True
    grows: bool = False


def _counted(
    *, payload_bytes: int | None = None, btree: bool = True, brin: bool = True
) -> ColumnForm:
    return ColumnForm(kind=Kind.COUNTED, payload_bytes=payload_bytes, btree=btree, brin=brin)


def _wrapped(
    least_bytes: int,
    *,
    most_bytes: int | None = None,
    btree: bool = True,
    brin: bool = False,
    grows: bool = True,
) -> ColumnForm:
    return ColumnForm(
        kind=Kind.WRAPPED,
        width=True,
        least_bytes=least_bytes,
        most_bytes=most_bytes,
        btree=btree,
        brin=brin,
        grows=grows,
    )


def _integers(element_bytes: int) -> ColumnForm:
    return _wrapped(ARRAY_BYTES + element_bytes, grows=False)


FORMS: Mapping[str, ColumnForm] = {
    "int2": ColumnForm(kind=Kind.INTEGER),
    "int4": ColumnForm(kind=Kind.INTEGER),
    "int8": ColumnForm(kind=Kind.INTEGER),
    "float4": ColumnForm(kind=Kind.NUMBER),
    "float8": ColumnForm(kind=Kind.NUMBER),
    "numeric": ColumnForm(kind=Kind.NUMBER, payload_bytes=8),
    "bool": ColumnForm(kind=Kind.BOOLEAN, brin=False),
    "timestamp": ColumnForm(kind=Kind.TIMESTAMP),
    "timestamptz": ColumnForm(kind=Kind.TIMESTAMP),
    "text": ColumnForm(kind=Kind.STRING, width=True, grows=True),
    "varchar": ColumnForm(kind=Kind.STRING, width=True, grows=True),
    "bpchar": ColumnForm(kind=Kind.PADDED),
    "uuid": ColumnForm(kind=Kind.WRAPPED),
    "date": _counted(),
    "time": _counted(),
    "timetz": _counted(),
    "interval": _counted(),
    "json": _wrapped(8, btree=False),
    "jsonb": _wrapped(13),
    "bytea": _wrapped(0, brin=True),
    "inet": _counted(payload_bytes=6, brin=False),
    "cidr": _counted(payload_bytes=6, brin=False),
    "macaddr": _counted(),
    "macaddr8": _counted(),
    "money": _counted(brin=False),
    "oid": _counted(),
    "name": ColumnForm(kind=Kind.WRAPPED),
    '"char"': _counted(),
    "bit": _counted(),
    "varbit": _counted(),
    "point": _counted(btree=False, brin=False),
    "int4range": _counted(payload_bytes=13, brin=False),
    "int8range": _counted(payload_bytes=21, brin=False),
    "daterange": _counted(payload_bytes=13, brin=False),
    "tsrange": _counted(payload_bytes=21, brin=False),
    "tstzrange": _counted(payload_bytes=21, brin=False),
    "int4multirange": _counted(payload_bytes=20, brin=False),
    "int8multirange": _counted(payload_bytes=28, brin=False),
    "datemultirange": _counted(payload_bytes=20, brin=False),
    "tsmultirange": _counted(payload_bytes=28, brin=False),
    "tstzmultirange": _counted(payload_bytes=28, brin=False),
    "box": _counted(btree=False, brin=False),
    "lseg": _counted(btree=False, brin=False),
    "circle": _counted(btree=False, brin=False),
    "path": _counted(payload_bytes=28, btree=False, brin=False),
    "enum": _counted(brin=False),
    "citext": _wrapped(0),
    "hstore": _wrapped(13),
    "ltree": _wrapped(6 + _LTREE_WORD_MIN, most_bytes=_LTREE_BYTES_MAX, grows=False),
    "xml": _wrapped(7, btree=False),
    "tsvector": _wrapped(9, most_bytes=8 + _TSVECTOR_WORD_MAX, grows=False),
    **{name: _integers(element_bytes) for name, element_bytes in INTEGER_ARRAYS.items()},
    "composite": _wrapped(COMPOSITE_BYTES + 1),
    "text[]": _wrapped(ARRAY_BYTES + 4),
    "varchar[]": _wrapped(ARRAY_BYTES + 4),
}
"""By PostgreSQL's own name without a modifier, `[]` for arrays."""

KINDS: Mapping[str, Kind] = {name: form.kind for name, form in FORMS.items()}
"""Types that a profile's columns may have."""


EXTENSIONS: Mapping[str, str] = {"citext": "citext", "hstore": "hstore", "ltree": "ltree"}
"""Which extension a server needs for a type."""

OPERATORS_OF: Mapping[str, str] = {"gin_trgm_ops": "pg_trgm"}
"""Which it needs for an operator class."""

RANGES = frozenset({"int4range", "int8range", "daterange", "tsrange", "tstzrange"})
MULTIRANGES = frozenset(name.replace("range", "multirange") for name in RANGES)
_GEOMETRY = frozenset({"point", "box", "lseg", "circle", "path"})
_WITHOUT_HASH = frozenset(
    {"bit", "varbit", "money", "json", "xml", "tsvector", "ltree", *_GEOMETRY}
)
_SPGIST = frozenset({"text", "varchar", "inet", "cidr", "point", "box", *RANGES})
_GIN = frozenset({"jsonb", "tsvector", "hstore", *(name for name in FORMS if name.endswith("[]"))})
_BY_METHOD: Mapping[str, frozenset[str]] = {
    "btree": frozenset(name for name, form in FORMS.items() if form.btree),
    "brin": frozenset(name for name, form in FORMS.items() if form.brin),
    "hash": frozenset(FORMS) - _WITHOUT_HASH,
    "gin": _GIN,
    "gist": frozenset(
        {"point", "box", "circle", "tsvector", "hstore", "ltree", *RANGES, *MULTIRANGES}
    ),
    "spgist": _SPGIST,
}
"""Types that have a default operator class, by access method (pg_opclass, 15 to 19)."""

PATTERN_OPS = {"text": "text_pattern_ops", "varchar": "varchar_pattern_ops"}
"""B-tree operator classes beside the default ones that order strings as those do here."""


def has_operators(type_name: str, method: str) -> bool:
    """Whether the type has a default operator class of this access method."""
    return base_of(type_name) in _BY_METHOD[method]


def base_of(type_name: str) -> str:
    """A canonical type without its modifier: `varchar[]` of `varchar(10)[]`."""
    return type_name.partition("(")[0] + ("[]" if type_name.endswith(")[]") else "")


def is_toastable(type_name: str, labels: Sequence[str] = ()) -> bool:
    """
    Whether a column of a canonical type may have a COMPRESSION of its own; enums have `labels`.

    Source: `GetAttributeCompression`, src/backend/commands/tablecmds.c (REL_18_STABLE).
    """
    return not labels and _core.Column(type_name, is_null=True).typstorage != "p"


def length_of(type_name: str) -> int | None:
    """The n of `bpchar(n)`, `varchar(n)`, `bit(n)` and arrays of them."""
    digits = type_name.partition("(")[2].removesuffix("[]").rstrip(")")
    return int(digits) if digits.isdecimal() else None


def payload_bytes(type_name: str) -> int | None:
    """Bytes without a header of values of variable length that have no width of their own."""
    base = base_of(type_name)
    length = length_of(type_name)
    if base == "varbit" and length is not None:
        return 4 + (length + 7) // 8
    if base == "bpchar":
        return length
    return FORMS[base].payload_bytes


def numeric_bytes(largest: int) -> int:
    """Of a whole `numeric` without its header: two, and two for each four of its digits."""
    return 2 + 2 * -(-len(str(largest)) // 4)


def width_range(type_name: str, most: int) -> tuple[int, int]:
    """Fewest and most bytes that a profile may say of a type, at most `most`."""
    base, length = base_of(type_name), length_of(type_name)
    form = FORMS[base]
    limits = [most]
    if form.most_bytes is not None:
        limits.append(form.most_bytes)
    if length is not None:
        limits.append(form.least_bytes + length)
    return form.least_bytes, min(limits)


def assumed_width(type_name: str, most: int) -> tuple[int, int] | None:
    """The width that stands for one that is not given; None where it has to be."""
    base, length = base_of(type_name), length_of(type_name)
    least, most = width_range(type_name, most)
    if base == "text" or (base == "varchar" and length is None):
        return None
    if base == "varchar":
        return min(1, most), most
    bytes_ = min(max(UNKNOWN_WIDTH_BYTES, least), most)
    return bytes_, bytes_
