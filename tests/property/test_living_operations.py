"""Operations of tables whose rows come and go: what any counters and ages may lead to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pgheadroom.observe.ages import Ages
from pgheadroom.observe.fills import Fill
from pgheadroom.observe.living import LivingUpdates, living_operations
from pgheadroom.profile import (
    Change,
    ColumnProfile,
    IndexProfile,
    Operation,
    Pick,
    Run,
    ServerSettings,
    TableProfile,
    Values,
)
from pgheadroom.profile.model import SCHEMA_VERSION, ProfileFile
from pgheadroom.profile.reading import checked_profile

JOBS = TableProfile(
    name="jobs",
    rows=0,
    columns=(
        ColumnProfile(name="id", type="int8", values=Values(kind="serial")),
        ColumnProfile(name="state", type="int4"),
    ),
    indexes=(IndexProfile(name="jobs_pkey", columns=("id",), unique=True),),
)
COUNTS = st.integers(1, 200_000)
AGES = st.none() | st.builds(
    lambda ages, beside, gone, mixed: Ages(
        attnum=1,
        updates=tuple(sorted(ages)),
        beside=beside,
        gone_frac=gone,
        mixed_rows=mixed,
        why="",
    ),
    ages=st.lists(st.floats(0, 1e6), max_size=60),
    beside=st.floats(1, 200),
    gone=st.sampled_from([0.0, 0.3, 0.5, 1.0]),
    mixed=st.none() | st.integers(1, 5000),
)
FILLS = st.none() | st.builds(
    lambda ages: Fill(
        attnums=(3,), ages=(ages[0], ages[1], ages[2]), ever_frac=1.0, aligned_bytes=None
    ),
    st.lists(st.integers(0, 10**6), min_size=3, max_size=3).map(sorted),
)


def operations(
    rows: int,
    inserts: int,
    deletes: int,
    updates: list[float],
    ages: Ages | None,
    fills: Sequence[Fill | None] = (None,) * 3,
) -> list[Operation]:
    """As `observe` makes them."""
    return living_operations(
        "jobs",
        rows,
        inserts=inserts,
        deletes=deletes,
        updates=[
            LivingUpdates(sets=(Change(column="state"),), rows=count, fill=fill)
            for count, fill in zip(updates, fills, strict=False)
        ],
        ages=ages,
        assumed=[],
    )


def touched(made: list[Operation], kind: str) -> float:
    """Rows of a kind in the interval, by the weights."""
    return sum(one.weight * one.rows_mean for one in made if one.kind == kind)


@given(
    rows=st.integers(0, 100_000),
    inserts=COUNTS,
    delete_frac=st.sampled_from([0.0, 0.2, 0.5, 0.97, 1.0, 1.02, 1.6]),
    updates=st.lists(st.floats(1, 500_000), max_size=3),
    ages=AGES,
    fills=st.tuples(FILLS, FILLS, FILLS),
)
def test_a_table_is_played_as_it_was_counted(
    rows: int,
    inserts: int,
    delete_frac: float,
    updates: list[float],
    ages: Ages | None,
    fills: tuple[Fill | None, ...],
) -> None:
    """
    Whatever was observed makes a profile, with as many rows of each kind, and no age beyond them.

    A queue that is as long at the end as at the beginning is so in every turn: none deletes more
    than it inserts.
    """
    deletes = round(inserts * delete_frac)
    made = operations(rows, inserts, deletes, updates, ages, fills)
    checked_profile(
        ProfileFile(
            schema_version=SCHEMA_VERSION,
            server=ServerSettings(),
            tables=(replace(JOBS, rows=rows),),
            operations=tuple(made),
            run=Run(operations=1),
        )
    )
    whole = max(inserts, deletes)
    assert math.isclose(touched(made, "insert"), inserts, rel_tol=0.06, abs_tol=20)
    assert math.isclose(touched(made, "delete"), deletes, rel_tol=0.06, abs_tol=3 * whole**0.5 + 20)
    within = 0.05 * whole * len(updates) + 20
    assert math.isclose(touched(made, "update"), math.fsum(updates), rel_tol=0.06, abs_tol=within)
    for one in made:
        pick = one.pick
        if pick is not None and pick.min_age_rows is not None and pick.max_age_rows is not None:
            assert pick.min_age_rows <= pick.max_age_rows <= max(rows - 1, 15)
    if deletes and deletes <= inserts:
        for name in {one.transaction for one in made} - {None}:
            turn = [one for one in made if one.transaction == name]
            assert touched(turn, "delete") <= touched(turn, "insert")


@given(rows=st.integers(1, 1000), inserts=COUNTS, updates=st.lists(st.floats(1, 5e5), max_size=3))
def test_what_is_not_known_is_not_made_up(rows: int, inserts: int, updates: list[float]) -> None:
    """Without ages each update may meet any living row, and the deletes go by age."""
    for one in operations(rows, inserts, inserts, updates, None):
        if one.kind == "update":
            assert one.pick == Pick(distribution="uniform", among="live")
        if one.kind == "delete":
            assert one.pick == Pick(distribution="oldest")


@given(
    ages=st.lists(st.integers(0, 900), min_size=3, max_size=3, unique=True),
    more=st.lists(st.sampled_from([0.0, 0.4, 1.0, 9.0]), min_size=3, max_size=3),
    sampled=AGES,
)
def test_updates_that_fill_columns_come_in_their_order(
    ages: list[int], more: list[float], sampled: Ages | None
) -> None:
    """Once in each row's turn, at the age that rows have, however often a statement runs."""
    fills = [
        Fill(attnums=(3,), ages=(age, age, age), ever_frac=1.0, aligned_bytes=None) for age in ages
    ]
    updates = [1000 * (1 + times) for times in more]
    made = operations(1000, 1000, 1000, updates, sampled, fills)
    turn = [one for one in made if one.transaction == "jobs turn 1"]
    picked = [one.pick for one in turn if one.kind == "update"][: len(ages)]
    assert picked == [
        Pick(distribution="age", min_age_rows=age, max_age_rows=age) for age in sorted(ages)
    ]
