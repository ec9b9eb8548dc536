"""Which foreign keys of a database its profile plays, and which values their columns get."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
from observed_table import index as an_index

from pgheadroom.forms import FieldError, read
from pgheadroom.observe.answers import Answers
from pgheadroom.observe.columns import ColumnSeen
from pgheadroom.observe.referring import IDLE, NOT_HERE, Referring, with_foreign_keys
from pgheadroom.observe.tables import WatchedTable
from pgheadroom.profile import ForeignKey, Operation, Run, TableProfile
from pgheadroom.profile.change import Change
from pgheadroom.profile.model import ProfileFile
from pgheadroom.profile.observed import ObservedColumn, ObservedIndex, TableCounters
from pgheadroom.profile.reading import checked_profile
from pgheadroom.profile.tables import ColumnProfile, IndexProfile, Values
from pgheadroom.profile.workload import Pick
from pgheadroom.sources.recording import RecordedAnswer, Recording

CHILD, PARENT, WHOLE = 10, 20, 30


class Database:
    """Two tables, a key from `child.ref` to `parent.id`, and inserts into both."""

    def __init__(self) -> None:
        self.types = {"child": ["int8", "int4", "int4"], "parent": ["int8", "int4", "int4"]}
        self.key_columns = {"child": ("id",), "parent": ("id",)}
        self.rows = {"child": 1000, "parent": 200}
        self.key: dict[str, Any] = {
            "name": "child_ref_fkey",
            "table_oid": CHILD,
            "attnums": [2],
            "references_oid": PARENT,
            "references_attnums": [1],
            "is_valid": True,
        }
        self.keys = [self.key]
        self.ref: dict[str, Any] = {"n_distinct": 50.0, "correlation": 0.1, "null_frac": 0.0}
        self.deleted = 0
        self.kinds = {CHILD: "r", PARENT: "r", WHOLE: "p"}
        self.chosen = ["child", "parent"]
        self.is_partition = False
        self.indexed: list[str] = []
        self.operations = [
            Operation(table="child", kind="insert", weight=30),
            Operation(table="parent", kind="insert", weight=5),
        ]

    def update(self, *columns: str, **fracs: float) -> None:
        """Updates of the child beside."""
        sets = [Change(column=name) for name in columns]
        sets += [Change(column=name, changed_frac=frac) for name, frac in fracs.items()]
        uniform = Pick(distribution="uniform")
        one = Operation(table="child", kind="update", sets=tuple(sets), pick=uniform)
        self.operations.append(one)

    def found(self) -> Referring:
        """What is played of its keys."""
        oids = {"child": CHILD, "parent": PARENT}
        lines = {
            "tables": [
                {"oid": oid, "schema": "public", "name": name, "relkind": self.kinds[oid]}
                | {"parent_oid": WHOLE if self.is_partition and oid == CHILD else None}
                for name, oid in {**oids, "whole": WHOLE}.items()
            ],
            "columns": [
                {"oid": oid, "attnum": n, "name": column}
                for oid in oids.values()
                for n, column in enumerate(("id", "ref", "n"), start=1)
            ]
            + [{"oid": WHOLE, "attnum": 7, "name": "ref"}],
            "foreign_keys": self.keys,
        }
        recording = Recording(
            tuple(
                RecordedAnswer(query=query, moment="shape", rows=tuple(rows))
                for query, rows in lines.items()
            )
        )
        watched = {oids[name]: self._watched(name, oids[name]) for name in self.chosen}
        tables = [one.profile for one in watched.values()]
        operations = [one for one in self.operations if one.table in self.chosen]
        return with_foreign_keys(recording, watched, tables, operations, _problem)

    def _watched(self, name: str, oid: int) -> WatchedTable:
        columns = {}
        for n, (column, of_type) in enumerate(
            zip(("id", "ref", "n"), self.types[name], strict=True), start=1
        ):
            is_ref = (name, column) == ("child", "ref")
            facts = self.ref if is_ref else {}
            values = Values(kind="serial" if n == 1 else "random", ndistinct=None if n == 1 else 9)
            columns[n] = ColumnSeen(
                attnum=n,
                name=column,
                profile=ColumnProfile(
                    name=column,
                    type=of_type,
                    values=values,
                    null_frac=facts.get("null_frac", 0.0),
                ),
                observed=read(ObservedColumn, {"name": column, "type": of_type} | facts),
            )
        key = IndexProfile(name=f"{name}_pkey", columns=self.key_columns[name], unique=True)
        profile = TableProfile(
            name=name,
            rows=self.rows[name],
            columns=tuple(one.profile for one in columns.values()),
            indexes=(key,),
        )
        indexes = [an_index(f"{name}_{column}", [column]) for column in self.indexed]
        return WatchedTable(
            row={"oid": oid},
            answers=cast("Answers", None),
            profile=profile,
            rows_evidence="measured",
            pages_evidence=None,
            pages=10,
            columns=columns,
            added_columns=(),
            dropped_columns=0,
            key_attnum=1,
            indexes=tuple(read(ObservedIndex, one) for one in indexes),
            differs={},
            counters=TableCounters(n_tup_del=self.deleted if name == "parent" else 0),
            values=None,
            times=frozenset(),
            unique=frozenset({1}),
        )


def _problem(tables: Sequence[TableProfile], operations: Sequence[Operation]) -> FieldError | None:
    try:
        checked_profile(
            ProfileFile(
                schema_version=1,
                tables=tuple(tables),
                operations=tuple(operations),
                run=Run(operations=10),
            )
        )
    except FieldError as error:
        return error
    return None


def _values(found: Referring) -> Values | None:
    child = found.tables[0]
    assert child.foreign_keys == (ForeignKey(columns=("ref",), references="parent"),)
    return child.column("ref").values


def test_inserts_lock_what_they_refer_to() -> None:
    """As many rows as the column has values, by pg_stats."""
    database = Database()
    found = database.found()
    assert _values(found) == Values(kind="parent", ndistinct=50)
    assert not found.left_out
    database.ref["n_distinct"] = -0.5  # 500 values of 200 rows: more came since
    assert _values(database.found()) == Values(kind="parent", ndistinct=200)
    assert not any("pg_stats" in line for line in database.found().assumed)
    database.ref["n_distinct"] = None
    found = database.found()
    assert _values(found) == Values(kind="parent", ndistinct=200)
    assert found.assumed[1].startswith("pg_stats tell nothing of child.ref: each row is taken to ")


def test_rows_that_come_together_refer_to_the_newest() -> None:
    """An order and its lines: the column's order is that of the rows, and orders come too."""
    database = Database()
    database.ref["correlation"] = 0.97
    assert _values(database.found()) == Values(kind="parent", ndistinct=50, pick="newest")
    database.operations.pop()  # no orders come
    assert _values(database.found()) == Values(kind="parent", ndistinct=50)


def test_uuids_refer_to_uuids() -> None:
    """One that is assigned and kept does no harm; one that changes has no next."""
    database = Database()
    database.types = {name: ["uuid", "uuid", "int4"] for name in database.types}
    database.update("n", ref=0.0)
    assert _values(database.found()) == Values(kind="parent", ndistinct=50)
    database.update("ref")
    why = set(database.found().left_out.values())
    assert why == {"updates change them, and of uuids none is the next"}


def test_a_partition_has_the_key_of_its_table() -> None:
    """Its column has the same name, and may have another number."""
    database = Database()
    database.is_partition = True
    database.key |= {"table_oid": WHOLE, "attnums": [7]}
    assert _values(database.found()) == Values(kind="parent", ndistinct=50)


def test_nothing_looks_for_rows() -> None:
    """A key that no statement uses would be in every load for nothing; it is no news either."""
    database = Database()
    database.operations = [Operation(table="parent", kind="insert")]
    database.update(ref=0.0)
    found = database.found()
    assert found.left_out == {(CHILD, "child_ref_fkey"): IDLE}
    assert found.assumed == ()
    database.operations.append(Operation(table="child", kind="insert"))
    database.ref["null_frac"] = 1.0
    assert set(database.found().left_out.values()) == {IDLE}


def test_one_row_to_refer_to() -> None:
    """An update that would be HOT but for this column has no other row to go to."""
    database = Database()
    database.ref["n_distinct"] = 1.0
    database.update("n", "ref")
    assert _values(database.found()) == Values(kind="parent", ndistinct=1)
    database.indexed = ["ref", "n"]
    assert _values(database.found()) == Values(kind="parent", ndistinct=1)
    database.indexed = ["ref"]
    why = set(database.found().left_out.values())
    assert why == {"updates change them, and there is one row to refer to"}


def _few_deletes(database: Database) -> None:
    """Two users go, of 200, while 100 come and 3,000 orders do."""
    database.deleted = 2
    database.operations = [
        Operation(table="child", kind="insert", weight=3000),
        Operation(table="parent", kind="insert", weight=100),
        Operation(table="parent", kind="delete", weight=2, pick=Pick(distribution="oldest")),
    ]


def test_few_deletes_give_way() -> None:
    """Of users some are deleted now and then; what their orders lock is a hundred times that."""
    database = Database()
    _few_deletes(database)
    found = database.found()
    assert _values(found) == Values(kind="parent", ndistinct=50)
    assert found.operations == tuple(database.operations[:2])
    said = "from parent, to which others refer, no row is deleted: its deletes are left out, for "
    assert f"{said}they were few (2)" in found.assumed
    database.key["is_valid"] = False
    assert database.found().operations == tuple(database.operations)


def _several(database: Database) -> None:
    database.key |= {"attnums": [2, 3], "references_attnums": [1, 3]}


def _itself(database: Database) -> None:
    database.key["references_oid"] = CHILD


def _not_valid(database: Database) -> None:
    database.key["is_valid"] = False


def _partitioned(database: Database) -> None:
    database.kinds[PARENT] = "p"


def _parent_not_chosen(database: Database) -> None:
    database.chosen.remove("parent")


def _child_not_chosen(database: Database) -> None:
    database.chosen.remove("child")


def _deletes(database: Database) -> None:
    oldest = Pick(distribution="oldest")
    database.operations.append(Operation(table="parent", kind="delete", pick=oldest))


def _few_deletes_of_a_queue(database: Database) -> None:
    _few_deletes(database)
    last = Operation(
        table="parent",
        kind="update",
        sets=(Change(column="n"),),
        pick=Pick(distribution="oldest"),
    )
    database.operations.append(last)


def _many_for_what_comes(database: Database) -> None:
    _few_deletes(database)
    database.operations[1] = replace(database.operations[1], weight=30)


def _many_for_what_is_looked_for(database: Database) -> None:
    _few_deletes(database)
    database.ref["null_frac"] = 0.99


def _many_for_its_rows(database: Database) -> None:
    _few_deletes(database)
    database.rows["parent"] = 30


def _another_column(database: Database) -> None:
    database.key["references_attnums"] = [2]


def _index_of_two(database: Database) -> None:
    database.key_columns["parent"] = ("id", "ref")


def _short_texts(database: Database) -> None:
    """A text of the key stands as an integer, and the rest of its bytes."""
    database.types["child"] = ["int8", "text", "int4"]
    database.key_columns["parent"] = ("id", "ref")


def _own_key(database: Database) -> None:
    database.key["attnums"] = [1]


def _other_types(database: Database) -> None:
    database.types["child"][1] = "numeric"


def _no_rows(database: Database) -> None:
    database.rows["parent"] = 0


def _narrow(database: Database) -> None:
    database.types["child"][1] = "int2"
    database.rows["parent"] = 40_000


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (_several, "they are of several columns"),
        (_itself, "their tables refer to themselves"),
        (_not_valid, "they are NOT VALID, or not enforced"),
        (_partitioned, "they refer to partitioned tables"),
        (_parent_not_chosen, NOT_HERE),
        (_child_not_chosen, NOT_HERE),
        (_few_deletes_of_a_queue, "rows of parent are deleted"),
        (_many_for_what_comes, "rows of parent are deleted"),
        (_many_for_what_is_looked_for, "rows of parent are deleted"),
        (_many_for_its_rows, "rows of parent are deleted"),
        (_deletes, "rows of parent are deleted"),
        (_another_column, "they refer to another column of parent than its rows are found by"),
        (_index_of_two, "rows of parent are found by an index of several columns"),
        (_short_texts, "they are neither of integers nor of uuids"),
        (_own_key, "their column is the key of its own table"),
        (_other_types, "they are neither of integers nor of uuids"),
        (_no_rows, "parent has no rows"),
        (_narrow, "a profile cannot hold it: found 'ref int2', expected a type that holds"),
    ],
)
def test_what_is_left_out_is_named(spoil: Callable[[Database], None], why: str) -> None:
    """What a profile cannot have costs the key alone, and its reason is said once."""
    database = Database()
    spoil(database)
    found = database.found()
    assert all(not table.foreign_keys for table in found.tables)
    assert found.left_out[CHILD, "child_ref_fkey"].startswith(why)
    (said,) = found.assumed
    assert said.startswith(f"a foreign key is not played (child_ref_fkey of child): {why}")


def test_a_column_refers_once() -> None:
    """Two keys of one column are two locks, of which a profile has the first."""
    database = Database()
    database.keys.append(database.key | {"name": "twice"})
    found = database.found()
    assert _values(found) == Values(kind="parent", ndistinct=50)
    assert found.left_out == {(CHILD, "twice"): "another one of the same column is played"}


def test_keys_of_one_reason_are_one_line() -> None:
    """Hundreds of them would hide what else is assumed."""
    database = Database()
    database.key["is_valid"] = False
    database.keys += [database.key | {"name": f"k{n}"} for n in range(5)]
    (said,) = database.found().assumed
    assert said.startswith("6 foreign keys are not played (child_ref_fkey of child, k0 of child, ")
    assert "and 3 more): they are NOT VALID" in said
