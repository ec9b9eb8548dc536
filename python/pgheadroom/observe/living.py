"""
Operations of a table whose rows come and go: what one turn does to it, in one transaction.

An insert and the delete that it makes up for, played as scripts of their own, are drawn by chance:
a queue of 200 rows would run empty every few minutes. So a turn inserts, updates and deletes what
the counters have of each for one row, and what is not whole (nine deletes for ten inserts) belongs
to so many of the turns: those without it are a second transaction.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pgheadroom.observe.ages import Ages
from pgheadroom.observe.fills import Fill
from pgheadroom.observe.heads import HeadPick
from pgheadroom.profile.change import Change
from pgheadroom.profile.workload import Operation, Pick
from pgheadroom.units import percent

_WEIGHT_MAX = 2**31 - 1
_TURN_UPDATES_MAX = 3.0
"""More updates of a row than these are not part of the turn: chance evens them out."""
_WHOLE_WITHIN = 0.03  # rates this near to a whole number are one; arbitrary
_SAME_FRAC = 0.05  # as many deleted as inserted: a difference of less is chance; arbitrary
_ONCE_MIN = 0.7  # updates a row from which on each row is taken to have its turn; arbitrary
_ONCE_WITHIN = 0.25  # ages this near to their middle are one age; arbitrary
_EVEN_WITHIN = 0.15  # ages spread so evenly over the rows that any living row is as likely
_GROUP_MAX = 16
_OTHERS_FEW = 0.05  # updates a row that are left out, for the head bears no others; arbitrary
_BATCH_MAX = 100  # rows that one statement takes from a queue, and a turn inserts; arbitrary


@dataclass(frozen=True, slots=True, kw_only=True)
class LivingUpdates:
    """
    Rows that updates of one kind touch in the interval, and what they set.

    `fill`: the first of them on a row gives columns a value at a known age. `head`: they take their
    rows from the head of a queue.
    """

    sets: tuple[Change, ...]
    rows: float
    fill: Fill | None = None
    head: HeadPick | None = None


@dataclass(frozen=True, slots=True)
class _Slot:
    """An update that a row has, the share of the rows that have it, and what it fills."""

    one: LivingUpdates
    rate: float
    fill: Fill | None = None


@dataclass(frozen=True, slots=True)
class _Part:
    """An operation of a turn, and how often a turn has it."""

    operation: Operation
    rate: float


def living_operations(
    table: str,
    rows: int,
    *,
    inserts: int,
    deletes: int,
    updates: Sequence[LivingUpdates],
    ages: Ages | None,
    assumed: list[str],
    taken: HeadPick | None = None,
    key_index: str | None = None,
) -> list[Operation]:
    """
    The operations of a table into which rows come, and whose picks follow them.

    Args:
        table: Its name in the profile.
        rows: That it has.
        inserts: Rows inserted in the interval, at least one.
        deletes: Rows deleted.
        updates: By what they set.
        ages: At which rows are updated and deleted, None where that is not known.
        assumed: What is taken so is added, in sentences.
        taken: How deletes take rows from the head of a queue.
        key_index: The index by which rows are found.
    """
    kept = _balanced(inserts, deletes, assumed)
    unit = max(inserts, kept)
    is_taken = any(one.head is not None for one in updates)
    updates = _without_few(updates, taken, unit, assumed, is_deleted=bool(kept))
    heading, updates, deleting = _headed(updates, taken, key_index, is_deleted=bool(kept))
    filling, rest = _filling_slots(updates, unit)
    apart = math.fsum(slot.rate for slot in rest) > _TURN_UPDATES_MAX
    slots = [*filling, *([] if apart else _whole(rest))]
    queues = [head for head in (deleting, *(one.head for one in heading)) if head is not None]
    group = _group(slots, ages)
    if queues:
        group = min(max(head.rows_per_statement for head in queues), _BATCH_MAX)
    mixed = None if ages is None or not deletes or queues else ages.mixed_rows
    oldest = Pick(distribution="oldest", within_rows=mixed)
    insert = Operation(table=table, kind="insert", rows_per_statement=group)
    parts = [_Part(insert, inserts / unit)]
    for one in heading:
        assert one.head is not None, "those that have one"
        taking = _update(table, _leaving(one, one.head), one.head.pick)
        parts += _parts(taking, one.head, group, _taken_rate(one, unit, assumed))
    aged = len(slots) - len(filling)
    gone = min(_gone(slots, ages, deletes), aged)
    for place, slot in enumerate(slots, start=-len(filling)):
        picks: list[Pick]
        if slot.fill is not None:
            picks = _filling(slot.fill, slot.rate, rows, group)
        elif place >= aged - gone:
            picks = [oldest]
        else:
            picks = _picks(ages, place, aged - gone, slot.rate, rows, group)
        parts += _each_row(table, slot, picks, group)
    if kept and deleting is not None:
        delete = Operation(table=table, kind="delete", pick=deleting.pick)
        parts += _parts(delete, deleting, group, kept / unit)
    elif kept:
        delete = Operation(table=table, kind="delete", pick=oldest)
        parts += [_Part(delete, kept / unit)] * group
    made = _turns(table, parts, unit / group)
    for slot in rest if apart else ():
        picks = _picks(ages, 0, 1, 0.0, rows, 1)
        weight = _weight(slot.rate * unit / len(picks))
        made += [replace(_update(table, slot.one, pick), weight=weight) for pick in picks]
    if (taken is not None and deleting is None and kept) or (is_taken and not heading):
        assumed.append("other statements pick rows by age, so the queue's head is not taken")
    by_age = 0 if deleting is not None else deletes
    _say(ages, slots, gone, mixed, by_age, assumed, is_updated=bool(updates))
    return made


def _each_row(table: str, slot: _Slot, picks: list[Pick], group: int) -> list[_Part]:
    """An update of each row of a turn: a pick for each, or several that share each."""
    rates = [slot.rate] * len(picks)
    if len(picks) != group:
        rates = [slot.rate / len(picks)] * len(picks) * group
        picks = picks * group
    return [
        _Part(_update(table, slot.one, pick), rate) for pick, rate in zip(picks, rates, strict=True)
    ]


def _parts(operation: Operation, head: HeadPick, group: int, rate: float) -> list[_Part]:
    """Statements that take all rows of a turn from the head of a queue, so many at a time."""
    times = max(1, round(group / head.rows_per_statement))
    while group % times:
        times -= 1
    return [_Part(replace(operation, rows_per_statement=group // times), rate)] * times


def _without_few(
    updates: Sequence[LivingUpdates],
    taken: HeadPick | None,
    unit: int,
    assumed: list[str],
    *,
    is_deleted: bool,
) -> Sequence[LivingUpdates]:
    """
    The updates without those that are few and no head's, where a queue's head bears no others.

    Jobs that failed and wait for another try are updated, and so are those that are put off.
    """
    heads = [one.head for one in updates if one.head is not None]
    is_ordered = all(head.is_fifo for head in heads)
    is_alone = taken.pick.where is None if taken is not None else is_ordered
    others = [one for one in updates if one.head is None]
    share = math.fsum(one.rows for one in others) / unit
    is_queue = taken is not None or bool(heads)
    if not (is_deleted and is_queue and others) or is_alone or share > _OTHERS_FEW:
        return updates
    columns = list(dict.fromkeys(change.column for one in others for change in one.sets))
    assumed.append(
        f"updates of {', '.join(columns)} are left out, {percent(share, 1)} of as many as rows "
        "come: they are of other rows than the head of the queue"
    )
    return [one for one in updates if one.head is not None]


def _headed(
    updates: Sequence[LivingUpdates],
    taken: HeadPick | None,
    key_index: str | None,
    *,
    is_deleted: bool,
) -> tuple[list[LivingUpdates], list[LivingUpdates], HeadPick | None]:
    """
    Updates that take rows from a queue, the others, and how rows are deleted; None: the oldest.

    A delete from a head that has a condition stands beside no pick by age (`check_heads`), nor is
    the oldest row the one that was taken where rows are taken in another order than they come.
    """
    heading = [one for one in updates if one.head is not None]
    others = [one for one in updates if one.head is None]
    if not is_deleted:
        return heading, others, None
    if taken is not None:
        is_alone = taken.pick.where is None or not others
        return heading, others, taken if is_alone else None
    head = heading[0].head if heading else None
    if head is None or head.is_fifo:
        return heading, others, None
    if head.done is None or key_index is None or others:
        return [], [replace(one, head=None) for one in updates], None
    pick = Pick(distribution="head", using=key_index, where=head.done)
    return heading, others, replace(head, pick=pick)


def _leaving(one: LivingUpdates, head: HeadPick) -> LivingUpdates:
    """The update, which takes each of its rows out of the queue."""
    sets = tuple(
        replace(change, changed_frac=1.0) if change.column == head.state else change
        for change in one.sets
    )
    return replace(one, sets=sets)


def _taken_rate(one: LivingUpdates, unit: int, assumed: list[str]) -> float:
    """In which part of the turns rows are taken: all, where the difference may be chance."""
    off = unit - one.rows
    if off <= max(_SAME_FRAC * unit, 3 * math.sqrt(unit + one.rows)):
        if -off > max(_SAME_FRAC * unit, 3 * math.sqrt(unit + one.rows)):
            assumed.append(
                f"as many rows are taken as come, {unit:,} for {one.rows:,.0f}: the queue was "
                "getting shorter"
            )
        return 1.0
    return one.rows / unit


def _balanced(inserts: int, deletes: int, assumed: list[str]) -> int:
    """Rows deleted, as many as inserted where the difference may be chance."""
    if not deletes:
        return 0
    off = abs(inserts - deletes)
    if off <= max(_SAME_FRAC * max(inserts, deletes), 3 * math.sqrt(inserts + deletes)):
        if off:
            assumed.append(
                f"as many rows are deleted as are inserted: {inserts:,} and {deletes:,} differ by "
                "no more than chance may"
            )
        return inserts
    return deletes


def _filling_slots(updates: Sequence[LivingUpdates], unit: int) -> tuple[list[_Slot], list[_Slot]]:
    """The updates that fill columns, one a row in their order, and all others by their rate."""
    filling, rest = [], []
    for one in updates:
        left = one.rows / unit
        if one.fill is not None:
            part = min(left, 1.0)
            filling.append(_Slot(one, 1.0 if part >= 1 - _WHOLE_WITHIN else part, one.fill))
            left -= part
            if left < _WHOLE_WITHIN:
                continue
        rest.append(_Slot(one, left))
    filling.sort(key=lambda slot: slot.fill.ages[1] if slot.fill is not None else 0)
    return filling, rest


def _whole(slots: Sequence[_Slot]) -> list[_Slot]:
    """Each update that a row has, with the share of the rows that have it."""
    found = []
    for slot in slots:
        whole, part = divmod(slot.rate, 1.0)
        if part >= 1 - _WHOLE_WITHIN:
            whole, part = whole + 1, 0.0
        found += [_Slot(slot.one, 1.0)] * int(whole)
        if part >= _WHOLE_WITHIN or not whole:
            found.append(_Slot(slot.one, part))
    return found


def _gone(slots: Sequence[_Slot], ages: Ages | None, deletes: int) -> int:
    """How many of a row's updates come just before it is deleted."""
    if ages is None or not deletes:
        return 0
    return min(round(ages.gone_frac * len(slots)), len(slots))


def _group(slots: Sequence[_Slot], ages: Ages | None) -> int:
    """Rows that are updated together, where all are, once, in their order."""
    if ages is None or len(slots) != 1 or slots[0].rate < _ONCE_MIN:
        return 1
    fill = slots[0].fill
    if not (_is_near(*fill.ages) if fill is not None else _is_once(ages, 0, 1)):
        return 1
    return max(1, min(round(ages.beside), _GROUP_MAX))


def _filling(fill: Fill, rate: float, rows: int, group: int) -> list[Pick]:
    """How the update that fills columns finds its row."""
    most = max(rows - 1, 0)
    low, mid, high = (min(age, most) for age in fill.ages)
    if rate >= _ONCE_MIN and _is_near(low, mid, high):
        mid = max(mid, group - 1)
        return [_aged(mid - n, mid - n) for n in range(group)]
    return [_aged(low, mid), _aged(mid, high)]


def _aged(low: int, high: int) -> Pick:
    return Pick(distribution="age", min_age_rows=low, max_age_rows=high)


def _is_once(ages: Ages, place: int, places: int) -> bool:
    """Whether the ages of a row's update of this place lie so near that each row has its turn."""
    if not ages.updates:
        return False
    return _is_near(*(ages.at((place + frac) / places) for frac in (0.05, 0.5, 0.95)))


def _is_near(low: float, mid: float, high: float) -> bool:
    return high - low <= max(2 * _ONCE_WITHIN * mid, 6 * math.sqrt(mid))


def _picks(
    ages: Ages | None, place: int, places: int, rate: float, rows: int, group: int
) -> list[Pick]:
    """How the update of this place among a row's updates finds its row."""
    if ages is None or not ages.updates or _is_even(ages, rows):
        return [Pick(distribution="uniform", among="live")]
    most = max(rows - 1, 0)
    low, mid, high = (min(ages.at((place + frac) / places), most) for frac in (0.02, 0.5, 0.98))
    if rate >= _ONCE_MIN and _is_once(ages, place, places):
        mid = max(mid, group - 1)
        return [_aged(mid - n, mid - n) for n in range(group)]
    return [_aged(low, mid), _aged(mid, high)]


def _is_even(ages: Ages, rows: int) -> bool:
    """Whether updates come at any age alike, as if they picked among the living rows."""
    return rows > 0 and all(
        abs(ages.at(frac) / rows - frac) <= _EVEN_WITHIN for frac in (0.25, 0.5, 0.75)
    )


def _update(table: str, one: LivingUpdates, pick: Pick) -> Operation:
    return Operation(table=table, kind="update", sets=one.sets, pick=pick)


def _turns(table: str, parts: Sequence[_Part], turns: float) -> list[Operation]:
    """Transactions of those parts that each has; the first has all of them."""
    fracs = {0.0, 1.0}
    for part in parts:
        frac = min(part.rate, 1.0)
        fracs.add(0.0 if frac < _WHOLE_WITHIN else 1.0 if frac > 1 - _WHOLE_WITHIN else frac)
    ends = sorted(fracs)
    made: list[Operation] = []
    for number, (low, high) in enumerate(itertools.pairwise(ends), start=1):
        found = [
            part for part in parts if min(part.rate, 1.0) > 1 - _WHOLE_WITHIN or part.rate >= high
        ]
        if not found:
            continue
        name = f"{table} turn {number}"
        weight = _weight(turns * (high - low))
        made += [replace(part.operation, weight=weight, transaction=name) for part in found]
    return made


def _weight(rows: float) -> int:
    return max(1, min(round(rows), _WEIGHT_MAX))


def _say(
    ages: Ages | None,
    slots: Sequence[_Slot],
    gone: int,
    mixed: int | None,
    deletes: int,
    assumed: list[str],
    *,
    is_updated: bool,
) -> None:
    assumed.append("what a row goes through stands as one transaction, of several rows in turn")
    if deletes:
        assumed.append(
            "the oldest rows are deleted, one by a statement"
            if mixed is None
            else f"the oldest rows are deleted, through {mixed:,} rows in a mixed order, as the "
            "ages of sampled rows have it"
        )
    if not is_updated:
        return
    if ages is None or (not ages.updates and not gone):
        assumed.append("at what age rows are updated is not known: any living row alike")
    if gone:
        assumed.append(
            f"{gone} of {len(slots)} updates of a row come just before it is deleted, for rows so "
            "updated are missing from the sample"
        )
    if any(slot.fill is not None for slot in slots):
        assumed.append(
            "updates that give columns a value come in the order, and at the ages, in which "
            "sampled rows have them"
        )
    if sum(slot.fill is None for slot in slots) - gone > 1:
        assumed.append("which of a row's updates comes first is not known: in the order listed")
