"""
Operations of the profile: from rates and update classes.

Each table's inserts, updates and deletes of the interval become operations; their weights are the
statements counted. Updates are shared out over the table's classes. What no source has attributed
becomes an update of one column that no index has, marked as assumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pgheadroom.observe.ages import Ages
from pgheadroom.observe.changing import changed_frac
from pgheadroom.observe.classes import CountedUpdates
from pgheadroom.observe.fills import Fill, read_fills
from pgheadroom.observe.heads import Heads
from pgheadroom.observe.key_entry import is_in_order
from pgheadroom.observe.living import LivingUpdates, living_operations
from pgheadroom.observe.sample import Skew
from pgheadroom.observe.shares import Shares, counts_all, is_pure, make_shares
from pgheadroom.observe.tables import WatchedTable
from pgheadroom.profile import observed
from pgheadroom.profile.change import Change
from pgheadroom.profile.observed import ObservedAges, ObservedPick, ObservedUpdates
from pgheadroom.profile.workload import Operation, Pick
from pgheadroom.units import percent

_WEIGHT_MAX = 2**31 - 1
_STATEMENT_ROWS_MAX = 10_000
_REPLACED_MAX = 0.025
"""
Deletes for each update up to which what is known of hot rows counts more than that rows come and
go: a run of four updates a row replaces a tenth of the rows then.
"""
_NAMED_MAX = 3  # columns of a statement that is named by them
_INSERTS_FEW = 0.1  # for each update: then young rows tell how updates pick rows


def make_operations(
    table: WatchedTable,
    classes: Sequence[CountedUpdates],
    skew: Skew,
    ages: tuple[Ages | None, str],
    heads: Heads,
    *,
    shared: bool,
    interval_s: float,
) -> tuple[list[Operation], ObservedUpdates]:
    """
    The operations of a table, and what was observed of its updates.

    Args:
        table: With its counters.
        classes: Of the table and of those above it, all from one source.
        skew: How updates pick rows.
        ages: At which rows are updated and deleted, or None and why that is not known.
        heads: What takes rows from the head of a queue.
        shared: Some classes' rows lie in other tables too: `routed` says how many in this one.
        interval_s: Length of the interval.
    """
    assumed: list[str] = list(heads.said)
    inserts, updates, deletes = (
        found or 0
        for found in (table.counters.n_tup_ins, table.counters.n_tup_upd, table.counters.n_tup_del)
    )
    shares = make_shares(classes, updates, shared=shared, interval_s=interval_s, inserts=inserts)
    known, why = ages
    fills = () if known is None or not updates else _fills(classes, known, shares)
    is_aged = known is not None and bool(known.updates or any(fills))
    is_queue = bool(inserts and (heads.update or heads.delete))
    if table.key_attnum is not None and (
        is_queue or _is_living(inserts, updates, deletes, skew, is_aged)
    ):
        assumed.append("each row inserted by a statement of its own")
        made = living_operations(
            table.profile.name,
            table.rows,
            inserts=inserts,
            deletes=deletes,
            updates=[
                LivingUpdates(
                    sets=one.sets,
                    rows=one.rows,
                    fill=None if one.place is None or not fills else fills[one.place],
                    head=None if one.place is None or one.place != heads.place else heads.update,
                )
                for one in (_sets(table, classes, shares, assumed) if updates else ())
            ],
            ages=known,
            taken=heads.delete,
            key_index=None if table.profile.key_index is None else table.profile.key_index.name,
            assumed=assumed,
        )
    else:
        made = _standing(table, classes, shares, skew, assumed)
    seen = _observed(table, classes, skew, shares, shared=shared)
    if inserts and (updates or deletes):
        unknown = ObservedAges(evidence="unknown", why=why)
        seen = replace(seen, ages=unknown if known is None else known.observed())
    if any(fills):
        names = {number: column.label for number, column in table.columns.items()}
        seen = replace(
            seen,
            fills=tuple(one.observed(names) for one in _in_order(fills)),
            inserting=None if known is None else known.inserting,
        )
    return made, replace(seen, assumed=tuple(assumed))


def _standing(
    table: WatchedTable,
    classes: Sequence[CountedUpdates],
    shares: Shares,
    skew: Skew,
    assumed: list[str],
) -> list[Operation]:
    """Operations whose picks are among the rows that are loaded."""
    made: list[Operation] = []
    name, inserts, deletes = table.profile.name, table.counters.n_tup_ins, table.counters.n_tup_del
    if inserts:
        made.append(Operation(table=name, kind="insert", weight=min(inserts, _WEIGHT_MAX)))
        assumed.append("each row inserted by a statement of its own")
    if shares.updates and table.key_attnum is None:
        assumed.append("no unique index: updates are left out of the operations")
    elif shares.updates:
        made += _updates(table, classes, shares, skew, assumed)
    if deletes and table.key_attnum is None:
        assumed.append("no unique index: deletes are left out of the operations")
    elif deletes and table.rows > 0:
        oldest = Pick(distribution="oldest")
        weight = min(deletes, _WEIGHT_MAX)
        made.append(Operation(table=name, kind="delete", weight=weight, pick=oldest))
        assumed.append("the oldest rows are deleted, one by a statement")
    return made


def _observed(
    table: WatchedTable,
    classes: Sequence[CountedUpdates],
    skew: Skew,
    shares: Shares,
    *,
    shared: bool,
) -> ObservedUpdates:
    names = {number: column.name for number, column in table.columns.items()}

    def named(numbers: Sequence[int]) -> tuple[str, ...]:
        return tuple(names[number] for number in numbers if number in names)

    why = None
    if shares.updates and shares.unattributed is None:
        pure = is_pure(classes)
        why = (
            "statements that reach several tables are counted for all of them together"
            if shared
            else "the source counts statements, not rows"
            if pure and not counts_all(classes)
            else "its UPDATE stands in a WITH, and the rows that are counted are the query's"
            if pure
            else "rows of upserts and MERGE may be inserts"
        )
    values = table.values
    return ObservedUpdates(
        source=classes[0].source if classes else None,
        classes=tuple(
            observed.UpdateClass(
                kind=found.kind,
                columns=named(found.attnums),
                attnums=found.attnums,
                calls=found.calls,
                rows=found.rows,
                wal_bytes=found.wal_bytes,
                wal_fpi=found.wal_fpi,
                frac=frac,
                rows_per_statement=per_statement,
                same=named(found.same) or None,
                appended=named(found.appended) or None,
                by_trigger=named(found.by_trigger) or None,
                unchanged=named([n for n in _kept(table, found, frac) if n in found.attnums])
                or None,
            )
            for found, frac, per_statement in zip(
                classes, shares.fracs, shares.per_statement, strict=True
            )
        ),
        unattributed_frac=shares.unattributed,
        unattributed_resolution=shares.resolution,
        pick=ObservedPick(evidence=skew.evidence, why=skew.why),
        read_twice=values.observed(names) if values is not None and values.written else None,
        unattributed_why=why,
    )


def _fills(
    classes: Sequence[CountedUpdates], ages: Ages, shares: Shares
) -> tuple[Fill | None, ...]:
    columns = [found.attnums for found in classes]
    return read_fills(ages.states, ages.nullable, columns, shares.fracs)


def _in_order(fills: Sequence[Fill | None]) -> list[Fill]:
    return sorted((one for one in fills if one is not None), key=lambda one: one.ages[1])


def _is_living(inserts: int, updates: int, deletes: int, skew: Skew, is_aged: bool) -> bool:
    """Whether the operations have to follow the rows that are there."""
    if not inserts:
        return False
    if deletes:
        is_hot = skew.pick.distribution != "uniform"
        return not (is_hot and deletes <= _REPLACED_MAX * updates)
    return is_aged and inserts > _INSERTS_FEW * updates


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sets:
    """
    What updates of a kind set, how many rows they touch, and how many a statement.

    `place` is that of their class, None for those that no source knows. `is_upsert`: they are of
    INSERT ... ON CONFLICT, which locks the row that it has found before it updates it.
    """

    sets: tuple[Change, ...]
    rows: float
    per_statement: int = 1
    place: int | None = None
    is_upsert: bool = False


def _updates(
    table: WatchedTable,
    classes: Sequence[CountedUpdates],
    shares: Shares,
    skew: Skew,
    assumed: list[str],
) -> list[Operation]:
    if table.rows == 0:
        assumed.append("the table is empty now: updates are left out of the operations")
        return []
    found = _sets(table, classes, shares, assumed)
    assert table.key_attnum is not None, "updates find rows by a key"
    if not is_in_order(table.columns[table.key_attnum].profile):
        if any(one.per_statement > 1 for one in found):
            assumed.append(
                "statements that update several rows stand as one for each row, for keys are in "
                "another order than the rows"
            )
        found = [replace(one, per_statement=1) for one in found]
    return [_update(table, one, skew) for one in found]


def _sets(
    table: WatchedTable, classes: Sequence[CountedUpdates], shares: Shares, assumed: list[str]
) -> list[_Sets]:
    """The updates by what they set, those too that no source knows."""
    made: list[_Sets] = []
    updates, lost = shares.updates, shares.unattributed or 0.0
    _say_idle(table, classes, shares, assumed)
    if lost <= shares.resolution:
        lost = 0.0
    known = updates * (1 - lost)
    by_counters = _changed_by_counters(table, classes, shares)
    for place, (found, frac, each) in enumerate(
        zip(classes, shares.fracs, shares.per_statement, strict=True)
    ):
        rows = known * (frac or 0.0)
        numbers = _assigned(table, found)
        kept = {*found.same, *_kept(table, found, frac)}
        if any(n == table.key_attnum or n not in table.columns for n in found.attnums):
            assumed.append("an assigned key keeps its value")
        sets = tuple(
            Change(
                column=label,
                changed_frac=0.0
                if number in kept
                else by_counters
                if by_counters is not None and _ends_hot(table, number)
                else 1.0,
            )
            for number in numbers
            for label in table.columns[number].labels
        )
        if sets and rows >= 0.5:
            each_rows = round(each or 1)
            is_upsert = found.kind == "upsert"
            made.append(
                _Sets(
                    sets=sets,
                    rows=rows,
                    per_statement=each_rows,
                    place=place,
                    is_upsert=is_upsert,
                )
            )
    if made:
        assumed.append(_changing(table, classes, shares))
    if made and by_counters is not None:
        assumed.append(
            f"of the updates that assign a column which an index reads, {percent(by_counters, 1)} "
            "change each such column: so many were not HOT and stayed on their page"
        )
    if lost * updates >= 0.5 or not made:
        column, is_free = _unindexed(table)
        if column is None:
            assumed.append("no column but the key: updates that no source knows are left out")
            return made
        rows = lost * updates if made else float(updates)
        change = Change(column=column, changed_frac=1.0 if is_free else 0.0)
        made.append(_Sets(sets=(change,), rows=rows))
        how = "which no index has" if is_free else "to its own value, for indexes have all columns"
        assumed.append(
            f"{percent(rows / updates, 1)} of the updates are known to no source and stand as "
            f"updates of {column}, {how}"
        )
    return made


def _assigned(table: WatchedTable, found: CountedUpdates) -> list[int]:
    """Columns that a class assigns, and the stored ones that are generated from these."""
    changed = [number for number in found.attnums if number not in found.same]
    listed = (*found.attnums, *table.computed_from(changed))
    return [n for n in listed if n != table.key_attnum and n in table.columns]


def _ends_hot(table: WatchedTable, number: int) -> bool:
    return table.columns[number].name in table.ending_hot


def _changed_by_counters(
    table: WatchedTable, classes: Sequence[CountedUpdates], shares: Shares
) -> float | None:
    """How often a column that an index reads changes where it is assigned; None: always."""
    counts = [
        sum(_ends_hot(table, n) for n in _assigned(table, found) if n not in found.same)
        for found in classes
    ]
    assigning = [
        (frac, count) for frac, count in zip(shares.fracs, counts, strict=True) if frac and count
    ]
    return changed_frac(table.counters, assigning)


def _kept(table: WatchedTable, found: CountedUpdates, frac: float | None) -> tuple[int, ...]:
    """
    Columns that a class assigns, and that its updates were seen to leave as they were.

    None that an index reads: one that comes back to its value, a lock that is taken and given
    back, is the same before and after, and ends HOT twice. Counters say how often these change.
    """
    if table.values is None or not frac:
        return ()
    return tuple(
        number
        for number in _assigned(table, found)
        if number not in found.same
        and table.columns[number].name not in table.ending_hot
        and table.values.keeps(number, frac)
    )


def _changing(table: WatchedTable, classes: Sequence[CountedUpdates], shares: Shares) -> str:
    """What is taken of the values that are assigned."""
    kept = {
        number
        for found, frac in zip(classes, shares.fracs, strict=True)
        for number in _kept(table, found, frac)
    }
    if not kept or table.values is None:
        return "an assigned column changes its value, at the same length"
    return (
        f"an assigned column changes its value, at the same length, but for {len(kept)}: those "
        f"no index reads, and they differed in none of {table.values.written:,} rows that were "
        "read before and after"
    )


def _say_idle(
    table: WatchedTable, classes: Sequence[CountedUpdates], shares: Shares, assumed: list[str]
) -> None:
    """Name the statements that ran and updated nothing: often a mistake, and no load here."""
    for found, frac in zip(classes, shares.fracs, strict=True):
        if found.kind == "update" and found.rows == 0 and found.calls and not frac:
            columns = [table.columns[n].label for n in found.attnums if n in table.columns]
            named = ", ".join(columns[:_NAMED_MAX]) + (", ..." if columns[_NAMED_MAX:] else "")
            assumed.append(
                f"the UPDATE of {named} found no row in {found.calls:,} calls and is left out"
            )


def _update(table: WatchedTable, found: _Sets, skew: Skew) -> Operation:
    per_statement = max(1, min(found.per_statement, _STATEMENT_ROWS_MAX, table.rows))
    return Operation(
        table=table.profile.name,
        kind="upsert" if found.is_upsert and _finds_all(table) else "update",
        weight=max(1, min(round(found.rows / per_statement), _WEIGHT_MAX)),
        sets=found.sets,
        pick=skew.pick if table.rows >= 2 else Pick(distribution="uniform"),
        rows_per_statement=per_statement,
    )


def _finds_all(table: WatchedTable) -> bool:
    """
    Whether an upsert can be played as one: it found its row each time, by one column.

    Where rows come or go it may insert some, and by a key of several columns a profile has none.
    """
    key = table.profile.key_index
    counters = table.counters
    is_still = not counters.n_tup_ins and not counters.n_tup_del
    return is_still and key is not None and len(key.columns) == 1


def _unindexed(table: WatchedTable) -> tuple[str | None, bool]:
    """
    A column for updates that no source knows, and whether no index depends on it.

    Of fixed length if there is one, and the last of these: what is changed often stands late.
    """
    others = [column for number, column in table.columns.items() if number != table.key_attnum]
    free = [column for column in others if column.name not in table.ending_hot]
    chosen = free or others
    fixed = [column for column in chosen if column.profile.width is None]
    return ((fixed or chosen)[-1].label, bool(free)) if chosen else (None, False)
