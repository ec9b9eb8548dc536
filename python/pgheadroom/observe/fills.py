"""
Which update of a row gives a value to which columns, and at what age: out of NULLs by age.

A column that is NULL in young rows and has a value in old ones is filled in between: an order is
paid, sent, and received. How large a part of the rows has it ascends with their age; the ages at
which it does are those of the update that sets it (by the nearest ascending steps, as isotonic
regression has them). So a row's updates get their order, each its own ages, and what each makes of
the row's length. A column that is as often NULL in old rows as in young ones says nothing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pgheadroom.profile.observed import ObservedFill

_ROWS_MIN = 5  # sampled rows that have a value, or a length that is averaged; arbitrary
_APART_MIN = 30.0  # chance has it in a ten-millionth of samples, at each of some thousand ages
_EVER_MIN = 0.5  # of the rows are filled at some age, else it is an exception; arbitrary
_YOUNG_MAX = 0.1  # of that are filled in the youngest rows, else it may be the insert's; arbitrary
_OWN_MIN = 0.9  # of the updates that assign a column, by which it tells of their class; arbitrary
_ALIGN_BYTES = 8  # MAXIMUM_ALIGNOF
_OLDEST_FRAC = 0.02  # of the rows, by which it is told how many are ever filled; arbitrary


@dataclass(frozen=True, slots=True)
class RowState:
    """
    A sampled row.

    Attributes:
        age: Rows inserted since it was.
        nulls: Which columns have no value, a bit each.
        tuple_bytes: Its length; None where that is not known.
        weight: How many rows it stands for.
    """

    age: float
    nulls: int
    tuple_bytes: float | None
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """
    Columns that one update of a row fills.

    Attributes:
        attnums: Of the columns.
        ages: In rows inserted since the row was, as quantiles 5, 50 and 95 %.
        ever_frac: Share of the rows that it fills at some age.
        aligned_bytes: Lengths of rows before and after it to MAXALIGN, what room on pages is
            counted in, on average; None: not known.
    """

    attnums: tuple[int, ...]
    ages: tuple[int, int, int]
    ever_frac: float
    aligned_bytes: tuple[float, float] | None

    def observed(self, names: Mapping[int, str]) -> ObservedFill:
        """For the profile, by the columns' names."""
        lengths = self.aligned_bytes
        return ObservedFill(
            columns=tuple(names[number] for number in self.attnums),
            rows=self.ages,
            ever_frac=round(self.ever_frac, 4),
            aligned_bytes=None if lengths is None else (round(lengths[0], 2), round(lengths[1], 2)),
        )


@dataclass(frozen=True, slots=True)
class _Rise:
    """When a column is filled; `null_rows`: rows that wait for it."""

    ages: tuple[int, int, int]
    ever_frac: float
    null_rows: float


def read_fills(
    rows: Sequence[RowState],
    nullable: Sequence[int],
    classes: Sequence[Collection[int]],
    shares: Sequence[float | None] = (),
) -> tuple[Fill | None, ...]:
    """
    What each class of updates fills; None where that is nothing, or not told apart from another's.

    Args:
        rows: Sampled.
        nullable: The columns of the rows' bits, by attribute number.
        classes: Columns that each class of updates assigns.
        shares: Of the updates that each class is, where that is known.
    """
    parts = [share or 0.0 for share in shares] or [1.0] * len(classes)
    bits = {number: 1 << place for place, number in enumerate(nullable)}
    rises: dict[int, _Rise] = {}
    for number in sorted({n for found in classes for n in found} & bits.keys()):
        rise = _rise(rows, bits[number])
        if rise is not None:
            rises[number] = rise
    first: dict[int, _Rise] = {}
    for place, found in enumerate(classes):
        own = [rises[n] for n in found if n in rises and _is_own(n, place, classes, parts)]
        if own:
            first[place] = min(own, key=_by_age)
    taken: set[int] = set()
    steps: dict[int, tuple[int, ...]] = {}
    for place in sorted(first, key=lambda place: _by_age(first[place])):
        steps[place] = tuple(sorted(n for n in classes[place] if n in rises and n not in taken))
        taken |= set(steps[place])
    masks = {place: _mask(numbers, bits) for place, numbers in steps.items()}
    late = _mask(tuple(taken), bits)
    made: list[Fill | None] = [None] * len(classes)
    waiting = late
    for place, numbers in steps.items():
        before, waiting = waiting, waiting & ~masks[place]
        made[place] = Fill(
            attnums=numbers,
            ages=first[place].ages,
            ever_frac=first[place].ever_frac,
            aligned_bytes=_lengths(rows, late, before, waiting),
        )
    return tuple(made)


def _is_own(
    number: int, place: int, classes: Sequence[Collection[int]], parts: Sequence[float]
) -> bool:
    """Whether a class is nearly all that assigns a column: most jobs are completed, few put off."""
    total = math.fsum(part for part, other in zip(parts, classes, strict=True) if number in other)
    return parts[place] > _OWN_MIN * total


def _by_age(rise: _Rise) -> tuple[float, float]:
    return rise.ages[1], rise.null_rows


def _mask(numbers: Collection[int], bits: Mapping[int, int]) -> int:
    return sum(bits[number] for number in numbers)


def _rise(rows: Sequence[RowState], bit: int) -> _Rise | None:
    """The ages between which ever more rows have a value; None where old rows have no more."""
    marked = sorted((row.age, not row.nulls & bit, row.weight) for row in rows)
    there = sum(has_value for _, has_value, _ in marked)
    if there < _ROWS_MIN or there == len(marked):
        return None
    steps = _ascending(marked)
    total = sum(weight for _, _, weight in steps)
    ever = _oldest(steps, _OLDEST_FRAC * total)
    if ever < _EVER_MIN or steps[0][1] > _YOUNG_MAX * ever:
        return None

    def age_at(frac: float) -> float:
        return next(age for age, level, _ in steps if level >= frac * ever)

    low, mid, high = age_at(0.05), age_at(0.5), age_at(0.95)
    if _told_apart(marked, mid) < _APART_MIN:
        return None
    return _Rise(
        ages=(round(low), round(mid), round(high)),
        ever_frac=ever,
        null_rows=sum(weight for _, has_value, weight in marked if not has_value),
    )


def _told_apart(marked: Sequence[tuple[float, bool, float]], age: float) -> float:
    """How much older rows differ from young ones: twice the log of a likelihood ratio (G test)."""
    counts = [[0, 0], [0, 0]]
    for at, has_value, _ in marked:
        counts[at >= age][has_value] += 1
    among = [sum(row) for row in counts]
    valued = [counts[0][kind] + counts[1][kind] for kind in (0, 1)]
    return 2 * math.fsum(
        counts[side][kind]
        * math.log(counts[side][kind] * len(marked) / (among[side] * valued[kind]))
        for side in (0, 1)
        for kind in (0, 1)
        if counts[side][kind]
    )


def _ascending(
    marked: Sequence[tuple[float, bool, float]],
) -> list[tuple[float, float, float]]:
    """
    The share with a value by age, never less in older rows: (from this age on, share, rows).

    Neighbours that descend are pooled until none do (the pool-adjacent-violators algorithm).
    """
    steps: list[tuple[float, float, float]] = []
    for age, has_value, weight in marked:
        step = (age, float(has_value), weight)
        while steps and steps[-1][1] >= step[1]:
            first, level, rows = steps.pop()
            both = rows + step[2]
            step = (first, (level * rows + step[1] * step[2]) / both, both)
        steps.append(step)
    return steps


def _oldest(steps: Sequence[tuple[float, float, float]], rows: float) -> float:
    """The share with a value among so many of the oldest rows."""
    found = taken = 0.0
    for _, level, weight in reversed(steps):
        part = min(weight, rows - taken)
        found += level * part
        taken += part
        if taken >= rows:
            break
    return found / taken if taken else 0.0


def _lengths(
    rows: Sequence[RowState], late: int, before: int, after: int
) -> tuple[float, float] | None:
    """Of rows that wait for more, and of those that wait for less."""
    shorter, longer = (_mean_bytes(rows, late, waiting) for waiting in (before, after))
    return None if shorter is None or longer is None else (shorter, longer)


def _mean_bytes(rows: Sequence[RowState], late: int, waiting: int) -> float | None:
    found = [
        (-(-row.tuple_bytes // _ALIGN_BYTES) * _ALIGN_BYTES, row.weight)
        for row in rows
        if row.nulls & late == waiting and row.tuple_bytes is not None
    ]
    if len(found) < _ROWS_MIN:
        return None
    return sum(length * weight for length, weight in found) / sum(weight for _, weight in found)
