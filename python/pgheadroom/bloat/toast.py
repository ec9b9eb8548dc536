"""
A TOAST table as a rewrite of its table would write it: chunks one after the other.

A value out of line is cut into chunks of 1,996 bytes (TOAST_MAX_CHUNK_SIZE), four of which fill a
page, and a last one of any length. How many chunks there are is counted; how many are last ones is
not, but there are no more than values.
"""

from __future__ import annotations

import math

from pgheadroom.bloat.values import TOLD_FROM, Estimate, counted_apart, estimate_of

_CHUNKS_A_PAGE = 4  # EXTERN_TUPLES_PER_PAGE


def toast_estimate(pages: int, chunks: tuple[float, float] | None, values_max: float) -> Estimate:
    """
    What a rewrite leaves of a TOAST table.

    Args:
        pages: It has now.
        chunks: Live ones, at least and at most; None: nothing says it.
        values_max: Values that may lie in it: rows of the table, by columns that may be there.
    """
    if chunks is None:
        why = "nothing says how many chunks it has: VACUUM"
        return estimate_of("toast", pages, 0.0, pages / 2, float(pages), [why])
    least, most = chunks
    last = min(values_max, least)
    high = float(math.ceil(most / _CHUNKS_A_PAGE))
    low = (least - last) / _CHUNKS_A_PAGE
    reasons = ["how long the last chunk of each value is, is in no statistics"]
    if most - least > TOLD_FROM * most:
        reasons.append(counted_apart("chunks", least, most, "VACUUM"))
    return estimate_of("toast", pages, low, (low + high) / 2, high, reasons)
