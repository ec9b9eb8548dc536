"""Between the twin and what is shown: no figure that contradicts what was measured."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import observed_table as made
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_advise_parts import observed

from lengths import examples
from pgheadroom.advise.foreseen import Point
from pgheadroom.advise.growing import growing_of
from pgheadroom.advise.guard import LONG_RUN, WAL_TOLERANCE, Twins, guard_of, measured_of
from pgheadroom.advise.width import ROWS_FRAC, width_of
from pgheadroom.outcome import Value
from pgheadroom.profile import Profile
from pgheadroom.profile.observed import UpdateClass
from pgheadroom.profile.tables import TableProfile
from pgheadroom.types import Interval

UPDATES = 4000


def _profile(
    *, wal_bytes: int | None, wal_fpi: int | None = 0, total_bytes: int | None = None
) -> tuple[Profile, TableProfile]:
    """A table whose updates pg_stat_statements has counted, or not."""
    counters: dict[str, Any] = {}
    if total_bytes is not None:
        counters["wal"] = {"wal_bytes": total_bytes}
    profile = observed(updates=UPDATES, hot=UPDATES, server={"counters": counters})
    table = profile.tables[0]
    assert table.observed is not None
    classes = []
    if wal_bytes is not None:
        found = {"kind": "update", "columns": ["v"], "calls": UPDATES, "rows": UPDATES, "frac": 1.0}
        classes = [found | {"wal_bytes": wal_bytes, "wal_fpi": wal_fpi}]
    updates = table.observed["updates"] | {"classes": classes, "source": "pg_stat_statements"}
    table = replace(table, observed=made.seen_of(table, updates=updates))
    return replace(profile, tables=(table,)), table


def _point(fillfactor: int, own: Value, everything: Value = 900.0) -> Point:
    return Point(
        fillfactor=fillfactor,
        hot_frac=0.5,
        newpage_frac=0.5,
        heap_bytes=1e6,
        index_bytes=1e6,
        wal_bytes_per_update=own,
        all_wal_bytes_per_update=everything,
        pages_modified_per_update=0.1,
        seq_scan_pages=122.0,
        cost=1.0,
    )


@settings(max_examples=examples(150), deadline=None, derandomize=True)
@given(
    wal_bytes=st.none() | st.integers(UPDATES * 60, UPDATES * 5000),
    wal_fpi=st.none() | st.integers(0, UPDATES // 2),
    total_bytes=st.none() | st.integers(UPDATES * 60, UPDATES * 9000),
    twins=st.none() | st.floats(0, 1e8) | st.just(math.inf) | st.just(math.nan),
    long_run=st.none() | st.floats(0, 1e8) | st.just(math.inf) | st.just(math.nan),
    done=st.floats(0, 1),
    fillfactor=st.sampled_from([100, 85]),
)
def test_whatever_the_twin_returns_what_is_shown_is_possible(
    wal_bytes: int | None,
    wal_fpi: int | None,
    total_bytes: int | None,
    twins: float | None,
    long_run: float | None,
    done: float,
    fillfactor: int,
) -> None:
    """WAL per update that is shown is within the stated tolerance of what was measured."""
    if wal_bytes is not None and wal_fpi is not None:
        wal_bytes += wal_fpi * 8192
    profile, table = _profile(wal_bytes=wal_bytes, wal_fpi=wal_fpi, total_bytes=total_bytes)
    guard = guard_of(
        profile, table, Twins(wal_bytes_per_update=twins, heap_bytes=None, done_frac=done)
    )
    shown = guard.shown(_point(fillfactor, long_run)).wal_bytes_per_update
    bounds = [n / UPDATES for n in (wal_bytes, total_bytes) if n is not None]
    if shown is not None:
        assert isinstance(shown, float)
        assert math.isfinite(shown)
        assert not bounds or shown <= LONG_RUN * (1 + WAL_TOLERANCE) * min(bounds)
    for text in (*guard.contradicted, guard.reason or ""):
        assert twins is None or twins < 1000 or f"{twins:,.0f}" not in text
    if guard.reason is not None:
        assert shown is None, "no answer, no figure"


@pytest.mark.parametrize(
    ("twins", "contradicts"),
    [
        (100.0, False),
        (125.0, False),
        (135.0, True),
        (75.0, False),
        (60.0, True),
        (5_291_968.0, True),
    ],
)
def test_wal_of_an_update_is_held_against_its_statements(twins: float, contradicts: bool) -> None:
    """Three tenths beyond what pg_stat_statements has, more or less, is another table."""
    profile, table = _profile(wal_bytes=100 * UPDATES, total_bytes=10**9)
    guard = guard_of(
        profile, table, Twins(wal_bytes_per_update=twins, heap_bytes=None, done_frac=1)
    )
    assert bool(guard.contradicted) is contradicts
    assert (guard.reason is not None) is contradicts
    assert (guard.shown(_point(100, twins)).wal_bytes_per_update is None) is contradicts
    if contradicts:
        assert "100 bytes" in guard.contradicted[0]
        assert f"{twins:,.0f}" not in guard.contradicted[0]


def test_without_statements_all_wal_of_the_interval_is_the_bound() -> None:
    """A table cannot write more than its server."""
    profile, table = _profile(wal_bytes=None, total_bytes=UPDATES * 1000)
    assert measured_of(profile, table).wal_bytes_per_update is None
    for twins, contradicts in ((900.0, False), (5_291_968.0, True)):
        guard = guard_of(
            profile, table, Twins(wal_bytes_per_update=twins, heap_bytes=None, done_frac=1)
        )
        assert bool(guard.contradicted) is contradicts


def test_images_are_taken_off_what_statements_wrote() -> None:
    """Images are counted, their bytes lie between parts of a page and a whole one."""
    profile, table = _profile(wal_bytes=UPDATES * 100 + 1000 * 7000, wal_fpi=1000)
    found = measured_of(profile, table).wal_bytes_per_update
    assert isinstance(found, Interval)
    assert found.low <= 100 <= found.high
    # Of images alone, as after a checkpoint, nothing is left that was one update's.
    profile, table = _profile(wal_bytes=1000 * 6000, wal_fpi=1000)
    found = measured_of(profile, table).wal_bytes_per_update
    assert isinstance(found, Interval)
    assert found.mid == (found.low + found.high) / 2 > found.low
    _, older = _profile(wal_bytes=UPDATES * 100, wal_fpi=None)
    assert measured_of(profile, older).wal_bytes_per_update is None, "images are not known"
    assert measured_of(profile, older).most_wal_bytes_per_update == 100


def test_rows_that_come_and_go_give_no_answer() -> None:
    """Updates that find no row leave WAL of everything else over next to none of them."""
    profile, table = _profile(wal_bytes=None)
    guard = guard_of(
        profile, table, Twins(wal_bytes_per_update=80.0, heap_bytes=None, done_frac=0.1)
    )
    assert guard.reason is not None
    assert "come and go" in guard.reason
    shown = guard.shown(_point(100, 80.0))
    assert (shown.wal_bytes_per_update, shown.cost, shown.heap_bytes) == (None, None, None)


def test_methods_that_are_no_btree_are_named() -> None:
    """GIN stands as a B-tree over the same columns: its WAL is not priced."""
    profile, table = _profile(wal_bytes=100 * UPDATES)
    assert table.observed is not None
    indexes = [made.index("t_gin", ["v"], method="gin"), made.index("t_brin", ["v"], method="brin")]
    table = replace(table, observed=made.seen_of(table, indexes=indexes))
    guard = guard_of(profile, table, Twins(wal_bytes_per_update=1e5, heap_bytes=None, done_frac=1))
    assert guard.unpriced == ("t_gin (gin)",)
    assert guard.reason is not None
    assert "t_gin (gin)" in guard.reason


# Growth


def _sampled(ages: list[list[float]], *, sets: str = "note", **facts: Any) -> TableProfile:
    """Updates of a string, and rows by age; 4,096 transactions are the interval's."""
    profile = observed(sets=sets, updates=UPDATES, hot=UPDATES)
    table = profile.tables[0]
    assert table.observed is not None
    columns = [
        found | ({"stored_bytes": 60.0} if found["name"] == "note" else {})
        for found in table.observed["columns"]
    ]
    sample = {"ages": ages, "since_xids": 4096, "tuple_bytes": {"mean": 100.0, "deviation": 6.0}}
    classes = [
        {"kind": "update", "columns": [sets], "calls": 1, "rows": UPDATES, "frac": 1.0} | facts
    ]
    updates = table.observed["updates"] | {"classes": classes, "unattributed_frac": 0.0}
    new = {"columns": columns, "sample": sample, "updates": updates}
    return replace(table, observed=made.seen_of(table, **new))


def _ages(of: Any) -> list[list[float]]:
    """Rows by classes of age, 200 each: their mean length by class; class 14 was never updated."""
    return [[k, 200, 200 * of(k)] for k in (7, 8, 9, 10, 11, 14)]


def test_rows_that_were_updated_once_have_grown_once() -> None:
    """A balance that left 0: updated rows are longer, all of them alike."""
    found = growing_of(_sampled(_ages(lambda k: 100 if k == 14 else 107)))
    assert found.grown_bytes == pytest.approx(7)
    assert not found.lasts


def test_rows_are_the_longer_the_more_updates_they_have_had() -> None:
    """Those whose last update is longer ago have had fewer."""
    found = growing_of(_sampled(_ages(lambda k: 100 if k == 14 else 120 - 2**k / 200)))
    assert found.lasts


def test_statements_that_append_make_rows_grow() -> None:
    """They say so themselves."""
    assert growing_of(_sampled(_ages(lambda _: 100), appended=["note"])).lasts
    assert not growing_of(_sampled(_ages(lambda _: 100))).lasts


# Widths


def _statements(calls: int) -> dict[str, Any]:
    found = {"source": "pg_stat_statements", "detail": "interval", "statements": 1}
    return found | {"calls": calls, "not_understood": {}}


def _server(**facts: Any) -> Profile:
    return observed(server=facts)


def test_one_client_and_one_row_keep_a_narrow_interval() -> None:
    """Nothing is added where the twin plays what was observed."""
    profile = _server(
        horizon={
            "stood_still": [],
            "holders": [],
            "series": [{"at_s": n, "age_xids": 1, "oldest_xid": "7"} for n in range(6)],
        },
        statements=[_statements(1000)],
        counters={"database": {"xact_commit": 1000}},
    )
    found = width_of(profile, profile.tables[0])
    assert (found.half, found.why, found.text) == (0.0, (), "")


@pytest.mark.parametrize(
    ("facts", "rows", "said"),
    [
        (
            {
                "horizon": {
                    "stood_still": [],
                    "holders": [],
                    "series": [{"at_s": n, "age_xids": 4, "oldest_xid": "7"} for n in range(6)],
                }
            },
            1,
            "several clients",
        ),
        ({}, 10, "10 rows"),
        (
            {
                "statements": [_statements(3000)],
                "counters": {"database": {"xact_commit": 1000}},
            },
            1,
            "several statements",
        ),
    ],
)
def test_what_the_twin_does_not_play_widens_and_is_said(
    facts: dict[str, Any], rows: int, said: str
) -> None:
    """Several clients, statements of many rows, transactions of several statements."""
    profile = _server(**facts)
    operations = tuple(
        replace(operation, rows_per_statement=rows) for operation in profile.workload.operations
    )
    profile = replace(profile, workload=replace(profile.workload, operations=operations))
    found = width_of(profile, profile.tables[0])
    assert found.half > 0
    assert said in found.text


def test_a_statement_of_many_rows_is_known_from_what_was_counted() -> None:
    """Rows that are played in turns, of one row each, are still those of one statement."""
    profile = _server()
    table = profile.tables[0]
    assert table.observed is not None
    counted = replace(
        table.observed,
        updates=replace(
            table.observed.updates,
            classes=(
                UpdateClass(kind="update", columns=("v",), calls=10, rows=1000, frac=1.0),
                UpdateClass(kind="update", columns=("v",), calls=10, rows=None, frac=None),
            ),
        ),
    )
    table = replace(table, observed=counted)
    profile = replace(profile, tables=(table,))
    assert all(one.rows_mean == 1 for one in profile.workload.operations)
    found = width_of(profile, table)
    assert found.half == ROWS_FRAC
    assert "a statement updates 100 rows in the mean" in found.text


INDEX_BYTES = 1000 * 8192


def _with_indexes(**facts: Any) -> tuple[Profile, TableProfile]:
    """A table with one observed B-tree of a thousand pages, or what `facts` make of it."""
    profile, table = _profile(wal_bytes=None)
    (played,) = table.indexes[:1]
    listed = made.index(played.name, ["v"], main_bytes=INDEX_BYTES) | facts
    indexes = [{key: value for key, value in listed.items() if value is not None}]
    table = replace(table, indexes=(played,), observed=made.seen_of(table, indexes=indexes))
    return replace(profile, tables=(table,)), table


@pytest.mark.parametrize(
    ("factor", "said"),
    [
        (1.0, None),
        (1.45, None),
        (0.55, None),
        (1.6, "less than the twin makes"),
        (0.4, "room that nobody has seen"),
        (math.inf, "no size of the indexes"),
    ],
)
def test_index_sizes_are_held_against_those_of_the_server(factor: float, said: str | None) -> None:
    """Beyond half of them it is said, and none is shown; the rest of the answer stays."""
    profile, table = _with_indexes()
    twins = Twins(
        wal_bytes_per_update=None,
        heap_bytes=None,
        done_frac=1,
        index_bytes=INDEX_BYTES * factor,
    )
    guard = guard_of(profile, table, twins)
    assert guard.measured.index_bytes == INDEX_BYTES
    shown = guard.shown(_point(100, 100.0))
    assert (shown.index_bytes is None) is (said is not None)
    assert shown.heap_bytes == 1e6
    assert guard.reason is None
    assert bool(guard.contradicted) is (said is not None)
    assert said is None or said in guard.contradicted[0]


def test_an_interval_of_index_sizes_contradicts_with_both_ends() -> None:
    """A sample's own error is no contradiction."""
    profile, table = _with_indexes()
    for low, high, contradicts in ((1.4, 1.9, False), (1.6, 1.9, True), (0.2, 0.6, False)):
        found = Interval(
            low=INDEX_BYTES * low, mid=INDEX_BYTES * high, high=INDEX_BYTES * high, level=0.9
        )
        twins = Twins(wal_bytes_per_update=None, heap_bytes=None, done_frac=1, index_bytes=found)
        assert bool(guard_of(profile, table, twins).contradicted) is contradicts


@pytest.mark.parametrize(
    "facts",
    [
        {"method": "gin"},
        {"expressions": ["lower(v)"]},
        {"predicate": "v > 0"},
        {"main_bytes": None},
    ],
)
def test_what_stands_for_another_index_is_not_compared(facts: dict[str, Any]) -> None:
    """Its entries are others than the twin's; of a method that is not priced none is shown."""
    profile, table = _with_indexes(**facts)
    twins = Twins(wal_bytes_per_update=None, heap_bytes=None, done_frac=1, index_bytes=1e12)
    guard = guard_of(profile, table, twins)
    assert guard.measured.index_bytes is None
    assert not guard.contradicted
    is_other = facts.get("method") is not None
    assert (guard.shown(_point(100, 100.0)).index_bytes is None) is is_other


def test_few_index_pages_contradict_nothing() -> None:
    """Of few pages one is much."""
    profile, table = _with_indexes(main_bytes=50 * 8192)
    twins = Twins(wal_bytes_per_update=None, heap_bytes=None, done_frac=1, index_bytes=1e9)
    assert not guard_of(profile, table, twins).contradicted
