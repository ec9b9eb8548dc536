"""
What of a forecast for several clients depends on the machine so much that a reader has to know.

Each run of the twin plays on a machine of its own, from a quiet to a busy one, and an interval
holds them all. Where clients wait for the same rows that makes it wide.
"""

from __future__ import annotations

from collections.abc import Sequence

from pgheadroom.outcome import Outcome
from pgheadroom.types import Interval

HOT_POINTS = 5.0
"""Wider than this many points the HOT share's interval is said before the figures."""

WAL_PERCENT = 10.0
"""Wider than this, in percent of its middle, that of all WAL is."""


def sentences(clients: int, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """
    What a reader has to know before the figures, of the widest intervals.

    Args:
        clients: How many write side by side.
        outcomes: Of each cell whose order of statements is all that is drawn.
    """
    if clients == 1 or not outcomes:
        return ()
    hot = max(100 * _width(outcome.hot_frac) for outcome in outcomes)
    wal = max(100 * _relative(outcome.wal_bytes) for outcome in outcomes)
    wide = []
    if hot > HOT_POINTS:
        wide.append(f"the HOT share's {hot:.0f} points")
    if wal > WAL_PERCENT:
        wide.append(f"that of WAL {wal:.0f} %")
    if not wide:
        return ()
    return (
        f"Intervals are wide, {' and '.join(wide)}: what {clients} clients do to each other "
        "depends on the machine, how soon one goes on that has waited for a row above all, and "
        "they hold quiet and busy ones.",
    )


def _width(value: object) -> float:
    return value.high - value.low if isinstance(value, Interval) else 0.0


def _relative(value: object) -> float:
    return _width(value) / value.mid if isinstance(value, Interval) and value.mid else 0.0
