"""
Which rows are updated how often, out of how old the rows of a sample are.

A row's xmin is its last insert or update. If each of N rows is as likely to be updated, the share
of rows younger than m updates is 1 - exp(-m / N); with hot rows fewer are young, for the hot ones
are updated over and over:

    F(m) = sum over rows of (1 - exp(-m p_row)) / N

The candidates are uniform, a hot set (share of rows, share of updates) and Zipf; the likeliest
one wins if it is clearly likelier than uniform. Only ages inside the interval are used, for only
there the rate of updates is known.

Whether the hot rows are neighbours, the number of young rows per page says. Its variance over a
binomial's is 1 where they are scattered; where the rows of a page are all updated as often it is

    1 + (rows of a page) * (variance of F over the pages) / (F (1 - F))

In a table that has lived some of them are together whatever their keys: an update that leaves its
page goes to one with others that did. So they are neighbours from half the way between both on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pgheadroom.profile.workload import Pick

_YOUNG_ROWS_MIN = 50  # fewer young rows say nothing about skew; arbitrary
# Twice the gain in log-likelihood of two parameters must exceed this: 1 in 1,000 by chance.
_GAIN_MIN = 6.9
_FRACS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
_WEIGHTS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95, 0.975, 0.99, 0.999)
_THETAS = (1.001, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.4, 1.5, 1.75, 2.0, 2.5)
_ZIPF_STEPS = 400
_CLUSTERED_MIN = 2.0  # variance of young rows per page over a binomial's; arbitrary

_Groups = Sequence[tuple[float, float]]
"""Shares of the rows, and how likely an update is to take one certain row of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skew:
    """How updates pick rows; `evidence` and `why` for people."""

    pick: Pick
    evidence: str
    why: str


def fit_skew(
    sample: Mapping[str, Any] | None, *, rows: int, updates: int, inserts: int, xids: int
) -> Skew:
    """
    Fit how updates pick rows.

    Args:
        sample: A row of the query `sample`, None without one.
        rows: Rows of the table.
        updates: Updates of the table in the interval.
        inserts: Inserts in the interval; a young row may be one of them.
        xids: Transactions of the server in the interval, of which ages are made.
    """
    uniform = Pick(distribution="uniform")
    if sample is None or not sample.get("rows"):
        return Skew(pick=uniform, evidence="assumed", why="no sample of the table")
    if updates <= 0 or xids <= 0 or rows <= 1:
        return Skew(pick=uniform, evidence="assumed", why="no updates inside the interval")
    if inserts > updates / 10:
        why = "inserts are more than a tenth of the updates: young rows do not tell them apart"
        return Skew(pick=uniform, evidence="assumed", why=why)
    # Sampled a little after the counters were read, with as many updates a transaction.
    bounds, counts = _young(sample, max(int(sample["since_xids"]), 1))
    young = sum(counts[:-1])
    if young < _YOUNG_ROWS_MIN:
        why = f"{young} young rows in the sample, expected {_YOUNG_ROWS_MIN}"
        return Skew(pick=uniform, evidence="assumed", why=why)
    dispersion = _dispersion(sample)
    per_xid = updates / xids
    updates_at = [bound * per_xid for bound in bounds]

    def score(young_frac: Callable[[float], float]) -> float:
        return _log_likelihood([young_frac(m) for m in updates_at], counts) / max(dispersion, 1)

    groups: _Groups = [(1.0, 1 / rows)]
    base = best = score(_young_frac(groups))
    pick = uniform
    for likely, candidate in _candidates(rows):
        found = score(_young_frac(candidate))
        if found > best:
            best, pick, groups = found, likely, candidate
    if best - base < _GAIN_MIN:
        return Skew(pick=uniform, evidence="sampled", why=f"{young} young rows fit uniform updates")
    of_neighbours = _of_neighbours(groups, updates_at[-1], _rows_of_page(sample))
    if dispersion < max(_CLUSTERED_MIN, (1 + of_neighbours) / 2):
        pick = replace(pick, scatter=True)
    why = (
        f"{young} young rows fit it better than uniform updates by {best - base:.1f} in "
        f"log-likelihood; their number per page varies {dispersion:.1f} times a binomial's"
    )
    return Skew(pick=pick, evidence="sampled", why=why)


def _young(sample: Mapping[str, Any], xids: int) -> tuple[list[float], list[int]]:
    """Upper bounds of the ages inside the interval, rows in each, and last all the older."""
    bounds: list[float] = []
    counts: list[int] = []
    total = int(sample["rows"])
    known = {int(age): int(n) for age, n, _ in sample["ages"]}
    highest = max(math.floor(math.log2(xids)) - 1, -1)  # classes that end inside the interval
    for age in range(highest + 1):
        bounds.append(2.0 ** (age + 1))
        counts.append(known.get(age, 0))
    recent = int(sample["recent_rows"]) - sum(counts)
    if recent >= 0 and (not bounds or xids > bounds[-1]):
        bounds.append(float(xids))
        counts.append(recent)
    counts.append(max(total - sum(counts), 0))
    return bounds, counts


def _log_likelihood(shares: Sequence[float], counts: Sequence[int]) -> float:
    """Of the numbers in each age class, given the shares of rows younger than each bound."""
    result, before = 0.0, 0.0
    for share, count in zip([*shares, 1.0], counts, strict=True):
        result += count * math.log(max(share - before, 1e-12))
        before = share
    return result


def _candidates(rows: int) -> Iterator[tuple[Pick, _Groups]]:
    """What rows may be picked by, beside uniform."""
    for frac in _FRACS:
        for weight in _WEIGHTS:
            if weight > frac * 1.5:
                hot, cold = weight / (frac * rows), (1 - weight) / ((1 - frac) * rows)
                pick = Pick(distribution="hot_set", rows_frac=frac, weight=weight)
                yield pick, [(frac, hot), (1 - frac, cold)]
    for theta in _THETAS:
        yield Pick(distribution="zipfian", theta=theta), _zipf(theta, rows)


def _zipf(theta: float, rows: int) -> _Groups:
    """Ranks in geometric steps, each with the probability at its middle."""
    edges = sorted({round(rows ** (step / _ZIPF_STEPS)) for step in range(_ZIPF_STEPS + 1)})
    steps = [
        (high - low, math.sqrt((low + 0.5) * (high + 0.5)) ** -theta)
        for low, high in zip([0, *edges[:-1]], edges, strict=True)
    ]
    total = sum(count * weight for count, weight in steps)
    return [(count / rows, weight / total) for count, weight in steps]


def _young_frac(groups: _Groups) -> Callable[[float], float]:
    """The share of rows that so many updates make young."""
    return lambda m: -sum(share * math.expm1(-m * chance) for share, chance in groups)


def _of_neighbours(groups: _Groups, updates: float, rows_of_page: float) -> float:
    """`_dispersion` after so many updates, where a page has rows of one group alone."""
    mean = _young_frac(groups)(updates)
    apart = sum(share * (-math.expm1(-updates * chance) - mean) ** 2 for share, chance in groups)
    alike = mean * (1 - mean)
    return 1 + rows_of_page * apart / alike if alike > 0 else 1.0


def _rows_of_page(sample: Mapping[str, Any]) -> float:
    """Rows of the page that the mean row is on."""
    return float(sample["page_moments"][0] or 0) / float(sample["rows"])


def _dispersion(sample: Mapping[str, Any]) -> float:
    """Variance of the number of young rows per page over that of a binomial; 1 if unknown."""
    squares, young_squares, mixed = (float(x or 0) for x in sample["page_moments"])
    rows, young = float(sample["rows"]), float(sample["recent_rows"])
    share = young / rows
    expected = rows * share * (1 - share)
    if expected <= 0:
        return 1.0
    return (young_squares - 2 * share * mixed + share * share * squares) / expected
