"""Fewer points of a series stand for all of its seconds."""

from __future__ import annotations

import pytest

from pgheadroom.lab.thinned import Join, thinned

SECONDS = [(float(t), float(t * t)) for t in range(1, 11)]


@pytest.mark.parametrize(
    ("join", "values"),
    [
        ("mean", [7.5, 43.5, 90.5]),
        ("max", [16.0, 64.0, 100.0]),
        ("last", [16.0, 64.0, 100.0]),
    ],
)
def test_neighbours_are_joined(join: Join, values: list[float]) -> None:
    """Each point at the middle second of its part, the last part shorter."""
    points, step = thinned(SECONDS, 3, join)
    assert step == 4
    assert [t for t, _ in points] == [3.0, 7.0, 10.0]
    assert [y for _, y in points] == values


def test_few_points_stay_as_they_are() -> None:
    """Nothing is joined where there is room for all."""
    assert thinned(SECONDS, 10, "mean") == (SECONDS, 1)
