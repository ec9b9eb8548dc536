"""
What has to fit together across a profile's sections.
"""

from __future__ import annotations

from pgheadroom import _core
from pgheadroom.errors import InputError
from pgheadroom.forms import FieldError, fail
from pgheadroom.profile.column_types import NAME_DIGITS, has_operators, payload_bytes
from pgheadroom.profile.foreign_keys import check_foreign_keys
from pgheadroom.profile.keys import check_key, check_ranges
from pgheadroom.profile.model import Profile
from pgheadroom.profile.queue_head import check_heads
from pgheadroom.profile.tables import TableProfile
from pgheadroom.profile.workload import Operation, Pick, RowRange

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
        check_key(f"table[{n}]", table)
        _check_widths(f"table[{n}]", table)
    _check_operations(profile)


def _check_widths(path: str, table: TableProfile) -> None:
    """A row that even TOAST cannot make fit a page; an index entry above a third of one."""
    widths: dict[str, int | None] = {}
    for column in table.columns:
        if column.width is not None:
            widths[column.name] = column.width.max_bytes
        else:
            widths[column.name] = payload_bytes(column.type)
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
            given = index.opclass[k : k + 1] not in ((), ("",))
            column, place = table.column(name), f"{path}.indexes[{n}].columns[{k}]"
            if not given and not has_operators(column.type, index.method):
                method = {"brin": "BRIN", "btree": "a B-tree"}.get(index.method, index.method)
                fail(place, name, f"no {column.type}, which {method} has no operators for")
        if index.method != "btree" or not index.columns:
            continue
        listed = [table.column(name) for name in (*index.columns, *index.include)]
        entry = [
            _core.Column("cstring", payload_bytes=NAME_DIGITS)
            if c.base_type == "name"
            else _core.Column(c.type, payload_bytes=widths[c.name])
            for c in listed
        ]
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
        if table.rows == 0 and not (operation.is_living or operation.is_head):
            fail(
                f"{path}.table",
                table.name,
                "a table with rows, or a pick that follows the rows that are there: oldest (one "
                'row a statement), age, head, or among = "live"',
            )
        index = table.key_index
        assert index is not None, "operations other than insert need a key"
        if operation.kind == "upsert" and len(index.columns) > len(table.key_columns):
            fail(f"{path}.kind", "upsert", "a unique index over the key alone for ON CONFLICT")
        check_ranges(operation, path, table)
        if operation.rows_max > table.rows and not (operation.is_living or operation.is_head):
            fail(_most_rows(path, operation), operation.rows_max, "at most the rows")
    _check_upserts(profile)
    _check_oldest(profile)
    check_heads(profile)
    check_foreign_keys(profile)


def _check_upserts(profile: Profile) -> None:
    """
    Refuse upserts that take keys which another client's insert has later: that ends the client.

    A statement of several rows goes on behind the last loaded or inserted one. What becomes of one
    client's is certain, and the twin says it.
    """
    if profile.workload.run.clients == 1:
        return
    filled = {one.table for one in profile.workload.operations if one.kind == "insert"}
    for n, operation in enumerate(profile.workload.operations):
        if operation.kind == "upsert" and operation.rows_max > 1 and operation.table in filled:
            fail(
                _most_rows(f"operation[{n}]", operation),
                operation.rows_max,
                f"1, for several clients insert into {operation.table}, and a key that an upsert "
                "has taken before an insert comes to it ends the client",
            )


def _most_rows(path: str, operation: Operation) -> str:
    """The field that says how many rows a statement has at most."""
    varies = isinstance(operation.rows_per_statement, RowRange)
    return f"{path}.rows_per_statement{'.max' if varies else ''}"


def _check_oldest(profile: Profile) -> None:
    """`oldest` is counted by each client, which what deletes otherwise must not break."""
    for table in profile.tables:
        of_table = [
            (f"operation[{n}].pick", operation, operation.pick)
            for n, operation in enumerate(profile.workload.operations)
            if operation.table == table.name and operation.pick is not None
        ]
        oldest = [one for one in of_table if one[2].distribution == "oldest"]
        deletes = [one for one in of_table if one[1].kind == "delete"]
        others = [one for one in deletes if one[2].distribution != "oldest"]
        # Over several rows of the loaded ones it is the oldest that is there; of the living, the
        # oldest that no delete of the oldest has tried.
        if others and not all(operation.is_living for _, operation, _ in oldest):
            path, _, pick = others[0]
            fail(
                f"{path}.distribution",
                pick.distribution,
                f"oldest in every delete from {table.name}, for another operation picks the oldest",
            )
        _check_within([one for one in oldest if one[1].kind == "delete"], oldest)


_Picked = tuple[str, Operation, Pick]


def _check_within(deletes: list[_Picked], oldest: list[_Picked]) -> None:
    """All deletes of the oldest go through the same blocks, and who looks ahead does so too."""
    given = [pick.within_rows for _, _, pick in oldest if pick.within_rows is not None]
    blocks = [pick.within_rows for _, _, pick in deletes] or given or [None]
    for path, operation, pick in oldest:
        if pick.within_rows == blocks[0]:
            continue
        if pick.within_rows is None and operation.kind != "delete":
            continue  # the first row of the block, which may be gone
        fail(
            f"{path}.{'distribution' if pick.within_rows is None else 'within'}",
            pick.distribution if pick.within_rows is None else pick.within_rows,
            f"{'no within' if blocks[0] is None else f'within = {blocks[0]}'}, as in another pick "
            f"of the oldest rows of {operation.table}",
        )
