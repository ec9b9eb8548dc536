"""
How often updates change a column that an index reads, of those that assign one: by the counters.

An assigned column need not change: `greatest(max_lat, 52.1)`, or a framework that writes every
column. An update that stays on its page and is not HOT has changed a column that an index reads;
among all that stay, that is the share that changes. From 16 on the counters tell those that leave
their page apart; before that they do not, and what is assigned is taken to change.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pgheadroom.profile.observed import TableCounters

_STAYED_MIN = 100
"""Updates that stayed on their page, from which on their share says something; arbitrary."""
_AGREES_WITHIN = 0.02  # shares that differ by no more are taken as one; arbitrary


def changed_frac(counters: TableCounters, assigning: Sequence[tuple[float, int]]) -> float | None:
    """
    The share of the updates that assign such a column in which one such column changes.

    Args:
        counters: Of the table, over the interval.
        assigning: Of each class of updates that assigns some: its part of the updates, and how
            many columns that an index reads it assigns.

    Returns:
        None where all may change, or nothing tells.
    """
    updates, hot = counters.n_tup_upd or 0, counters.n_tup_hot_upd or 0
    if counters.n_tup_newpage_upd is None or not assigning:
        return None
    stayed = updates - counters.n_tup_newpage_upd
    share = math.fsum(part for part, _ in assigning)
    if stayed < _STAYED_MIN or share <= 0:
        return None
    changed = max(stayed - hot, 0) / stayed
    error = 2 * math.sqrt(changed * (1 - changed) / stayed)
    if changed >= share - error - _AGREES_WITHIN:
        return None
    width = max(columns for _, columns in assigning)
    return round(1 - math.pow(1 - changed / share, 1 / width), 4)
