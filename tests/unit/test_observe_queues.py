"""Queues: what statements that skip locked rows say, and what becomes of it in a profile."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgheadroom.advise.knobs import Knobs, scattered, turned
from pgheadroom.observe.heads import HeadPick
from pgheadroom.observe.living import LivingUpdates, living_operations
from pgheadroom.profile import Change, Operation, Pick
from pgheadroom.sources.statements import Head, heads_of, split

QUERY = "SELECT id FROM jobs WHERE state = 'new' ORDER BY due, id LIMIT 1 FOR UPDATE SKIP LOCKED"


def _heads(text: str) -> list[Head]:
    return [head for statement in split(text) for head in heads_of(statement)]


@pytest.mark.parametrize(
    "text",
    [
        f"DELETE FROM jobs WHERE id = ({QUERY})",
        f"delete from jobs where id in ({QUERY.lower()}) returning *",
        f"/* x */ WITH q AS ({QUERY}) DELETE FROM jobs USING q WHERE q.id = jobs.id;",
    ],
)
def test_a_statement_as_it_was_sent(text: str) -> None:
    """Its literals are put away before it is read, and what it takes is told all the same."""
    (head,) = _heads(text)
    assert (head.kind, head.table, head.key, head.is_limited) == ("delete", "jobs", "id", True)
    assert [one.column for one in head.ordered] == ["due", "id"]
    assert [(one.kind, one.columns) for one in head.conditions] == [("equal", ("state",))]


def test_que_takes_rows_under_advisory_locks() -> None:
    """Que and older good_job skip rows by pg_try_advisory_lock: nothing of it is a head."""
    assert _heads("SELECT * FROM que_jobs WHERE pg_try_advisory_lock(id) LIMIT 1") == []


def _pick(where: str | None = None) -> Pick:
    return Pick(distribution="head", using="jobs_due", where=where)


def _head(
    where: str | None = None, *, rows: int = 1, fifo: bool = True, done: str | None = None
) -> HeadPick:
    return HeadPick(
        pick=_pick(where), rows_per_statement=rows, is_fifo=fifo, done=done, state="state"
    )


def _turn(
    *updates: LivingUpdates, taken: HeadPick | None = None, inserts: int = 900, deletes: int = 900
) -> tuple[list[Operation], list[str]]:
    assumed: list[str] = []
    made = living_operations(
        "jobs",
        1000,
        inserts=inserts,
        deletes=deletes,
        updates=updates,
        ages=None,
        assumed=assumed,
        taken=taken,
        key_index="jobs_pkey",
    )
    return made, assumed


def _updates(
    head: HeadPick | None = None, column: str = "state", frac: float = 1.0
) -> LivingUpdates:
    return LivingUpdates(sets=(Change(column=column, changed_frac=frac),), rows=890, head=head)


def _shown(operations: list[Operation]) -> list[tuple[str, object, object, object]]:
    return [
        (
            one.kind,
            one.rows_per_statement,
            None if one.pick is None else one.pick.distribution,
            None if one.pick is None else one.pick.where,
        )
        for one in operations
    ]


def test_a_delete_from_the_head_takes_what_a_turn_inserts() -> None:
    """Ten at a time stay ten at a time, and the queue is as long at the end as it was."""
    made, _ = _turn(taken=_head(rows=10))
    assert _shown(made) == [("insert", 10, None, None), ("delete", 10, "head", None)]
    assert {one.weight for one in made} == {90}


def test_what_was_taken_in_order_is_the_oldest() -> None:
    """By then another pick would walk all that wait."""
    made, _ = _turn(_updates(_head("state = 0", done="state = 1")))
    assert _shown(made) == [
        ("insert", 1, None, None),
        ("update", 1, "head", "state = 0"),
        ("delete", 1, "oldest", None),
    ]


def test_what_was_taken_out_of_order_is_what_no_longer_waits() -> None:
    """The oldest row may still wait: it would be deleted before it was taken."""
    made, _ = _turn(_updates(_head("state = 0", fifo=False, done="state = 1")))
    assert _shown(made)[1:] == [
        ("update", 1, "head", "state = 0"),
        ("delete", 1, "head", "state = 1"),
    ]
    # Beside picks by age profiles have no such delete, and then no head either.
    made, _ = _turn(
        _updates(_head("state = 0", fifo=False, done="state = 1")), _updates(column="beat")
    )
    assert not any(one.is_head for one in made)


def test_few_jobs_that_fail_leave_the_queue_a_queue() -> None:
    """Real programs have some, which are put off by an update of their own: 2 % beside graphile."""
    head = _head("state = 0", fifo=False, done="state = 1")
    failed = replace(_updates(column="last_error"), rows=20)
    made, assumed = _turn(_updates(head), failed)
    assert [one.is_head for one in made] == [False, True, True]
    assert (
        "updates of last_error are left out, 2.2 % of as many as rows come: they are of other rows "
        "than the head of the queue"
    ) in assumed
    made, assumed = _turn(_updates(head), replace(failed, rows=90))
    assert not any(one.is_head for one in made)
    # The oldest is deleted beside any other, and then none is left out.
    made, assumed = _turn(_updates(_head("state = 0")), failed)
    assert not any("left out" in said for said in assumed)


def test_each_row_that_is_taken_leaves_the_queue() -> None:
    """Counters may have it that not all changed: such a row would be taken again."""
    made, _ = _turn(_updates(_head("state = 0"), frac=0.9))
    assert made[1].sets == (Change(column="state"),)
    assert turned(made[1], Knobs(changed_frac={"state": 0.5})) == made[1]
    # Rows of one statement are those that wait longest, wherever these lie.
    made, _ = _turn(_updates(_head("state = 0", rows=5)))
    assert scattered(made[1]) == made[1]


def test_a_delete_with_a_condition_stands_beside_no_other_update() -> None:
    """`check_heads` refuses that, and the table would go without its deletes."""
    made, assumed = _turn(_updates(column="beat"), taken=_head("state = 0"))
    assert _shown(made)[-1] == ("delete", 1, "oldest", None)
    assert any("the queue's head is not taken" in said for said in assumed)
    made, _ = _turn(_updates(column="beat"), taken=_head())
    assert _shown(made)[-1] == ("delete", 1, "head", None)


def test_several_updates_of_a_batch_come_to_each_row() -> None:
    """A turn of four rows has four of an update that each row has once."""
    made, _ = _turn(_updates(_head("state = 0", rows=4)), _updates(column="beat"))
    assert [one.kind for one in made].count("update") == 5
    assert [one.kind for one in made].count("delete") == 4


def test_each_takes_as_many_as_it_does_at_a_time() -> None:
    """Workers take one job, and what clears up takes ten."""
    made, _ = _turn(_updates(_head("state = 0")), taken=_head(rows=10))
    updates = [one for one in made if one.kind == "update"]
    assert [one.rows_per_statement for one in updates] == [1] * 10
    assert _shown(made)[-1] == ("delete", 10, "head", None)
