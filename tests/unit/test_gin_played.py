"""Which GINs are priced: the twin and what is measured on a server agree."""

from __future__ import annotations

from typing import Any

import pytest

from pgheadroom.errors import InputError
from pgheadroom.outcome import mid
from pgheadroom.predict import predict
from pgheadroom.predict.sampling import obstacle
from pgheadroom.profile import parse_profile
from pgheadroom.profile.column_types import FORMS, INTEGER_ARRAYS
from pgheadroom.profile.elements import TYPES as ELEMENTS
from pgheadroom.profile.unpriced import left_out

STATED = {"type": "text", "width": {"min_bytes": 5, "max_bytes": 9}}
FEW = {"min": 1, "max": 3, "ndistinct": 9}
SEVERAL = {"type": "text[]", "elements": FEW}


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
    assert _is_played({"name": "x", "type": "text", "width": 30}, index) is is_played


TYPES = {name: {"type": name} for name in FORMS} | {
    "bpchar": {"type": "bpchar(9)"},
    "bit": {"type": "bit(9)"},
    "varbit": {"type": "varbit(9)"},
    "text": {"type": "text", "width": 30},
    "varchar": {"type": "varchar(20)"},
    "enum": {"type": "enum", "labels": ["a", "b"]},
    **{f"{name} of elements": {"type": name, "elements": FEW} for name in ELEMENTS},
}
CLASSES = (
    "",
    "array_ops",
    "tsvector_ops",
    "jsonb_ops",
    "jsonb_path_ops",
    "gin_hstore_ops",
    "gin_trgm_ops",
    "other_ops",
)
PLAYED = {
    **dict.fromkeys((*INTEGER_ARRAYS, "text[]", "varchar[]"), frozenset({"", "array_ops"})),
    "tsvector": {"", "tsvector_ops"},
    "jsonb": {"", "jsonb_ops", "jsonb_path_ops"},
    "hstore": {"", "gin_hstore_ops"},
    **dict.fromkeys(("text", "varchar"), frozenset({"gin_trgm_ops"})),
}
"""As pg_opclass of 15 to 19 has them, with hstore and pg_trgm; other types need btree_gin."""


@pytest.mark.parametrize("name", TYPES)
def test_each_type_by_each_operator_class(name: str) -> None:
    """A GIN whose keys are known is played, whatever its type; another one is left out."""
    column = {"name": "x"} | TYPES[name]
    played = set()
    for opclass in CLASSES:
        index = {"name": "g", "columns": ["x"], "method": "gin", "opclass": [opclass]}
        try:
            parse_profile(_profile(column, [index]))
        except InputError:
            continue
        if _is_played(column, index):
            played.add(opclass)
    assert played == PLAYED.get(name.removesuffix(" of elements"), set())


def _profile(column: dict[str, Any], indexes: list[dict[str, Any]]) -> dict[str, Any]:
    columns = [{"name": "id", "type": "int8"}, {"name": "n", "type": "int8"}, column]
    key = {"name": "t_pkey", "columns": ["id"], "unique": True}
    return {
        "schema_version": 1,
        "table": [{"name": "t", "rows": 40, "columns": columns, "indexes": [key, *indexes]}],
        "operation": [{"table": "t", "kind": "update", "sets": ["n"]}],
        "run": {"operations": 40},
    }


def _is_played(column: dict[str, Any], index: dict[str, Any]) -> bool:
    """Whether it has pages in the twin; what is measured and what samples say have to agree."""
    pages = []
    for indexes in ([], [index]):
        profile = parse_profile(_profile(column, indexes))
        (cell,) = predict(profile, server="18.4").cells
        pages.append(mid(cell.predicted.index_pages))
    is_played: bool = pages[1] > pages[0]
    assert (left_out(profile.tables[0]) == ()) is is_played
    assert ("is a GIN" in (obstacle(profile) or "")) is is_played
    return is_played
