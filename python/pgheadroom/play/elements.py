"""
SQL of values of several elements: made of a number, and changed into the next ones.

What they are stands in `row/elements.rs` of the twin, with what is stored.
"""

from __future__ import annotations

from pgheadroom.play.type_values import modulo
from pgheadroom.profile import ColumnProfile
from pgheadroom.profile.column_types import INTEGER_ARRAYS
from pgheadroom.profile.elements import Elements, steps_of

_OLD = {
    "tsvector": "unnest(tsvector_to_array({old}))",
    "jsonb": "jsonb_array_elements_text({old})",
}
"""The elements of a value as rows of text; of arrays `unnest`."""


def made(column: ColumnProfile, elements: Elements, number: str, hashed: str) -> str:
    """
    SQL of a value.

    Args:
        column: Of a type that has elements.
        elements: What they are.
        number: SQL of its number, an int8.
        hashed: SQL of the hash of its row, which says how many there are.
    """
    more = elements.max - elements.min + 1
    count = f"CAST({elements.min} + {modulo(hashed, more)} AS int4)"
    steps = steps_of(elements)
    draw = modulo(f"hashint8extended({number}, j)", steps.draws)
    rows, element = f"generate_series(1, {count}) AS j", draw
    if steps.count:
        # As in `Shares` of the twin; a draw and its step stand more than once.
        rows = (
            f"(SELECT j, draw, CAST(draw / {steps.each} AS int4) AS step "
            f"FROM (SELECT j, {draw} AS draw FROM {rows}) AS draws) AS drawn"
        )
        element = (
            f"{steps.alike} * ((1::int8 << step) - 1) + "
            f"((draw - step * {steps.each}::int8) >> ({steps.count} - step))"
        )
    listed = f"SELECT {_element(column, elements, element)}"
    return _whole(column, f"{listed} FROM {rows} ORDER BY j")


def changed(column: ColumnProfile, elements: Elements, old: str) -> str:
    """SQL of what an update makes of a value, of which `old` is SQL."""
    element = f"mod(CAST(e AS int8) + 1, {elements.ndistinct}::int8)"
    listed = f"SELECT {_element(column, elements, element)}"
    rows = _OLD.get(column.base_type, "unnest({old})").format(old=old)
    whole = _whole(column, f"{listed} FROM {rows} WITH ORDINALITY AS old(e, n) ORDER BY n")
    return f"CASE WHEN {old} IS NOT NULL THEN {whole} END"


def _element(column: ColumnProfile, elements: Elements, number: str) -> str:
    if column.base_type in INTEGER_ARRAYS:
        return f"CAST({number} AS {column.base_type.removesuffix('[]')})"
    return f"lpad(CAST({number} AS text), {elements.width}, '0')"


def _whole(column: ColumnProfile, select: str) -> str:
    array = f"ARRAY({select})"
    if column.base_type == "tsvector":
        return f"array_to_tsvector({array})"
    if column.base_type == "jsonb":
        return f"to_jsonb({array})"
    return f"CAST({array} AS {column.type})" if column.base_type == "varchar[]" else array
