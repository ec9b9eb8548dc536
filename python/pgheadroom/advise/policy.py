"""
What a setting costs: a stated policy, so that "best" means something that can be disputed.

A day of a table costs, in units of "one GB kept for a day":

    kept     GB of heap and indexes         x price of a GB kept
    wal      GB of WAL, images included     x price of a GB of WAL
    written  million pages dirtied          x price of a million pages written
    read     million pages read: by sequential scans, and by updates that miss shared buffers
                                            x price of a million pages read

GB are 10^9 bytes. Pages dirtied are counted once a checkpoint distance, as checkpoints write them.
The default prices are a choice, not a measurement: a GB of WAL is written, sent to a standby,
written again and archived for some days (5); a million pages written are 8 GB of scattered writes
whose images the WAL has already paid for (2); a million pages read are 8 GB of reads that memory
beside the server often answers (1). A goal changes their weights; `--price` replaces any.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import get_args

from pgheadroom.advise.advice import Goal, Prices, StatedPolicy
from pgheadroom.advise.foreseen import Point
from pgheadroom.errors import ParameterError
from pgheadroom.outcome import Value
from pgheadroom.types import Interval

GB = 1e9
DAY_S = 86_400.0


_BALANCED = Prices(kept_gb=1.0, wal_gb=5.0, written_mpages=2.0, read_mpages=1.0)
_GOALS: Mapping[Goal, Prices] = {
    "balanced": _BALANCED,
    # The same prices, with what is not asked about at a tenth.
    "wal": replace(_BALANCED, kept_gb=0.1, written_mpages=0.2, read_mpages=0.1),
    "size": replace(_BALANCED, wal_gb=0.5, written_mpages=0.2, read_mpages=0.1),
    "latency": replace(_BALANCED, kept_gb=0.1, wal_gb=0.5),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """
    How a point of a curve is chosen.

    Attributes:
        goal: A name for a set of prices.
        prices: In force; those of the goal unless replaced.
        max_growth_frac: Heap may grow by this part of what it has in its steady state at the
            setting in force; None: no limit beside the price.
        min_gain_frac: A change has to save at least this part of the cost.
        images_gain_frac: The same of a change that saves full-page images and pages written alone.
        gain_per_growth: Beside that it has to save this much for each part by which the heap
            grows: 0.1 is a tenth of the cost for a heap twice as large.
    """

    goal: Goal = "balanced"
    prices: Prices = _BALANCED
    max_growth_frac: float | None = None
    min_gain_frac: float = 0.02
    images_gain_frac: float = 0.03
    gain_per_growth: float = 0.1

    def stated(self) -> StatedPolicy:
        """The same as an advice says it."""
        return StatedPolicy(
            goal=self.goal,
            prices=self.prices,
            max_growth_frac=self.max_growth_frac,
            min_gain_frac=self.min_gain_frac,
            images_gain_frac=self.images_gain_frac,
            gain_per_growth=self.gain_per_growth,
        )


# A goal for which space hardly counts takes a larger heap for a tenth of that, too.
_GAIN_PER_GROWTH: Mapping[Goal, float] = {
    "balanced": 0.1,
    "wal": 0.01,
    "size": 0.1,
    "latency": 0.01,
}

DEFAULT_POLICY = Policy()
"""Balanced, without a limit to growth."""

PRICES = ("kept_gb", "wal_gb", "written_mpages", "read_mpages")


def make_policy(
    goal: str = "balanced",
    prices: Mapping[str, float] | None = None,
    max_growth_frac: float | None = None,
) -> Policy:
    """
    A policy out of what a user says.

    Args:
        goal: `balanced`, `wal`, `size` or `latency`.
        prices: Prices that replace those of the goal, by the names of `PRICES`.
        max_growth_frac: Limit to the growth of the heap, 0.1 is 10 %.

    Raises:
        InputError: An unknown goal or price, a price below 0, a limit below 0.
    """
    if goal not in get_args(Goal):
        raise ParameterError("goal", f"{goal!r}: expected one of {', '.join(get_args(Goal))}")
    for name, price in (prices or {}).items():
        if name not in PRICES:
            raise ParameterError("price", f"{name}: expected one of {', '.join(PRICES)}")
        if not (math.isfinite(price) and price >= 0):
            raise ParameterError("price", f"{name}={price:g}: expected a number from 0 on")
    if max_growth_frac is not None and not (
        math.isfinite(max_growth_frac) and max_growth_frac >= 0
    ):
        raise ParameterError(
            "max_growth", f"{max_growth_frac:g}: expected a share from 0 on, such as 0.1"
        )
    named: Goal = goal  # type: ignore[assignment]  # checked above
    return Policy(
        goal=named,
        prices=replace(_GOALS[named], **(prices or {})),
        max_growth_frac=max_growth_frac,
        gain_per_growth=_GAIN_PER_GROWTH[named],
    )


def cost_a_day(
    prices: Prices,
    *,
    kept_bytes: float,
    wal_bytes_a_day: float,
    pages_written_a_day: float,
    pages_read_a_day: float,
) -> float:
    """The formula of this module."""
    return (
        prices.kept_gb * kept_bytes / GB
        + prices.wal_gb * wal_bytes_a_day / GB
        + prices.written_mpages * pages_written_a_day / 1e6
        + prices.read_mpages * pages_read_a_day / 1e6
    )


def with_cost(
    point: Point, prices: Prices, *, updates_per_s: float, seq_scans_per_s: float
) -> Point:
    """
    The point with its cost a day.

    The interval is that of the parts, added as independent errors. What is unknown (misses) costs
    nothing.

    Args:
        point: A curve's point.
        prices: In force.
        updates_per_s: Of the table.
        seq_scans_per_s: Sequential scans of the whole table.
    """
    updates = updates_per_s * DAY_S
    scans = seq_scans_per_s * DAY_S
    parts: tuple[tuple[float, Value], ...] = (
        (prices.kept_gb / GB, point.heap_bytes),
        (prices.kept_gb / GB, point.index_bytes),
        (prices.wal_gb / GB * updates, point.all_wal_bytes_per_update),
        (prices.written_mpages / 1e6 * updates, point.pages_modified_per_update),
        (prices.read_mpages / 1e6 * updates, point.misses_per_update),
        (prices.read_mpages / 1e6 * scans, point.seq_scan_pages),
    )
    total, variance_low, variance_high, level = 0.0, 0.0, 0.0, None
    for price, value in parts:
        if isinstance(value, Interval):
            total += price * value.mid
            variance_low += (price * (value.mid - value.low)) ** 2
            variance_high += (price * (value.high - value.mid)) ** 2
            level = value.level if level is None else min(level, value.level)
        elif value is not None:
            total += price * value
    if level is None:
        return replace(point, cost=total)
    return replace(
        point,
        cost=Interval(
            low=max(0.0, total - math.sqrt(variance_low)),
            mid=total,
            high=total + math.sqrt(variance_high),
            level=level,
        ),
    )
