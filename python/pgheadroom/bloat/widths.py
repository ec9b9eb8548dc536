"""
How wide the values of a column are: one by one, as far as its statistics say it.

`avg_width` is a whole number of bytes, the rest is cut off (`compute_scalar_stats`, analyze.c:
`stawidth` is an int4), so the mean lies up to a byte above it. How values lie around their mean is
not there, but the most common values and the bounds of the histogram are values of the column: of
these the width is asked, never the value. Both must agree, else how they lie is not known: values
above 1,024 bytes are in no histogram (WIDTH_THRESHOLD), and what lies compressed or out of line is
narrower than it says.

A hundred values have not quite the mean of all. So they are weighted anew, wide ones more or less,
until they have (exponential tilting); no value gets another width by that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pgheadroom.bloat.values import ColumnFacts, RowCount

SHORT_MAX = 126  # payload of a header of one byte (VARATT_SHORT_MAX - VARHDRSZ_SHORT)
_POINTER_BYTES = 18  # of a value out of line (TOAST_POINTER_SIZE)
_UNPACKED_BYTES = 4  # of a header as it is before a row is formed
_DEVIATIONS = 3.0

Listed = Sequence[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class Widths:
    """
    Values of a column that are not NULL.

    Attributes:
        listed: Bytes without header, with their weights.
        mean: Of stored bytes: from, to.
        reach: Stored bytes of the least and of the widest.
        is_known: How they lie around their mean is known.
    """

    listed: tuple[tuple[int, float], ...]
    mean: tuple[float, float]
    reach: tuple[float, float]
    is_known: bool
    is_cstring: bool = False

    @property
    def span(self) -> float:
        """Bytes between the least and the largest mean."""
        return self.mean[1] - self.mean[0]

    def at(self, part: float, count: int) -> tuple[tuple[int, ...], float]:
        """
        Payloads in their order, as many, and what their mean still lacks.

        Args:
            part: Of the way from the least mean to the largest.
            count: How many.
        """
        wanted = self.mean[0] + part * self.span
        sizes = [(self._stored(width), width, weight) for width, weight in self.listed]
        theta = _tilt([(size, weight) for size, _, weight in sizes], wanted)
        largest = max(theta * size for size, _, _ in sizes)
        found = _quantiles(
            [(width, weight * math.exp(theta * size - largest)) for size, width, weight in sizes],
            count,
        )
        return found, wanted - math.fsum(map(self._stored, found)) / count

    def _stored(self, payload: int) -> int:
        return payload + 1 if self.is_cstring else stored_bytes(payload)


def stored_bytes(payload: int) -> int:
    """With the header of its length."""
    return payload + (1 if payload <= SHORT_MAX else 4)


def widths_of(column: ColumnFacts, count: RowCount) -> Widths:
    """
    The widths of a column of variable length that has statistics.

    Args:
        column: It; `avg_width` is known.
        count: Of its rows, for what sampling leaves open.
    """
    assert column.avg_width is not None
    mean, is_cstring = float(column.avg_width), column.typlen == -2
    listed = [(width, weight) for width, weight in column.widths or () if weight > 0]
    sampled = count.rows > count.analyzed
    if listed:
        total = math.fsum(weight for _, weight in listed)

        def average(of: Sequence[tuple[float, float]]) -> float:
            return math.fsum(size * weight for size, weight in of) / total

        stored = [(w + 1 if is_cstring else stored_bytes(w), weight) for w, weight in listed]
        packed = average(stored)
        for seen in _as_analyzed(column, listed, stored):
            found = average(seen)
            deviation = math.sqrt(average([((size - found) ** 2, w) for size, w in seen]))
            if deviation == 0 and mean <= found < mean + 1:
                reach = (packed, packed)
                return Widths(tuple(listed[:1]), reach, reach, True, is_cstring)
            # The mean is where both say it is: ANALYZE's, and that of the values in the lists.
            doubt = _DEVIATIONS * deviation / math.sqrt(count.analyzed) if sampled else 0.0
            share, bounds = column.sampled
            own = _DEVIATIONS * deviation * max(share / math.sqrt(bounds), 1e-3) + doubt
            low, high = max(mean - doubt, found - own), min(mean + 1 + doubt, found + own)
            if is_cstring:  # of a `name` ANALYZE counts 64 bytes: the lists alone say it
                low, high = found - own, found + own
            if low > high and found - 2 * own <= mean + 1 and found + 2 * own >= mean:
                # A rare sample: ANALYZE's mean is of three hundred times as many values.
                low, high = mean - doubt, mean + 1 + doubt
            if deviation > 0 and low <= high:
                least, most = (float(end(size for size, _ in stored)) for end in (min, max))
                low, high = (min(max(each - found + packed, least), most) for each in (low, high))
                return Widths(tuple(listed), (low, high), (least, most), True, is_cstring)
    if not listed and column.avg_width == _POINTER_BYTES and not is_cstring:
        # All lie out of line: one that does not would be wider by far.
        reach = (mean, mean + 1)
        return Widths(((_POINTER_BYTES - 1, 1.0),), reach, (mean, _ROW_MAX), True)
    header = _UNPACKED_BYTES if column.attnum == 0 or mean > SHORT_MAX + 1 else 1
    payload = max(round(mean) - header, 0)
    doubt = _DEVIATIONS * mean / math.sqrt(count.analyzed) if sampled else 0.0
    reach = (max(mean - doubt, 1.0), mean + 1 + doubt)
    return Widths(((payload, 1.0),), reach, (1.0, _ROW_MAX), False, is_cstring)


_ROW_MAX = 2032.0  # TOAST_TUPLE_THRESHOLD: wider rows have values out of line


def _as_analyzed(
    column: ColumnFacts, listed: Listed, stored: Sequence[tuple[float, float]]
) -> list[Sequence[tuple[float, float]]]:
    """
    What ANALYZE may have measured: values as they lie in rows, or as they are before.

    The latter are those that an expression gives, and of a column that was added with a default.
    """
    unpacked = [(float(width + _UNPACKED_BYTES), weight) for width, weight in listed]
    if column.typlen == -2:
        return [stored]
    if column.attnum == 0:
        return [unpacked, stored]
    return [stored, unpacked] if column.has_missing else [stored]


def _tilt(sizes: Sequence[tuple[float, float]], wanted: float) -> float:
    """The exponent by which weights have that mean, as near as they come."""
    least, most = min(size for size, _ in sizes), max(size for size, _ in sizes)
    if least == most:
        return 0.0

    def mean(theta: float) -> float:
        largest = max(theta * size for size, _ in sizes)
        weights = [(size, weight * math.exp(theta * size - largest)) for size, weight in sizes]
        whole = math.fsum(weight for _, weight in weights)
        return math.fsum(size * weight for size, weight in weights) / whole

    low, high = -64.0 / (most - least), 64.0 / (most - least)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if mean(middle) < wanted else (low, middle)
    return (low + high) / 2


def _quantiles(listed: Listed, wanted: int) -> tuple[int, ...]:
    """Payloads in their order, each as often as its weight says."""
    ordered = sorted(listed)
    total = math.fsum(weight for _, weight in ordered)
    found: list[int] = []
    reached, place = ordered[0][1], 0
    for number in range(wanted):
        at = (number + 0.5) / wanted * total
        while reached < at and place < len(ordered) - 1:
            place += 1
            reached += ordered[place][1]
        found.append(ordered[place][0])
    return tuple(found)
