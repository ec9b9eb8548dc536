"""How often a row is updated at most, and what a file may say of values that were found."""

from __future__ import annotations

import random
from typing import Any

import pytest

from pgheadroom.errors import InputError
from pgheadroom.play.found_values import TURNS_MAX, turns_of
from pgheadroom.profile import parse_profile


@pytest.mark.parametrize(("rows", "each"), [(400, 1.0), (400, 0.1), (3000, 3.0), (20, 12.0)])
def test_no_row_is_updated_more_often(rows: int, each: float) -> None:
    """Of rows drawn evenly the most updated one stays within what is followed."""
    drawn = random.Random(1)
    most = 0
    for _ in range(20):
        counts = [0] * rows
        for _ in range(round(rows * each)):
            counts[drawn.randrange(rows)] += 1
        most = max(most, *counts)
    assert most <= turns_of(rows, each) <= 3 * most + 3


def test_turns_end() -> None:
    """Rows that are updated for ever are followed for a while."""
    assert turns_of(10, 1e6) == TURNS_MAX
    assert turns_of(10, 0.0) == 0


def _profile(**found: Any) -> dict[str, Any]:
    stated = {"expression": "s LIKE 'a%' AND n::text <> '1'", "true_frac": 0.1} | found
    columns = [
        {"name": "id", "type": "int8"},
        {"name": "n", "type": "int4"},
        {"name": "s", "type": "text", "width": 8},
    ]
    index = {"name": "i", "columns": ["id"], "where": stated["expression"], "stated": [stated]}
    key = {"name": "t_pkey", "columns": ["id"], "unique": True}
    return {
        "schema_version": 1,
        "table": [{"name": "t", "rows": 10, "columns": columns, "indexes": [key, index]}],
        "operation": [{"table": "t", "kind": "select"}],
        "run": {"operations": 1},
    }


def test_values_are_one_for_each_column_read() -> None:
    """Others would never be met, and figures would silently be those of a share."""
    parse_profile(_profile(true_for=[["1", "a"]], false_for=[["2", r"\N"]]))
    with pytest.raises(InputError, match=r"stated\[0\]\.true_for\[1\].*values of n, s"):
        parse_profile(_profile(true_for=[["1", "a"], ["2"]]))
