"""
Queues: statements that take rows by FOR UPDATE SKIP LOCKED, as picks at the head of an index.

    ORDER BY due, id        the B-tree that has these columns in front, behind those that the WHERE
                            asks one value of; by scans where several do
    WHERE state = $1        literals are not known: the value of new rows in the profile, whose
                            rows then all wait (that is, nearly all do, by statistics)
    WHERE due <= now()      left out: every row is due

What a profile cannot have stays a pick by age, and is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from pgheadroom import quoting
from pgheadroom.observe.classes import CountedHead, CountedUpdates, TakenBy
from pgheadroom.observe.columns import ColumnSeen
from pgheadroom.observe.stated import share_of
from pgheadroom.observe.tables import WatchedTable
from pgheadroom.profile.queue_head import is_walked
from pgheadroom.profile.tables import ColumnProfile, IndexProfile, Values
from pgheadroom.profile.workload import Pick
from pgheadroom.sources.recording import AnswerRow
from pgheadroom.sources.statements import NotParsed, expression_reads
from pgheadroom.units import percent

_READY_MIN = 0.9  # of the rows wait for their turn, else they are not played as if all; arbitrary
_SCANNED_MIN = 0.5  # of the statements, by which an index is the one that is walked; arbitrary
_ORDERED_FROM = 0.8  # of a correlation: in the order of the rows; as key_entry has it
_LOCKED_WITHIN = 0.1  # of the rows locked: as many as are changed; arbitrary
_OTHERS_FEW = 0.05  # of as many as rows come: updates that leave an order what it is; arbitrary
_ONE_VALUE = frozenset({"equal", "true", "false", "null"})
_INTEGERS = ("int2", "int4", "int8")
_ASCENDING = ("int4", "int8", "timestamp", "timestamptz")
_LABEL = re.compile(r"\(?(?P<column>[\w\"]+)\)? = '(?P<label>(?:[^']|'')*)'")
_NUMBER = re.compile(r"\(?(?P<column>[\w\"]+)\)? = (?P<value>\d+)")
_NULL = re.compile(r"\(?[\w\"]+\)? IS NULL")
_FALSE = re.compile(r"NOT \(?(?P<column>[\w\"]+)\)?|(?P<other>[\w\"]+) (?:= false|IS FALSE)")
_TRUE = re.compile(r"\(?[\w\"]+\)?(?: = true| IS TRUE)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadPick:
    """
    Rows at the head of a queue.

    `done` is what its rows fulfil when they are taken, where an update takes them, and `state` the
    column by whose change it does; `is_fifo`: they are taken in the order in which they came.
    """

    pick: Pick
    rows_per_statement: int
    is_fifo: bool
    done: str | None = None
    state: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """
    What takes rows of a table in the order of a queue.

    `update` is that of the class of updates at `place`. `said`: what is taken so, or is not.
    """

    update: HeadPick | None = None
    place: int | None = None
    delete: HeadPick | None = None
    said: tuple[str, ...] = ()


class _NotPlayed(Exception):  # noqa: N818 - says why
    """A profile has no head for it; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ready:
    """
    The rows that wait: as a condition, and the profile's columns that make it hold.

    `is_turned`: the column, a boolean, is false in the profile where it is true in the database.
    """

    where: str | None
    column: tuple[int, ColumnProfile] | None = None
    done: str | None = None
    is_turned: bool = False


def with_heads(
    table: WatchedTable, classes: Sequence[CountedUpdates], counted: Sequence[CountedHead]
) -> tuple[WatchedTable, Heads]:
    """
    The table with values as a queue's head needs them, and what takes rows from there.

    Args:
        table: As observed.
        classes: Of its updates.
        counted: Statements that delete or lock what they find at a head.
    """
    takers = list(_takers(table, classes, counted))
    if table.key_attnum is None or not takers:
        return table, Heads()
    if not table.counters.n_tup_ins:
        why = "nothing came into the queue inside the interval: rows are not taken from its head"
        return table, Heads(said=(why,))
    said: list[str] = []
    few = _OTHERS_FEW * table.counters.n_tup_ins
    assigned = {
        number
        for found in classes
        if (found.calls if found.rows is None else found.rows) > few
        for number in _changed(table, found.attnums)
    }
    update: HeadPick | None = None
    delete: HeadPick | None = None
    place = None
    for what, at, taken, (each, calls) in takers:
        is_update = at is not None
        if (update if is_update else delete) is not None:
            said.append(
                f"{what} is not the only one that takes from the head of a queue: as the first does"
            )
            continue
        sets = _changed(table, classes[at].attnums) if at is not None else frozenset()
        try:
            index = _walked(table, taken, calls)
            table, found = _head(
                table, taken, index, each, sets, assigned, is_update=is_update, said=said
            )
        except _NotPlayed as why:
            said.append(f"rows that {what} takes from the head of a queue go by age: {why}")
            continue
        if is_update:
            update, place = found, at
        else:
            delete = found
    return table, Heads(update=update, place=place, delete=delete, said=tuple(said))


def _changed(table: WatchedTable, assigned: Sequence[int]) -> frozenset[int]:
    """Columns that an update assigns, and those that are generated from them."""
    return frozenset({*assigned, *table.computed_from(assigned)})


def _takers(
    table: WatchedTable, classes: Sequence[CountedUpdates], counted: Sequence[CountedHead]
) -> Iterator[tuple[str, int | None, TakenBy, tuple[float, int]]]:
    """Each kind of statement that takes rows: place of its class, how, rows a statement, calls."""
    for at, one in enumerate(classes):
        if one.taken is not None and one.rows != 0:
            yield (
                "an update",
                at,
                one.taken,
                ((one.rows or one.calls) / max(one.calls, 1), one.calls),
            )
    for found in counted:
        # Rows of a delete in a WITH are the table's, where no other statement is known to delete.
        rows = found.rows
        if rows is None and len(counted) == 1:
            rows = table.counters.n_tup_del
        each = (rows or found.calls) / max(found.calls, 1)
        if found.kind == "delete" and found.rows != 0:
            yield "a delete", None, found.taken, (each, found.calls)
    if any(one.taken for one in classes) or any(one.kind == "delete" for one in counted):
        return
    for found in counted:
        if found.kind != "select" or not found.rows:
            continue
        each = found.rows / max(found.calls, 1)
        states = {n for kind, ns in found.taken.conditions if kind in _ONE_VALUE for n in ns}
        changing = [
            at
            for at, one in enumerate(classes)
            if one.rows and states & {*one.attnums} and _as_many(one.rows, found.rows)
        ]
        if len(changing) == 1:
            yield "an update", changing[0], found.taken, (each, found.calls)
        elif _as_many(table.counters.n_tup_del or 0, found.rows):
            yield "a delete", None, found.taken, (each, found.calls)


def _as_many(changed: int, locked: int) -> bool:
    return abs(changed - locked) <= _LOCKED_WITHIN * locked


def _head(
    table: WatchedTable,
    taken: TakenBy,
    walked: tuple[AnswerRow, IndexProfile],
    each: float,
    sets: Set[int],
    assigned: Set[int],
    *,
    is_update: bool,
    said: list[str],
) -> tuple[WatchedTable, HeadPick]:
    """
    The pick, and the table with what it needs.

    Raises:
        _NotPlayed: And why.
    """
    index, made = walked
    ready = _ready(table, index, made, taken, sets, is_update=is_update)
    columns = dict(table.columns)
    turned = None
    if ready.column is not None:
        number, column = ready.column
        turned = column.name if ready.is_turned else None
        columns[number] = replace(columns[number], profile=column)
    ordered = [int(number) for number, _, _ in taken.ordered if number is not None]
    is_fifo = True
    for number in ordered:
        if number == table.key_attnum:
            break
        if _is_single(table, number):
            continue
        column = columns[number].profile
        if not _comes_in_order(table, number, assigned):
            is_fifo = False
            continue
        columns[number] = replace(
            columns[number], profile=replace(column, values=Values(kind="serial"))
        )
    said += _left_out(table, taken, ready.where)
    named = ", ".join(table.columns[number].label for number in ordered)
    said.append(f"rows are taken from the head of a queue by {named}, as {made.name} has them")
    rows = max(1, round(each))
    return _with_columns(table, columns, made, ready.where, turned), HeadPick(
        pick=Pick(distribution="head", using=made.name, where=ready.where),
        rows_per_statement=rows,
        is_fifo=is_fifo,
        done=ready.done,
        state=columns[ready.column[0]].label if is_update and ready.column else None,
    )


def _walked(table: WatchedTable, taken: TakenBy, calls: int) -> tuple[AnswerRow, IndexProfile]:
    """
    The index in whose order the query has its rows: by scans where several have it.

    Raises:
        _NotPlayed: There is none, or profiles have no head in its order.
    """
    if taken.is_joined:
        raise _NotPlayed("their query reads other tables as well")
    if not taken.is_limited or not taken.ordered:
        raise _NotPlayed(f"their query has no {'ORDER BY' if taken.is_limited else 'LIMIT'}")
    if any(number not in table.columns for number, _, _ in taken.ordered):
        raise _NotPlayed("their order is that of an expression")
    fixed = {n for kind, ns in taken.conditions if kind in _ONE_VALUE for n in ns}
    order = [one for one in taken.ordered if not _is_fixed(table, one[0], fixed)]
    order = order or list(taken.ordered)
    profiled = {one.name: one for one in table.profile.indexes}
    found: list[tuple[tuple[int, ...], AnswerRow, IndexProfile]] = []
    backward = False
    for row in table.answers.indexes.get(table.oid, ()):
        made = profiled.get(str(row["name"])) or profiled.get(f"{row['schema']}.{row['name']}")
        usable = row["method"] == "btree" and row["is_live"] and row["is_valid"]
        if made is None or not usable or row["has_expressions"] or not made.columns:
            continue
        keys = [int(number) for number in row["attnums"][: int(row["key_count"])]]
        options = [int(option) & 3 for option in row.get("options") or [0] * len(keys)]
        walk = [
            (number, bool(option & 1), option in (1, 2))
            for number, option in zip(keys, options, strict=False)
            if not (_is_fixed(table, number, fixed) and all(number != one[0] for one in order))
        ]
        if [one[0] for one in walk[: len(order)]] != [one[0] for one in order]:
            continue
        if row["has_predicate"] and not _predicate_columns(table, made) <= {
            n for _, ns in taken.conditions for n in ns
        }:
            continue
        first = {n for n, _, _ in walk} | {n for n in keys if not _is_single(table, n)}
        descends = [bool(o & 3) for n, o in zip(keys, options, strict=False) if n in first]
        if any(descending or odd for _, descending, odd in order) or any(descends):
            backward = True
            continue
        scans = (table.answers.index_after.get(int(row["oid"])) or {}).get("idx_scan") or 0
        scans -= (table.answers.index_before.get(int(row["oid"])) or {}).get("idx_scan") or 0
        # Rows are found by their key as well, so that its index has scans in any case.
        is_rare = scans < _SCANNED_MIN * calls
        is_key = keys[:1] == [table.key_attnum]
        rank = (is_rare, not row["has_predicate"], is_key, len(keys))
        found.append((rank, row, replace(made, order=())))
    if found:
        _, row, made = min(found, key=lambda one: one[0])
        if not is_walked(made):
            raise _NotPlayed(f"{made.name} is not played as a B-tree over columns")
        return row, made
    if backward or any(descending for _, descending, _ in order):
        raise _NotPlayed("their order descends, or has NULLs first, and profiles have no such head")
    raise _NotPlayed("no index has their order")


def _is_fixed(table: WatchedTable, number: int | None, fixed: Set[int]) -> bool:
    return number is not None and (number in fixed or _is_single(table, number))


def _is_single(table: WatchedTable, number: int) -> bool:
    """Whether all rows have one value there, in the database and in the profile."""
    column = table.columns.get(number)
    if column is None or number == table.key_attnum or column.profile.null_frac > 0:
        return False
    values = column.profile.values
    one = column.observed.n_distinct
    return (
        one is not None
        and float(one) == 1.0
        and (values.kind == "constant" or values.ndistinct == 1)
    )


def _predicate_columns(table: WatchedTable, made: IndexProfile) -> set[int]:
    """Columns that the predicate in the profile reads; all of the table where none is told."""
    try:
        reads = expression_reads(made.where or "", made.name)
    except NotParsed:
        return set(table.columns)
    numbers = {column.label: number for number, column in table.columns.items()}
    return {numbers[name] for name in reads.columns if name in numbers}


def _ready(
    table: WatchedTable,
    row: AnswerRow,
    made: IndexProfile,
    taken: TakenBy,
    sets: Set[int],
    *,
    is_update: bool,
) -> _Ready:
    """Which rows wait, as the index and the statement have it."""
    kinds = {ns[0]: kind for kind, ns in taken.conditions if len(ns) == 1}
    keys = [int(number) for number in row["attnums"][: int(row["key_count"])]]
    ordered = [one[0] for one in taken.ordered]
    leading = []
    for number in keys:
        if number in ordered:
            break
        if not _is_single(table, number):
            leading.append(number)
    if row["has_predicate"]:
        if leading:
            raise _NotPlayed(f"{made.name} has a predicate, and a column in front of the order")
        return _by_predicate(table, row, made, kinds, sets, is_update=is_update)
    if leading:
        if leading != keys[:1] or kinds.get(keys[0]) not in ("equal", "false"):
            raise _NotPlayed(f"{made.name} has several columns in front of the order")
        return _by_column(table, keys[0], sets, is_update=is_update, is_first=True)
    states = [n for n, kind in kinds.items() if kind in _ONE_VALUE and n in sets]
    if is_update and len(states) != 1:
        raise _NotPlayed(
            "the update changes none of the columns that the query asks one value of"
            if not states
            else "the update changes several of the columns that the query asks one value of"
        )
    if not is_update:
        return _Ready(where=None)
    return _by_column(table, states[0], sets, is_update=True, is_first=False)


def _by_predicate(
    table: WatchedTable,
    row: AnswerRow,
    made: IndexProfile,
    kinds: Mapping[int, str],
    sets: Set[int],
    *,
    is_update: bool,
) -> _Ready:
    """The rows of a partial index."""
    reads = _predicate_columns(table, made)
    number = next(iter(reads)) if len(reads) == 1 else None
    where = made.where or ""
    if number is None or number not in table.columns:
        raise _NotPlayed(f"the predicate of {made.name} reads several columns")
    if is_update and number not in sets:
        raise _NotPlayed(f"the update leaves rows in {made.name}, as they fulfil its predicate")
    column = table.columns[number].profile
    name = quoting.shown_identifier(column.name)
    share = share_of(row, table.rows)
    if kinds.get(number) == "null" and _NULL.fullmatch(where):
        if is_update:
            raise _NotPlayed(f"{column.name} IS NULL, and in a profile a NULL stays NULL")
        _check_share(share, made.name)
        return _Ready(where=where, column=(number, replace(column, null_frac=1.0)))
    label = _LABEL.fullmatch(where)
    if column.labels and label is not None and label["label"] in column.labels:
        _check_share(share, made.name)
        values = replace(column.values, kind="random", new=label["label"])
        return _Ready(where=where, column=(number, replace(column, values=values)))
    if column.labels or kinds.get(number) not in _ONE_VALUE:
        raise _NotPlayed(f"the predicate of {made.name} is not one value of a column")
    _check_share(share, made.name)
    if _NUMBER.fullmatch(where) is not None and column.base_type in _INTEGERS:
        text = where.partition(" = ")[0]
        return _constant(number, column, f"{text} = 0", f"{text} = 1")
    if _FALSE.fullmatch(where) is not None and column.base_type == "bool":
        return _constant(number, column, where, name)
    if _TRUE.fullmatch(where) is not None and column.base_type == "bool":
        return replace(_constant(number, column, f"NOT {name}", name), is_turned=True)
    raise _NotPlayed(f"rows of a profile do not fulfil the predicate of {made.name}")


def _by_column(
    table: WatchedTable, number: int, sets: Set[int], *, is_update: bool, is_first: bool
) -> _Ready:
    """The rows that have one value of a column, which is not known by its literal."""
    column = table.columns[number].profile
    name = quoting.shown_identifier(column.name)
    if is_update and number not in sets:
        raise _NotPlayed(f"the update leaves {column.name} as it is")
    if column.labels and not is_first:
        new = column.values.new
        if new is None:
            raise _NotPlayed(
                f"which label of {column.name} they have is not known: it has no default"
            )
        shares = dict(zip(column.labels, column.values.shares, strict=False))
        _check_share(shares.get(new), column.name)
        return _Ready(where=f"{name} = {quoting.literal(new)}", column=(number, column))
    is_number = column.base_type in _INTEGERS
    if not is_number and (column.base_type != "bool" or is_first):
        raise _NotPlayed(
            f"{column.name} is {column.type}, one value of which a profile cannot ask for"
        )
    if not _is_single(table, number):
        _check_share(_common_frac(table, number), column.name)
    where = f"{name} = 0" if is_number else f"NOT {name}"
    return _constant(number, column, where, f"{name} = 1" if is_number else name)


def _constant(number: int, column: ColumnProfile, where: str, done: str) -> _Ready:
    made = replace(column, values=Values(kind="constant"), null_frac=0.0)
    return _Ready(where=where, column=(number, made), done=done)


def _check_share(share: float | None, name: str) -> None:
    if share is None:
        raise _NotPlayed(f"how many rows wait is not known: {name} has no statistics")
    if share < _READY_MIN:
        raise _NotPlayed(f"by {name} {percent(share)} of the rows wait, and in a profile all would")


def _common_frac(table: WatchedTable, number: int) -> float | None:
    """How often the most common value of a column stands."""
    row = table.row
    key = (row["schema"], row["name"], table.columns[number].name)
    found = (table.answers.statistics.get(key) or {}).get("common_frac")
    return None if found is None else float(found)


def _comes_in_order(table: WatchedTable, number: int, assigned: Set[int]) -> bool:
    """
    Whether a column ascends with the key, as times of insertion do.

    By the order of the rows; where not even the key has it, as in a queue whose few rows lie where
    others were, by its default.
    """
    assert table.key_attnum is not None, "asked for"
    column, key = table.columns[number], table.columns[table.key_attnum]
    found = column.observed.correlation, key.observed.correlation
    if (
        number in assigned
        or column.profile.base_type not in _ASCENDING
        or column.profile.null_frac > 0
        or key.profile.values.kind != "serial"
    ):
        return False
    are_ordered = [one is not None and float(one) >= _ORDERED_FROM for one in found]
    return all(are_ordered) or (not are_ordered[1] and _is_now(table, number))


def _is_now(table: WatchedTable, number: int) -> bool:
    """Whether rows that say nothing of it have the time at which they come."""
    rows = table.answers.columns.get(table.oid, ())
    return any(row["attnum"] == number and row.get("is_now") for row in rows)


def _left_out(table: WatchedTable, taken: TakenBy, where: str | None) -> list[str]:
    """Conditions that are not played, and what that takes to be so."""
    said = []
    for kind, numbers in taken.conditions:
        names = [table.columns[n].label for n in numbers if n in table.columns]
        if kind in ("below", "above"):
            said.append(f"the range of {', '.join(names)} is left out: every row is due")
        elif len(numbers) == 1 and _is_single(table, numbers[0]):
            continue
        elif where is None or not all(re.search(rf"\b{re.escape(n)}\b", where) for n in names):
            said.append(f"the condition on {', '.join(names)} is left out: all rows fulfil it")
    return said


def _with_columns(
    table: WatchedTable,
    columns: Mapping[int, ColumnSeen],
    made: IndexProfile,
    where: str | None,
    turned: str | None,
) -> WatchedTable:
    """
    The table with other values of columns, and the index by the condition that they fulfil.

    Raises:
        _NotPlayed: Another index reads the column that is turned, and not as a condition.
    """
    by_name = {one.profile.name: one.profile for one in columns.values()}
    entries = tuple(by_name.get(entry.name, entry) for entry in table.profile.columns)
    if made.where is not None and where is not None:
        made = replace(made, where=where)
    indexes = tuple(
        made
        if one.name == made.name
        else one
        if turned is None
        else replace(one, where=_turned(one.where, turned))
        for one in table.profile.indexes
    )
    return replace(
        table,
        columns=columns,
        profile=replace(table.profile, columns=entries, indexes=indexes),
    )


def _turned(where: str | None, name: str) -> str | None:
    """
    A predicate as it is where a boolean column has the other of its values.

    Raises:
        _NotPlayed: It asks for something else of it.
    """
    if where is None:
        return None
    quoted = quoting.shown_identifier(name)
    spelled = rf"(?<![\w\"])(?:{re.escape(name)}|{re.escape(quoted)})(?![\w\"])"
    asked = rf"(?P<no>NOT )?(?:\({spelled}\)|{spelled})(?P<is> = | IS )?"

    def other(found: re.Match[str]) -> str:
        value = found["value"]
        if found["is"] and value is None:
            raise _NotPlayed(f"a predicate asks for another value of {name} than true and false")
        is_true = (value is None or value.lower() == "true") != bool(found["no"])
        return f"NOT {quoted}" if is_true else quoted

    return re.sub(rf"{asked}(?P<value>(?i:true|false))?", other, where)
