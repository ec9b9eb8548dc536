"""The types of profiles: the table here, the layout's, the twin's and the SQL agree."""

from __future__ import annotations

from typing import Any

import pytest

from pgheadroom import _core
from pgheadroom.errors import InputError
from pgheadroom.play import type_values
from pgheadroom.play.values import row_values
from pgheadroom.predict import predict
from pgheadroom.profile import Kind, parse_profile, to_json
from pgheadroom.profile.column_types import FORMS, base_of, has_operators, payload_bytes

SPELLED = {"bpchar": "bpchar(9)", "bit": "bit(9)", "varbit": "varbit(9)", "varchar": "varchar(9)"}

WANTED: dict[str, dict[str, Any]] = {"text": {"width": 30}, "enum": {"labels": ["a", "b's", "c"]}}


def _profile(type_name: str, **column: Any) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "table": [
            {
                "name": "t",
                "rows": 40,
                "columns": [
                    {"name": "id", "type": "int8"},
                    {"name": "x", "type": type_name} | column,
                ],
                "indexes": [{"name": "t_pkey", "columns": ["id"], "unique": True}],
            }
        ],
        "operation": [{"table": "t", "kind": "update", "sets": ["x"]}],
        "run": {"operations": 40},
    }


@pytest.mark.parametrize("name", FORMS)
def test_each_type_is_played_and_laid_out(name: str) -> None:
    """Both know it, and a profile with it comes back out of its file."""
    profile = parse_profile(_profile(SPELLED.get(name, name), **WANTED.get(name, {})))
    (cell,) = predict(profile, server="18.4").cells
    assert cell.predicted.is_exact
    assert cell.predicted.n_tup_upd == 40
    assert parse_profile(to_json(profile)) == profile
    assert base_of(profile.tables[0].columns[1].type) == name


@pytest.mark.parametrize("name", FORMS)
def test_each_type_has_sql(name: str) -> None:
    """Of values made and changed; the templates have nothing left to fill in."""
    table = parse_profile(_profile(SPELLED.get(name, name), **WANTED.get(name, {}))).tables[0]
    assert "{n}" not in row_values(table, "r")
    assert "{old}" not in row_values(table, "r")
    known = {*type_values.COUNTED, *type_values.WRAPPED, "uuid", "name", "bytea"}
    known |= {"int2[]", "int4[]", "int8[]"}
    made = FORMS[name].kind in (Kind.COUNTED, Kind.WRAPPED)
    assert (name in known) == made


def test_lengths_are_the_layouts() -> None:
    """A type without a width of its own and without a length here is one of fixed length."""
    for name, form in FORMS.items():
        spelled = SPELLED.get(name, name)
        if form.width or payload_bytes(spelled) is not None:
            width = form.least_bytes if form.width else payload_bytes(spelled)
            assert _core.Column(spelled, payload_bytes=width).typlen == -1, name
        else:
            assert _core.Column(spelled).typlen != 0, name


def test_a_width_that_is_not_given_is_assumed() -> None:
    """`character varying(n)` may have any length up to n, other types the planner's 32 bytes."""
    for name, width in {
        "character varying(20)": {"min_bytes": 1, "max_bytes": 20},
        "jsonb": {"min_bytes": 32, "max_bytes": 32},
        "text[]": {"min_bytes": 32, "max_bytes": 32},
    }.items():
        profile = parse_profile(_profile(name))
        assert profile.assumed["table[0].columns[1].width"] == width
    with pytest.raises(InputError, match=r"columns\[1\]\.width: missing"):
        parse_profile(_profile("text"))


def test_a_width_may_be_a_number() -> None:
    """Then all values have it."""
    profile = parse_profile(_profile("text", width=36))
    width = profile.tables[0].columns[1].width
    assert width is not None
    assert (width.min_bytes, width.max_bytes) == (36, 36)


@pytest.mark.parametrize(
    ("name", "column", "message"),
    [
        ("jsonb", {"width": 12}, "at least 13 bytes"),
        ("uuid", {"width": 16}, "no width, which uuid has by itself"),
        ("varchar(10)[]", {"width": 40}, "a whole number from 24 to 34"),
        ("bit(63)", {}, "at most 62 bits"),
        ("varbit", {}, "at most 62 bits"),
        ("geometry", {}, "unknown column type"),
        ("regclass", {}, "expected one of int2"),
        ("enum", {}, "labels: missing"),
        ("enum", {"labels": ["a", "a"]}, "each label once"),
        ("int4", {"labels": ["a"]}, "none, for int4 is no enum"),
        (
            "int4",
            {"values": {"kind": "constant", "new": "a"}},
            "values.new: found 'a', expected none, for int4 is no enum",
        ),
        ("enum", {"labels": ["a"], "values": {"kind": "serial"}}, "constant or random"),
        (
            "enum",
            {"labels": ["a", "b"], "values": {"kind": "random", "shares": [0.5, 0.4]}},
            "together 1",
        ),
        ("enum", {"labels": ["a"], "values": {"kind": "random", "new": "b"}}, "one of a"),
    ],
)
def test_what_no_profile_has(name: str, column: dict[str, Any], message: str) -> None:
    """Refused by its field, with what would do."""
    with pytest.raises(InputError, match=message):
        parse_profile(_profile(name, **column))


def test_methods_by_type() -> None:
    """As pg_opclass of 15 and 18 has them."""
    assert has_operators("uuid", "btree")
    assert has_operators("varchar(9)", "spgist")
    assert not has_operators("json", "btree")
    assert not has_operators("int4", "gin")
    assert has_operators("int4[]", "gin")
    assert not has_operators("inet", "brin")
    assert not has_operators("bit(3)", "hash")
