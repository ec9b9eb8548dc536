"""
Shares of updates over the windows of an interval, with intervals that know of clustering.

Updates are no independent draws: a batch that hits full pages loses HOT for all its rows, and a
busy session reports its counters once a second. So an interval is cut into windows by the passes
of the observation, and the share is a ratio of sums whose error comes from how the windows differ:

    share = sum(hot) / sum(updates)        d_w = hot_w - share * updates_w
    variance = k / (k - 1) * sum(d_w^2) / sum(updates)^2

Neighbouring windows may be alike, so the same is done with windows merged by twos and by fours,
and the widest of these and of the binomial interval (Wilson) is taken.
Source: Cochran, Sampling Techniques (1977), section 6.4 (ratio estimate of clusters).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from pgheadroom.sources.recording import Recording
from pgheadroom.stats import t_quantile
from pgheadroom.types import Interval

LEVEL = 0.95
WINDOWS_MIN = 5
"""Windows with updates below which no interval is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Counted between two passes; `newpage` is None on 15."""

    updates: int
    hot: int
    newpage: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A share with its interval (None: too few windows), and how clustered the updates were."""

    value: float
    interval: Interval | None
    design_effect: float
    windows: int


def windows_of(recording: Recording, oid: int) -> tuple[Window, ...]:
    """
    The windows of a table, in order of time, without those in which nothing was updated.

    A window whose counters went backwards (a reset) is left out.
    """
    moments = [m for m in recording.ticks() if recording.answered("table_counters", m)]
    rows = [
        next((row for row in recording.rows("table_counters", m) if int(row["oid"]) == oid), None)
        for m in moments
    ]
    made = []
    for before, after in itertools.pairwise(rows):
        if before is None or after is None:
            continue
        updates = int(after["n_tup_upd"]) - int(before["n_tup_upd"])
        hot = int(after["n_tup_hot_upd"]) - int(before["n_tup_hot_upd"])
        newpage = None
        if "n_tup_newpage_upd" in after:
            newpage = int(after["n_tup_newpage_upd"]) - int(before["n_tup_newpage_upd"])
        if updates > 0 and hot >= 0 and (newpage is None or newpage >= 0):
            made.append(Window(updates=updates, hot=hot, newpage=newpage))
    return tuple(made)


def share_of(parts: Sequence[int], wholes: Sequence[int]) -> Share | None:
    """
    A share over windows.

    Args:
        parts: Counted of each window.
        wholes: Of which they are a part, each above 0.

    Returns:
        None without a window.
    """
    total = sum(wholes)
    if not total:
        return None
    share = sum(parts) / total
    binomial = wilson(sum(parts), total)
    plain = max(share * (1 - share), 0.25 / total) / total
    widest, effect = 0.0, 1.0
    for size in (1, 2, 4):
        merged = [
            (sum(parts[at : at + size]), sum(wholes[at : at + size]))
            for at in range(0, len(parts), size)
        ]
        count = len(merged)
        if count < WINDOWS_MIN:
            break
        squares = math.fsum((part - share * whole) ** 2 for part, whole in merged)
        variance = count / (count - 1) * squares / total**2
        widest = max(widest, t_quantile(LEVEL, count - 1) * math.sqrt(variance))
        effect = max(effect, variance / plain)
    interval = None
    if len(parts) >= WINDOWS_MIN:
        interval = Interval(
            low=max(0.0, min(binomial.low, share - widest)),
            mid=share,
            high=min(1.0, max(binomial.high, share + widest)),
            level=LEVEL,
        )
    return Share(value=share, interval=interval, design_effect=effect, windows=len(parts))


def wilson(part: float, total: float) -> Interval:
    """
    A binomial share by Wilson's score interval, which holds near 0 and 1 too.

    Source: Wilson, J. Am. Stat. Assoc. 22 (1927).
    """
    z = t_quantile(LEVEL, 1e6)
    share = part / total
    middle = (share + z * z / (2 * total)) / (1 + z * z / total)
    half = (
        z
        / (1 + z * z / total)
        * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    )
    return Interval(
        low=min(share, max(0.0, middle - half)),
        mid=share,
        high=max(share, min(1.0, middle + half)),
        level=LEVEL,
    )


def share_before(part: int | None, total: int | None, design_effect: float) -> Interval | None:
    """
    A share of which only sums are known: binomial, with the clustering that was seen elsewhere.

    Args:
        part: Counted.
        total: Of which it is a part.
        design_effect: How much larger a share's variance is than that of independent draws.
    """
    if not total or part is None:
        return None
    wide = wilson(part / design_effect, total / design_effect)
    share = part / total
    return Interval(low=min(share, wide.low), mid=share, high=max(share, wide.high), level=LEVEL)
