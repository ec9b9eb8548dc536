"""Shares that are read beside each other have one precision, and none looks like the whole."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from pgheadroom.report.advice.values import share
from pgheadroom.report.table import Column, Table
from pgheadroom.types import Interval
from pgheadroom.units import show_shares

shares = st.one_of(
    st.floats(0, 1),
    st.sampled_from([0.0, 1.0]),
    # Near the whole, where decimals decide.
    st.floats(0, 12).map(lambda power: 1 - 10**-power),
)
_EQUAL = 1e-9


def _decimals(text: str) -> int:
    found = re.search(r"\d+(?:\.(\d+))?", text)
    assert found is not None
    return len(found[1] or "")


@given(st.lists(shares, min_size=1, max_size=4))
def test_shares_of_one_sentence_have_as_many_decimals(found: list[float]) -> None:
    """99.94 -> 100.0 takes two readings; and 100 is only what is 100."""
    shown = show_shares(*found)
    assert len({_decimals(text) for text in shown}) == 1
    for value, text in zip(found, shown, strict=True):
        assert abs(float(text.rstrip("%")) - 100 * value) <= 0.1
        if value < 1 - _EQUAL:
            assert float(text.rstrip("%")) < 100
        else:
            assert float(text.rstrip("%")) == 100


@given(st.lists(shares, min_size=1, max_size=4))
def test_so_have_the_shares_of_an_advice(found: list[float]) -> None:
    """Measured, in the long run now, and at the advised setting."""
    shown = [share(value, beside=found) for value in found]
    assert len({_decimals(text) for text in shown}) == 1
    assert all(
        (float(text) < 100) == (value < 1 - _EQUAL)
        for value, text in zip(found, shown, strict=True)
    )


@given(st.lists(st.tuples(shares, shares), min_size=1, max_size=3))
def test_so_have_the_columns_of_a_table(rows: list[tuple[float, float]]) -> None:
    """Before and now stand in two columns; an interval's ends are rounded to either side."""
    columns = (
        Column("before", "before", style="share"),
        Column("now", "now", style="share"),
    )
    made = tuple(
        (before, Interval(low=max(0.0, now - 0.01), mid=now, high=1.0, level=0.9))
        for before, now in rows
    )
    written = Table(title="", columns=columns, rows=made).written()
    assert len({_decimals(cell.main) for row in written for cell in row}) == 1
    for (_, found), row in zip(made, written, strict=True):
        assert (float(row[1].main) < 100) == (found.mid < 1 - _EQUAL)
        if row[1].spread:
            assert row[1].spread.endswith(", " + f"{100:.{_decimals(row[1].main)}f}]")
