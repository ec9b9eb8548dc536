"""
A NULL that becomes a value makes its row longer, once: an order that is paid, sent, and received.

In a profile NULL stays NULL, and no value of fixed length makes a row longer. What does is a string
that grows. So the columns that updates fill are played as one string at the end of the row, which
each of these updates makes longer. What counts is the room on a page, to MAXALIGN: that of rows
before and after is as sampled, or else by the layout. The string's length is drawn from eight that
follow on each other, so that the mean room is right whatever the lengths (all eight take the same
room where a row has one length only). A row that loses its null bitmap by it may be no longer than
before, and stays as it is. A column of an index that updates set is played as filled in all rows
(`filled_keys`).

Which update fills what, and at what age, is of the sample (`ObservedFill`). Profiles without that
have it for a row's one update: rows younger than those that are updated are a part of the table,
and the column is NULL in as large a part of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace

from pgheadroom import _core
from pgheadroom.layout import profile_columns
from pgheadroom.profile import Operation
from pgheadroom.profile.tables import ColumnProfile, TableProfile, Width
from pgheadroom.profile.workload import by_transaction

_WITHIN = 0.2  # of the NULL share: age and NULLs are of samples; arbitrary
_ALIGN_BYTES = 8  # MAXIMUM_ALIGNOF
_STRING_HEADER_BYTES = 1  # of up to 126 bytes
_PAYLOAD_MAX = 126
_SHORTER_MAX = 16  # bytes; arbitrary
_LEFT_MIN = 0.1  # of the rows inserted: with less left to be filled all are; rates are counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """
    A table whose updates fill columns, as it is played.

    `grown_bytes`: by how much a row is longer after each of them, in their order.
    """

    table: TableProfile
    operations: tuple[Operation, ...]
    columns: tuple[str, ...]
    grown_bytes: tuple[float, ...]

    @property
    def text(self) -> str:
        """What is assumed."""
        grown = " + ".join(f"{length:.3g}" for length in self.grown_bytes)
        if len(self.columns) == 1:
            return (
                f"{self.columns[0]} is NULL until the update that sets it, which makes a row "
                f"{grown} bytes longer: played as a string that grows"
            )
        return (
            f"{', '.join(self.columns)} are NULL until the updates that set them, which make a row "
            f"{grown} bytes longer: played as a string that grows"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """An update of a row's life that gives columns a value; `aligned_bytes` as sampled."""

    columns: tuple[str, ...]
    aligned_bytes: tuple[float, float] | None = None


def filled(table: TableProfile, operations: Sequence[Operation]) -> Filled | None:
    """
    The table and its operations with growth where updates fill columns; None where none does.

    Args:
        table: As observed.
        operations: That write to it.
    """
    steps = _steps(table, operations)
    late = {name for step in steps for name in step.columns}
    if not late:
        return None
    first, grown = _lengths(table, steps)
    if sum(grown) <= 0:
        return None
    name = next(column.name for column in table.columns if column.name in late)
    others = tuple(one for one in table.columns if one.name not in late)
    for columns in _candidates(table, others, operations):
        base = _mean_length(replace(table, columns=columns))
        most = round(first - base) - _STRING_HEADER_BYTES
        if most < 0 or most + math.ceil(sum(grown)) > _PAYLOAD_MAX:
            continue
        string = ColumnProfile(
            name=name,
            type="text",
            values=next(one.values for one in table.columns if one.name == name),
            width=Width(min_bytes=max(0, most - _ALIGN_BYTES + 1), max_bytes=most),
        )
        return Filled(
            table=replace(table, columns=(*columns, string)),
            operations=_growing(operations, steps, late, name, grown),
            columns=tuple(one.name for one in table.columns if one.name in late),
            grown_bytes=grown,
        )
    return None


def _steps(table: TableProfile, operations: Sequence[Operation]) -> list[_Step]:
    """What the updates of a row's life fill, in their order; none where nothing tells."""
    updates = [one for one in operations if one.is_update]
    if not updates or table.observed is None or table.rows < 1:
        return []
    if any(one.pick is None or one.pick.distribution not in ("age", "head") for one in updates):
        return []
    if (fills := table.observed.updates.fills) is not None:
        free = {one.name for one in table.columns if not _is_indexed(table, one)}
        made = [
            _Step(
                columns=tuple(name for name in fill.columns if name in free),
                aligned_bytes=fill.aligned_bytes,
            )
            for fill in fills
        ]
        return [step for step in made if step.columns]
    return _one_step(table, updates)


def _one_step(table: TableProfile, updates: Sequence[Operation]) -> list[_Step]:
    """The column that a row's one update fills, by ages and NULLs alone."""
    ages = None if table.observed is None else table.observed.updates.ages
    if ages is None or not ages.rows:
        return []
    young_frac = ages.rows[len(ages.rows) // 2] / table.rows
    assigned = [_changed([one]) for one in updates]
    for column in table.columns:
        if not all(column.name in names for names in assigned):
            continue
        near = abs(column.null_frac - young_frac) <= _WITHIN * column.null_frac
        if column.null_frac > 0 and near and _is_fixed(column) and not _is_indexed(table, column):
            return [_Step(columns=(column.name,))]
    return []


def filled_keys(
    table: TableProfile, operations: Sequence[Operation]
) -> tuple[TableProfile, tuple[str, ...]]:
    """
    The table with values where an index's column is NULL until an update sets it, and what is said.

    In a profile such an update leaves a NULL as it is, and would be HOT: on a server it is not.

    Args:
        table: As observed.
        operations: That write to it.
    """
    assigned = _changed(operations)
    keys = {name for index in table.indexes for name in (*index.columns, *index.include)}
    where = " ".join(index.where or "" for index in table.indexes)
    found = {
        column.name
        for column in table.columns
        if column.null_frac > 0 and column.name in assigned & keys and column.name not in where
    }
    columns = tuple(replace(c, null_frac=0.0) if c.name in found else c for c in table.columns)
    said = (f"{name} has a value in every row: an update that sets it changes it" for name in found)
    return replace(table, columns=columns), tuple(sorted(said))


def unplayed_growth_frac(table: TableProfile, operations: Sequence[Operation]) -> float:
    """
    The share of the updates that may leave their page as they fill columns, which no run plays.

    Where it is not known which update fills a column (`filled`), rows are played at their mean
    length; on full pages as many of them move as take the room by which all grow.

    Args:
        table: As observed.
        operations: That write to it.

    Returns:
        0 where nothing is filled, or all that is filled is played.
    """
    rows = {kind: _rows(operations, kind) for kind in ("insert", "update")}
    assigned = _changed(operations)
    played = filled(table, operations)
    late = {one.name for one in table.columns if one.null_frac > 0 and one.name in assigned}
    late -= set(() if played is None else played.columns)
    if not late or not rows["insert"]:
        return 0.0
    mostly = _mostly_null(table) - late
    full = _aligned(_length(table, mostly))
    a_row = max(1.0, rows["update"] / rows["insert"])
    return max(0, full - _aligned(_length(table, late | mostly))) / full / a_row


def _is_fixed(column: ColumnProfile) -> bool:
    return not column.form.width and column.base_type != "numeric"


def _is_indexed(table: TableProfile, column: ColumnProfile) -> bool:
    for index in table.indexes:
        text = " ".join([*index.expressions, index.where or ""])
        if column.name in (*index.columns, *index.include) or column.name in text:
            return True
    return table.key is not None and table.key.name == column.name


def _candidates(
    table: TableProfile, columns: tuple[ColumnProfile, ...], operations: Sequence[Operation]
) -> Iterator[tuple[ColumnProfile, ...]]:
    """
    The other columns, and the same a little shorter: the string that is added has a header.

    A string that the updates set may be shorter in rows that wait for them than in most; a number
    on which nothing depends may be of two bytes.
    """
    yield columns
    assigned = {change.column for one in operations for change in one.sets}
    free = [one for one in columns if not _is_indexed(table, one)]
    for less in range(1, _SHORTER_MAX + 1):
        for column in free:
            if column.width is not None and column.name in assigned:
                width = Width(
                    min_bytes=max(0, column.width.min_bytes - less),
                    max_bytes=max(0, column.width.max_bytes - less),
                )
                if width.max_bytes < column.width.max_bytes:
                    shorter = replace(column, width=width)
                    yield tuple(shorter if one is column else one for one in columns)
    for column in reversed(free):
        is_plain = column.values.kind == "constant" and column.name not in assigned
        if column.type == "int4" and is_plain:
            yield tuple(replace(one, type="int2") if one is column else one for one in columns)


def _lengths(table: TableProfile, steps: Sequence[_Step]) -> tuple[float, tuple[float, ...]]:
    """The room that a row takes before all steps, and how much more after each."""
    waiting = {name for step in steps for name in step.columns}
    mostly = _mostly_null(table) - waiting
    start = before = _aligned(_length(table, waiting | mostly))
    first: float | None = None
    grown: list[float] = []
    for step in steps:
        waiting -= set(step.columns)
        after = _aligned(_length(table, waiting | mostly))
        seen = step.aligned_bytes
        if seen is not None and first is None:
            first = seen[0] - sum(grown)
        grown.append(max(0.0, after - before if seen is None else seen[1] - seen[0]))
        before = after
    return start if first is None else first, tuple(grown)


def _mean_length(table: TableProfile) -> float:
    """Of a row, with columns that are NULL in some."""
    mostly = _mostly_null(table)
    length = _length(table, mostly)
    changed = [
        (one, length - _length(table, mostly ^ {one.name}))
        for one in table.columns
        if 0 < one.null_frac < 1
    ]
    return length - math.fsum(
        less * (1 - one.null_frac if one.name in mostly else one.null_frac) for one, less in changed
    )


def _mostly_null(table: TableProfile) -> Set[str]:
    return {one.name for one in table.columns if one.null_frac > 1 / 2}


def _length(table: TableProfile, empty: Set[str]) -> int:
    """Of a row in which these columns have no value."""
    columns = [
        _core.Column(found.type_name, is_null=True, name=found.name) if one.name in empty else found
        for found, one in zip(profile_columns(table), table.columns, strict=True)
    ]
    return _core.RowLayout(columns).tuple_bytes


def _growing(
    operations: Sequence[Operation],
    steps: Sequence[_Step],
    late: Set[str],
    string: str,
    grown: Sequence[float],
) -> tuple[Operation, ...]:
    """
    The operations on the string in place of its columns.

    Of the updates that set a step's columns those are it that come at the youngest age, of as many
    rows as are inserted: a row is filled once.
    """
    inserted = _rows(operations, "insert")
    grows: dict[int, float] = {}
    turns = {id(one): turn[0].weight for turn in by_transaction(operations) for one in turn}
    for step, length in zip(steps, grown, strict=True):
        left = inserted
        found = [one for one in operations if _changed([one]) >= set(step.columns)]
        for one in sorted(found, key=lambda one: (one.pick and one.pick.min_age_rows) or 0):
            if left > _LEFT_MIN * inserted or not inserted:
                grows[id(one)] = grows.get(id(one), 0.0) + length
                left -= turns[id(one)] * one.rows_mean
    return tuple(
        _on_string(one, late, string, grows.get(id(one), 0.0)) if one.is_update else one
        for one in operations
    )


def _changed(operations: Sequence[Operation]) -> set[str]:
    """The columns to which updates give another value."""
    return {
        change.column
        for one in operations
        if one.is_update
        for change in one.sets
        if change.changed_frac > 0
    }


def _rows(operations: Sequence[Operation], kind: str) -> float:
    return sum(
        turn[0].weight * one.rows_mean
        for turn in by_transaction(operations)
        for one in turn
        if one.kind == kind or (kind == "update" and one.is_update)
    )


def _on_string(operation: Operation, late: Set[str], string: str, grown: float) -> Operation:
    kept = tuple(change for change in operation.sets if change.column not in late)
    gone = [change for change in operation.sets if change.column in late]
    if not gone:
        return operation
    change = replace(
        gone[0],
        column=string,
        changed_frac=max(one.changed_frac for one in gone),
        grows_min_bytes=math.floor(grown),
        grows_max_bytes=math.ceil(grown),
    )
    return replace(operation, sets=(*kept, change))


def _aligned(size: int) -> int:
    return -(-size // _ALIGN_BYTES) * _ALIGN_BYTES
