"""WAL of indexes that the twin does not play: what the laws of it are, whatever was measured."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengths import examples
from pgheadroom.advise.unplayed import said_unplayed, unplayed_wal, with_unplayed
from pgheadroom.outcome import ends
from pgheadroom.profile.tables import IndexProfile, TableProfile
from pgheadroom.profile.unpriced import as_they_are, left_out, unpriced_of
from pgheadroom.types import Interval

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
from observed_table import index, seen_of
from test_advise_parts import observed

UPDATES = 10_000
SHARES = st.floats(0, 1)


@st.composite
def intervals(draw: st.DrawFn, most: float) -> Interval:
    """Of bytes."""
    low, mid, high = sorted(draw(st.tuples(*[st.floats(0, most)] * 3)))
    return Interval(low=low, mid=mid, high=high, level=0.9)


def _table(hot: int) -> TableProfile:
    return observed(updates=UPDATES, hot=hot).tables[0]


@settings(max_examples=examples(300), deadline=None, derandomize=True)
@given(known=intervals(1e5), twins=intervals(1e5), hot=st.integers(0, UPDATES))
def test_what_was_measured_comes_out_again_at_the_setting_in_force(
    known: Interval, twins: Interval, hot: int
) -> None:
    """With the twin's WAL and the measured share: no more than rounding beside it, or above it."""
    rest = unplayed_wal(_table(hot), known, twins, counted=None)
    if rest is None:
        assert hot > 0.98 * UPDATES or twins.mid >= known.mid, "nothing to go by"
        return
    assert 0 <= rest.low <= rest.mid <= rest.high
    whole = with_unplayed(twins, hot / UPDATES, rest)
    assert isinstance(whole, Interval)
    assert math.isclose(whole.mid, known.mid, rel_tol=1e-9, abs_tol=1e-6)
    if twins.low == twins.high <= known.low:
        assert math.isclose(whole.low, known.low, rel_tol=1e-9, abs_tol=1e-6)
        assert math.isclose(whole.high, known.high, rel_tol=1e-9, abs_tol=1e-6)


@settings(max_examples=examples(200), deadline=None, derandomize=True)
@given(wal=intervals(1e5), rest=intervals(1e5), one=SHARES, other=SHARES)
def test_more_hot_updates_write_no_more_into_them(
    wal: Interval, rest: Interval, one: float, other: float
) -> None:
    """And where all are HOT, nothing."""
    more, less = max(one, other), min(one, other)
    for few, many in zip(
        ends(with_unplayed(wal, more, rest) or 0.0),
        ends(with_unplayed(wal, less, rest) or 0.0),
        strict=True,
    ):
        assert few <= many
    assert with_unplayed(wal, 1.0, rest) == wal
    inserted = with_unplayed(wal, 1.0, rest, inserts=one)
    alike = with_unplayed(wal, 1 - one, rest)
    assert ends(inserted or 0.0) == pytest.approx(ends(alike or 0.0), abs=1e-6), "one not HOT"
    assert with_unplayed(wal, one, None) == wal
    assert with_unplayed(None, one, rest) is None


def test_nothing_is_made_of_what_is_no_number() -> None:
    """A twin that has no WAL of an update, and one that nobody has measured."""
    known = Interval.exactly(500.0)
    assert unplayed_wal(_table(0), known, math.nan, counted=None) is None
    assert unplayed_wal(_table(0), known, None, counted=None) is None
    assert unplayed_wal(_table(0), None, 100.0, counted=None) is None


def test_wal_of_some_updates_says_nothing_of_the_others() -> None:
    """Upserts are in the counters, HOT or not, and in no UPDATE's WAL."""
    known = Interval.exactly(500.0)
    assert unplayed_wal(_table(0), known, 100.0, counted=UPDATES / 2) is None
    assert unplayed_wal(_table(0), known, 100.0, counted=UPDATES * 0.95) is not None


def test_an_index_of_another_method_stands_as_what_it_is() -> None:
    """By its name, with its schema where the profile has that; the key stays what rows go by."""
    table = _table(0)
    last = table.columns[-1].name
    table = replace(
        table,
        indexes=(
            *table.indexes,
            *(IndexProfile(name=name, columns=(last,)) for name in ("g", "s.h", "b", "x.g")),
        ),
        observed=seen_of(
            table,
            indexes=[
                index(name, [last], method=method)
                for name, method in (
                    ("g", "gin"),
                    ("h", "spgist"),
                    ("b", "btree"),
                    ("x.g", "btree"),
                )
            ],
        ),
    )
    found = as_they_are(table)
    assert left_out(table) == (), "as observe writes them"
    assert left_out(found) == ("g (gin)", "s.h (spgist)")
    assert unpriced_of(found) == ("g (gin)", "h (spgist)")
    assert [index.method for index in found.indexes if index.is_key] == ["btree"]
    assert said_unplayed((), None) == ""
