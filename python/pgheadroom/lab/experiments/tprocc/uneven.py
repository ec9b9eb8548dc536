"""
The standard's uneven choice of keys (NURand, TPC-C clause 2.1.6) as choices that a profile has.

NURand(A, 1, n) is the bitwise OR of a number up to A and one up to n: a key is drawn the more
often, the more of its low bits are set. What counts for free space is how uneven the pages are, so
keys are summed over the rows of a page, the pages put in the order of that sum, and the fall of
their density made of uniform choices among the first so many of them.

The numbers of `twin.toml` come from here; a test computes them again.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def page_shares(a: int, keys: int, rows_per_page: int) -> NDArray[np.float64]:
    """
    Share of the draws that falls on each page, the most drawn first.

    Args:
        a: NURand's A, one less than a power of two.
        keys: n, how many keys there are.
        rows_per_page: Keys of a page, neighbours.

    Returns:
        Shape (pages,), sum 1.
    """
    low = np.arange(1, keys + 1) & a
    # Each low bit that is set comes from one of the two numbers, the other, or both: 3 of 4 ways.
    weight = 3.0 ** np.bitwise_count(low)
    starts = np.arange(0, keys, rows_per_page)
    pages: NDArray[np.float64] = np.add.reduceat(weight, starts)
    return np.array(np.sort(pages)[::-1] / pages.sum(), dtype=np.float64)


def prefixes(shares: NDArray[np.float64], count: int) -> list[float]:
    """
    Shares of the pages, so that uniform draws among the first of each make the same density.

    Every falling density is a mixture of such draws: the weight of "the first i" is i times the
    fall after the i-th. These are the middles of `count` equal parts of that weight.
    """
    falls = shares - np.append(shares[1:], 0.0)
    weight = np.cumsum(falls * np.arange(1, len(shares) + 1))
    wanted = (np.arange(count) + 0.5) / count * weight[-1]
    found = np.searchsorted(weight, wanted) + 1
    return [float(each) / len(shares) for each in found]


def hottest(shares: NDArray[np.float64], rows_frac: float) -> float:
    """Share of the draws that falls on the first `rows_frac` of the pages."""
    return float(shares[: max(round(len(shares) * rows_frac), 1)].sum())


def stride(keys: int, places: int) -> int:
    """
    Step by which keys are taken by turns from that many places, in order at each.

    `places` steps come to one key further, modulo `keys`; a few places more than asked for, so that
    such a step exists.
    """
    while math.gcd(places, keys) != 1:
        places += 1
    return pow(places, -1, keys)
