"""
pgbench scripts: one for each transaction of a profile.

A script draws all its random numbers first, in the order that the format fixes: per operation its
key (a hot set: first the draw that decides), then the number of its rows where that varies, then
one draw for each column that changes at times or grows; last the one for the abort. pgbench's
variables live as long as the client, so counters are variables too:

    k0 m0    first and last key of operation 0 (operations are counted over the whole profile)
    r0       rows of its statement, where each draws their number
    d0_1     draw for the column number 1 of its `sets`, g0_1 the growth out of the same draw
    i0       how often this client has attempted operation 0, or how many keys it has passed where
             their number is drawn and statements follow on each other
    j0       insert statements of this client into table 0, l0 its last inserted key
    p0_2     key of the parent's row that column 2 of operation 0's new rows refers to, where that
             is the one that this client inserted last

A client's own rows of a table are numbered in their order, the loaded ones first:

    f0       number of the first that this client has not yet tried to delete by `oldest`
    y0       number of the last that it has attempted to insert, where picks follow the rows
    e0       its deletes by `oldest` with `within`, likewise
    x0       number of the row that operation 0 takes; -1 where there is none

    t        transactions of the client, this one included, where maintenance waits for a number
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pgheadroom import quoting
from pgheadroom.errors import InputError
from pgheadroom.play import living
from pgheadroom.play.gates import gate_lines, gate_variables
from pgheadroom.play.values import (
    MILLION,
    changed,
    column_list,
    key_value,
    million,
    row_values,
)
from pgheadroom.profile import Change, Operation, Pick, Profile, RowRange, TableProfile

FIND_SETTINGS = {
    "index": {"enable_seqscan": "off", "enable_bitmapscan": "off", "enable_indexscan": "on"},
    "seqscan": {"enable_seqscan": "on", "enable_bitmapscan": "off", "enable_indexscan": "off"},
    "bitmap": {"enable_seqscan": "off", "enable_bitmapscan": "on", "enable_indexscan": "off"},
}
"""What makes the planner find rows as an operation wants."""


SCRIPTS_MAX = 128
"""Scripts that one pgbench takes (`MAX_SCRIPTS`, src/bin/pgbench/pgbench.c)."""
VARIABLES_MAX = 255
"""Parameters of a prepared statement (`MAX_ARGS - 1`, src/bin/pgbench/pgbench.c)."""
_VARIABLE = re.compile(r"(?<!:):[a-z]\w*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A transaction: its script for pgbench, and its share among the scripts."""

    text: str
    weight: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """The one statement of an operation, with pgbench's variables in it."""

    operation: Operation
    sql: str


def check_pgbench_takes(profile: Profile) -> None:
    """
    Refuse what no pgbench plays, and so no proof can show.

    Raises:
        InputError: Too many transactions, or too many parameters in a statement.
    """
    transactions = profile.workload.transactions()
    if len(transactions) > SCRIPTS_MAX:
        raise InputError(
            f"operation: found {len(transactions)} transactions, expected at most {SCRIPTS_MAX} to "
            "play, which is what pgbench takes; give operations that belong together the same "
            "transaction, or leave out the rare ones"
        )
    for n, statement in enumerate(statements(profile)):
        count = len(_VARIABLE.findall(statement.sql))
        if count > VARIABLES_MAX:
            raise InputError(
                f"operation[{n}]: found {count} parameters in its statement, expected at most "
                f"{VARIABLES_MAX} to play, which is what pgbench takes; set fewer columns with "
                "changed_frac or grows_bytes"
            )


def scripts(profile: Profile) -> tuple[Script, ...]:
    """One script per transaction, in order of first appearance."""
    numbers = {id(item): n for n, item in enumerate(profile.workload.operations)}
    check_pgbench_takes(profile)
    return tuple(
        _script(profile, [(numbers[id(item)], item) for item in transaction])
        for transaction in profile.workload.transactions()
    )


def variables(profile: Profile) -> dict[str, int]:
    """Counters with the values that every client starts with."""
    counters = {f"i{n}": 0 for n in range(len(profile.workload.operations))}
    for t, table in enumerate(profile.tables):
        counters |= {f"j{t}": 0, f"l{t}": 0, f"f{t}": 0}
        if living.is_followed(profile, table):
            last = table.rows // profile.workload.run.clients - 1
            counters |= {f"y{t}": last, f"e{t}": 0}
    return counters | gate_variables(profile)


def session_find(profile: Profile) -> str:
    """How most operations find rows; the others switch before and after their statement."""
    finds = {item.find for item in profile.workload.operations if item.pick is not None}
    if any(table.foreign_keys for table in profile.tables):
        return "index"  # so that their checks, planned with the first insert, find rows by it
    return finds.pop() if len(finds) == 1 else "index"


def transactions_each(profile: Profile) -> float:
    """
    How many transactions the server counts for one of a client, in the mean.

    Each SET before and after a statement whose rows are found otherwise is one by itself, unless it
    stands in a block.
    """
    default = session_find(profile)
    transactions = profile.workload.transactions()
    weights = sum(transaction[0].weight for transaction in transactions)
    more = sum(
        transaction[0].weight * 2 * len(FIND_SETTINGS[operation.find])
        for transaction in transactions
        for operation in transaction
        if not _is_block(transaction[0]) and _switches(operation, default)
    )
    return 1 + more / weights if weights else 1.0


def _is_block(head: Operation) -> bool:
    """Whether a transaction that begins so has BEGIN and an end."""
    return head.abort_frac > 0 or head.transaction is not None


def _switches(operation: Operation, default: str) -> bool:
    return operation.pick is not None and operation.find != default


def statements(profile: Profile) -> tuple[Statement, ...]:
    """The statement of every operation."""
    return tuple(
        Statement(operation=item, sql=_statement(profile, n, item))
        for n, item in enumerate(profile.workload.operations)
    )


def _script(profile: Profile, transaction: list[tuple[int, Operation]]) -> Script:
    head = transaction[0][1]
    lines = gate_lines(profile)
    for n, operation in transaction:
        lines += _key(profile, n, operation)
        lines += _draws(n, operation)
        lines += _newest_parents(profile, n, operation)
    aborts = head.abort_frac > 0
    if aborts:
        lines.append(f"\\set a random(1, {MILLION})")
    whole = _is_block(head)
    if whole:
        lines.append("BEGIN;")
    default = session_find(profile)
    for n, operation in transaction:
        switch = _switches(operation, default)
        if switch:
            lines += _switch(operation.find)
        lines.append(_statement(profile, n, operation) + ";")
        if switch:
            lines += _switch(default)
    if aborts:
        lines += [f"\\if :a <= {million(head.abort_frac)}", "ROLLBACK;", "\\else", "COMMIT;"]
        lines.append("\\endif")
    elif whole:
        lines.append("COMMIT;")
    return Script(text="\n".join(lines) + "\n", weight=head.weight)


def _switch(find: str) -> list[str]:
    return [f"SET {name} = {value};" for name, value in FIND_SETTINGS[find].items()]


def _key(profile: Profile, n: int, operation: Operation) -> list[str]:
    table = profile.table(operation.table)
    t, clients = profile.tables.index(table), profile.workload.run.clients
    if operation.is_head:  # the statement finds its rows itself
        if operation.kind != "delete" or not living.is_followed(profile, table):
            return []
        taken = f":f{t} + {operation.rows_max}"
        return [f"\\set f{t} case when {taken} > :y{t} + 1 then :y{t} + 1 else {taken} end"]
    rows, most = operation.rows_per_statement, operation.rows_max
    if isinstance(rows, RowRange):
        drawn, many = [f"\\set r{n} random({rows.min_rows}, {rows.max_rows})"], f":r{n}"
    else:
        drawn, many = [], str(rows)
    high = f":k{n} + {many} - 1" if drawn else f":k{n} + {most - 1}"
    pick = operation.pick
    if pick is None:
        last = f"\\set y{t} {table.rows // clients} + :j{t} * {most} + {many} - 1"
        lines = [
            f"\\set k{n} {table.rows} + 1 + (:client_id + {clients} * :j{t}) * {most}",
            *drawn,
            *([last] if living.is_followed(profile, table) else []),
            f"\\set j{t} :j{t} + 1",
            f"\\set l{t} {high}",
        ]
    elif operation.is_living:
        lines = living.lines(profile, n, operation, pick)
    else:
        lines = _picked(operation, pick, table, n, t, clients) + drawn
        if drawn and pick.distribution == "sequential":
            lines.append(f"\\set i{n} :i{n} + :r{n}")
        if operation.kind == "delete" and pick.distribution == "oldest":
            # Of the keys below the last one taken this client's own are done with.
            step = f"(:r{n} + {clients - 1}) / {clients}" if drawn else str(-(-most // clients))
            lines.append(f"\\set f{t} case when :k{n} < 0 then :f{t} else :f{t} + {step} end")
    if most > 1:
        lines.append(f"\\set m{n} {high}")
    return lines


def _picked(
    operation: Operation, pick: Pick, table: TableProfile, n: int, t: int, clients: int
) -> list[str]:
    count, rows = table.rows, operation.rows_max
    varies = isinstance(operation.rows_per_statement, RowRange)
    key, turn = f"\\set k{n}", f"(:client_id + :i{n} * {clients})"
    step = f"\\set i{n} :i{n} + 1"
    scatter = [f"{key} 1 + permute(:k{n} - 1, {count}, 1)"] if pick.scatter else []
    match pick.distribution:
        case "uniform":
            return [f"{key} random(1, {count})", *scatter]
        case "zipfian":
            return [f"{key} random_zipfian(1, {count}, {pick.theta!r})", *scatter]
        case "gaussian":
            return [f"{key} random_gaussian(1, {count}, {pick.param!r})", *scatter]
        case "hot_set":
            assert pick.rows_frac is not None
            assert pick.weight is not None
            hot = max(1, int(pick.rows_frac * count))
            return [
                f"\\set h{n} random(1, {MILLION})",
                f"\\if :h{n} <= {million(pick.weight)}",
                f"{key} random(1, {hot})",
                "\\else",
                f"{key} random({hot + 1}, {count})",
                "\\endif",
                *scatter,
            ]
        case "sequential":
            if varies:
                part = count // clients
                return [f"{key} 1 + :client_id * {part} + :i{n} % {part}"]
            return [f"{key} 1 + ({turn} * {rows}) % {count}", step]
        case "stride":
            return [f"{key} 1 + ({turn} * {pick.n}) % {count}", step]
        case "newest":
            none = f"{count} - :client_id"
            return [f"{key} case when :l{t} = 0 then {none} else :l{t} end"]
        case _:
            assert pick.distribution == "oldest", "the others follow the living rows"
            # Nothing is left beyond the rows of the load: a key that no row has.
            oldest = f":client_id + 1 + :f{t} * {clients}"
            return [f"{key} case when {oldest} > {count} then {-rows} else {oldest} end"]


def _draws(n: int, operation: Operation) -> list[str]:
    lines = []
    for c, change in enumerate(operation.sets):
        if not change.draws:
            continue
        lines.append(f"\\set d{n}_{c} random(1, {MILLION})")
        if change.grows_max_bytes:
            low, high = change.grows_min_bytes, change.grows_max_bytes
            lines.append(f"\\set g{n}_{c} {low} + (:d{n}_{c} - 1) % {high - low + 1}")
    return lines


def _newest_parents(profile: Profile, n: int, operation: Operation) -> list[str]:
    """The keys that new rows refer to, as far as the operations before have come."""
    table = profile.table(operation.table)
    lines = []
    for foreign_key in table.foreign_keys if operation.kind in ("insert", "upsert") else ():
        column = table.column(foreign_key.column)
        if column.values.pick != "newest":
            continue
        parent = profile.table(foreign_key.references)
        t = profile.tables.index(parent)
        none = f"{parent.rows} - :client_id"
        variable = f"p{n}_{table.columns.index(column)}"
        lines.append(f"\\set {variable} case when :l{t} = 0 then {none} else :l{t} end")
    return lines


def _statement(profile: Profile, n: int, operation: Operation) -> str:
    table = profile.table(operation.table)
    name = quoting.identifier(table.name)
    if operation.kind in ("insert", "upsert"):
        insert = _insert(table, n, operation.rows_per_statement)
        if operation.kind == "insert":
            return insert
        key = ", ".join(quoting.identifier(column.name) for column in table.key_columns)
        sets = _sets(table, n, operation.sets, qualified=True)
        return f"{insert} ON CONFLICT ({key}) DO UPDATE SET {sets}"
    where = f"WHERE {_wanted(table, n, operation)}"
    if operation.kind == "update":
        sets = _sets(table, n, operation.sets, qualified=False)
        return f"UPDATE {name} SET {sets} {where}"
    if operation.kind == "delete":
        return f"DELETE FROM {name} {where}"
    lock = " FOR UPDATE" if operation.kind == "lock" else ""
    return f"SELECT * FROM {name} {where}{lock}"


def _wanted(table: TableProfile, n: int, operation: Operation) -> str:
    """The condition by which a statement names its rows."""
    assert table.key is not None
    key = quoting.identifier(table.key.name)
    if operation.pick is not None and operation.is_head:
        return f"{key} {_head(table, operation.pick, operation.rows_max)}"
    if operation.rows_max > 1:
        low, high = (key_value(table, table.key, f":{end}{n}") for end in "km")
        return f"{key} BETWEEN {low} AND {high}"
    return " AND ".join(
        f"{quoting.identifier(column.name)} = {key_value(table, column, f':k{n}')}"
        for column in table.key_columns
    )


def _head(table: TableProfile, pick: Pick, rows: int) -> str:
    """Rows at the head of a queue, in the order of an index; locked ones are left out."""
    index = next(index for index in table.indexes if index.name == pick.using)
    assert table.key is not None
    where = "" if pick.where is None else f"WHERE {pick.where} "
    order = ", ".join(quoting.identifier(name) for name in index.columns)
    query = (
        f"SELECT {quoting.identifier(table.key.name)} FROM {quoting.identifier(table.name)} "
        f"{where}ORDER BY {order} LIMIT {rows} FOR UPDATE SKIP LOCKED"
    )
    return f"= ({query})" if rows == 1 else f"= ANY (ARRAY({query}))"


def _insert(table: TableProfile, n: int, rows: int | RowRange) -> str:
    # The row number is drawn out of a subquery, so that the key is one parameter of the statement
    # however many columns there are: pgbench takes 255.
    if isinstance(rows, RowRange):
        # A VALUES list cannot vary in a prepared statement.
        numbers = (
            f'SELECT v.i AS "row" FROM generate_series(CAST(:k{n} AS int8), '
            f"CAST(:m{n} AS int8)) AS v(i)"
        )
    elif rows == 1:
        numbers = f'SELECT CAST(:k{n} AS int8) AS "row"'
    else:
        listed = ", ".join(f"({i})" for i in range(rows))
        numbers = f'SELECT CAST(:k{n} AS int8) + v.i AS "row" FROM (VALUES {listed}) AS v(i)'
    newest = {
        column.name: f":p{n}_{c}"
        for c, column in enumerate(table.columns)
        if column.values.pick == "newest"
    }
    values = row_values(table, 'r."row"', newest)
    name = quoting.identifier(table.name)
    return f"INSERT INTO {name} ({column_list(table)}) SELECT {values} FROM ({numbers}) AS r"


def _sets(table: TableProfile, n: int, changes: tuple[Change, ...], *, qualified: bool) -> str:
    parts = []
    for c, change in enumerate(changes):
        name = quoting.identifier(change.column)
        old = f"{quoting.identifier(table.name)}.{name}" if qualified else name
        new = changed(table.column(change.column), change, old, f":d{n}_{c}", f":g{n}_{c}")
        parts.append(f"{name} = {new}")
    return ", ".join(parts)
