"""Which GINs are priced: the twin and what is measured on a server agree."""

from __future__ import annotations

from typing import Any

import pytest

from pgheadroom.outcome import mid
from pgheadroom.predict import predict
from pgheadroom.predict.sampling import obstacle
from pgheadroom.profile import parse_profile
from pgheadroom.profile.unpriced import left_out

STATED = {"type": "text", "width": {"min_bytes": 5, "max_bytes": 9}}
SEVERAL = {"type": "text[]", "elements": {"min": 1, "max": 3, "ndistinct": 9}}


def _gin(expression: str, opclass: str, stated: dict[str, Any] | None) -> dict[str, Any]:
    index = {"name": "g", "expressions": [expression], "method": "gin", "opclass": [opclass]}
    return index if stated is None else index | {"stated": [{"expression": expression} | stated]}


@pytest.mark.parametrize(
    ("index", "is_played"),
    [
        (_gin("lower(x)", "gin_trgm_ops", None), True),
        # What is stated of what the twin evaluates has no effect.
        (_gin("lower(x)", "gin_trgm_ops", STATED), True),
        (_gin("reverse(x)", "gin_trgm_ops", None), False),
        (_gin("reverse(x)", "gin_trgm_ops", STATED), False),
        (_gin("string_to_array(x, 'a')", "", SEVERAL), True),
        (_gin("string_to_array(x, 'a')", "", None), False),
    ],
)
def test_both_say_the_same(index: dict[str, Any], is_played: bool) -> None:
    """An index has pages in the twin if it is not left out of what is measured."""
    columns = [{"name": "id", "type": "int8"}, {"name": "x", "type": "text", "width": 30}]
    key = {"name": "t_pkey", "columns": ["id"], "unique": True}
    table = {"name": "t", "rows": 40, "columns": columns}
    pages = []
    for indexes in ([key], [key, index]):
        profile = parse_profile(
            {
                "schema_version": 1,
                "table": [table | {"indexes": indexes}],
                "operation": [{"table": "t", "kind": "update", "sets": ["x"]}],
                "run": {"operations": 40},
            }
        )
        (cell,) = predict(profile, server="18.4").cells
        pages.append(mid(cell.predicted.index_pages))
    assert (pages[1] > pages[0]) is is_played
    assert (left_out(profile.tables[0]) == ()) is is_played
    assert ("is a GIN" in (obstacle(profile) or "")) is is_played
