"""
Foreign keys of the observed tables that a profile plays, and why the others are left out.

```text
pg_constraint -> of which some statement looks for the row referred to
              -> that the profile can hold -> `foreign_keys` of a table, values of its column
              -> the others                -> named with their reason
```

What an insert looks for in the table referred to it locks there, FOR KEY SHARE: a record, and a
change of that row's page, which no operation of that table has. Left out of what is written: which
of the rows are referred to more often than others, and that rows are given a value later.

Source: `RI_FKey_check`, src/backend/utils/adt/ri_triggers.c (REL_18_STABLE).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pgheadroom.forms import FieldError
from pgheadroom.observe.columns import ColumnSeen
from pgheadroom.observe.tables import WatchedTable
from pgheadroom.profile import ForeignKey, Operation, TableProfile
from pgheadroom.profile.column_types import Kind
from pgheadroom.profile.foreign_keys import without_foreign_keys
from pgheadroom.profile.tables import ColumnProfile, Values
from pgheadroom.quoting import called
from pgheadroom.sources.recording import AnswerRow, Recording

KeyName = tuple[int, str]
"""A foreign key: its table's OID and its own name."""
Check = Callable[[Sequence[TableProfile], Sequence[Operation]], FieldError | None]
"""Whether a profile of these tables and operations can be; None: it can."""

IDLE = "no statement that was observed looks for rows by it"
NOT_HERE = "their table, or the one that they refer to, is not in the profile"
_NAMED = 3  # of those that are left out for one reason
_TOGETHER_MIN = 0.9
"""
Correlation of a column that refers from which on rows are taken to refer to rows that came shortly
before them; arbitrary.
"""
_DISTINCT_MIN = 10  # fewer values are in some order by chance; arbitrary
_FEW_FRAC = 0.05
"""
Deleted rows of a table over its rows, those that come, and those that others look for, up to which
the deletes are left out and not what locks its rows; arbitrary.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Referring:
    """
    Tables with their foreign keys.

    Attributes:
        tables: Those that were given, in their order.
        operations: Those that were given, but for a few deletes of rows that others refer to.
        left_out: Why a key is not played, by table and name; of keys of a partitioned table, whose
            partitions differ in that, the first reason.
        assumed: What is taken of them, and which are left out, in sentences.
    """

    tables: tuple[TableProfile, ...]
    operations: tuple[Operation, ...]
    left_out: Mapping[KeyName, str]
    assumed: tuple[str, ...]


def with_foreign_keys(
    recording: Recording,
    watched: Mapping[int, WatchedTable],
    tables: Sequence[TableProfile],
    operations: Sequence[Operation],
    check: Check,
) -> Referring:
    """
    The tables of a profile with the foreign keys by which something looks for rows.

    Args:
        recording: As it was answered, or masked.
        watched: What the tables were made of, by OID.
        tables: Of the profile.
        operations: Of the profile.
        check: Of two tables with their operations.
    """
    return _Finder(recording, watched, tables, operations, check).found()


class _LeftOut(Exception):  # noqa: N818 - reads as what happened
    """Why a foreign key is not played."""


class _Finder:
    def __init__(
        self,
        recording: Recording,
        watched: Mapping[int, WatchedTable],
        tables: Sequence[TableProfile],
        operations: Sequence[Operation],
        check: Check,
    ) -> None:
        self._keys = recording.rows("foreign_keys", "shape")
        self._rows = {int(row["oid"]): row for row in recording.rows("tables", "shape")}
        self._names = {
            (int(row["oid"]), row["attnum"]): str(row["name"])
            for row in recording.rows("columns", "shape")
        }
        self._watched = watched
        self._tables = {table.name: table for table in tables}
        self._given = operations
        self._operations: dict[str, list[Operation]] = {}
        self._undeleted: dict[str, int] = {}
        for operation in operations:
            self._operations.setdefault(operation.table, []).append(operation)
        self._check = check
        self._left_out: dict[KeyName, str] = {}
        self._by_reason: dict[str, list[str]] = {}
        self._played: list[str] = []
        self._unknown: list[str] = []

    def found(self) -> Referring:
        """Look at each key of each table, and of each partition."""
        for key in self._keys:
            for oid in self._leaves(int(key["table_oid"])):
                if oid in self._watched or int(key["references_oid"]) in self._watched:
                    self._add(key, oid)
        assumed = []
        if self._played:
            assumed.append(
                f"foreign keys that are played ({_listed(self._played)}) lead to as many rows of "
                "the other table as the column has values, each as often, or to the newest"
            )
        if self._unknown:
            assumed.append(
                f"pg_stats tell nothing of {_listed(self._unknown)}: each row is taken to refer to "
                "one of the other table, any as often"
            )
        for why, names in self._by_reason.items():
            noun = "a foreign key is" if len(names) == 1 else f"{len(names)} foreign keys are"
            assumed.append(f"{noun} not played ({_listed(names)}): {why}")
        for name, count in self._undeleted.items():
            assumed.append(
                f"from {name}, to which others refer, no row is deleted: its deletes are left out, "
                f"for they were few ({count:,})"
            )
        return Referring(
            tables=tuple(self._tables.values()),
            operations=tuple(
                one
                for one in self._given
                if one.kind != "delete" or one.table not in self._undeleted
            ),
            left_out=self._left_out,
            assumed=tuple(assumed),
        )

    def _leaves(self, oid: int) -> list[int]:
        """The table itself, or of a partitioned one those that have pages."""
        row = self._rows.get(oid)
        if row is None or row["relkind"] != "p":
            return [oid]
        below = [number for number, one in self._rows.items() if one["parent_oid"] == oid]
        return [leaf for number in below for leaf in self._leaves(number)]

    def _add(self, key: AnswerRow, oid: int) -> None:
        try:
            made = self._made(key, oid)
        except _LeftOut as reason:
            why = str(reason)
            self._left_out.setdefault((int(key["table_oid"]), str(key["name"])), why)
            if why != IDLE:
                name = f"{key['name']} of {self._called(oid)}"
                self._by_reason.setdefault(why, []).append(name)
            return
        self._tables[made.name] = made
        last = made.foreign_keys[-1]
        self._played.append(f"{made.name}.{last.column} to {last.references}")
        seen = next(one for one in self._watched[oid].columns.values() if one.label == last.column)
        if seen.observed.n_distinct is None:
            self._unknown.append(f"{made.name}.{last.column}")

    def _made(self, key: AnswerRow, oid: int) -> TableProfile:
        """
        The table with this key.

        Raises:
            _LeftOut: Why it has it not.
        """
        child, parent = self._watched.get(oid), self._watched.get(int(key["references_oid"]))
        if child is None:
            raise _LeftOut(NOT_HERE)
        columns = self._columns(key, child)
        table = self._tables[child.profile.name]
        own = self._operations.get(table.name, [])
        if not any(_looks(one, columns) > 0 for one in own):
            raise _LeftOut(IDLE)
        target = self._rows.get(int(key["references_oid"]))
        if target is not None and target["relkind"] == "p":
            raise _LeftOut("they refer to partitioned tables")
        if parent is None:
            raise _LeftOut(NOT_HERE)
        if parent.oid == oid:
            raise _LeftOut("their tables refer to themselves")
        if not key["is_valid"]:
            raise _LeftOut("they are NOT VALID, or not enforced")
        if len(columns) != 1:
            raise _LeftOut("they are of several columns")
        (column,) = columns
        _check_ends(key, child, parent, column)
        if any(one.column == column.label for one in table.foreign_keys):
            raise _LeftOut("another one of the same column is played")
        return self._with_key(table, child, parent, column)

    def _columns(self, key: AnswerRow, child: WatchedTable) -> list[ColumnSeen]:
        """Those that refer; a partition's have the same names, not the same numbers."""
        names = [self._names.get((int(key["table_oid"]), number)) for number in key["attnums"]]
        return [column for column in child.columns.values() if column.name in names]

    def _with_key(
        self, table: TableProfile, child: WatchedTable, parent: WatchedTable, seen: ColumnSeen
    ) -> TableProfile:
        of, column = self._tables[parent.profile.name], table.column(seen.label)
        own, theirs = (self._operations.get(one.name, []) for one in (table, of))
        deletes = [one for one in theirs if one.kind == "delete"]
        if deletes and not self._are_few(deletes, theirs, parent):
            raise _LeftOut(f"rows of {of.name} are deleted")
        theirs = [one for one in theirs if one.kind != "delete"]
        distinct = _distinct(seen.observed.n_distinct, table.rows)
        ndistinct = of.rows if distinct is None else min(distinct, of.rows)
        for one in own:
            if _changes(one, seen) and column.kind is not Kind.INTEGER:
                raise _LeftOut("updates change them, and of uuids none is the next")
            if ndistinct == 1 and _ends_hot_alone(one, seen, child):
                raise _LeftOut("updates change them, and there is one row to refer to")
        assert of.key is not None, "it was looked at before"
        any_row = Values(kind="parent", ndistinct=ndistinct, ordered=of.key.values.ordered)
        tries = [any_row]
        correlation = seen.observed.correlation or 0.0
        if any(one.kind == "insert" for one in theirs) and (
            correlation >= _TOGETHER_MIN and ndistinct >= _DISTINCT_MIN
        ):
            tries.insert(0, replace(any_row, pick="newest"))
        for values in tries:
            made = _referring(table, replace(column, values=values), of.name)
            problem = self._check(_alone((of, made)), [*theirs, *own])
            if problem is None:
                self._operations[of.name] = theirs
                if deletes:
                    self._undeleted[of.name] = parent.counters.n_tup_del or 0
                return made
        assert problem is not None, "the last one was refused"
        raise _LeftOut(f"a profile cannot hold it: {problem.problem}")

    def _are_few(
        self, deletes: Sequence[Operation], theirs: Sequence[Operation], parent: WatchedTable
    ) -> bool:
        """Whether a table is about the same without its deletes, and others lock it far oftener."""
        picks = (one.pick for one in theirs if one not in deletes)
        if any(pick is not None and pick.distribution == "oldest" for pick in picks):
            return False  # without deletes it would be one row for ever
        inserted = math.fsum(_rows_of(one) for one in theirs if one.kind == "insert")
        looked = 0.0
        for key in self._keys:
            if int(key["references_oid"]) != parent.oid:
                continue
            for oid in self._leaves(int(key["table_oid"])):
                child = self._watched.get(oid)
                if child is not None:
                    own = self._operations.get(child.profile.name, [])
                    looked += sum(_looks(one, self._columns(key, child)) for one in own)
        bounds = [looked, float(parent.rows), *([inserted] if inserted else [])]
        return math.fsum(map(_rows_of, deletes)) <= _FEW_FRAC * min(bounds)

    def _called(self, oid: int) -> str:
        row = self._rows.get(oid)
        return "?" if row is None else called(row["schema"], str(row["name"]))


def _changes(operation: Operation, column: ColumnSeen) -> bool:
    return any(one.column == column.label and one.changed_frac > 0 for one in operation.sets)


def _looks(operation: Operation, columns: Sequence[ColumnSeen]) -> float:
    """How many rows statements look for by these columns; an upsert of a profile finds its row."""
    rows = _rows_of(operation)
    if operation.kind == "insert":
        return rows * math.prod(1 - one.profile.null_frac for one in columns) if columns else 0.0
    labels = {column.label for column in columns}
    fracs = (one.changed_frac for one in operation.sets if one.column in labels)
    return rows * max(fracs, default=0.0)


def _rows_of(operation: Operation) -> float:
    """Rows that an operation writes, in the whole interval."""
    return float(operation.weight * operation.rows_max)


def _ends_hot_alone(operation: Operation, column: ColumnSeen, child: WatchedTable) -> bool:
    """Whether an update would be HOT if this column kept its value."""
    ending = {one.label for one in child.columns.values() if one.name in child.ending_hot}
    fracs = {one.column: one.changed_frac for one in operation.sets if one.column in ending}
    own = fracs.pop(column.label, 0.0)
    return own > max(fracs.values(), default=0.0)


def _check_ends(
    key: AnswerRow, child: WatchedTable, parent: WatchedTable, column: ColumnSeen
) -> None:
    """
    What a key of a profile is: from a column that is not the key to a key of the same kind.

    Raises:
        _LeftOut: It is none.
    """
    name, index = parent.profile.name, parent.profile.key_index
    (target,) = key["references_attnums"]
    if parent.key_attnum is None or target != parent.key_attnum or index is None:
        raise _LeftOut(f"they refer to another column of {name} than its rows are found by")
    if column.attnum == child.key_attnum:
        raise _LeftOut("their column is the key of its own table")
    theirs = parent.columns[parent.key_attnum].profile
    is_integer = {Kind.INTEGER} == {theirs.kind, column.profile.kind}
    if not is_integer and {theirs.type, column.profile.type} != {"uuid"}:
        raise _LeftOut("they are neither of integers nor of uuids")
    if len(index.columns) != 1:  # that of a short text is none, but stands as an integer and a rest
        raise _LeftOut(f"rows of {name} are found by an index of several columns")
    if parent.rows == 0:
        raise _LeftOut(f"{name} has no rows")


def _distinct(n_distinct: float | None, rows: int) -> int | None:
    """How many values a column has, by `n_distinct` of pg_stats; None: not known."""
    if not n_distinct:
        return None
    return max(1, round(n_distinct if n_distinct > 0 else -n_distinct * rows))


def _referring(table: TableProfile, column: ColumnProfile, references: str) -> TableProfile:
    key = ForeignKey(columns=(column.name,), references=references)
    columns = tuple(column if one.name == column.name else one for one in table.columns)
    return replace(table, columns=columns, foreign_keys=(*table.foreign_keys, key))


def _alone(tables: Sequence[TableProfile]) -> tuple[TableProfile, ...]:
    """Without the keys that lead to tables beside these, and without what was observed."""
    names = {table.name for table in tables}
    return tuple(
        replace(
            without_foreign_keys(
                table, [key for key in table.foreign_keys if key.references not in names]
            ),
            observed=None,
        )
        for table in tables
    )


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")
