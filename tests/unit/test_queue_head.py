"""Picks at the head of a queue: their statement, what is refused, and what is played."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from pgheadroom import predict
from pgheadroom.errors import InputError, TwinError
from pgheadroom.play.scripts import scripts, statements
from pgheadroom.predict.cells import make_cells
from pgheadroom.predict.run_plan import RunPlan
from pgheadroom.predict.sampling import obstacle
from pgheadroom.predict.twin import predict_cells
from pgheadroom.profile import Profile, parse_profile, to_json
from pgheadroom.profile.queue_head import other_ways
from pgheadroom.types import PgVersion

Json = dict[str, Any]
UPDATE = {"kind": "update", "sets": ["state"]}
HEAD = {"distribution": "head", "using": "ready", "where": "state = 0"}


def _data(pick: Json = HEAD, **operation: Any) -> Json:
    return {
        "schema_version": 1,
        "table": [
            {
                "name": "jobs",
                "rows": 40,
                "columns": [
                    {"name": "id", "type": "int4"},
                    {"name": "state", "type": "int2", "values": {"kind": "constant"}},
                    {"name": "due", "type": "int4"},
                ],
                "indexes": [
                    {"name": "jobs_pkey", "columns": ["id"], "unique": True},
                    {"name": "ready", "columns": ["due", "id"], "where": "state = 0"},
                    {"name": "by_due", "columns": ["due"]},
                    {"name": "by_state", "columns": ["state", "due"]},
                    {"name": "ranges", "columns": ["due"], "method": "brin"},
                ],
            }
        ],
        "operation": [
            {"table": "jobs", "pick": pick}
            | (operation if "kind" in operation else UPDATE | operation)
        ],
        "run": {"operations": 60},
    }


def _played(data: Json) -> Any:
    (simulation,) = predict_cells(
        RunPlan(cells=make_cells(parse_profile(data)), version=PgVersion(18, 4))
    )
    return simulation.outcome.by_table["jobs"]


def _sql(profile: Profile) -> str:
    return statements(profile)[0].sql


def test_the_statement_finds_its_rows_itself() -> None:
    """One row by its key, several by an array of keys; nothing is drawn."""
    profile = parse_profile(_data())
    query = 'SELECT "id" FROM "jobs" WHERE state = 0 ORDER BY "due", "id" LIMIT 1'
    assert _sql(profile).endswith(f'WHERE "id" = ({query} FOR UPDATE SKIP LOCKED)')
    assert "\\set" not in scripts(profile)[0].text
    assert parse_profile(to_json(profile)) == profile
    pick = {"distribution": "head", "using": "by_due"}
    several = parse_profile(_data(pick, kind="delete", rows_per_statement=3))
    query = 'SELECT "id" FROM "jobs" ORDER BY "due" LIMIT 3 FOR UPDATE SKIP LOCKED'
    assert _sql(several) == f'DELETE FROM "jobs" WHERE "id" = ANY (ARRAY({query}))'


def test_a_queue_is_emptied() -> None:
    """Each row once, as long as there are any."""
    assert _played(_data()).n_tup_upd == 40
    assert _played(_data(rows_per_statement=7)).n_tup_upd == 40
    pick = {"distribution": "head", "using": "by_state", "where": "state = 0"}
    assert _played(_data(pick)).n_tup_upd == 40
    assert _played(_data(pick | {"where": "state = 1"})).n_tup_upd == 0


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"kind": "select"}, "operation[0].pick.distribution"),
        ({"find": "seqscan"}, "operation[0].find"),
        ({"find": "bitmap"}, "operation[0].find"),
        ({"rows_per_statement": {"min": 1, "max": 3}}, "operation[0].rows_per_statement"),
        ({"pick": HEAD | {"using": "other"}}, "operation[0].pick.using"),
        ({"pick": HEAD | {"using": "ranges"}}, "operation[0].pick.using"),
        ({"pick": {"distribution": "head", "using": "ready"}}, "operation[0].pick.where"),
        ({"pick": {"distribution": "head"}}, "operation[0].pick.using"),
        # Only this one was once left to the twin, which knows no path and no line.
        ({"pick": HEAD | {"where": "state = 1"}}, "operation[0].pick.where"),
        ({"pick": HEAD | {"where": "state = 0; DROP"}}, "operation[0].pick.where"),
        ({"pick": HEAD | {"where": "state = 0\n\\shell true"}}, "operation[0].pick.where"),
        ({"pick": HEAD | {"where": "state = :client_id"}}, "operation[0].pick.where"),
        ({"pick": HEAD | {"scatter": True}}, "operation[0].pick.scatter"),
    ],
)
def test_what_cannot_be_is_refused(change: Json, field: str) -> None:
    """By its path, before a server or the twin is asked."""
    data = copy.deepcopy(_data())
    data["operation"][0] |= change
    if data["operation"][0]["kind"] == "select":
        del data["operation"][0]["sets"]
    with pytest.raises(InputError) as caught:
        parse_profile(data)
    assert str(caught.value).startswith(f"{field}: ")


@pytest.mark.parametrize(
    ("using", "where"),
    [("ready", "state = CAST(1 AS int2)"), ("by_due", "due < 5"), ("by_state", "due = 3")],
)
def test_other_ways_to_look_are_refused(using: str, where: str) -> None:
    """Where the index would be entered is then another question, which is not answered."""
    with pytest.raises(TwinError, match=f"the head of {using}"):
        _played(_data({"distribution": "head", "using": using, "where": where}))


@pytest.mark.parametrize("where", ["(state=0)", 'NOT "state" <> 0', "state = CAST(0 AS int2)"])
def test_a_condition_may_be_spelled_otherwise(where: str) -> None:
    """That of the index and that of the query are compared as PostgreSQL's grammar reads them."""
    data = _data(HEAD | {"where": where})
    if where.startswith("NOT"):
        data["table"][0]["indexes"][1]["where"] = "not(state<>0)"
    parse_profile(data)


@pytest.mark.parametrize(
    ("using", "where", "others"),
    [
        ("by_state", "state = 0", ["by_due"]),
        ("by_state", "(state=1)", ["by_due"]),
        ("by_due", "state = 0", []),
        ("ready", "state = 0", []),
    ],
)
def test_a_head_that_another_index_may_lead_to_is_said(
    using: str, where: str, others: list[str]
) -> None:
    """
    Of an index over (state, id) a server walked the primary key, and `prove` refused the plan.

    Predicted was such a queue without a word.
    """
    pick = {"distribution": "head", "using": using, "where": where}
    profile = parse_profile(_data(pick))
    said = other_ways(profile)
    assert [name for name in ("by_due", "jobs_pkey", "ready") if name in "".join(said)] == others
    lines = predict(profile).assumed.get("twin.approximations", ())
    assert isinstance(lines, tuple)
    assert set(said) <= set(lines)


def test_no_sample_has_a_head() -> None:
    """A queue's length does not shrink with its table."""
    assert "head" in (obstacle(parse_profile(_data())) or "")


def test_a_delete_without_where_counts_as_the_oldest() -> None:
    """With one client: what is left is what picks by age take, and no row is sought twice."""
    data = _data({"distribution": "head", "using": "jobs_pkey"}, kind="delete")
    data["operation"] += [
        {"table": "jobs", "kind": "insert"},
        UPDATE | {"table": "jobs", "pick": {"distribution": "age", "min": 0, "max": 0}},
        UPDATE | {"table": "jobs", "pick": {"distribution": "oldest"}},
    ]
    text = scripts(parse_profile(data))[0].text
    assert text.startswith("\\set f0 case when :f0 + 1 > :y0 + 1 then :y0 + 1 else :f0 + 1 end\n")
    outcome = _played(data)
    assert outcome.n_tup_upd + outcome.n_tup_ins + outcome.n_tup_del == 60


@pytest.mark.parametrize(
    ("head", "other", "clients"),
    [
        ({"using": "jobs_pkey", "where": "state = 1"}, {"distribution": "oldest"}, 1),
        ({"using": "jobs_pkey"}, {"distribution": "age", "min": 0, "max": 1}, 2),
        ({"using": "jobs_pkey"}, {"distribution": "oldest", "within": 4}, 1),
        (
            {"using": "by_due", "where": "state = 0"},
            {"distribution": "uniform", "among": "live"},
            1,
        ),
    ],
)
def test_ages_are_not_counted_otherwise(head: Json, other: Json, clients: int) -> None:
    """Which row a worker takes is then known to nobody beforehand."""
    data = _data({"distribution": "head"} | head, kind="delete")
    data["operation"].append(UPDATE | {"table": "jobs", "pick": other})
    data["run"]["clients"] = clients
    with pytest.raises(InputError, match=r"^operation\[1\]\.pick: found "):
        parse_profile(data)


def test_a_queue_may_begin_empty() -> None:
    """What is there is what was inserted."""
    data = _data({"distribution": "head", "using": "jobs_pkey"}, kind="delete")
    data["table"][0]["rows"] = 0
    data["table"][0]["columns"][2]["values"] = {"kind": "random", "ndistinct": 9}
    data["operation"].append({"table": "jobs", "kind": "insert", "weight": 3})
    outcome = _played(data)
    assert 0 < outcome.n_tup_del < outcome.n_tup_ins
