"""
At what age rows are updated and deleted, out of how far sampled rows lie behind the newest one.

A column that ascends with the inserts (a sequence's key, the time of creation) says how many rows
came after a row; its xmin says when it was last written. With `L` rows inserted a transaction, a
row `a` rows behind the newest was inserted a / L transactions ago; if it was written x ago,
later than that, then it was updated at the age a - L x. Only writes inside the interval count, for
only there the rates are known.

Which column ascends is tested, not believed: a row cannot have been written before it was inserted.
Updated rows that are missing from the sample, where rows are deleted as well, were deleted soon
after. Where nothing of that can be seen, nothing is said.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pgheadroom.observe.fills import RowState
from pgheadroom.profile.observed import ObservedAges
from pgheadroom.units import percent

ROWS_MIN = 50
"""Rows written in the interval that a sample needs: fewer say nothing of ages; arbitrary."""

_EVENTS_MIN = 30
_EVENTS_WANTED = 400  # the latest so many: the longer ago, the more were updated again or deleted
_BEFORE_MAX = 0.05  # rows that seem to be written before they were inserted; arbitrary
_NOT_SEEN_MIN = 0.2  # less of the updates missing is what rates err by; arbitrary
_LOOSE_FRAC = 0.25  # of the interval's rows, by which a column may be in disorder; arbitrary
_LOOSE_ROWS_FRAC = 0.01  # of the table, in disorder by which ages still are ages; arbitrary
_OLD_INSIDE_MAX = 0.2  # of the rows inserted in the interval, by the column; arbitrary
_INSIDE_MIN = 0.25  # of them are there, if not all were deleted; arbitrary
_GROUP_ROWS, _GROUPS, _INSERTING_MAX = 16, 4, 32
_NEWEST_PART = 5  # of the rows, by which those of a unit are counted; arbitrary
_NOISE, _NOISE_FRAC = 1.5, 0.02  # what disorder does to either side; arbitrary
_OLDEST_FRAC = 0.02
_MIXED_FRAC = 0.1  # deletes come in blocks of at least this part of the rows, or by age; arbitrary


@dataclass(frozen=True, slots=True, kw_only=True)
class Ages:
    """
    Ages in rows inserted since the row was.

    Attributes:
        attnum: The column that ascends.
        updates: Sorted ages of the updates that were seen.
        beside: Rows of a page that one transaction updated together, on average.
        gone_frac: Which share of the updates was followed by the row's deletion.
        mixed_rows: Through how many rows deletes go in a mixed order; None: by age.
        why: What it rests on, for people.
        states: The sampled rows by age, with their NULLs.
        nullable: The columns of their bits, by attribute number.
        inserting: Sessions that insert, by the pages of the newest rows: each fills one of its
            own. None: not known.
    """

    attnum: int
    updates: tuple[float, ...]
    beside: float
    gone_frac: float
    mixed_rows: int | None
    why: str
    states: tuple[RowState, ...] = ()
    nullable: tuple[int, ...] = ()
    inserting: int | None = None

    def at(self, frac: float) -> int:
        """The age that this share of the updates does not exceed."""
        return max(0, round(_quantile(self.updates, frac)))

    def observed(self) -> ObservedAges:
        """For the profile: quantiles, no single row."""
        found = ObservedAges(
            evidence="sampled",
            why=self.why,
            attnum=self.attnum,
            gone_frac=round(self.gone_frac, 4),
        )
        if not self.updates:
            return found
        return replace(
            found,
            updates=len(self.updates),
            rows=tuple(self.at(frac) for frac in (0.05, 0.25, 0.5, 0.75, 0.95)),
            beside=round(self.beside, 2),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """
    What the counters had in the interval.

    `rows` are the table's at its end, `xids` the server's transactions.
    """

    inserts: int
    updates: int
    deletes: int
    xids: int
    interval_s: float
    rows: int


def read_ages(
    sample: Mapping[str, Any] | None,
    rates: Rates,
    *,
    assigned: Collection[int],
    seconds: Collection[int],
    unique: Collection[int],
) -> tuple[Ages | None, str]:
    """
    Find the ages at which rows are updated and deleted.

    Args:
        sample: A row of the query `row_ages`, None without one.
        rates: Of the interval.
        assigned: Columns that updates assign, by attribute number: they say nothing of inserts.
        seconds: Columns that hold times; their distances are seconds.
        unique: Columns that alone are the key of a unique index.

    Returns:
        The ages, or None and why not.
    """
    if sample is None:
        return None, "no sample of the rows' order"
    if rates.inserts <= 0 or rates.xids <= 0:
        return None, "no row was inserted inside the interval"
    count = len(sample.get("recent") or [])
    if count < ROWS_MIN:
        return None, f"{count} sampled rows were written in the interval, {ROWS_MIN} expected"
    refused = []
    for place, attnum in enumerate(sample["attnums"]):
        if attnum in assigned:
            refused.append(f"updates assign column {attnum}")
            continue
        found = _Sampled.of(sample, place)
        order = _Order.of(found, rates, is_time=attnum in seconds, is_unique=attnum in unique)
        if isinstance(order, str):
            refused.append(f"column {attnum}: {order}")
            continue
        drawn = 1 / found.recent_weight
        ages = _ages(order, found, rates, int(attnum), drawn)
        per_key = _per_key(sample, rates) if place == 0 else None
        states = _states(sample, order, found, per_key)
        return (
            replace(
                ages,
                states=states,
                nullable=_nullable(sample),
                inserting=_inserting(sample) if place == 0 else None,
            ),
            "",
        )
    return None, "; ".join(refused) or "no column ascends with the inserts"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sampled:
    """Sampled rows by one column: distances from the newest, and how many rows each stands for."""

    recent: tuple[tuple[float, float, float], ...]  # transactions since, rows beside, distance
    older: tuple[float, ...]
    recent_weight: float
    older_weight: float
    since_xids: float

    @classmethod
    def of(cls, sample: Mapping[str, Any], place: int) -> _Sampled:
        recent, older = sample.get("recent") or [], sample.get("older") or []
        scale = 100 / float(sample["drawn_percent"])
        count = float(sample["recent_rows"])
        return cls(
            recent=tuple((float(row[0]), float(row[1]), float(row[2 + place])) for row in recent),
            older=tuple(float(row[place]) for row in older),
            recent_weight=count * scale / len(recent) if recent else 0.0,
            older_weight=(float(sample["rows"]) - count) * scale / len(older) if older else 0.0,
            since_xids=max(float(sample["since_xids"]), 1.0),
        )

    def ranks(self) -> tuple[list[float], list[float]]:
        """Sorted distances, and how many rows lie before each."""
        listed = sorted(
            [(d, self.recent_weight) for _, _, d in self.recent]
            + [(d, self.older_weight) for d in self.older]
        )
        before = itertools.accumulate((weight for _, weight in listed), initial=0.0)
        return [d for d, _ in listed], list(before)[:-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    """Rows written in the interval as (age, rows inserted since the write, rows beside)."""

    recent: tuple[tuple[float, float, float], ...]
    older: tuple[float, ...]  # ages; both in the sample's order

    @classmethod
    def of(cls, found: _Sampled, rates: Rates, *, is_time: bool, is_unique: bool) -> _Order | str:
        """The rows by age, or why the column has no such order."""
        age_of = _age_of(found, rates, is_time=is_time, is_unique=is_unique)
        if age_of is None:
            return "its values do not ascend"
        per_xid = rates.inserts / rates.xids
        made = tuple((age_of(d), x * per_xid, beside) for x, beside, d in found.recent)
        older = tuple(age_of(d) for d in found.older)
        inside = per_xid * found.since_xids
        # Districts of one table come on unevenly: much of a short interval, little of the table.
        loose = max(_LOOSE_FRAC * inside, _LOOSE_ROWS_FRAC * rates.rows)
        before = sum(back > age + loose + _slack(back) for age, back, _ in made)
        if before > _BEFORE_MAX * len(made):
            early = percent(before / len(made))
            return f"{early} of the rows were written before it has them inserted"
        # What has come in the interval was written in it.
        inside *= 1 - _LOOSE_FRAC
        late = found.older_weight * sum(age < inside for age in older)
        young = found.recent_weight * sum(age < inside for age, _, _ in made)
        there = (found.recent_weight * len(made)) + (found.older_weight * len(older))
        if late + young < _INSIDE_MIN * min(inside, there):
            return "it does not tell rows inserted in the interval from others"
        if late > _OLD_INSIDE_MAX * (late + young):
            share = late / (late + young)
            return f"{percent(share)} of the rows that it has inserted in the interval are older"
        return cls(recent=made, older=older)


def _nullable(sample: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(int(number) for number in sample.get("nullable") or ())


def _states(
    sample: Mapping[str, Any], order: _Order, found: _Sampled, per_key: float | None
) -> tuple[RowState, ...]:
    """
    The sampled rows with their NULLs; none where the sample says nothing of them.

    Args:
        sample: A row of the query `row_ages`.
        order: Their ages by the column.
        found: The sample by that column.
        per_key: Rows for each key of the newest, where it is a key whose newest rows are known and
            none is deleted: ages are by keys then, and the newest rows, of which a sample of pages
            may have none, are all there.
    """
    recent, older = sample.get("recent") or [], sample.get("older") or []
    if not _nullable(sample):
        return ()
    ages = [*(age for age, _, _ in order.recent), *order.older]
    newest: list[RowState] = []
    if per_key is not None:
        listed = sample["newest"]
        newest = [
            RowState(float(place), int(row[1]), _length(row[2]), 1.0)
            for place, row in enumerate(listed)
        ]
        ages = [per_key * d for d in (*(d for _, _, d in found.recent), *found.older)]
    weights = [found.recent_weight] * len(recent) + [found.older_weight] * len(older)
    return (
        *newest,
        *(
            RowState(age, int(row[-2]), _length(row[-1]), weight)
            for age, row, weight in zip(ages, (*recent, *older), weights, strict=True)
            if age >= len(newest)
        ),
    )


def _per_key(sample: Mapping[str, Any], rates: Rates) -> float | None:
    """Rows a key among the newest, of the first column; None where that is not known."""
    newest = sample.get("newest") or []
    if rates.deletes or not newest:
        return None
    return len(newest) / max(float(newest[-1][0]) + 1, float(len(newest)))


def _inserting(sample: Mapping[str, Any]) -> int | None:
    """
    How many pages are being filled: of so many that rows come to in turn, `n` rows show a part.

    By the median over some groups of the newest rows: where a page ends, one shows two.
    """
    blocks = [row[3] for row in (sample.get("newest") or [])[: _GROUP_ROWS * _GROUPS]]
    groups = [blocks[n : n + _GROUP_ROWS] for n in range(0, len(blocks), _GROUP_ROWS)]
    whole = sorted(len(set(group)) for group in groups if len(group) == _GROUP_ROWS)
    if len(whole) < _GROUPS:
        return None
    shown = whole[(len(whole) - 1) // 2]
    return min(
        range(1, _INSERTING_MAX + 1),
        key=lambda pages: abs(pages * (1 - (1 - 1 / pages) ** _GROUP_ROWS) - shown),
    )


def _length(found: Any) -> float | None:
    return None if found is None else float(found)


def _age_of(
    found: _Sampled, rates: Rates, *, is_time: bool, is_unique: bool
) -> Callable[[float], float] | None:
    """From a distance to the number of rows that have been inserted meanwhile."""
    if is_time:
        per_s = rates.inserts / rates.interval_s
        return lambda d: d * per_s
    distances, before = found.ranks()
    if not rates.deletes or not is_unique:
        # As long as the oldest are deleted first, all that came later are there: rows by rank.
        return lambda d: before[max(bisect.bisect_right(distances, d) - 1, 0)]
    place = max(len(distances) // _NEWEST_PART, 1)
    if place >= len(distances) or distances[place] <= 0:
        return None
    per_unit = before[place] / distances[place]
    # Where rows are deleted soon, the newest are few as well; a sequence has the others' keys.
    units = sorted(d / x for x, _, d in found.recent if x >= found.since_xids / 20)
    if units and (unit := _quantile(units, 0.1)) > 0:
        per_unit = max(per_unit, rates.inserts / rates.xids / unit)
    per_unit = min(per_unit, 1.0)
    return lambda d: d * per_unit


def _slack(rows: float) -> float:
    """By how many rows the number that so many transactions insert may be off by chance."""
    return 3 * math.sqrt(rows) + 3


def _updated(order: _Order, expected: float) -> list[tuple[float, float, float]]:
    """
    Those that were updated some time after they were inserted, as (since, age, beside).

    As much as a row may seem to be written before its insertion, another may seem to be written
    after it: where a column is in disorder, only what exceeds that counts. And no more can have
    been updated than the counters have.
    """
    excess = sorted(age - back for age, back, _ in order.recent)
    noise = -_NOISE * min(_quantile(excess, _NOISE_FRAC), 0.0)
    most = max(round(expected), 0)
    least = excess[-most - 1] if most < len(excess) else 0.0
    return sorted(
        (back, age - back, beside)
        for age, back, beside in order.recent
        if age - back > max(_slack(age), 0.1 * age, noise, least)
    )


def _ages(order: _Order, sample: _Sampled, rates: Rates, attnum: int, drawn: float) -> Ages:
    per_xid = rates.inserts / rates.xids
    within = sample.since_xids * per_xid
    per_row = rates.updates / rates.inserts * drawn
    updated = _updated(order, per_row * within)
    latest = updated[:_EVENTS_WANTED]
    if len(updated) > len(latest):
        within = latest[-1][0]
    expected = per_row * within
    gone = 0.0
    if rates.deletes and expected >= _EVENTS_MIN:
        gone = max(0.0, 1 - len(latest) / expected)
        gone = gone if gone >= _NOT_SEEN_MIN else 0.0
    why = (
        f"{len(latest)} of {len(order.recent)} rows written in the interval were updated some time "
        f"after they were inserted, {expected:.0f} expected by the counters"
    )
    if len(latest) < _EVENTS_MIN:
        latest = []
    return Ages(
        attnum=attnum,
        updates=tuple(sorted(age for _, age, _ in latest)),
        beside=len(latest) / sum(1 / beside for _, _, beside in latest) if latest else 1.0,
        gone_frac=gone,
        mixed_rows=_mixed(order, sample, rates),
        why=why,
    )


def _mixed(order: _Order, sample: _Sampled, rates: Rates) -> int | None:
    """By how much rows outlive the others: those by age are as old as there are rows at most."""
    if not rates.deletes or rates.rows < ROWS_MIN:
        return None
    ages = sorted(
        [(age, sample.recent_weight) for age, _, _ in order.recent]
        + [(age, sample.older_weight) for age in order.older],
        reverse=True,
    )
    left = _OLDEST_FRAC * math.fsum(weight for _, weight in ages)
    oldest = 0.0
    for age, weight in ages:
        oldest = age
        left -= weight
        if left <= 0:
            break
    over = min(oldest / (1 - _OLDEST_FRAC) - rates.rows, rates.rows)
    return round(over) if over >= max(_MIXED_FRAC * rates.rows, _slack(rates.rows)) else None


def _quantile(found: Sequence[float], frac: float) -> float:
    """Of sorted values, the nearest below."""
    return found[min(int(frac * len(found)), len(found) - 1)]
