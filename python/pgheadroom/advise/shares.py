"""
The interval's updates of a table as shares, and how near two shares have to be to agree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pgheadroom.profile.tables import TableProfile

AGREES_WITHIN = 0.02
"""HOT shares this near to each other agree, whatever the intervals: two points."""

_Z = 1.645  # of a two-sided 90 %
_CLUSTERED = 1.5  # updates of one statement or page go together: wider than a binomial's; arbitrary


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """
    The interval's updates of a table, as shares.

    `hot`, `newpage` and `indexed` add up to 1; `newpage` and `indexed` (same page, not HOT) are
    None on 15, which does not count them.
    """

    updates: int
    hot: float
    newpage: float | None
    indexed: float | None

    def error(self, share: float) -> float:
        """What chance alone may do to a share of so many updates, to either side at 90 %."""
        share = min(max(share, 1 / (self.updates + 1)), 1 - 1 / (self.updates + 1))
        return _CLUSTERED * _Z * math.sqrt(share * (1 - share) / self.updates)


def observed_shares(table: TableProfile) -> Observed | None:
    """The interval's shares; None without updates, or where a counter went backwards."""
    assert table.observed is not None, "an observed profile"
    counters = table.observed.counters
    updates, hot = counters.n_tup_upd, counters.n_tup_hot_upd
    if not updates or hot is None:
        return None
    newpage = counters.n_tup_newpage_upd
    # Sessions report their counters one by one: HOT may be ahead of the rest by a few.
    hot = min(hot, updates)
    if newpage is None:
        return Observed(updates=updates, hot=hot / updates, newpage=None, indexed=None)
    newpage = min(newpage, updates - hot)
    return Observed(
        updates=updates,
        hot=hot / updates,
        newpage=newpage / updates,
        indexed=(updates - hot - newpage) / updates,
    )
