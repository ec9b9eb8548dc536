"""Which index a queue's head is in a profile, which rows wait, and what is said where none is."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Literal

import pytest

from pgheadroom.forms import read
from pgheadroom.observe.answers import Answers
from pgheadroom.observe.classes import CountedHead, CountedUpdates, TakenBy
from pgheadroom.observe.columns import ColumnSeen
from pgheadroom.observe.heads import Heads, with_heads
from pgheadroom.observe.operations import make_operations
from pgheadroom.observe.sample import Skew
from pgheadroom.observe.tables import WatchedTable
from pgheadroom.profile import Pick
from pgheadroom.profile.observed import ObservedColumn, TableCounters
from pgheadroom.profile.tables import ColumnProfile, IndexProfile, TableProfile, Values

ID, STATE, DUE, QUEUE, LOCKED = 1, 2, 3, 4, 5
NAMES = {ID: "id", STATE: "state", DUE: "due", QUEUE: "queue", LOCKED: "locked_at"}
ROWS, CALLS = 1000, 100
Condition = tuple[str, tuple[int, ...]]


class Jobs:
    """A table of jobs, its indexes, and what takes rows of it."""

    def __init__(self) -> None:
        self.types = {ID: "int8", STATE: "int4", DUE: "timestamptz", QUEUE: "text"}
        self.types[LOCKED] = "timestamptz"
        self.facts: dict[int, dict[str, Any]] = {
            ID: {"n_distinct": -1.0, "correlation": 1.0},
            STATE: {"n_distinct": 3.0, "common_frac": 0.95},
            DUE: {"n_distinct": -1.0, "correlation": 0.99},
            QUEUE: {"n_distinct": 1.0},
            LOCKED: {"n_distinct": -1.0},
        }
        self.inserts = CALLS
        self.labels: tuple[str, ...] = ()
        self.shares: tuple[float, ...] = ()
        self.indexes: list[dict[str, Any]] = []
        self.where: dict[str, str] = {}
        self.defaults: set[int] = set()
        self.index("jobs_pkey", [ID])

    def index(
        self,
        name: str,
        keys: list[int],
        *,
        where: str | None = None,
        rows: int = ROWS,
        scans: int = 0,
        options: list[int] | None = None,
    ) -> None:
        """One more, of so many rows."""
        self.indexes.append(
            {
                **{"oid": 100 + len(self.indexes), "schema": "public", "name": name},
                **{"method": "btree", "is_live": True, "is_valid": True, "attnums": keys},
                **{"key_count": len(keys), "options": options or [0] * len(keys)},
                **{"has_expressions": False, "has_predicate": where is not None},
                **{"reltuples": float(rows), "scans": scans},
            }
        )
        if where is not None:
            self.where[name] = where

    def found(
        self,
        order: list[int | tuple[int, bool]],
        *conditions: Condition,
        sets: tuple[int, ...] = (STATE,),
        kind: Literal["update", "delete", "select"] = "update",
        rows: int = CALLS,
    ) -> tuple[WatchedTable, Heads]:
        """With statements of one kind."""
        taken = TakenBy(
            ordered=tuple(
                (*one, False) if isinstance(one, tuple) else (one, False, False) for one in order
            ),
            conditions=conditions,
            is_limited=True,
            is_joined=False,
        )
        update = CountedUpdates(
            table_oid=1,
            kind="update",
            attnums=sets,
            same=(),
            appended=(),
            calls=CALLS,
            rows=rows,
            source="pg_stat_statements",
            taken=taken if kind == "update" else None,
        )
        counted = [CountedHead(kind=kind, taken=taken, calls=CALLS, rows=rows)]
        return with_heads(
            self._watched(),
            [update] if kind == "update" else [],
            [] if kind == "update" else counted,
        )

    def _watched(self) -> WatchedTable:
        columns = {
            number: ColumnSeen(
                attnum=number,
                name=name,
                profile=self._column(number, name),
                observed=read(
                    ObservedColumn,
                    {"name": name, "type": self.types[number]}
                    | {k: v for k, v in self.facts[number].items() if k != "common_frac"},
                ),
            )
            for number, name in NAMES.items()
        }
        given: dict[str, Any] = {field.name: {} for field in fields(Answers)}
        given |= {
            "indexes": {1: tuple(self.indexes)},
            "columns": {1: tuple({"attnum": n, "is_now": n in self.defaults} for n in NAMES)},
            "index_after": {one["oid"]: {"idx_scan": one["scans"]} for one in self.indexes},
            "statistics": {
                ("public", "jobs", NAMES[number]): facts for number, facts in self.facts.items()
            },
        }
        made = [
            IndexProfile(
                name=one["name"],
                columns=tuple(NAMES[number] for number in one["attnums"]),
                unique=one["name"] == "jobs_pkey",
                where=self.where.get(one["name"]),
                order=tuple("DESC" if option & 1 else "" for option in one["options"])
                if any(one["options"])
                else (),
            )
            for one in self.indexes
        ]
        return WatchedTable(
            row={"oid": 1, "schema": "public", "name": "jobs"},
            answers=Answers(**given),
            profile=TableProfile(
                name="jobs",
                rows=ROWS,
                columns=tuple(one.profile for one in columns.values()),
                indexes=tuple(made),
            ),
            rows_evidence="measured",
            pages_evidence=None,
            pages=10,
            columns=columns,
            added_columns=(),
            dropped_columns=0,
            key_attnum=ID,
            indexes=(),
            differs={},
            counters=TableCounters(n_tup_ins=self.inserts, n_tup_del=CALLS),
            values=None,
            times=frozenset({DUE}),
            unique=frozenset({ID}),
        )

    def _column(self, number: int, name: str) -> ColumnProfile:
        if number == ID:
            return ColumnProfile(name=name, type="int8", values=Values(kind="serial"))
        if number == STATE and self.labels:
            values = Values(kind="random", ndistinct=len(self.labels), shares=self.shares)
            return ColumnProfile(name=name, type="enum", labels=self.labels, values=values)
        distinct = self.facts[number]["n_distinct"]
        values = Values(kind="random", ndistinct=round(distinct if distinct > 0 else ROWS))
        return ColumnProfile(
            name=name,
            type=self.types[number],
            values=values,
            null_frac=0.95 if number == LOCKED else 0.0,
        )


@pytest.fixture
def jobs() -> Jobs:
    """One queue, whose rows are nearly all waiting."""
    return Jobs()


WAITING: Condition = ("equal", (STATE,))
FROM_DEFAULTS = [(0.1, True, "serial"), (0.1, False, "random"), (0.99, True, "random")]


def _head(using: str, where: str | None = None) -> Pick:
    return Pick(distribution="head", using=using, where=where)


def test_a_predicate_is_the_value_of_all_rows(jobs: Jobs) -> None:
    """Rows of a profile have 0 there, come with it, and are taken out of the index by an update."""
    jobs.index("jobs_ready", [DUE, ID], where="state = 3", rows=950, scans=CALLS)
    table, heads = jobs.found([DUE, ID], WAITING, ("below", (DUE,)))
    assert _pick(heads) == _head("jobs_ready", "state = 0")
    assert table.profile.indexes[1].where == "state = 0"
    assert table.profile.column("state").values == Values(kind="constant")
    # Jobs come in the order in which they are due, so the oldest is the one that was taken.
    assert table.profile.column("due").values == Values(kind="serial")
    assert heads.update is not None
    assert (heads.update.is_fifo, heads.update.done) == (True, "state = 1")
    assert "the range of due is left out: every row is due" in heads.said


def test_a_condition_that_also_reads_what_waits_is_left_out_and_said(jobs: Jobs) -> None:
    """graphile-worker leaves jobs of a queue that is busy: `queue IS NULL OR queue IN (..)`."""
    jobs.index("jobs_ready", [DUE, ID], where="state = 3", rows=950, scans=CALLS)
    heads = jobs.found([DUE, ID], WAITING, ("other", (QUEUE, STATE)))[1]
    assert "the condition on queue, state is left out: all rows fulfil it" in heads.said
    assert not any("state is left out" in said for said in jobs.found([DUE, ID], WAITING)[1].said)


def test_an_order_that_is_not_that_of_the_rows(jobs: Jobs) -> None:
    """Then what was taken is not the oldest."""
    jobs.facts[DUE]["correlation"] = 0.1
    jobs.index("jobs_ready", [DUE, ID], where="state = 3", rows=950)
    table, heads = jobs.found([DUE, ID], WAITING)
    assert heads.update is not None
    assert not heads.update.is_fifo
    assert table.profile.column("due").values.kind == "random"


def test_of_several_indexes_the_one_with_scans(jobs: Jobs) -> None:
    """Rows are found by their key as well: that it has scans says nothing."""
    jobs.indexes[0]["scans"] = 5 * CALLS
    jobs.index("jobs_ready", [ID], where="state = 3", rows=950, scans=CALLS)
    assert _pick(jobs.found([ID], WAITING)[1]) == _head("jobs_ready", "state = 0")
    jobs.indexes[1]["scans"] = 0
    assert _pick(jobs.found([ID], WAITING)[1]) == _head("jobs_pkey", '"state" = 0')


def test_one_value_in_front_of_the_order(jobs: Jobs) -> None:
    """Of a number it is that of nearly all rows, by how often the most common one stands."""
    jobs.index("jobs_state", [STATE, DUE, ID], scans=CALLS)
    assert _pick(jobs.found([DUE, ID], WAITING)[1]) == _head("jobs_state", '"state" = 0')
    jobs.facts[STATE]["common_frac"] = 0.5
    assert "by state 50 % of the rows wait" in _why(jobs.found([DUE, ID], WAITING)[1])
    del jobs.facts[STATE]["common_frac"]
    assert "how many rows wait is not known" in _why(jobs.found([DUE, ID], WAITING)[1])
    jobs.types[STATE] = "text"
    assert "state is text" in _why(jobs.found([DUE, ID], WAITING)[1])


def test_what_all_rows_have_is_no_condition(jobs: Jobs) -> None:
    """A queue's name, where there is one queue, is in front of the index and is not asked for."""
    jobs.index("jobs_queue", [QUEUE, DUE, ID], scans=CALLS)
    heads = jobs.found([DUE, ID], ("equal", (QUEUE,)), kind="delete")[1]
    assert _pick(heads) == _head("jobs_queue")
    assert not any("left out" in said for said in heads.said)
    jobs.facts[QUEUE]["n_distinct"] = 4.0
    assert "one value of which" in _why(
        jobs.found([DUE, ID], ("equal", (QUEUE,)), kind="delete")[1]
    )


def test_an_enum_has_its_own_labels(jobs: Jobs) -> None:
    """New rows have that of the predicate; where most have another, rows go by age."""
    jobs.types[STATE], jobs.labels, jobs.shares = "enum", ("new", "done"), (0.95, 0.05)
    jobs.index("jobs_ready", [DUE, ID], where="state = 'new'", rows=950, scans=CALLS)
    table, heads = jobs.found([DUE, ID], WAITING)
    assert _pick(heads) == _head("jobs_ready", "state = 'new'")
    assert table.profile.column("state").values.new == "new"
    jobs.indexes[1]["reltuples"] = 50.0
    assert "5 % of the rows wait" in _why(jobs.found([DUE, ID], WAITING)[1])


@pytest.mark.parametrize(
    ("order", "conditions", "sets", "why"),
    [
        ([(DUE, True), ID], [WAITING], (STATE,), "their order descends"),
        ([LOCKED], [WAITING], (STATE,), "no index has their order"),
        ([DUE, ID], [("null", (LOCKED,))], (LOCKED,), "a NULL stays NULL"),
        ([DUE, ID], [("null", (LOCKED,))], (STATE,), "the update leaves rows in jobs_free"),
        ([ID], [("below", (DUE,))], (DUE,), "changes none of the columns"),
    ],
)
def test_what_profiles_have_not_is_said(
    jobs: Jobs,
    order: list[int | tuple[int, bool]],
    conditions: list[Condition],
    sets: tuple[int, ...],
    why: str,
) -> None:
    """In words, and the rows go by age."""
    jobs.index("jobs_free", [DUE, ID], where="locked_at IS NULL", rows=950, scans=CALLS)
    jobs.index("jobs_last", [DUE, ID], options=[3, 0])
    heads = jobs.found(order, *conditions, sets=sets)[1]
    assert _pick(heads) is None
    assert why in _why(heads)


def test_a_deleted_row_may_be_free_by_a_null(jobs: Jobs) -> None:
    """It is gone from the index however its condition is."""
    jobs.index("jobs_free", [DUE, ID], where="locked_at IS NULL", rows=950, scans=CALLS)
    table, heads = jobs.found([DUE, ID], ("null", (LOCKED,)), kind="delete")
    assert _pick(heads) == _head("jobs_free", "locked_at IS NULL")
    assert table.profile.column("locked_at").null_frac == 1


@pytest.mark.parametrize(("rows", "is_taken"), [(CALLS, True), (CALLS // 2, False)])
def test_rows_that_a_query_locks(jobs: Jobs, rows: int, is_taken: bool) -> None:
    """They are those that are deleted where they are as many, in another statement."""
    _, heads = jobs.found([ID], kind="select", rows=rows)
    assert (heads.delete is not None) is is_taken


def _pick(heads: Heads) -> Pick | None:
    head = heads.update or heads.delete
    return None if head is None else head.pick


def _why(heads: Heads) -> str:
    return "; ".join(heads.said)


def test_an_index_that_is_walked_backward(jobs: Jobs) -> None:
    """A server walks it so; profiles have heads of ascending columns alone."""
    jobs.index("jobs_state", [STATE, DUE, ID], scans=CALLS)
    heads = jobs.found([(DUE, True), (ID, True)], WAITING)[1]
    assert _pick(heads) is None
    assert "their order descends" in _why(heads)


def test_a_queue_that_is_emptied_for_good(jobs: Jobs) -> None:
    """It has no steady state: its rows are those that are there."""
    jobs.inserts = 0
    heads = jobs.found([ID], kind="delete")[1]
    assert _pick(heads) is None
    assert "nothing came into the queue" in _why(heads)


GENERATED = {"generated": "stored", "generated_from": ("locked_at",)}


def _generated(jobs: Jobs, where: str) -> None:
    """Jobs as graphile-worker has them: `is_available` is generated from `locked_at`."""
    jobs.types[STATE] = "bool"
    jobs.facts[STATE] = {"n_distinct": 2.0, "common_frac": 0.95} | GENERATED
    jobs.index("jobs_main", [DUE], where=where, rows=950, scans=CALLS)


@pytest.mark.parametrize("where", ["state = true", "state", "state IS TRUE"])
def test_a_condition_on_a_generated_column_is_what_it_is_generated_from(
    jobs: Jobs, where: str
) -> None:
    """
    Its value is another one when these change, and the update that locks a job takes it.

    The rows of graphile-worker's index were said to stay in it, for no statement assigns the column
    of its predicate.
    """
    _generated(jobs, where)
    table, heads = jobs.found([DUE], WAITING, sets=(LOCKED,))
    assert heads.update is not None
    assert heads.update.pick == _head("jobs_main", 'NOT "state"')
    assert (heads.update.done, heads.update.state) == ('"state"', "state")
    assert table.profile.column("state").values == Values(kind="constant")


def test_who_turns_a_boolean_turns_it_in_all_predicates(jobs: Jobs) -> None:
    """Else its second index would have no job that waits, and each that is taken."""
    _generated(jobs, "state = true")
    jobs.index("jobs_free", [DUE], where="state = true AND queue IS NULL", rows=900)
    jobs.index("jobs_done", [DUE], where="(NOT state) AND restated = true", rows=50)
    table, _ = jobs.found([DUE], WAITING, sets=(LOCKED,))
    assert {one.name: one.where for one in table.profile.indexes if one.where} == {
        "jobs_main": 'NOT "state"',
        "jobs_free": 'NOT "state" AND queue IS NULL',
        "jobs_done": '("state") AND restated = true',
    }


def test_a_boolean_is_not_turned_where_a_predicate_asks_otherwise(jobs: Jobs) -> None:
    _generated(jobs, "state = true")
    jobs.index("jobs_odd", [DUE], where="state IS NULL", rows=0)
    heads = jobs.found([DUE], WAITING, sets=(LOCKED,))[1]
    assert _pick(heads) is None
    assert "another value of state than true and false" in _why(heads)


@pytest.mark.parametrize(("key", "is_default", "kind"), FROM_DEFAULTS)
def test_what_is_now_by_default_comes_in_order(
    jobs: Jobs, key: float, is_default: bool, kind: str
) -> None:
    """A queue of 20 jobs has them where others were: not even the key is in the rows' order."""
    jobs.facts[ID]["correlation"], jobs.facts[DUE]["correlation"] = key, 0.2
    jobs.defaults = {DUE} if is_default else set()
    jobs.index("jobs_ready", [QUEUE, DUE], where="state = 3", rows=950)
    jobs.facts[QUEUE]["n_distinct"] = 2.0
    table, heads = jobs.found([QUEUE, DUE], WAITING)
    assert heads.update is not None
    assert not heads.update.is_fifo
    assert table.profile.column("due").values.kind == kind


def test_an_update_changes_what_is_generated_from_its_columns(jobs: Jobs) -> None:
    """Else updates that end HOT on a server, by the index over it, are HOT in the profile: all."""
    _generated(jobs, "state = true")
    table, _ = jobs.found([DUE], WAITING, sets=(LOCKED,))
    update = CountedUpdates(
        table_oid=1,
        kind="update",
        attnums=(LOCKED,),
        same=(),
        appended=(),
        calls=CALLS,
        rows=CALLS,
        source="pg_stat_statements",
    )
    table = replace(table, counters=TableCounters(n_tup_upd=CALLS))
    skew = Skew(pick=Pick(distribution="uniform"), evidence="assumed", why="")
    made, seen = make_operations(
        table, [update], skew, (None, ""), Heads(), shared=False, interval_s=100.0
    )
    assert [change.column for change in made[0].sets] == ["locked_at", "state"]
    assert seen.classes[0].columns == ("locked_at",)
    same = replace(update, same=(LOCKED,))
    made, _ = make_operations(
        table, [same], skew, (None, ""), Heads(), shared=False, interval_s=100.0
    )
    assert [change.column for change in made[0].sets] == ["locked_at"]
