"""
Values of several elements: which types have them, and how many bytes they are.

An element is a number below `ndistinct`; in strings it stands in decimal behind zeros.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from pgheadroom.forms import between, fail
from pgheadroom.profile.column_types import ARRAY_BYTES, INTEGER_ARRAYS

ELEMENTS_MAX = 10_000  # of a value; PostgreSQL has no limit near it; arbitrary
WIDTH_MAX = 100  # digits of an element, short of what jsonb's GIN keeps a hash of; arbitrary
_STRING_HEAD = 4
_JSONB_HEAD = _WORDS_HEAD = 4

_STRINGS = ("text[]", "varchar[]")
TYPES = (*INTEGER_ARRAYS, *_STRINGS, "tsvector", "jsonb")
"""Types that have elements, without a modifier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Elements:
    """
    Elements of a column's values, evenly from `min` to `max` of them.

    `width` is the digits of a string; None of integers, and where it is to be as many as needed.
    """

    min: Annotated[int, between(1, ELEMENTS_MAX)]
    max: Annotated[int, between(1, ELEMENTS_MAX)]
    ndistinct: Annotated[int, between(1, 2**62)]
    width: Annotated[int, between(1, WIDTH_MAX)] | None = None


def completed_elements(elements: Elements, base: str, path: str) -> Elements:
    """
    Elements of a type, with their width.

    Args:
        elements: As the file has them.
        base: The type, without its modifier.
        path: Their path, for messages.

    Raises:
        FieldError: Something does not fit.
    """
    if base not in TYPES:
        fail(path, base, "a type that has elements: " + ", ".join(TYPES))
    if elements.max < elements.min:
        fail(f"{path}.max", elements.max, f"a whole number from {elements.min}")
    digits = len(str(elements.ndistinct - 1))
    if base in INTEGER_ARRAYS:
        if elements.width is not None:
            fail(f"{path}.width", elements.width, f"none, for elements of {base} are numbers")
        most: int = 2 ** (8 * INTEGER_ARRAYS[base] - 1)
        if elements.ndistinct > most:
            fail(f"{path}.ndistinct", elements.ndistinct, f"at most {most}, as {base} has")
        return elements
    width = digits if elements.width is None else elements.width
    if width < digits:
        fail(f"{path}.width", width, f"at least {digits}, the digits of ndistinct - 1")
    return Elements(min=elements.min, max=elements.max, ndistinct=elements.ndistinct, width=width)


def payload_range(elements: Elements, base: str) -> tuple[int, int]:
    """Fewest and most bytes of a value of this type, without a length header."""
    # Words are in a tsvector once.
    fewest = min(elements.min, 1) if base == "tsvector" else elements.min
    most = min(elements.max, elements.ndistinct) if base == "tsvector" else elements.max
    return _payload(elements, base, fewest), _payload(elements, base, most)


def mean_payload(elements: Elements, base: str) -> float:
    """Bytes of the mean value, likewise."""
    counts = range(elements.min, elements.max + 1)
    mean = sum(counts) / len(counts)
    if base == "tsvector":
        n = elements.ndistinct
        mean = sum(n * -math.expm1(count * math.log1p(-1 / n)) if n > 1 else 1 for count in counts)
        mean /= len(counts)
    none = _payload(elements, base, 0)
    return none + mean * (_payload(elements, base, 1) - none)


def _payload(elements: Elements, base: str, count: int) -> int:
    if base in INTEGER_ARRAYS:
        return ARRAY_BYTES + count * INTEGER_ARRAYS[base]
    width = elements.width or 0
    if base in _STRINGS:
        return ARRAY_BYTES + count * (_STRING_HEAD + -(-width // 4) * 4)
    return _WORDS_HEAD + count * (_STRING_HEAD + width)
