"""
Ranges of whole numbers as people write them: `50..100:5` is 50, 55, ... 100.

First step of the layers, for command lines and for whoever reads what stood on one.
"""

from __future__ import annotations

import re

from pgheadroom.errors import ParameterError

_RANGE = re.compile(r"(-?\d+)(?:\.\.(-?\d+)(?::(\d+))?)?")


def parse_range(text: str, bounds: tuple[int, int]) -> range | None:
    """
    The numbers of `7`, `50..100` or `50..100:5`, both ends included where the step meets them.

    Args:
        text: A number, or a range with a step of at least 1.
        bounds: The least and the greatest that a number may be.

    Returns:
        None where it is something else, empty, or beyond the bounds.
    """
    match = _RANGE.fullmatch(text)
    if match is None:
        return None
    low, high = int(match[1]), int(match[2] or match[1])
    step = int(match[3] or 1)
    if step < 1 or high < low or low < bounds[0] or high > bounds[1]:
        return None
    return range(low, high + 1, step)


def parse_ranges(text: str, bounds: tuple[int, int], *, parameter: str) -> list[int]:
    """
    The numbers of `100,90` or `10..20:5,50`, in that order.

    Args:
        text: Numbers and ranges, divided by commas.
        bounds: As in `parse_range`.
        parameter: What is given so, for messages.

    Raises:
        ParameterError: A part that is none, or a number twice.
    """
    found: list[int] = []
    for part in text.split(","):
        numbers = parse_range(part.strip(), bounds)
        if numbers is None:
            raise ParameterError(
                parameter,
                f"{part.strip()}: expected a whole number from {bounds[0]} to {bounds[1]}",
            )
        found += numbers
    if len(set(found)) != len(found):
        raise ParameterError(parameter, f"{text}: a number is given twice")
    return found
