"""
Axes of pictures over fillfactor: an amount or a share up.

SVG made of numbers and of words of ours, in the colours of the page's style sheet.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 10, 20, 26
_INSET = 8
_TICKS_Y = 4
_WHOLE_FROM = 1000  # below that, labels of a step of 2.5 need decimals
_LEAST_PER_TICK_X = 46  # so that labels of two digits stay apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Axes:
    """
    A plot's frame.

    Attributes:
        width: Of the picture, in its own units; one is a pixel at full size.
        height: Of it.
        fillfactors: The first and the last one, in percent.
        values: Low and high of the vertical axis.
        step: Between two of its lines.
        unit: By what its labels are divided.
        word: The unit's name, above the labels.
        is_share: Whether labels are per cent.
    """

    width: int
    height: int
    fillfactors: tuple[int, int]
    values: tuple[float, float]
    step: float
    unit: float = 1.0
    word: str = ""
    is_share: bool = False

    @property
    def top(self) -> float:
        """Where the plot begins."""
        return float(_TOP)

    @property
    def bottom(self) -> float:
        """Where it ends."""
        return float(self.height - _BOTTOM)

    @property
    def left(self) -> float:
        """Where its lines begin."""
        return float(_LEFT)

    @property
    def right(self) -> float:
        """Where they end."""
        return float(self.width - _RIGHT)

    def across(self, fillfactor: float) -> float:
        """Where a fillfactor is."""
        first, last = self.fillfactors
        room = self.width - _LEFT - _RIGHT - 2 * _INSET
        return _LEFT + _INSET + (fillfactor - first) * room / (last - first)

    def up(self, value: float) -> float:
        """Where a value is; at the edge where it lies beyond."""
        low, high = self.values
        room = self.height - _TOP - _BOTTOM
        return _TOP + (1 - (min(max(value, low), high) - low) / (high - low)) * room

    def drawn(self) -> Iterable[str]:
        """Lines and labels of both axes."""
        low, high = self.values
        for place in range(round((high - low) / self.step) + 1):
            value = low + place * self.step
            y = self.up(value)
            yield f'<path class="grid" d="M{_LEFT},{y:.1f}H{self.width - _RIGHT}"/>'
            label = f"{value * 100:.4g} %" if self.is_share else _label(value / self.unit)
            yield word("tick", (_LEFT - 5, y + 3.5), label, "end")
        if self.word:
            yield word("tick", (_LEFT - 5, _TOP - 9), self.word, "end")
        first, last = self.fillfactors
        most = self.width // _LEAST_PER_TICK_X
        step = next(step for step in (1, 2, 5, 10, 20, 50) if (last - first) / step <= most)
        for fillfactor in range(-(-first // step) * step, last + 1, step):
            at = (self.across(fillfactor), self.bottom + 15)
            yield word("tick", at, f"{fillfactor}", "middle")


def _label(value: float) -> str:
    return f"{value:,.0f}" if value >= _WHOLE_FROM else f"{value:.4g}"


def shares() -> tuple[tuple[float, float], float]:
    """Low, high and step of an axis of shares: the whole, since part of it would exaggerate."""
    return (0.0, 1.0), 0.25


def amounts(reached: Sequence[float], unit: float = 1.0) -> tuple[tuple[float, float], float]:
    """The same of amounts: from 0, in whole steps of 1, 2 or 5 of the unit."""
    high = max(reached) / unit or 1.0
    power = 10.0 ** math.floor(math.log10(high / _TICKS_Y))
    step = next(digit * power for digit in (1, 2, 2.5, 5, 10) if high / (digit * power) <= _TICKS_Y)
    return (0.0, math.ceil(high / step - 1e-9) * step * unit), step * unit


def of_bytes(high: float) -> tuple[float, str]:
    """The unit of an axis of bytes, and its name."""
    for scale, name in ((1024.0**4, "TiB"), (1024.0**3, "GiB"), (1024.0**2, "MiB")):
        if high >= scale:
            return scale, name
    return 1024.0, "KiB"


def word(css: str, at: tuple[float, float], text: str, anchor: str) -> str:
    """A word of ours."""
    x, y = at
    return f'<text class="{css}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'


def stairs(points: Sequence[tuple[float, float]], *, is_stepped: bool) -> list[tuple[float, float]]:
    """The corners of a line through points; stepped, each holds until the next one."""
    if not is_stepped:
        return list(points)
    corners = list(points[:1])
    for (_, before), (x, y) in itertools.pairwise(points):
        corners += [(x, before), (x, y)]
    return corners
