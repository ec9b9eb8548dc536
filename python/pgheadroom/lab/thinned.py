"""
A series with fewer points than seconds: what neighbours are joined to, of which a picture is made.

The record keeps every second; tables are made of all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

Join = Literal["mean", "max", "last"]
"""What stands for several seconds."""

Points = list[tuple[float, float]]


def thinned(pairs: Sequence[tuple[float, float]], most: int, join: Join) -> tuple[Points, int]:
    """
    At most so many points of a series, each at the middle of the seconds that it stands for.

    Args:
        pairs: Seconds and values, by time; not empty.
        most: Points at most.
        join: What stands for several.

    Returns:
        The points, and how many seconds each stands for.
    """
    size = -(-len(pairs) // most)
    span = pairs[-1][0] - pairs[0][0]
    step = max(1, round(span / max(1, len(pairs) - 1) * size))
    found = []
    for place in range(0, len(pairs), size):
        part = pairs[place : place + size]
        found.append((part[len(part) // 2][0], _joined([y for _, y in part], join)))
    return found, step


def _joined(ys: Sequence[float], join: Join) -> float:
    if join == "max":
        return max(ys)
    return ys[-1] if join == "last" else math.fsum(ys) / len(ys)
