"""
Choices that a seed decides, of which a random profile is made.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, TypeVar

T = TypeVar("T")
Section = dict[str, Any]
"""A part of a profile, as its file has it."""


class Draw:
    """Choices in an order that the seed decides."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret

    def of(self, choices: Sequence[T]) -> T:
        """One of them, all alike."""
        return self._random.choice(choices)

    def some(self, choices: Sequence[T], least: int, most: int) -> list[T]:
        """Several different ones, in their order."""
        count = min(len(choices), self.between(least, most))
        return [choices[n] for n in sorted(self._random.sample(range(len(choices)), count))]

    def between(self, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return self._random.randint(low, high)

    def real(self, low: float, high: float) -> float:
        """A number with two digits."""
        return round(self._random.uniform(low, high), 2)

    def rarely(self, one_in: int) -> bool:
        """True once in so many times."""
        return self._random.randrange(one_in) == 0
