"""
SQL of the values of types that are neither numbers, timestamps nor plain strings: one entry each.

A value is made of a number or of digits of hashes, and changed into the next one; the table of
both stands in `row/counted.rs` and `wrap.rs` of the twin, with what is stored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pgheadroom import quoting
from pgheadroom.profile import ColumnProfile
from pgheadroom.profile.column_types import (
    ARRAY_BYTES,
    COMPOSITE_BYTES,
    INTEGER_ARRAYS,
    SHORT_HEADER_MAX,
)

COMPOSITE = "pgheadroom_composite"
"""The composite type of one text; `load` makes it."""

_DAY_MICROSECONDS = 86_400_000_000
_ORDERED_UUID = 2**60
_MICROSECOND = "interval '1 microsecond'"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueOfNumber:
    """`{n}` is SQL of the number, an int8; `{old}` of the old value; `{bits}` the type's length."""

    value: str
    changed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapped:
    """
    `{digits}` is SQL of the digits, a text; `{old}` of the old value.

    Attributes:
        value: Of digits.
        inside: The digits of an old value.
        overhead_bytes: Bytes of a value beside its digits.
        long_bytes: The same of one whose digits have a header of four bytes, where that is another.
    """

    value: str
    inside: str
    overhead_bytes: int
    long_bytes: int | None = None


def _macaddr(digits: int, modulus: str) -> ValueOfNumber:
    number = (
        f"CAST(CAST('x' || translate(CAST({{old}} AS text), ':', '') AS bit({4 * digits})) AS int8)"
    )
    made = f"CAST(lpad(to_hex(mod({{n}}, {modulus}::int8)), {digits}, '0') AS {{type}})"
    return ValueOfNumber(value=made, changed=made.replace("{n}", f"{number} + 1"))


def _moved(name: str, step: str) -> str:
    """A range that begins and ends later; both ends of NULL would be a range without ends."""
    moved = f"{name}(lower({{old}}) + {step}, upper({{old}}) + {step})"
    return f"CASE WHEN {{old}} IS NOT NULL THEN {moved} END"


def _range(element: str, length: str, step: str) -> ValueOfNumber:
    number = f"CAST({{n}} AS {element})"
    name = f"{element}range"
    return ValueOfNumber(value=f"{name}({number}, {number} + {length})", changed=_moved(name, step))


def _times(start: str, name: str) -> ValueOfNumber:
    begins = f"{start} + {{n}} * interval '1 second'"
    return ValueOfNumber(
        value=f"{name}({begins}, {begins} + interval '1 second')",
        changed=_moved(name, _MICROSECOND),
    )


def _of_one(range_name: str, made: ValueOfNumber) -> ValueOfNumber:
    """A multirange of one range."""
    name = range_name.replace("range", "multirange")
    step = _MICROSECOND if range_name.startswith("ts") else "1"
    moved = f"{range_name}(lower({{old}}) + {step}, upper({{old}}) + {step})"
    return ValueOfNumber(
        value=f"{name}({made.value})",
        changed=f"CASE WHEN {{old}} IS NOT NULL THEN {name}({moved}) END",
    )


def _corners(name: str) -> ValueOfNumber:
    """From a point to the origin."""
    return ValueOfNumber(
        value=f"{name}(point(CAST({{n}} AS float8), 0), point(0, 0))",
        changed=f"{name}(({{old}})[0] + point(1, 0), point(0, 0))",
    )


_RANGES = {
    "int4range": _range("int4", "1", "1"),
    "int8range": _range("int8", "1", "1"),
    "daterange": ValueOfNumber(
        value="daterange(date '2000-01-01' + CAST({n} AS int4), "
        "date '2000-01-01' + CAST({n} AS int4) + 1)",
        changed=_moved("daterange", "1"),
    ),
    "tsrange": _times("timestamp '2000-01-01 00:00:00'", "tsrange"),
    "tstzrange": _times("timestamptz '2000-01-01 00:00:00+00'", "tstzrange"),
}
_BITS = "CAST(mod({n}, {modulus}::int8) AS bit({bits}))"

COUNTED: Mapping[str, ValueOfNumber] = {
    "date": ValueOfNumber(value="(date '2000-01-01' + CAST({n} AS int4))", changed="{old} + 1"),
    "time": ValueOfNumber(
        value=f"(time '00:00' + mod({{n}}, {_DAY_MICROSECONDS}) * {_MICROSECOND})",
        changed=f"{{old}} + {_MICROSECOND}",
    ),
    "timetz": ValueOfNumber(
        value=f"(CAST('00:00+00' AS timetz) + mod({{n}}, {_DAY_MICROSECONDS}) * {_MICROSECOND})",
        changed=f"{{old}} + {_MICROSECOND}",
    ),
    "interval": ValueOfNumber(
        value="({n} * interval '1 second')", changed=f"{{old}} + {_MICROSECOND}"
    ),
    "oid": ValueOfNumber(value="CAST({n} AS oid)", changed="CAST(CAST({old} AS int8) + 1 AS oid)"),
    '"char"': ValueOfNumber(
        value='CAST(chr(97 + CAST(mod({n}, 26) AS int4)) AS "char")',
        changed='CAST(chr(97 + mod(ascii(CAST({old} AS text)) - 96, 26)) AS "char")',
    ),
    "money": ValueOfNumber(value="CAST({n} AS money)", changed="{old} + CAST(1 AS money)"),
    "macaddr": _macaddr(12, str(2**48)),
    "macaddr8": _macaddr(16, str(2**62)),
    "inet": ValueOfNumber(
        value="(CAST('10.0.0.0' AS inet) + mod({n}, 16777216))", changed="{old} + 1"
    ),
    "cidr": ValueOfNumber(
        value="CAST(CAST('10.0.0.0' AS inet) + mod({n}, 16777216) AS cidr)",
        changed="CAST({old} + 1 AS cidr)",
    ),
    "point": ValueOfNumber(value="point(CAST({n} AS float8), 0)", changed="{old} + point(1, 0)"),
    "box": _corners("box"),
    "lseg": _corners("lseg"),
    "circle": ValueOfNumber(
        value="circle(point(CAST({n} AS float8), 0), 0)", changed="{old} + point(1, 0)"
    ),
    "path": ValueOfNumber(
        value="CAST('((' || CAST({n} AS float8) || ',0))' AS path)", changed="{old} + point(1, 0)"
    ),
    **_RANGES,
    **{name.replace("range", "multirange"): _of_one(name, made) for name, made in _RANGES.items()},
    "enum": ValueOfNumber(
        value="({labels})[CAST(1 + mod({n}, {count}) AS int4)]",
        changed="({labels})[1 + mod(array_position({labels}, {old}), {count})]",
    ),
    "bit": ValueOfNumber(value=_BITS, changed=_BITS.replace("{n}", "CAST({old} AS int8) + 1")),
    "varbit": ValueOfNumber(
        value=f"CAST({_BITS} AS varbit)",
        changed="CAST("
        + _BITS.replace("{n}", "CAST(CAST({old} AS bit({bits})) AS int8) + 1")
        + " AS varbit)",
    ),
}
"""By the type's name."""

WRAPPED: Mapping[str, Wrapped] = {
    "json": Wrapped(
        value="CAST('{{\"v\":\"' || {digits} || '\"}}' AS json)",
        inside="({old} ->> 'v')",
        overhead_bytes=8,
    ),
    "jsonb": Wrapped(
        value="jsonb_build_object('v', {digits})", inside="({old} ->> 'v')", overhead_bytes=13
    ),
    "xml": Wrapped(
        value="CAST('<v>' || {digits} || '</v>' AS xml)",
        inside="substr(CAST({old} AS text), 4, length(CAST({old} AS text)) - 7)",
        overhead_bytes=7,
    ),
    "tsvector": Wrapped(
        value="array_to_tsvector(ARRAY[{digits}])",
        inside="(tsvector_to_array({old}))[1]",
        overhead_bytes=8,
    ),
    "citext": Wrapped(
        value="CAST({digits} AS citext)", inside="CAST({old} AS text)", overhead_bytes=0
    ),
    "hstore": Wrapped(value="hstore('v', {digits})", inside="({old} -> 'v')", overhead_bytes=13),
    "ltree": Wrapped(
        value="CAST({digits} AS ltree)", inside="CAST({old} AS text)", overhead_bytes=6
    ),
    "composite": Wrapped(
        value=f"CAST(ROW({{digits}}) AS {COMPOSITE})",
        inside="({old}).v",
        overhead_bytes=COMPOSITE_BYTES + 1,
        long_bytes=COMPOSITE_BYTES + 4,
    ),
    "text[]": Wrapped(value="ARRAY[{digits}]", inside="({old})[1]", overhead_bytes=24),
    "varchar[]": Wrapped(
        value="CAST(ARRAY[{digits}] AS {type})", inside="({old})[1]", overhead_bytes=24
    ),
}
"""By the type's name; `uuid`, `name`, `bytea` and arrays of integers are functions below."""

Digits = Callable[[str, int], str]
"""SQL of digits of hashes of a number, at least so many."""


def modulo(value: str, divisor: int) -> str:
    """SQL of the mathematical modulo of an int8, which is never negative."""
    return f"mod(mod({value}, {divisor}::int8) + {divisor}::int8, {divisor}::int8)"


def made(column: ColumnProfile, number: str, width: Callable[[int], str], digits: Digits) -> str:
    """
    SQL of a value.

    Args:
        column: Of one of these types.
        number: SQL of its number, an int8.
        width: SQL of its bytes less so many.
        digits: Digits of hashes.
    """
    base = column.base_type
    if base in COUNTED:
        return _counted(COUNTED[base].value, column, n=number)
    if base == "uuid" and column.values.ordered:
        # Its first half counts, its second is a hash's, as in a version 7.
        counted = f"lpad(to_hex({_ORDERED_UUID} + {number}), 16, '0')"
        return f"CAST({counted} || left(md5(CAST({number} AS text)), 16) AS uuid)"
    if base == "uuid":
        return f"CAST(md5(CAST({number} AS text)) AS uuid)"
    if base == "name":
        return f"CAST({digits(number, 32)} AS name)"
    assert column.width is not None, "it has a width"
    most = column.width.max_bytes
    if base == "bytea":
        return f"decode(left({digits(number, 2 * most)}, 2 * {width(0)}), 'hex')"
    if base in INTEGER_ARRAYS:
        element = base.removesuffix("[]")
        places = f"greatest({width(ARRAY_BYTES)} / {INTEGER_ARRAYS[base]}, 1)"
        return f"array_fill(CAST({number} AS {element}), ARRAY[{places}])"
    wrapped = WRAPPED[base]
    less = wrapped.overhead_bytes
    length = width(less)
    if wrapped.long_bytes is not None and most - less >= SHORT_HEADER_MAX:
        is_long = f"{length} >= {SHORT_HEADER_MAX}"
        length = f"CASE WHEN {is_long} THEN {width(wrapped.long_bytes)} ELSE {length} END"
    inside = f"left({digits(number, most - less)}, {length})"
    return wrapped.value.format(digits=inside, type=column.type)


def changed(column: ColumnProfile, old: str, growth: str | None) -> str:
    """
    SQL of what an update makes of a value.

    Args:
        column: Of one of these types.
        old: SQL of the old value.
        growth: SQL of the bytes that it grows by; None where it keeps its length.
    """
    base = column.base_type
    if base in COUNTED:
        return _counted(COUNTED[base].changed, column, old=old)
    if base in ("uuid", "name"):
        return f"CAST(md5(CAST({old} AS text)) AS {base})"
    more = "" if growth is None else f" + {growth}"
    if base == "bytea":
        length = f"2 * (octet_length({old}){more})"
        return f"decode({_repeated(f'md5({old})', length)}, 'hex')"
    if base in INTEGER_ARRAYS:
        element = base.removesuffix("[]")
        filled = f"array_fill(CAST(({old})[1] + 1 AS {element}), ARRAY[cardinality({old})])"
        return _unless_null(old, filled)
    wrapped = WRAPPED[base]
    inside = wrapped.inside.format(old=old)
    length = f"(octet_length({inside}){more})"
    digits = _repeated(f"md5({inside})", length)
    return _unless_null(old, wrapped.value.format(digits=digits, type=column.type))


def _unless_null(old: str, value: str) -> str:
    return f"CASE WHEN {old} IS NOT NULL THEN {value} END"


def _repeated(hashed: str, length: str) -> str:
    return f"left(repeat({hashed}, ({length} + 31) / 32), {length})"


def _counted(template: str, column: ColumnProfile, **given: str) -> str:
    bits = column.type_length or 0
    own: dict[str, str | int] = {"bits": bits, "modulus": 2**bits, "type": column.type}
    if column.labels:
        listed = ", ".join(quoting.literal(one) for one in column.labels)
        own |= {
            "labels": f"CAST(ARRAY[{listed}] AS {enum_type(column)}[])",
            "count": len(column.labels),
        }
    return template.format(**own, **given)


def enum_type(column: ColumnProfile) -> str:
    """The name of an enum's type: one for each list of labels."""
    listed = hashlib.md5(json.dumps(column.labels).encode(), usedforsecurity=False)
    return f"pgheadroom_enum_{listed.hexdigest()[:12]}"


def label(column: ColumnProfile, name: str) -> str:
    """SQL of an enum's label."""
    return f"CAST({quoting.literal(name)} AS {enum_type(column)})"


def sql_type(column: ColumnProfile) -> str:
    """A column's type as a server has it."""
    if column.base_type == "composite":
        return COMPOSITE
    return enum_type(column) if column.labels else column.type
