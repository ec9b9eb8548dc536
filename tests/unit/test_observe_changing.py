"""How often a column that an index reads changes, of the updates that assign it."""

from __future__ import annotations

import pytest

from pgheadroom.observe.changing import changed_frac
from pgheadroom.profile.observed import TableCounters


@pytest.mark.parametrize(
    ("updates", "hot", "newpage", "assigning", "expected"),
    [
        (1000, 900, 0, [(1.0, 1)], 0.1),
        (1000, 700, 200, [(1.0, 1)], 0.125),  # of the 800 that stayed on their page
        (1000, 900, 0, [(0.5, 1)], 0.2),  # half of the updates assign it
        (1000, 910, 0, [(1.0, 2)], 0.0461),  # either of two columns
        (1000, 0, 0, [(1.0, 1)], None),  # all change
        (1000, 505, 0, [(0.5, 1)], None),  # as many as assign it, by chance
        (1000, 900, None, [(1.0, 1)], None),  # 15 does not count new pages
        (1000, 20, 950, [(1.0, 1)], None),  # too few stayed
        (1000, 900, 0, [], None),
    ],
)
def test_of_those_that_stay_on_their_page(
    updates: int,
    hot: int,
    newpage: int | None,
    assigning: list[tuple[float, int]],
    expected: float | None,
) -> None:
    """What is not HOT there has changed such a column."""
    counters = TableCounters(n_tup_upd=updates, n_tup_hot_upd=hot, n_tup_newpage_upd=newpage)
    assert changed_frac(counters, assigning) == expected
