"""
What a change has to save: more than chance may, enough for the room it takes and for a rewrite.

    outside its error     the interval of the saving does not reach 0; half of what images and
                          pages written save is taken for error, for these follow from when
                          checkpoints come, of which an interval has seen few
    more than a trifle    `min_gain_frac` of the cost; where nothing but images and pages written
                          is saved, `images_gain_frac`: checkpoints that are farther apart save
                          the same, without a rewrite
    room has a price      `gain_per_growth` times the part by which the heap grows, beside what a
                          GB kept costs: a larger heap needs more memory, and more time to be read;
                          what a heap shrinks by counts for the change likewise
    worth the rewrite     what a rewrite writes is saved again within 30 days

A setting is chosen by the cost with the price of room in it, so that of settings that give the same
HOT the one with the smaller heap is taken, however little space costs beside WAL.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pgheadroom.advise.curve import Costed
from pgheadroom.advise.duration import HORIZON_S
from pgheadroom.advise.foreseen import HOT_MOVES
from pgheadroom.advise.policy import GB, Policy
from pgheadroom.outcome import mid, middle
from pgheadroom.types import Interval
from pgheadroom.units import PAGE_BYTES

IMAGES_UNSURE = 0.5
"""
Part of what images and pages written save that is taken for error.

They follow from when checkpoints come. With checkpoints half as far apart, and twice, they saved
22 % more and 69 % less of the cost for a table whose newest rows are updated, 8 % more and 22 %
less for one that is updated evenly.
"""

_ROOM_MIN = 0.05  # of the heap: a change that gives as much back is for that
GROWTH_FREE_BYTES = 2**20
"""More or less than a table had: nobody looks for so little."""

_DAYS = HORIZON_S / 86_400


def growth_frac(now: Costed, then: Costed) -> float:
    """By which part the heap grows, both in the long run; below 0: shrinks; 0 for a trifle."""
    before, after = middle(now.point.heap_bytes), middle(then.point.heap_bytes)
    if not before or after is None or abs(after - before) <= GROWTH_FREE_BYTES:
        return 0.0
    return after / before - 1


def weighed(found: Costed, now: Costed, policy: Policy) -> float:
    """The cost over that of the setting in force, with the price of room in it."""
    same = min(len(found.costs), len(now.costs))  # one of the two may have been played oftener
    before = mean(now.costs[:same])
    part = mean(found.costs[:same]) / before if before else 1.0
    return part + policy.gain_per_growth * growth_frac(now, found)


def images_frac(now: Costed, then: Costed) -> float:
    """The part of the cost that is saved by images and pages written; below 0 where they grow."""
    before = mean(now.costs)
    return (now.images_cost - then.images_cost) / before if before else 0.0


def wanted_frac(now: Costed, then: Costed, policy: Policy) -> float:
    """
    The part of the cost that a change has to save at least.

    Args:
        now: The setting in force.
        then: Another one.
        policy: In force.

    Returns:
        May be below 0: what shrinks the heap need not save anything else, though nothing less.
    """
    wanted = policy.min_gain_frac + policy.gain_per_growth * growth_frac(now, then)
    return max(wanted, policy.images_gain_frac) if is_by_images(now, then, policy) else wanted


def is_by_images(now: Costed, then: Costed, policy: Policy) -> bool:
    """Whether hardly anything but images and pages written is saved: no HOT, WAL or room."""
    if mid(then.point.hot_frac) - mid(now.point.hot_frac) >= HOT_MOVES:
        return False
    if -growth_frac(now, then) >= _ROOM_MIN:
        return False
    before = mean(now.costs)
    saved = 1 - mean(then.costs) / before if before else 0.0
    return saved - images_frac(now, then) < policy.min_gain_frac


def pays_for_rewrite(now: Costed, then: Costed, gain: Interval, policy: Policy) -> bool:
    """Whether what a rewrite writes, once, costs no more than is saved within the horizon."""
    sizes = [middle(size) for size in (then.point.heap_bytes, then.point.index_bytes)]
    written = math.fsum(size for size in sizes if size is not None)
    prices = policy.prices
    once = prices.wal_gb * written / GB + prices.written_mpages * written / PAGE_BYTES / 1e6
    return once <= gain.mid * mean(now.costs) * _DAYS


def mean(values: Sequence[float]) -> float:
    """Of a few runs."""
    return math.fsum(values) / len(values)
