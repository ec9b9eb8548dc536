"""
A NULL that becomes a value makes its row longer, once: an order that is delivered.

In a profile NULL stays NULL, and no value of fixed length makes a row longer. What does is a string
that grows. So where a row's one update sets a column that was NULL until then, the column is played
as a string at the end of the row that has, with its neighbours, the length of the row before, and
after the update that of the row with the value: to MAXALIGN, which is what room on a page is
counted in. A row that loses its null bitmap by it may be no longer than before, and stays as it is.
A column of an index that updates set is played as filled in all rows (`filled_keys`).

That it was NULL until then is taken from the sample: rows younger than those that are updated are a
part of the table, and the column is NULL in as large a part of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pgheadroom import _core
from pgheadroom.layout import profile_columns
from pgheadroom.profile import Operation
from pgheadroom.profile.model import ColumnProfile, TableProfile, Width, by_transaction

_WITHIN = 0.2  # of the NULL share: age and NULLs are of samples; arbitrary
_ALIGN_BYTES = 8  # MAXIMUM_ALIGNOF
_STRING_HEADER_BYTES = 1  # of up to 126 bytes
_PAYLOAD_MAX = 126
_INT2_LESS_BYTES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """
    A table whose updates fill a column, as it is played.

    `grown_bytes`: by how much a row is longer afterwards, to MAXALIGN.
    """

    table: TableProfile
    operations: tuple[Operation, ...]
    column: str
    grown_bytes: int

    @property
    def text(self) -> str:
        """What is assumed."""
        return (
            f"{self.column} is NULL until the update that sets it, which makes a row "
            f"{self.grown_bytes} bytes longer: played as a string that grows"
        )


def filled(table: TableProfile, operations: Sequence[Operation]) -> Filled | None:
    """
    The table and its operations with growth where an update fills a column; None where none does.

    Args:
        table: As observed.
        operations: That write to it.
    """
    updates = [one for one in operations if one.kind == "update"]
    ages = None if table.observed is None else table.observed.updates.ages
    if not updates or ages is None or not ages.rows or table.rows < 1:
        return None
    if any(one.pick is None or one.pick.distribution != "age" for one in updates):
        return None
    young_frac = ages.rows[len(ages.rows) // 2] / table.rows
    assigned = [
        {change.column for change in one.sets if change.changed_frac > 0} for one in updates
    ]
    for column in table.columns:
        if not all(column.name in names for names in assigned):
            continue
        near = abs(column.null_frac - young_frac) <= _WITHIN * column.null_frac
        if column.null_frac > 0 and near and _is_fixed(column) and not _is_indexed(table, column):
            return _grown(table, operations, column)
    return None


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
    assigned = {
        change.column
        for one in operations
        if one.kind == "update"
        for change in one.sets
        if change.changed_frac > 0
    }
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

    `filled` plays one column that each row's one update fills. Where several updates fill columns,
    or it is not known that they do, rows are played at their mean length; on full pages as many of
    them move as take the room by which all grow.

    Args:
        table: As observed.
        operations: That write to it.

    Returns:
        0 where nothing is filled, or what is filled is played.
    """
    rows = {"insert": 0.0, "update": 0.0}
    assigned: set[str] = set()
    for turn in by_transaction(operations):
        for one in turn:
            if one.kind in rows:
                rows[one.kind] += turn[0].weight * one.rows_mean
            if one.kind == "update":
                assigned |= {change.column for change in one.sets if change.changed_frac > 0}
    late = {one.name for one in table.columns if one.null_frac > 0 and one.name in assigned}
    if not late or not rows["insert"] or filled(table, operations) is not None:
        return 0.0
    columns = list(zip(profile_columns(table, {}), table.columns, strict=True))

    def length(empty: set[str]) -> int:
        given = [
            _core.Column(found.type_name, is_null=True, name=found.name)
            if one.name in empty or (one.null_frac > 1 / 2 and one.name not in late)
            else found
            for found, one in columns
        ]
        return _aligned(_core.RowLayout(given).tuple_bytes)

    full = length(set())
    a_row = max(1.0, rows["update"] / rows["insert"])
    return max(0, full - length(late)) / full / a_row


def _is_fixed(column: ColumnProfile) -> bool:
    return not column.form.width and column.base_type != "numeric"


def _is_indexed(table: TableProfile, column: ColumnProfile) -> bool:
    for index in table.indexes:
        text = " ".join([*index.expressions, index.where or ""])
        if column.name in (*index.columns, *index.include) or column.name in text:
            return True
    return table.key is not None and table.key.name == column.name


def _grown(
    table: TableProfile, operations: Sequence[Operation], column: ColumnProfile
) -> Filled | None:
    before = _length(table, without=column.name)
    after = _length(table, without=None)
    grown = _aligned(after) - _aligned(before)
    if grown <= 0:
        return None
    others = tuple(one for one in table.columns if one.name != column.name)
    for columns in (others, *_shorter(table, others, operations)):
        base = _core.RowLayout(profile_columns(replace(table, columns=columns), {})).tuple_bytes
        payload = before - base - _STRING_HEADER_BYTES
        if payload < 0:
            payload = _aligned(before) - base - _STRING_HEADER_BYTES
        most = payload + after - before
        if payload < 0 or most > _PAYLOAD_MAX:
            continue
        length = base + _STRING_HEADER_BYTES + payload
        string = ColumnProfile(
            name=column.name,
            type="text",
            values=column.values,
            width=Width(min_bytes=payload, max_bytes=payload),
        )
        return Filled(
            table=replace(table, columns=(*columns, string)),
            operations=tuple(_growing(one, column.name, after - length) for one in operations),
            column=column.name,
            grown_bytes=grown,
        )
    return None


def _shorter(
    table: TableProfile, columns: tuple[ColumnProfile, ...], operations: Sequence[Operation]
) -> list[tuple[ColumnProfile, ...]]:
    """The same with one number shorter, where nothing depends on it: a string has a header."""
    assigned = {change.column for one in operations for change in one.sets}
    return [
        tuple(replace(one, type="int2") if one is column else one for one in columns)
        for column in reversed(columns)
        if column.type == "int4"
        and column.values.kind == "constant"
        and column.name not in assigned
        and not _is_indexed(table, column)
    ]


def _length(table: TableProfile, *, without: str | None) -> int:
    """Of a row, without one of its values."""
    columns = [
        _core.Column(found.type_name, is_null=True, name=found.name)
        if found.name == without or one.null_frac > 1 / 2
        else found
        for found, one in zip(profile_columns(table, {}), table.columns, strict=True)
    ]
    return _core.RowLayout(columns).tuple_bytes


def _growing(operation: Operation, column: str, grows: int) -> Operation:
    if operation.kind != "update":
        return operation
    sets = tuple(
        replace(change, grows_min_bytes=grows, grows_max_bytes=grows)
        if change.column == column
        else change
        for change in operation.sets
    )
    return replace(operation, sets=sets)


def _aligned(size: int) -> int:
    return -(-size // _ALIGN_BYTES) * _ALIGN_BYTES
