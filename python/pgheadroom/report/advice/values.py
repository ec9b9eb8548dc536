"""
The values of an advice as text: numbers, shares, intervals.
"""

from __future__ import annotations

from collections.abc import Iterable

from pgheadroom.outcome import Value, middle
from pgheadroom.report.table import NOTHING, Column, Table
from pgheadroom.types import Interval
from pgheadroom.units import share_digits

_KNOWN_WITHIN = 3.0  # a factor; arbitrary


def share(value: Value, *, ranged: bool = True, beside: Iterable[Value] = ()) -> str:
    """
    A share as per cent, without the sign.

    Args:
        value: The share.
        ranged: With its interval.
        beside: Shares that are read together with it: all have as many decimals.
    """
    mids = (mid for one in (value, *beside) if (mid := middle(one)) is not None)
    column = Column(key="", title="", style="share", digits=share_digits(mids))
    return _text(column, value, ranged=ranged)


def plain(value: Value, *, ranged: bool = False) -> str:
    """A number with about four digits that count."""
    return _text(Column(key="", title=""), value, ranged=ranged)


def _text(column: Column, value: Value, *, ranged: bool) -> str:
    table = Table(title="", columns=(column,), rows=((value,),))
    written = table.written()[0][0]
    return str(written) if ranged else written.main


def short(value: Value) -> str:
    """Its middle with three digits that count, or all before the point of a larger one."""
    mid = middle(value)
    if mid is None:
        return NOTHING
    return f"{mid:.0f}" if abs(mid) >= 100 else f"{mid:.3g}"


def known_wal(value: Value) -> Value:
    """
    Measured WAL of an update, where it is a figure and no more than bounds; else None.

    Images are counted, their bytes are not: where they are most of what statements wrote, as after
    a checkpoint, what is left when they are taken off is anything.
    """
    if isinstance(value, Interval) and value.high > _KNOWN_WITHIN * value.low:
        return None
    return value


def hidden_wal(value: Value) -> str:
    """What is said of measured WAL that is not known, as a sentence; empty where it is."""
    if not isinstance(value, Interval) or known_wal(value) is not None:
        return ""
    return (
        f"WAL of an update is measured to {short(value.low)} to {short(value.high)} bytes only: "
        "images of pages, whose sizes nobody counts, were most of what its statements wrote. "
        "An interval without a checkpoint tells more."
    )


def three(value: Value) -> tuple[float | None, float | None, float | None]:
    """Middle, low and high, for columns of their own; the ends only where they are known."""
    if isinstance(value, Interval):
        return value.mid, value.low, value.high
    return value, None, None
