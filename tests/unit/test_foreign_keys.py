"""Foreign keys of a profile: what follows from them, what is refused, and what is played."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pgheadroom.errors import InputError
from pgheadroom.play.load import add_foreign_key
from pgheadroom.play.scripts import scripts, session_find, statements
from pgheadroom.predict.cells import make_cells
from pgheadroom.predict.run_plan import RunPlan
from pgheadroom.predict.sampling import obstacle
from pgheadroom.predict.twin import predict_cells
from pgheadroom.profile import Profile, parse_profile, read_profile, to_json
from pgheadroom.profile.tables import ForeignKey
from pgheadroom.types import PgVersion

ORDERS = Path(__file__).parents[2] / "examples" / "orders.toml"
Json = dict[str, Any]


def _data() -> Json:
    key = {"columns": ["id"], "unique": True}
    return {
        "schema_version": 1,
        "table": [
            {
                "name": "child",
                "rows": 60,
                "columns": [
                    {"name": "id", "type": "int4"},
                    {"name": "parent_id", "type": "int4"},
                    {"name": "n", "type": "int4"},
                ],
                "indexes": [key | {"name": "child_pkey"}],
                "foreign_keys": [{"columns": ["parent_id"], "references": "parent"}],
            },
            {
                "name": "parent",
                "rows": 7,
                "columns": [{"name": "id", "type": "int8"}, {"name": "n", "type": "int4"}],
                "indexes": [key | {"name": "parent_pkey"}],
            },
        ],
        "operation": [
            {"table": "parent", "kind": "insert", "transaction": "w"},
            {"table": "child", "kind": "insert", "transaction": "w"},
            {"table": "child", "kind": "update", "sets": ["parent_id"], "weight": 2},
        ],
        "run": {"operations": 90},
    }


def _newest(data: Json) -> None:
    data["table"][0]["columns"][1]["values"] = {"kind": "parent", "pick": "newest"}


def _records(profile: Profile) -> Any:
    (simulation,) = predict_cells(RunPlan(cells=make_cells(profile), version=PgVersion(18, 4)))
    return simulation.outcome.by_table["parent"].wal_records


def test_values_follow_from_the_parent() -> None:
    """A column that refers to another table has the keys of that one's loaded rows."""
    profile = parse_profile(_data())
    values = profile.tables[0].column("parent_id").values
    assert (values.kind, values.ndistinct, values.pick) == ("parent", 7, None)
    assert parse_profile(to_json(profile)) == profile
    insert, update = statements(profile)[1].sql, statements(profile)[2].sql
    assert re.search(r"CAST\(1 \+ mod\(mod\(hashint8extended\(r\.\"row\", 2\), 7::int8\)", insert)
    assert 'CAST(mod("parent_id", 7::int8) + 1 AS int4)' in update
    key = ForeignKey(columns=("parent_id",), references="parent")
    assert add_foreign_key(profile, profile.tables[0], key) == (
        'ALTER TABLE "child" ADD FOREIGN KEY ("parent_id") REFERENCES "parent" ("id")'
    )


def test_rows_may_refer_to_a_few_of_the_others() -> None:
    """One worker has all jobs, whatever the table of workers has: `ndistinct` says so."""
    data = _data()
    data["table"][0]["columns"][1]["values"] = {"kind": "parent", "ndistinct": 3}
    profile = parse_profile(data)
    assert profile.tables[0].column("parent_id").values.ndistinct == 3
    assert parse_profile(to_json(profile)) == profile
    insert, update = statements(profile)[1].sql, statements(profile)[2].sql
    assert re.search(r"CAST\(1 \+ mod\(mod\(hashint8extended\(r\.\"row\", 2\), 3::int8\)", insert)
    assert 'CAST(mod("parent_id", 3::int8) + 1 AS int4)' in update


def test_a_uuid_that_refers_may_be_assigned_and_kept() -> None:
    """Programs write whole rows; what changes has no next value."""
    data = _data()
    data["table"][0]["columns"][1]["type"] = data["table"][1]["columns"][0]["type"] = "uuid"
    data["operation"][2]["sets"] = {"parent_id": {"changed_frac": 0.0}, "n": {}}
    profile = parse_profile(data)
    kept = 'SET "parent_id" = CASE WHEN :d2_0 <= 0 THEN "parent_id" ELSE "parent_id" END, "n" = '
    assert kept in statements(profile)[2].sql
    # Of the updates none looks for a row: there are as many locks as inserts.
    data["operation"] = data["operation"][1:]
    for operation in data["operation"]:
        operation.pop("transaction", None)
    both = _records(parse_profile(data))
    data["operation"][0]["weight"] = 9
    assert both < _records(parse_profile(data)) < 90


def test_newest_parents_are_counted_by_the_script() -> None:
    """The key that this client inserted last; the highest loaded one before that."""
    data = _data()
    _newest(data)
    profile = parse_profile(data)
    text = scripts(profile)[0].text
    place = text.index("\\set p1_1 case when :l1 = 0 then 7 - :client_id else :l1 end\n")
    assert text.index("\\set l1 ") < place < text.index("BEGIN;")
    assert "CAST(:p1_1 AS int4)" in statements(profile)[1].sql


def test_checks_are_planned_with_the_index() -> None:
    """Where everything else reads whole tables, a check would too, and be another one."""
    data = _data()
    scan = {"table": "parent", "kind": "update", "sets": ["n"], "find": "seqscan"}
    data["operation"][2:] = [scan]
    assert session_find(parse_profile(data)) == "index"


def _self(data: Json) -> None:
    data["table"][0]["foreign_keys"][0]["references"] = "child"


def _two_columns(data: Json) -> None:
    data["table"][0]["foreign_keys"][0]["columns"] = ["parent_id", "n"]


def _key(data: Json) -> None:
    data["table"][0]["foreign_keys"][0]["columns"] = ["id"]


def _twice(data: Json) -> None:
    data["table"][0]["foreign_keys"] *= 2


def _text(data: Json) -> None:
    data["table"][0]["columns"][1]["type"] = "numeric"


def _narrow(data: Json) -> None:
    data["table"][0]["columns"][1]["type"] = "int2"
    data["table"][1]["rows"] = 40_000


def _no_key(data: Json) -> None:
    data["table"][1]["indexes"][0]["columns"] = ["id", "n"]


def _random(data: Json) -> None:
    data["table"][0]["columns"][1]["values"] = {"kind": "random"}


def _more_than_there_are(data: Json) -> None:
    data["table"][0]["columns"][1]["values"] = {"kind": "parent", "ndistinct": 8}


def _changed_uuid(data: Json) -> None:
    data["table"][0]["columns"][1]["type"] = data["table"][1]["columns"][0]["type"] = "uuid"
    data["operation"][2]["sets"] = {"parent_id": {"changed_frac": 0.1}}


def _no_foreign_key(data: Json) -> None:
    data["table"][0]["columns"][2]["values"] = {"kind": "parent"}


def _pick_of_random(data: Json) -> None:
    data["table"][0]["columns"][2]["values"] = {"kind": "random", "pick": "newest"}


def _delete(data: Json) -> None:
    data["operation"][0] = {"table": "parent", "kind": "delete"}


def _seqscan(data: Json) -> None:
    data["operation"][2]["find"] = "seqscan"


def _bitmap(data: Json) -> None:
    data["operation"][2]["find"] = "bitmap"


def _empty_parent(data: Json) -> None:
    data["table"][1]["rows"] = 0


def _empty_parent_first(data: Json) -> None:
    _newest(data)
    data["table"][0]["rows"] = data["table"][1]["rows"] = 0
    data["operation"] = [{"table": "child", "kind": "insert"}]


def _rolled_back(data: Json) -> None:
    _newest(data)
    data["operation"] = [
        {"table": "child", "kind": "insert"},
        {"table": "parent", "kind": "insert", "abort_frac": 0.5},
    ]


@pytest.mark.parametrize(
    ("spoil", "field"),
    [
        (_self, "table[0].foreign_keys[0].references"),
        (_two_columns, "table[0].foreign_keys[0].columns"),
        (_key, "table[0].foreign_keys[0].columns"),
        (_twice, "table[0].foreign_keys[1].columns"),
        (_text, "table[0].foreign_keys[0].columns"),
        (_narrow, "table[0].foreign_keys[0].columns"),
        (_no_key, "table[0].foreign_keys[0].references"),
        (_random, "table[0].columns[1].values.kind"),
        (_more_than_there_are, "table[0].columns[1].values.ndistinct"),
        (_changed_uuid, "operation[2].sets"),
        (_no_foreign_key, "table[0].columns[2].values.kind"),
        (_pick_of_random, "table[0].columns[2].values.pick"),
        (_delete, "operation[0].kind"),
        (_seqscan, "operation[2].find"),
        (_bitmap, "operation[2].find"),
        (_empty_parent, "table[0].columns[1]"),
        (_empty_parent_first, "operation[0].table"),
        (_rolled_back, "operation[1].abort_frac"),
    ],
)
def test_what_cannot_be_is_refused(spoil: Callable[[Json], None], field: str) -> None:
    """By its path, before a server or the twin is asked."""
    data = _data()
    spoil(data)
    with pytest.raises(InputError) as caught:
        parse_profile(data)
    assert str(caught.value).startswith(f"{field}: found ")


def test_rows_of_one_transaction_may_be_rolled_back_together() -> None:
    """Who refers to a row in its own transaction finds it, however that ends."""
    data = _data()
    _newest(data)
    data["operation"][0]["abort_frac"] = 0.3
    parse_profile(data)


def test_each_value_locks_its_row() -> None:
    """Without foreign keys the parent has the records of its own inserts alone."""
    data = _data()
    data["operation"] = [{"table": "child", "kind": "insert"}]
    assert _records(parse_profile(data)) == 90
    data["table"][0]["columns"][1]["null_frac"] = 1.0
    assert _records(parse_profile(data)) == 0


def test_19_is_played() -> None:
    """Its checks go another way with the same effect; it was refused before that was compared."""
    plan = RunPlan(cells=make_cells(parse_profile(_data())), version=PgVersion(19, 0))
    (simulation,) = predict_cells(plan)
    assert simulation.transactions > 0


def test_no_sample_has_foreign_keys() -> None:
    """How the locks shrink with the tables was not compared with a server."""
    assert "foreign keys" in (obstacle(read_profile(ORDERS)) or "")
