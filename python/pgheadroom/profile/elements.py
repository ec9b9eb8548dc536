"""
Values of several elements: which types have them, and how many bytes they are.

An element is a number below `ndistinct`; in strings it stands in decimal behind zeros. All of them
are equally frequent, or the first `alike`; then the next two times as many are half as frequent,
the next four times as many a quarter, and so on, as words are (Zipf's law with a flat head).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Annotated

from pgheadroom.forms import between, fail, in_file
from pgheadroom.profile.column_types import ARRAY_BYTES, INTEGER_ARRAYS

ELEMENTS_MAX = 10_000  # of a value; PostgreSQL has no limit near it; arbitrary
WIDTH_MAX = 100  # digits of an element, short of what jsonb's GIN keeps a hash of; arbitrary
SKEWED_MAX = 2**50  # different ones that are not all alike: their draws fit an int8; arbitrary
_STRING_HEAD = 4
_JSONB_HEAD = _WORDS_HEAD = 4

_STRINGS = ("text[]", "varchar[]")
TYPES = (*INTEGER_ARRAYS, *_STRINGS, "tsvector", "jsonb")
"""Types that have elements, without a modifier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Elements:
    """
    Elements of a column's values, evenly from `min` to `max` of them.

    `alike` of them are the most frequent, None: all. `width` is the digits of a string; None of
    integers, and where it is to be as many as needed.
    """

    min: Annotated[int, between(1, ELEMENTS_MAX)]
    max: Annotated[int, between(1, ELEMENTS_MAX)]
    ndistinct: Annotated[int, between(1, 2**62)]
    alike: Annotated[int, between(1, 2**62)] | None = field(
        default=None, metadata=in_file(unless_none=True)
    )
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
    alike = elements.alike
    if alike is not None and alike > elements.ndistinct:
        fail(f"{path}.alike", alike, f"at most {elements.ndistinct}, as many as there are")
    if alike is not None and alike < elements.ndistinct and elements.ndistinct > SKEWED_MAX:
        fail(
            f"{path}.ndistinct", elements.ndistinct, f"at most {SKEWED_MAX}, for not all are alike"
        )
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
    return replace(elements, width=width)


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """
    How often each element stands: those of a step are alike, of the next one half as frequent.

    Attributes:
        alike: Elements of the first step; each has twice as many as the one before.
        count: Steps before the last, which may have a part of its elements.
        each: Draws that fall on each of them.
        draws: All draws.
    """

    alike: int
    count: int
    each: int
    draws: int

    def shares(self) -> Iterator[tuple[int, float]]:
        """Of each step how many elements it has, and the share of the draws that is each one's."""
        for number in range(self.count + 1):
            last = number == self.count
            size = self.draws - self.count * self.each if last else self.alike * 2**number
            yield size, 2 ** (self.count - number) / self.draws

    def different(self, draws: float) -> float:
        """The mean number of different elements among so many draws."""
        return sum(size * at_least_once(share, draws) for size, share in self.shares())


def at_least_once(chance: float, times: float) -> float:
    """How likely something happens at all that is so likely each time."""
    return 1.0 if chance >= 1 else -math.expm1(times * math.log1p(-chance))


def steps_of(elements: Elements) -> Steps:
    """The steps of a column's elements; none of them where all are alike."""
    alike = elements.ndistinct if elements.alike is None else elements.alike
    count = 0
    while alike * (2 ** (count + 1) - 1) < elements.ndistinct:
        count += 1
    rest = elements.ndistinct - alike * (2**count - 1)
    each = alike * 2**count
    return Steps(alike=alike, count=count, each=each, draws=count * each + rest)


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
        steps = steps_of(elements)
        mean = sum(map(steps.different, counts)) / len(counts)
    none = _payload(elements, base, 0)
    return none + mean * (_payload(elements, base, 1) - none)


def _payload(elements: Elements, base: str, count: int) -> int:
    if base in INTEGER_ARRAYS:
        return ARRAY_BYTES + count * INTEGER_ARRAYS[base]
    width = elements.width or 0
    if base in _STRINGS:
        return ARRAY_BYTES + count * (_STRING_HEAD + -(-width // 4) * 4)
    return _WORDS_HEAD + count * (_STRING_HEAD + width)
