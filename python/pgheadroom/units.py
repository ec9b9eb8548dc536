"""
Units at the edges: sizes, durations and numbers as people write and read them.

Inside, everything is in base units (bytes, seconds, fractions). First step of the layers.
PostgreSQL's settings say `kB` and mean 1,024 bytes; that convention is used where a setting is
read or written (`parse_setting_bytes`, `setting_bytes`). Sizes shown to people use KiB, MiB, GiB.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pgheadroom.errors import InputError

PAGE_BYTES = 8192
"""BLCKSZ of every build that pgheadroom supports."""

_SETTING_UNITS = {"B": 1, "kB": 1024, "MB": 1024**2, "GB": 1024**3, "TB": 1024**4}
_SHOWN_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_SHARE_NEAR = 0.995
_SHARE_EQUAL = 1e-9  # what sums of floats are off by
_DURATION_UNITS = {"ms": 0.001, "s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse_setting_bytes(text: str) -> int:
    """
    Bytes of a memory setting as PostgreSQL spells it: `"80MB"`, `"1GB"`, `"8192B"`.

    Args:
        text: A whole number and a unit among B, kB, MB, GB, TB (1 kB = 1,024 bytes).

    Raises:
        InputError: No unit, an unknown unit, or no whole number.
    """
    match = re.fullmatch(r"\s*(\d+)\s*([A-Za-z]+)\s*", text)
    if match is None or match[2] not in _SETTING_UNITS:
        raise InputError(
            f"size {text!r} is not understood: expected a whole number with one of the units "
            f"{', '.join(_SETTING_UNITS)}, for example 80MB"
        )
    return int(match[1]) * _SETTING_UNITS[match[2]]


def parse_setting_kb(text: str) -> int:
    """Whole kB of a memory setting whose own unit that is, so that a bare number is of kB."""
    return int(text) if text.strip().isdecimal() else parse_setting_bytes(text) // 1024


def setting_bytes(value_bytes: int) -> str:
    """Spell bytes as a PostgreSQL memory setting, rounded up to whole kB."""
    return f"{-(-value_bytes // 1024)}kB"


def parse_duration_s(text: str, *, may_be_zero: bool = False) -> float:
    """
    Seconds of a duration such as `"30m"`, `"5min"`, `"90s"`, `"1.5h"`; a bare number is seconds.

    Args:
        text: As written by a user.
        may_be_zero: Whether nothing is a duration too.

    Raises:
        InputError: Not a number with a known unit, or too small.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", text)
    unit = match[2] or "s" if match else ""
    is_known = match is not None and unit in _DURATION_UNITS
    if not is_known or match is None or (float(match[1]) <= 0 and not may_be_zero):
        least = "a number" if may_be_zero else "a number above 0"
        raise InputError(
            f"duration {text!r} is not understood: expected {least} with one of the "
            f"units {', '.join(_DURATION_UNITS)}, for example 30m"
        )
    return float(match[1]) * _DURATION_UNITS[unit]


def share_digits(shares: Iterable[float]) -> int:
    """
    Decimals of percentages that stand together: all have as many.

    Near 100 % one decimal would turn a miss rate of 0.01 % into none.
    """
    return 2 if any(_SHARE_NEAR < share < 1 - _SHARE_EQUAL for share in shares) else 1


def show_shares(*shares: float) -> tuple[str, ...]:
    """
    Fractions for people, with as many decimals each: `"99.94 %"` beside `"100.00 %"`.

    None where all are nothing or the whole: `"100 %"` beside `"0 %"`.
    """
    digits = 0 if all(share in (0, 1) for share in shares) else share_digits(shares)
    return tuple(f"{show_percent(share, digits)} %" for share in shares)


def percent(share: float, digits: int = 0, *, sign: bool = False) -> str:
    """
    A share as text: `39 %`, `+2.5 %`.

    Args:
        share: 1 is 100 %.
        digits: Decimals.
        sign: A plus too.
    """
    return f"{100 * share:{'+' if sign else ''}.{digits}f} %"


def show_percent(share: float, digits: int) -> str:
    """
    A fraction as per cent, without the sign: what is below 100 is never shown as 100.

    With so many decimals; a share that they would round to 100 is the last number before it.
    """
    shown = f"{100 * share:.{digits}f}"
    below = digits and share < 1 - _SHARE_EQUAL and float(shown) >= 100
    return f"{100 - 10**-digits:.{digits}f}" if below else shown


def show_share(share: float) -> str:
    """A fraction for people: `"79.9 %"`."""
    return show_shares(share)[0]


def show_bytes_more(value: float) -> str:
    """A difference of bytes with its sign."""
    return f"{'-' if value < 0 else '+'}{show_bytes(abs(value))}"


def show_bytes(value_bytes: float) -> str:
    """Bytes for people: `"1.3 GiB"`; three significant digits, KiB = 1,024."""
    value = float(value_bytes)
    for unit in _SHOWN_UNITS:
        if abs(value) < 1024 or unit == _SHOWN_UNITS[-1]:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.3g} {unit}"
        value /= 1024
    raise AssertionError("the last unit always returns")


def show_count(count: int, what: str) -> str:
    """A number of things for people: `"1 checkpoint"`, `"2 checkpoints"`."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def show_duration(value_s: float) -> str:
    """Seconds for people: `"0.42 s"`, `"42 s"`, `"12 min"`, `"1 h 05 min"`."""
    if value_s < 10:
        return f"{value_s:.2g} s"
    if value_s < 120:
        return f"{value_s:.0f} s"
    minutes = round(value_s / 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def show_age(value_s: float) -> str:
    """The same, from two days on in days."""
    return f"{value_s / 86_400:,.0f} days" if value_s >= 2 * 86_400 else show_duration(value_s)
