"""What chance makes of runs: how wide an interval is, and how often something happens."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from pgheadroom.outcome import Value
from pgheadroom.types import Interval

LEVEL = 0.9
"""Coverage that statistical values state."""

CHANCE_LEAST = 0.5
"""How often is expected what no run has seen (half a one: Jeffreys' prior)."""

NORMAL = 1.645
"""Of a normal distribution `LEVEL` lies within so many standard deviations."""


def mean_of(values: Sequence[float | None]) -> float | None:
    """The middle of a figure's interval, or the number that all runs have; None without one."""
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values):
        return None
    count = len(numbers)
    return numbers[0] if numbers.count(numbers[0]) == count else math.fsum(numbers) / count


def chance_half(share: float = 1.0) -> float:
    """
    By how much a count is uncertain that chance decides, where no run has another.

    Args:
        share: Of the whole in each run; counts are blown up, and one of a sample is many.
    """
    return max(NORMAL * math.sqrt(CHANCE_LEAST / share), 1 / share)


def counted(numbers: Sequence[int], half: float = 0.0) -> Value:
    """
    How often something happens: one number if all runs have it, else from least to most.

    A further run lies between the least and the most of n with probability (n - 1) / (n + 1).

    Args:
        numbers: What each run has.
        half: By how much that is uncertain where all runs agree, or at the least (`chance_half`).
    """
    n = len(numbers)
    if len(set(numbers)) == 1 and not half:
        return numbers[0]
    mean = mean_of(numbers)
    assert mean is not None
    level = LEVEL if len(set(numbers)) == 1 else (n - 1) / (n + 1)
    low, high = min(*numbers, mean - half), max(*numbers, mean + half)
    return Interval(low=max(0.0, low), mid=float(mean), high=high, level=level)


_HALVINGS = 60  # to the last bit of the angle


@lru_cache(maxsize=64)
def students_t(degrees: int) -> float:
    """
    Student's t for a two-sided interval of `LEVEL`.

    By halving, of the closed form that whole degrees of freedom have (Abramowitz and Stegun,
    26.7.3 and 26.7.4): a module for it takes longer to import than a migration to be checked.
    """
    low, high = 0.0, math.pi / 2
    for _ in range(_HALVINGS):
        angle = (low + high) / 2
        low, high = (angle, high) if _within(angle, degrees) < LEVEL else (low, angle)
    return math.sqrt(degrees) * math.tan((low + high) / 2)


def _within(angle: float, degrees: int) -> float:
    """The probability of less than sqrt(degrees) * tan(angle), to both sides."""
    sine, cosine = math.sin(angle), math.cos(angle)
    is_odd = degrees % 2 == 1
    term = cosine if is_odd else 1.0
    total = 0.0
    for step in range(2 if is_odd else 1, degrees, 2):
        total += term
        term *= cosine * cosine * step / (step + 1)
    return (angle + sine * total) * 2 / math.pi if is_odd else sine * total
