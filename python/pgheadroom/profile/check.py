"""
What has to fit together across a profile's sections.
"""

from __future__ import annotations

from pgheadroom import _core
from pgheadroom.errors import InputError
from pgheadroom.forms import FieldError, fail
from pgheadroom.profile.foreign_keys import check_foreign_keys
from pgheadroom.profile.model import (
    INTEGER_MAX,
    Operation,
    Profile,
    RowRange,
    TableProfile,
)
from pgheadroom.profile.spelling import Kind

_TUPLE_BYTES_MAX = 8160  # MaxHeapTupleSize, src/include/access/htup_details.h
_TOAST_POINTER_BYTES = 18


def check(profile: Profile) -> None:
    """
    Refuse what single fields allow but PostgreSQL, pgbench or the contract do not.

    Raises:
        FieldError: Names the field to change.
    """
    names: set[str] = set()
    for n, table in enumerate(profile.tables):
        for path, name in [
            (f"table[{n}].name", table.name),
            *((f"table[{n}].indexes[{k}].name", x.name) for k, x in enumerate(table.indexes)),
        ]:
            if name in names:
                fail(path, name, "a name that no other table or index has")
            names.add(name)
        _check_key(f"table[{n}]", table)
        _check_widths(f"table[{n}]", table)
    _check_operations(profile)
    _check_isolation(profile)


def _check_isolation(profile: Profile) -> None:
    """Transactions of several clients that meet on a row fail in one another's way."""
    workload = profile.workload
    if workload.run.isolation == "read committed" or workload.run.clients == 1:
        return
    builtin = workload.builtin
    changes = any(operation.kind not in ("insert", "select") for operation in workload.operations)
    if changes or (builtin is not None and builtin.builtin != "select-only"):
        fail(
            "run.isolation",
            workload.run.isolation,
            f"read committed, or one client: which of the transactions of {workload.run.clients} "
            "clients fail to serialize is not predicted",
        )


def _check_key(path: str, table: TableProfile) -> None:
    key = table.key
    if key is None:
        return
    place = f"{path}.columns[{table.columns.index(key)}].type"
    if key.kind is not Kind.INTEGER:
        fail(place, key.type, "int2, int4 or int8, for this column is the key")
    if table.rows > INTEGER_MAX[key.base_type]:
        fail(f"{path}.rows", table.rows, f"keys that fit {key.type}")


def _check_widths(path: str, table: TableProfile) -> None:
    """A row that even TOAST cannot make fit a page; an index entry above a third of one."""
    widths: dict[str, int | None] = {}
    for column in table.columns:
        if column.width is not None:
            widths[column.name] = column.width.max_bytes
        elif column.base_type == "numeric":
            widths[column.name] = 8
        else:
            widths[column.name] = column.type_length
    # A long value leaves a pointer of 18 bytes; a short one is one byte longer with its header.
    smallest = [
        _core.Column(column.type)
        if (width := widths[column.name]) is None
        else _core.Column("bytea", payload_bytes=min(width, _TOAST_POINTER_BYTES - 1))
        for column in table.columns
    ]
    if len(table.columns) > 1600:
        fail(f"{path}.columns", len(table.columns), "at most 1600 columns")
    row_bytes = _core.heap_tuple_bytes(smallest)
    if row_bytes > _TUPLE_BYTES_MAX:
        fail(
            f"{path}.columns",
            f"a row of {row_bytes} bytes with every long value moved out",
            f"at most {_TUPLE_BYTES_MAX} bytes, which is what a page holds",
        )
    for n, index in enumerate(table.indexes):
        for k, name in enumerate(index.columns):
            if index.method == "brin" and table.column(name).kind is Kind.BOOLEAN:
                place = f"{path}.indexes[{n}].columns[{k}]"
                fail(place, name, f"no {table.column(name).type}, which BRIN has no operators for")
        if index.method != "btree" or not index.columns:
            continue
        listed = [table.column(name) for name in (*index.columns, *index.include)]
        entry = [_core.Column(c.type, payload_bytes=widths[c.name]) for c in listed]
        try:
            _core.index_tuple_bytes(entry)
        except InputError as error:
            raise FieldError(f"{path}.indexes[{n}]", str(error)) from None


def _check_operations(profile: Profile) -> None:
    workload, clients = profile.workload, profile.workload.run.clients
    inserted_rows: dict[str, int] = {}
    for n, operation in enumerate(workload.operations):
        path, table = f"operation[{n}]", profile.table(operation.table)
        if table.rows % clients:
            place = f"table[{profile.tables.index(table)}].rows"
            fail(place, table.rows, f"a multiple of run.clients, which is {clients}")
        if operation.kind == "insert":
            rows = inserted_rows.setdefault(table.name, operation.rows_max)
            if rows != operation.rows_max:
                fail(
                    _most_rows(path, operation),
                    operation.rows_max,
                    f"{rows}, as in the other insert into {table.name}: keys would repeat",
                )
            continue
        if table.rows == 0:
            fail(f"{path}.table", table.name, "a table with rows")
        index = table.key_index
        assert index is not None, "operations other than insert need a key"
        if operation.kind == "upsert" and len(index.columns) > 1:
            fail(f"{path}.kind", "upsert", "a unique index over the key alone for ON CONFLICT")
        if operation.rows_max > table.rows:
            fail(_most_rows(path, operation), operation.rows_max, "at most the rows")
    _check_oldest(profile)
    check_foreign_keys(profile)


def _most_rows(path: str, operation: Operation) -> str:
    """The field that says how many rows a statement has at most."""
    varies = isinstance(operation.rows_per_statement, RowRange)
    return f"{path}.rows_per_statement{'.max' if varies else ''}"


def _check_oldest(profile: Profile) -> None:
    """`oldest` is counted by each client, which other ways to pick a row to delete would break."""
    for table in profile.tables:
        deletes = [
            (n, operation)
            for n, operation in enumerate(profile.workload.operations)
            if operation.table == table.name and operation.kind == "delete"
        ]
        picks = {o.pick.distribution for _, o in deletes if o.pick is not None}
        wanted = any(
            o.pick is not None and o.pick.distribution == "oldest" and o.table == table.name
            for o in profile.workload.operations
        )
        if wanted and picks - {"oldest"}:
            n = next(n for n, o in deletes if o.pick and o.pick.distribution != "oldest")
            fail(
                f"operation[{n}].pick.distribution",
                ", ".join(sorted(picks - {"oldest"})),
                f"oldest in every delete from {table.name}, for another operation picks the oldest",
            )
