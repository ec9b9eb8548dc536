"""
A ratio in words: how much higher or lower, or how many times where it is more than twice.

    0.264 [0.260, 0.270]    73.6 % lower [73.0, 74.0]
    1.25 [1.20, 1.30]       25 % higher [20, 30]
    282.3 [187.1, 426.0]    about 280 times [190, 430]
    1.823 [1.823, 1.823]    82.3 % higher, exactly

No end of an interval is rounded onto 1: it would say another verdict.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from pgheadroom.types import Interval

_TIMES_FROM = 2.0
"""From where on "times" is plainer than per cent; arbitrary."""
_WIDE = 0.1
"""Width, over the ratio, from which two digits count and not three; arbitrary."""
_VERY_WIDE = 0.3
"""The same from which it is "about" so much; arbitrary."""
_PLAIN_WIDTH = 2.0
"""Points of a width from which whole per cent are enough; arbitrary."""
_PLAIN_CHANGE = 10.0
"""Per cent of a change from which one decimal is enough, however narrow; arbitrary."""
_DIGITS_MAX = 8


def changed(ratio: Interval, *, of_share: bool = False) -> str:
    """
    A ratio whose interval excludes 1, behind "is".

    Args:
        ratio: It.
        of_share: Of two shares: then it is "times", since per cent of a share would be taken for
            its points.
    """
    is_exact = ratio.low == ratio.high
    if of_share or ratio.mid > _TIMES_FROM:
        width = (ratio.high - ratio.low) / ratio.mid
        digits = 4 if is_exact else 2 if width > _WIDE else 3
        while digits < _DIGITS_MAX and _one(_digits(ratio, digits)):
            digits += 1
        mid, low, high = _digits(ratio, digits)
        about = "about " if width > _VERY_WIDE else ""
        bracket = _bracket(mid, low, high)
        return f"{about}{mid} times{bracket or ' as much'}{_exactly(is_exact)}"
    decimals = _decimals(ratio)
    low, high = sorted(
        (f"{abs(end - 1) * 100:.{decimals}f}" for end in (ratio.low, ratio.high)), key=float
    )
    side = "higher" if ratio.mid > 1 else "lower"
    mid = f"{abs(ratio.mid - 1) * 100:.{decimals}f}"
    return f"{mid} % {side}{_exactly(is_exact)}{_bracket(mid, low, high)}"


def ends(ratio: Interval) -> str:
    """Both ends of a ratio that may be 1, as changes: `"[-12 %, +4 %]"`."""
    if ratio.high > _TIMES_FROM:
        _, low, high = _digits(ratio, 2)
        return f"[{low}, {high}] times"
    decimals = _decimals(ratio)
    low, high = (f"{(part - 1) * 100:+.{decimals}f} %" for part in (ratio.low, ratio.high))
    return f"[{low}, {high}]"


def _exactly(is_exact: bool) -> str:
    return ", exactly" if is_exact else ""


def _bracket(mid: str, low: str, high: str) -> str:
    """The interval, unless it is as narrow as the last digit shown."""
    return "" if mid == low == high else f" [{low}, {high}]"


def _decimals(ratio: Interval) -> int:
    """So many that the width counts, and no end that is off 1, or 0, is shown as that."""
    width = (ratio.high - ratio.low) * 100
    change = abs(ratio.mid - 1) * 100
    least = 0 if width >= _PLAIN_WIDTH else 1
    if 0 < width < 1 and change < _PLAIN_CHANGE:
        least = max(least, -math.floor(math.log10(width)))
    off = [(end - 1) * 100 for end in (ratio.low, ratio.high) if end != 1]
    whole = [end * 100 for end in (ratio.low, ratio.high) if end > 0]
    for decimals in range(least, _DIGITS_MAX):
        if all(round(end, decimals) for end in (*off, *whole)):
            return decimals
    return _DIGITS_MAX


def _digits(ratio: Interval, digits: int) -> tuple[str, str, str]:
    """Middle and ends with so many digits of the lower end, never as a power of ten."""
    parts = (ratio.mid, ratio.low, ratio.high)
    if not all(map(math.isfinite, parts)) or ratio.low <= 0:
        mid, low, high = (f"{part:g}" for part in parts)
        return mid, low, high
    decimals = digits - 1 - math.floor(math.log10(ratio.low))
    mid, low, high = (f"{round(part, decimals):,.{max(0, decimals)}f}" for part in parts)
    return mid, low, high


def _one(parts: Iterable[str]) -> bool:
    """Whether one of these is written as 1, which would be no difference."""
    return any(float(part.replace(",", "")) == 1 for part in parts)
