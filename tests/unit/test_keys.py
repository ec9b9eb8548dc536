"""Keys that are no integers: what a profile may say of them, and how statements name a row."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pgheadroom import _core
from pgheadroom.errors import InputError, TwinError
from pgheadroom.play.scripts import statements
from pgheadroom.predict import predict
from pgheadroom.profile import parse_profile, to_json

Json = dict[str, Any]
ORDERED = {"kind": "serial", "ordered": True}
VARYING = {"min_bytes": 20, "max_bytes": 21}


def _profile(key: Json, *operations: Json, columns: tuple[str, ...] = ("id",)) -> Json:
    table = {
        "name": "t",
        "rows": 60,
        "columns": [
            {"name": "tenant", "type": "int4", "values": {"kind": "random", "ndistinct": 5}},
            {"name": "id"} | key,
            {"name": "n", "type": "int4"},
        ],
        "indexes": [{"name": "t_pkey", "columns": list(columns), "unique": True}],
    }
    return {
        "schema_version": 1,
        "table": [table],
        "operation": [{"table": "t", "sets": ["n"]} | one for one in operations]
        or [{"table": "t", "kind": "update", "sets": ["n"]}],
        "run": {"operations": 60},
    }


KEYS: tuple[tuple[Json, bool], ...] = (
    ({"type": "uuid"}, False),
    ({"type": "uuid", "values": ORDERED}, True),
    ({"type": "text", "width": {"min_bytes": 16, "max_bytes": 30}}, False),
    ({"type": "varchar(12)", "width": 12, "values": ORDERED}, True),
    ({"type": "numeric"}, True),
    ({"type": "int8"}, True),
)


@pytest.mark.parametrize(("key", "ranges"), KEYS)
def test_ranges_are_of_keys_in_the_order_of_their_numbers(key: Json, ranges: bool) -> None:
    """One row is found by any key; the rows between two keys, and a queue, by ordered ones."""
    for kind in ("update", "delete", "select", "lock", "upsert"):
        sets = {"sets": ["n"] if kind in ("update", "upsert") else None}
        one = {k: v for k, v in (sets | {"kind": kind}).items() if v is not None}
        made = _profile(key)
        made["operation"] = [{"table": "t"} | one]
        assert parse_profile(made).table("t").has_ordered_keys == ranges
        (cell,) = predict(parse_profile(made), server="18.4").cells
        assert cell.predicted.is_exact
    several = _profile(key, {"kind": "update", "rows_per_statement": 3})
    head = _profile(key, {"kind": "update", "pick": {"distribution": "head", "using": "t_pkey"}})
    for made in (several, head):
        if ranges:
            profile = parse_profile(made)
            assert parse_profile(to_json(profile)) == profile
            assert predict(profile, server="18.4").cells[0].predicted.n_tup_upd
        else:
            with pytest.raises(InputError, match="not in the order of its rows"):
                parse_profile(made)


def test_several_rows_of_an_insert_need_no_order() -> None:
    """They are new rows, one by one."""
    made = _profile({"type": "uuid"})
    made["operation"] = [{"table": "t", "kind": "insert", "rows_per_statement": 3}]
    (cell,) = predict(parse_profile(made), server="18.4").cells
    assert cell.predicted.n_tup_ins == 180


def test_a_statement_names_the_columns_before_the_key() -> None:
    """As far as they follow from the number of the row; what comes behind is not asked for."""
    made = _profile({"type": "int8", "values": {"kind": "serial"}}, columns=("tenant", "id", "n"))
    made["operation"][0] |= {"kind": "delete"}
    del made["operation"][0]["sets"]
    profile = parse_profile(made)
    assert [column.name for column in profile.tables[0].key_columns] == ["tenant", "id"]
    (statement,) = statements(profile)
    assert statement.sql.startswith('DELETE FROM "t" WHERE "tenant" = CAST(mod(')
    assert statement.sql.endswith('AND "id" = :k0')


@pytest.mark.parametrize(
    ("key", "columns", "expected"),
    [
        ({"type": "interval"}, ("id",), "for this column is the key"),
        ({"type": "int8", "stands_for": "serial_number"}, ("id",), "is the key, or part of it"),
        ({"type": "text", "width": 9}, ("id",), "at least 16 bytes"),
        ({"type": "text", "width": VARYING, "values": ORDERED}, ("id",), "one width"),
        ({"type": "int8", "values": ORDERED}, ("id",), "said of uuid, text and varchar"),
        ({"type": "uuid", "values": {"kind": "random", "ordered": True}}, ("n",), "in no order"),
        ({"type": "uuid", "null_frac": 0.1}, ("id",), "this column is the key"),
        ({"type": "int8"}, ("tenant", "id"), "expected serial, for this column is the key"),
    ],
)  # fmt: skip
def test_keys_that_no_statement_could_name(
    key: Json, columns: tuple[str, ...], expected: str
) -> None:
    """Each is refused by its field, before a server starts."""
    with pytest.raises(InputError, match=expected):
        parse_profile(_profile(key, columns=columns))


def test_columns_by_which_rows_are_named_stay() -> None:
    """An update of the tenant would leave its row where no statement looks."""
    key = {"type": "uuid", "values": {"kind": "serial"}}
    with pytest.raises(InputError, match="nor part of it"):
        parse_profile(
            _profile(key, {"kind": "update", "sets": ["tenant"]}, columns=("tenant", "id"))
        )


def test_the_twin_refuses_ranges_of_hashes_too() -> None:
    """A text from anywhere may say what the Python side would not."""
    made = to_json(parse_profile(_profile({"type": "uuid"})))
    made["operation"][0]["rows_per_statement"] = 2
    with pytest.raises(TwinError, match="rows_per_statement"):
        _core.simulate(json.dumps(made), "18.4")
