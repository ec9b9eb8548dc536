"""
Whether rows go on growing, by the lengths of sampled rows of different age.

That rows which were updated are longer than those which never were says that the first update made
them longer: a balance leaves 0, a status gets a word. Growth that goes on makes rows the longer the
more updates they have had. Of rows that are updated alike, those whose last update is longer ago
have had fewer: so lengths fall with age among the rows that the interval has written, and they do
not where rows have grown once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pgheadroom.advise.room import growth_of
from pgheadroom.advise.updates import updates_of
from pgheadroom.profile.tables import TableProfile
from pgheadroom.types import ObservedSample

_SIGMAS = 3.0
_CLASS_ROWS_MIN = 5  # fewer rows of an age say nothing; arbitrary
_ROWS_MIN = 60  # the same of all that the interval wrote; arbitrary
_NO_NEWPAGE = 15  # a version of which no counter is needed


@dataclass(frozen=True, slots=True, kw_only=True)
class Growing:
    """
    What is known of the growth of a table's rows.

    Attributes:
        lasts: Whether rows go on growing: statements append to a column, or lengths show it.
        grown_bytes: By how much rows that the interval wrote are longer than the older ones; None
            where a sample does not tell.
    """

    lasts: bool
    grown_bytes: float | None


def growing_of(table: TableProfile) -> Growing:
    """Read it from an observed table."""
    updates = updates_of(table, _NO_NEWPAGE)
    if updates is None:
        return Growing(lasts=False, grown_bytes=None)
    signs = growth_of(table, updates)
    sample = None if table.observed is None else table.observed.sample
    shows = signs.grown_bytes is not None and _falls_with_age(sample)
    return Growing(lasts=signs.appended_frac > 0 or shows, grown_bytes=signs.grown_bytes)


def _falls_with_age(sample: ObservedSample | None) -> bool:
    """Whether, of the rows written in the interval, the older ones are clearly shorter."""
    if sample is None or not sample.ages or not sample.since_xids:
        return False
    since = sample.since_xids
    # Classes are of powers of two: the middle of one, in transactions, is its age.
    young = [
        (1.5 * 2**k, int(n), float(total) / n)
        for k, n, total in sample.ages
        if 2 ** (k + 1) <= since + 1 and n >= _CLASS_ROWS_MIN
    ]
    if sum(n for _, n, _ in young) < _ROWS_MIN or len(young) < 2:
        return False
    slope, error = _slope(young, sample.tuple_bytes.deviation)
    return slope < -_SIGMAS * error


def _slope(points: Sequence[tuple[float, int, float]], deviation: float) -> tuple[float, float]:
    """Of lengths over ages, weighted by rows, with its standard error."""
    rows = sum(n for _, n, _ in points)
    age = sum(n * a for a, n, _ in points) / rows
    length = sum(n * b for _, n, b in points) / rows
    spread = sum(n * (a - age) ** 2 for a, n, _ in points)
    if spread <= 0:
        return 0.0, math.inf
    slope = sum(n * (a - age) * (b - length) for a, n, b in points) / spread
    # Lengths are whole bytes in steps of alignment: no sample is surer than that.
    return slope, max(deviation, 1.0) / math.sqrt(spread)
