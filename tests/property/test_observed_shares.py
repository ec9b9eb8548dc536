"""What part of a table's updates each class is: laws over generated counts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pgheadroom.observe.classes import CountedUpdates
from pgheadroom.observe.shares import make_shares


def _class(number: int, calls: int, rows: int | None) -> CountedUpdates:
    return CountedUpdates(
        table_oid=1,
        kind="update",
        attnums=(number,),
        same=(),
        appended=(),
        calls=calls,
        rows=rows,
        source="pg_stat_statements",
    )


_CALLS = st.integers(1, 100_000)
_COUNTED = st.lists(st.tuples(_CALLS, st.integers(0, 100_000)), min_size=1, max_size=6)


@given(_COUNTED, st.booleans(), st.integers(1, 400_000))
def test_shares_are_those_of_rows(
    counts: list[tuple[int, int]], shared: bool, updates: int
) -> None:
    """A statement that found no row was taken for as many updates as it had calls: 60 % of them."""
    classes = [_class(number, *count) for number, count in enumerate(counts, start=1)]
    total = sum(rows for _, rows in counts)
    assume(total)
    shares = make_shares(classes, updates, shared=shared, interval_s=60)
    for (calls, rows), frac, each in zip(counts, shares.fracs, shares.per_statement, strict=True):
        assert frac == pytest.approx(rows / total, abs=1e-6)
        assert each == pytest.approx(rows / calls, abs=1e-3)
    assert shares.unattributed == (None if shared else pytest.approx(max(0, 1 - total / updates)))


@given(_COUNTED, st.lists(_CALLS, min_size=1, max_size=3), st.integers(1, 400_000))
def test_what_stands_in_a_with_has_what_is_left(
    counts: list[tuple[int, int]], inner: list[int], updates: int
) -> None:
    """Their rows are not counted: together they are the counter less what the others updated."""
    counted = [_class(number, *count) for number, count in enumerate(counts, start=1)]
    within = [_class(100 + number, calls, None) for number, calls in enumerate(inner)]
    total = sum(rows for _, rows in counts)
    left = max(updates - total, 0)
    assume(total + left)
    shares = make_shares([*counted, *within], updates, shared=False, interval_s=60)
    fracs = [frac or 0.0 for frac in shares.fracs]
    assert sum(fracs) == pytest.approx(1, abs=1e-5)
    assert sum(fracs[len(counted) :]) == pytest.approx(left / (total + left), abs=1e-5)


@given(st.lists(_CALLS, min_size=1, max_size=6), st.integers(1, 1000))
def test_counters_that_come_late_go_by_statements(calls: list[int], updates: int) -> None:
    """No class has a row, yet the table has updates: none of these is explained."""
    classes = [_class(number, count, 0) for number, count in enumerate(calls, start=1)]
    shares = make_shares(classes, updates, shared=False, interval_s=60)
    assert shares.unattributed == 1
    assert sum(frac or 0.0 for frac in shares.fracs) == pytest.approx(1, abs=1e-5)


@given(_COUNTED, _CALLS, st.booleans(), st.sampled_from(("update", "upsert")))
def test_who_found_no_row_has_no_share_beside_others(
    counts: list[tuple[int, int]], calls: int, shared: bool, kind: str
) -> None:
    """Also where others are not counted, or stand for rows that they insert."""
    classes = [_class(number, *count) for number, count in enumerate(counts, start=1)]
    other = replace(_class(100, calls, None), kind=kind)
    shares = make_shares([*classes, other], 1_000_000, shared=shared, interval_s=60)
    for (_, rows), frac in zip(counts, shares.fracs, strict=False):
        assert bool(frac) <= bool(rows)
    assert sum(frac or 0.0 for frac in shares.fracs) == pytest.approx(1, abs=1e-5)


@given(_COUNTED, _CALLS, st.integers(0, 400_000))
def test_upserts_have_what_updates_leave(
    counts: list[tuple[int, int]], rows: int, updates: int
) -> None:
    """Rows that an upsert has inserted were taken for updates: 9 % of a table that had none."""
    classes = [_class(number, *count) for number, count in enumerate(counts, start=1)]
    upsert = replace(_class(100, rows, rows), kind="upsert")
    plain = sum(rows for _, rows in counts)
    updated = min(max(updates - plain, 0), rows)
    assume(plain + updated)
    shares = make_shares([*classes, upsert], updates, shared=False, interval_s=60)
    assert shares.fracs[-1] == pytest.approx(updated / (plain + updated), abs=1e-5)


@given(st.integers(50, 100_000), st.integers(1, 100), _CALLS, st.integers(50, 400_000))
def test_upserts_that_insert_are_no_updates_beside_a_with(
    inserted: int, calls: int, fetched: int, completed: int
) -> None:
    """
    River inserts each job by ON CONFLICT DO UPDATE and completes jobs inside a WITH.

    The upserts stood for 60 % of the updates, all of them HOT, where a server had none: what cannot
    be counted took shares by calls, and the upserts have one call a row.
    """
    upsert = replace(_class(1, inserted, inserted), kind="upsert")
    classes = [upsert, _class(2, fetched, fetched), _class(3, calls, None)]
    updates = fetched + completed
    shares = make_shares(classes, updates, shared=False, interval_s=60, inserts=inserted)
    assert shares.fracs[0] == 0
    assert shares.fracs[2] == pytest.approx(completed / updates, abs=1e-5)
    assert shares.per_statement[2] == pytest.approx(max(1, completed / calls), abs=1e-3)


@given(st.integers(100, 100_000), st.integers(100, 100_000), _CALLS)
def test_upserts_that_find_rows_are_updates_beside_a_with(
    inserted: int, found: int, within: int
) -> None:
    """What the table's inserts leave of the upserts' rows, unless counters err by as much."""
    upsert = replace(_class(1, inserted + found, inserted + found), kind="upsert")
    assume(found > 0.04 * (inserted + found))
    classes = [upsert, _class(2, 1, None)]
    shares = make_shares(classes, found + within, shared=False, interval_s=60, inserts=inserted)
    assert shares.fracs[0] == pytest.approx(found / (found + within), abs=1e-5)
