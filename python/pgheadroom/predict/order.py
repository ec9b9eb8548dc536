"""
How well tables lie in the order of their keys, before a run and after it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

RANGE_KEYS = 1000
"""Keys of a range whose pages are counted."""

OrderPair = tuple[tuple[float, float | None], tuple[float, float | None]]
"""Pages of a range and correlation, before and after."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyOrder:
    """
    The order of a table, by the first column of its first unique B-tree, else of its first one.

    Attributes:
        range_keys: Neighbouring keys of a range.
        pages_per_range_start: Distinct heap pages that the rows of neighbouring keys lie on
           , mean over all such ranges, after loading.
        pages_per_range: The same after the run.
        correlation_start: Correlation of key and place of all rows after loading, as
            pg_stats.correlation has it of a sample; None with fewer than two rows.
        correlation: The same after the run.
    """

    range_keys: int = RANGE_KEYS
    pages_per_range_start: float
    pages_per_range: float
    correlation_start: float | None
    correlation: float | None


def order_of(runs: Sequence[Mapping[str, OrderPair]]) -> dict[str, KeyOrder] | None:
    """
    The order of each table, the mean over the runs of a cell; None where nothing was measured.

    Args:
        runs: Of each run of the twin the measures by table.
    """
    names = [name for name in runs[0] if all(name in run for run in runs)]
    if not names:
        return None
    return {
        name: KeyOrder(
            pages_per_range_start=_mean([run[name][0][0] for run in runs]) or 0.0,
            pages_per_range=_mean([run[name][1][0] for run in runs]) or 0.0,
            correlation_start=_mean([run[name][0][1] for run in runs]),
            correlation=_mean([run[name][1][1] for run in runs]),
        )
        for name in names
    }


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if len(known) == len(values) else None
