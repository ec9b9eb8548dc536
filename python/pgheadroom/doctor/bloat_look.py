"""
Which tables and indexes are worth an estimate of their bloat, and the estimates of these.

All are asked for sums of mean widths, by one query. What cannot give back enough by that is left;
of the rest the dearest are looked at one by one, and how many are not is said.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from pgheadroom.bloat.asking import Ask
from pgheadroom.bloat.reading import Estimated, coarse_bytes
from pgheadroom.bloat.values import Estimate
from pgheadroom.doctor.rule import QueryRow
from pgheadroom.units import PAGE_BYTES, percent

PAGES_MIN = 1280
"""10 MiB: smaller ones give back less than anybody notices."""
BYTES_MIN = 10 * 1024**2
SHARE_MIN = 0.30
"""Of the pages: tables and indexes that are written have room for what comes next, an index of
random keys about 30 %, and it fills again after a rewrite."""
WARN_BYTES = 1024**3
MEASURED_BYTES = 256.0 * 1024**2
"""Of pages that pgstattuple_approx may read for all tables together: a second or two of a disk that
others use as well. Arbitrary."""
LOOKED_MAX = 50
_LOOKING_S = 20.0  # ours, not the server's: a person waits; arbitrary

Estimating = Callable[[Ask, Sequence[QueryRow]], list[Estimated]]


def looked_at(
    rows: Sequence[QueryRow], ask: Ask, estimating: Estimating
) -> tuple[list[QueryRow], int]:
    """
    Rows with their `estimates`; and how many there was no time for.

    Args:
        rows: Of relations.
        ask: Gives the rows of a query.
        estimating: Estimates some of them.
    """
    may = [row for row in rows if _may_give(row)]
    may.sort(key=coarse_bytes, reverse=True)
    found: list[QueryRow] = []
    began_s = time.monotonic()
    for row in may[:LOOKED_MAX]:
        if time.monotonic() - began_s > _LOOKING_S:
            break
        found.append({**row, "estimates": estimating(ask, [row])})
    return found, len(may) - len(found)


def _may_give(row: QueryRow) -> bool:
    toast = int(row.get("toast_relpages") or 0)
    if toast >= PAGES_MIN:
        return True
    at_most = coarse_bytes(row)
    return at_most >= max(BYTES_MIN, SHARE_MIN * int(row["relpages"]) * PAGE_BYTES)


def is_bloated(estimate: Estimate) -> bool:
    """Whether enough comes back even at the estimate's low end."""
    low = estimate.given_back_frac.low
    return low >= SHARE_MIN and estimate.given_back_bytes.low >= BYTES_MIN


def may_be_bloated(estimate: Estimate) -> bool:
    """Whether enough may come back, and the statistics do not say it."""
    high = estimate.given_back_frac.high
    return high >= SHARE_MIN and estimate.given_back_bytes.high >= BYTES_MIN


def reach(low: float, high: float, show: Callable[[float], str]) -> str:
    """Both ends in words, or one where they are alike."""
    ends = (show(low), show(high))
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def open_between(estimate: Estimate) -> str:
    """Behind "a rewrite": what it gives back at least and at most, and why no more is known."""
    share = estimate.given_back_frac
    return (
        f"gives back {percent(max(share.low, 0.0))} to {percent(share.high)}: "
        f"{'; '.join(estimate.reasons)}"
    )


def numbers_of(estimate: Estimate) -> dict[str, float | int]:
    """An estimate as the numbers of a finding: bytes, and shares of what is there."""
    share, given = estimate.given_back_frac, estimate.given_back_bytes
    return {
        "size_bytes": estimate.pages * PAGE_BYTES,
        "given_back_bytes_low": round(given.low),
        "given_back_bytes": round(given.mid),
        "given_back_bytes_high": round(given.high),
        "given_back_frac_low": round(share.low, 4),
        "given_back_frac_high": round(share.high, 4),
    }
