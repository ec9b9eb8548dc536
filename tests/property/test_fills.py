"""What updates fill, out of rows whose every update is known."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pgheadroom.observe.fills import Fill, RowState, read_fills

BYTES = 64
ROWS = 2000
NULLABLE = (3, 5, 7, 9)
"""Attribute numbers of the columns that may be NULL; the last is filled by nothing."""

STEPS = st.lists(
    st.tuples(st.integers(20, ROWS * 3 // 4), st.integers(0, 5)),
    min_size=1,
    max_size=3,
    unique_by=lambda step: step[0],
)
"""At which age each of the first columns is filled, and by how many 8 bytes a row grows."""


def rows_of(steps: list[tuple[int, int]], rng: random.Random) -> list[RowState]:
    """A row of each age, in no order."""
    made = []
    for age in range(ROWS):
        nulls = sum(1 << place for place, (filled_at, _) in enumerate(steps) if age < filled_at)
        nulls |= 8 if rng.random() < 0.4 else 0
        length = BYTES + sum(8 * grown for filled_at, grown in steps if age >= filled_at)
        made.append(RowState(age, nulls, length - rng.randrange(8), 1.0))
    rng.shuffle(made)
    return made


def fills_of(steps: list[tuple[int, int]], **changes: Any) -> tuple[Fill | None, ...]:
    """One class of updates for each step; all of them set column 4 too."""
    rows = rows_of(steps, random.Random(3))
    classes = [(4, NULLABLE[place]) for place in range(len(steps))]
    return read_fills(changes.get("rows", rows), NULLABLE, changes.get("classes", classes))


@given(steps=STEPS)
def test_each_update_has_its_age_and_what_it_adds(steps: list[tuple[int, int]]) -> None:
    """In whatever order statements were listed; NULLs that age says nothing of change nothing."""
    gap = min((abs(a - b) for a, _ in steps for b, _ in steps if a != b), default=ROWS)
    found = fills_of(steps)
    for place, ((age, grown), fill) in enumerate(zip(steps, found, strict=True)):
        assert fill is not None
        assert fill.attnums == (NULLABLE[place],)
        assert fill.ages == (age, age, age)
        assert fill.ever_frac == 1
        if gap >= 5:
            assert fill.aligned_bytes is not None
            before, after = fill.aligned_bytes
            assert after - before == 8 * grown
            assert before == BYTES + sum(8 * more for at, more in steps if at < age)


@given(steps=STEPS, frac=st.floats(0.55, 0.95), seed=st.integers(0, 99))
def test_rows_that_are_never_filled_do_not_make_it_late(
    steps: list[tuple[int, int]], frac: float, seed: int
) -> None:
    """A part of the orders is never sent: the age is that of the others."""
    rng = random.Random(seed)
    (age, _), *_ = steps
    rows = [
        RowState(row.age, row.nulls | (0 if rng.random() < frac else 1), row.tuple_bytes, 1.0)
        for row in rows_of(steps[:1], rng)
    ]
    (fill,) = fills_of(steps[:1], rows=rows)
    assert fill is not None
    assert fill.ages[0] <= fill.ages[1] <= fill.ages[2]
    assert age <= fill.ages[1] < ROWS
    assert abs(fill.ever_frac - frac) < 0.35


@given(seed=st.integers(0, 999), null_frac=st.floats(0.02, 0.98))
def test_nulls_at_any_age_are_no_fill(seed: int, null_frac: float) -> None:
    """A note that one order in five has is none that an update wrote later."""
    rng = random.Random(seed)
    rows = [RowState(age, int(rng.random() < null_frac), BYTES, 1.0) for age in range(ROWS)]
    (fill,) = read_fills(rows, (3,), [(3,)])
    assert fill is None


@given(added_at=st.integers(20, ROWS - 20))
def test_a_column_that_was_added_later_is_no_fill(added_at: int) -> None:
    """Old rows have no value, young ones have: no update has filled it."""
    rows = [RowState(age, int(age >= added_at), BYTES, 1.0) for age in range(ROWS)]
    assert read_fills(rows, (3,), [(3,)]) == (None,)


def test_a_column_of_two_updates_belongs_to_the_first() -> None:
    """`updated_at` is set by all: NULL until the earliest."""
    steps = [(300, 1), (900, 2)]
    rows = [
        RowState(row.age, row.nulls & 3 | (4 if row.age < 300 else 0), row.tuple_bytes, 1.0)
        for row in rows_of(steps, random.Random(1))
    ]
    first, second = read_fills(rows, (3, 5, 7), [(5, 7), (3, 7)])
    assert first is not None
    assert second is not None
    assert (first.attnums, second.attnums) == ((5,), (3, 7))
    assert (first.ages[1], second.ages[1]) == (900, 300)


def test_updates_of_the_same_columns_are_not_told_apart() -> None:
    """Both set what is NULL in young rows: which of them fills it is not known."""
    rows = rows_of([(300, 1)], random.Random(1))
    assert read_fills(rows, NULLABLE, [(3, 4), (3, 6)]) == (None, None)
    assert read_fills(rows, NULLABLE, [(3, 4), (3, 6)], [0.8, 0.2]) == (None, None)


def test_a_column_belongs_to_what_nearly_always_sets_it() -> None:
    """
    River's jobs are completed, and one in fifty is put off: both set `finalized_at`.

    The updates that complete them had no age, and were taken for ones just before the deletion.
    """
    rows = rows_of([(300, 1)], random.Random(1))
    often, rare = read_fills(rows, NULLABLE, [(3, 4), (3, 6)], [0.98, 0.02])
    assert often is not None
    assert rare is None
    assert (often.attnums, often.ages[1]) == ((3,), 300)


@given(
    rows=st.lists(
        st.builds(
            RowState,
            st.floats(0, 1e9),
            st.integers(0, 15),
            st.none() | st.floats(24, 8160),
            st.floats(0.01, 1e6),
        ),
        max_size=200,
    ),
    classes=st.lists(st.lists(st.integers(1, 10), max_size=4, unique=True), max_size=4),
)
def test_whatever_was_sampled_has_an_answer_in_order(
    rows: list[RowState], classes: list[list[int]]
) -> None:
    """Ages ascend, no column belongs to two, and what can be said is said in the file's bounds."""
    found = read_fills(rows, NULLABLE, classes)
    assert len(found) == len(classes)
    taken: list[int] = []
    for fill, numbers in zip(found, classes, strict=True):
        if fill is None:
            continue
        assert set(fill.attnums) <= set(numbers)
        taken += fill.attnums
        assert 0 <= fill.ages[0] <= fill.ages[1] <= fill.ages[2]
        assert 0 <= fill.ever_frac <= 1
    assert len(taken) == len(set(taken))
