"""Commands of maintenance in a profile: what is refused, and where pgbench waits for them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgheadroom.errors import InputError, TwinError
from pgheadroom.outcome import mid
from pgheadroom.play.maintenance import statement
from pgheadroom.play.scripts import scripts, variables
from pgheadroom.predict import predict
from pgheadroom.predict.cells import make_cells
from pgheadroom.predict.run_plan import Given, RunPlan, as_given
from pgheadroom.predict.twin import predict_cells
from pgheadroom.profile import Maintenance, Profile, parse_profile, to_json
from pgheadroom.profile.maintaining import due_after
from pgheadroom.types import PgVersion, Span

Json = dict[str, Any]


def _data(*commands: Json, run: Json | None = None) -> Json:
    columns = [
        {"name": "id", "type": "int4"},
        {"name": "v", "type": "int4", "values": {"kind": "random", "ndistinct": 9}},
        {"name": "of", "type": "int4"},
    ]

    def table(name: str, *indexes: Json) -> Json:
        key = {"name": f"{name}_pkey", "columns": ["id"], "unique": True}
        return {
            "name": name,
            "rows": 200,
            "columns": copy.deepcopy(columns),
            "indexes": [key, *indexes],
        }

    child = table("child", {"name": "child_v", "columns": ["v"]})
    child["foreign_keys"] = [{"columns": ["of"], "references": "parent"}]
    ranges = table("ranges", {"name": "ranges_v", "columns": ["v"], "method": "brin"})
    hashed = table("hashed", {"name": "hashed_v", "columns": ["v"], "method": "hash"})
    return {
        "schema_version": 1,
        "table": [table("parent"), child, ranges, hashed, table("quick") | {"unlogged": True}],
        "operation": [{"table": "child", "kind": "update", "sets": ["v"]}],
        "run": {"operations": 400, "maintenance": list(commands)} | (run or {}),
    }


VACUUM = {"do": "vacuum", "table": "child", "after": 100}


def _profile(*commands: Json, run: Json | None = None) -> Profile:
    return parse_profile(_data(*commands, run=run))


@pytest.mark.parametrize(
    ("command", "run", "said"),
    [
        ({**VACUUM, "at_frac": 0.5}, {}, "run.maintenance[0]: found both of after and at_frac"),
        ({"do": "vacuum", "table": "child"}, {}, "found neither of after and at_frac"),
        ({**VACUUM, "after": 401}, {}, "run.maintenance[0].after: found 401, expected at most"),
        (VACUUM, {"clients": 2}, "run.maintenance[0].after: found 100, expected at_frac"),
        ({**VACUUM, "table": "other"}, {}, "run.maintenance[0].table: found 'other'"),
        ({**VACUUM, "do": "analyze", "freeze": True}, {}, "run.maintenance[0].freeze"),
        ({**VACUUM, "do": "vacuum full", "parallel": 2}, {}, "run.maintenance[0].parallel"),
        ({**VACUUM, "parallel": 1025}, {}, "run.maintenance[0].parallel"),
        ({**VACUUM, "index": "child_pkey"}, {}, "run.maintenance[0].index"),
        ({**VACUUM, "do": "cluster"}, {}, "run.maintenance[0].index: missing"),
        ({**VACUUM, "do": "reindex", "index": "no"}, {}, "run.maintenance[0].index: found 'no'"),
        ({**VACUUM, "do": "truncate", "table": "parent"}, {}, "child does not refer to"),
        ({**VACUUM, "do": "vacuum full", "table": "ranges"}, {}, "a table without a BRIN index"),
        ({**VACUUM, "do": "truncate", "table": "hashed"}, {}, "a table without a hash index"),
        ({**VACUUM, "do": "vacuum full", "table": "quick"}, {}, "a logged table"),
    ],
)
def test_what_does_not_fit_is_refused(command: Json, run: Json, said: str) -> None:
    """A command that no server takes, or that is not played, ends with its path and why."""
    with pytest.raises(InputError) as caught:
        _profile(command, run=run)
    assert said in str(caught.value)


def test_a_brin_is_vacuumed_and_analyzed() -> None:
    """Both commands are played beside one, VACUUM with FREEZE too."""
    commands = (
        {**VACUUM, "table": "ranges"},
        {**VACUUM, "table": "ranges", "freeze": True},
        {**VACUUM, "do": "analyze", "table": "ranges"},
    )
    assert len(_profile(*commands).workload.run.maintenance) == 3


def test_autovacuum_beside_is_refused() -> None:
    """What autovacuum counts after a command is not modelled."""
    data = _data(VACUUM)
    data["server"] = {"autovacuum": True}
    with pytest.raises(InputError, match="autovacuum"):
        parse_profile(data)


def test_a_profile_keeps_its_commands() -> None:
    """Stages start from files: what is written is read as it was."""
    profile = _profile(
        {**VACUUM, "parallel": 3}, {"do": "reindex", "table": "child", "at_frac": 0.25}
    )
    assert parse_profile(to_json(profile)) == profile
    assert [command.do for command in profile.workload.run.maintenance] == ["vacuum", "reindex"]


def test_pgbench_waits_behind_the_last_transaction_before_a_command() -> None:
    """One wait for all commands at a time, none behind the last transaction of the run."""
    profile = _profile(
        VACUUM,
        {"do": "analyze", "table": "child", "at_frac": 0.25},
        {"do": "analyze", "table": "parent", "after": 0},
        {"do": "reindex", "table": "child", "after": 400},
    )
    text = scripts(profile)[0].text
    waits = [line for line in text.splitlines() if line.startswith(r"\shell")]
    assert waits == [r"\shell sh gate.sh 0", r"\shell sh gate.sh 100"]
    assert text.startswith("\\set t :t + 1\n\\if :t = 1\n")
    assert variables(profile)["t"] == 0
    several = _profile({"do": "vacuum", "table": "child", "at_frac": 0.5}, run={"clients": 2})
    assert "shell" not in scripts(several)[0].text


def test_a_part_of_the_run_is_rounded_as_the_twin_does() -> None:
    """Half a transaction counts as one."""
    run = _profile(VACUUM, run={"operations": 250}).workload.run
    for at_frac, after in ((0.0, 0), (0.5, 125), (0.001, 0), (0.002, 1), (0.01, 3), (1.0, 250)):
        command = Maintenance(do="vacuum", table="child", at_frac=at_frac)
        assert due_after(command, run) == after


def test_statements_name_what_is_meant() -> None:
    """Names are quoted; REINDEX takes one index, or the table's."""

    def sql(do: Any, **fields: Any) -> str:
        return statement(Maintenance(do=do, table='a "b"', after=1, **fields))

    assert sql("vacuum") == 'VACUUM "a ""b"""'
    assert sql("vacuum", freeze=True) == 'VACUUM (FREEZE) "a ""b"""'
    assert sql("vacuum", parallel=2) == 'VACUUM (PARALLEL 2) "a ""b"""'
    assert sql("vacuum", freeze=True, parallel=1) == 'VACUUM (FREEZE, PARALLEL 1) "a ""b"""'
    assert sql("vacuum full") == 'VACUUM (FULL) "a ""b"""'
    assert sql("analyze") == 'ANALYZE "a ""b"""'
    assert sql("truncate") == 'TRUNCATE "a ""b"""'
    assert sql("reindex") == 'REINDEX TABLE "a ""b"""'
    assert sql("reindex", index="i") == 'REINDEX INDEX "i"'
    assert sql("cluster", index="i") == 'CLUSTER "a ""b""" USING "i"'


def test_equal_rows_are_not_clustered() -> None:
    """Their order is that of the server's sort, which is no rule of storage."""
    profile = _profile({"do": "cluster", "table": "child", "index": "child_v", "after": 100})
    plan = RunPlan(cells=make_cells(profile), version=PgVersion(major=18, minor=4))
    with pytest.raises(TwinError, match="CLUSTER by an index in which rows are equal"):
        predict_cells(plan)


def test_a_measured_time_takes_the_place_of_the_one_that_was_asked_for() -> None:
    """Beside several clients a command runs a little later than it was due."""
    profile = _profile({"do": "vacuum", "table": "child", "at_frac": 0.5}, run={"clients": 2})
    told = as_given(profile, Given(maintained=((0.53, 0.53),)))
    assert [command.at_frac for command in told.workload.run.maintenance] == [0.53]
    assert as_given(profile, Given()) == profile


SPAN = st.tuples(st.floats(0, 1), st.floats(0, 1)).map(lambda ends: (min(ends), max(ends)))


@given(st.lists(SPAN, min_size=1, max_size=5), st.integers(0, 7))
def test_commands_of_one_session_keep_their_order(spans: list[Span], seed: int) -> None:
    """Whatever is drawn of when they ran, it lies within that, or behind the one before."""
    commands = [{"do": "vacuum", "table": "child", "at_frac": 0.5}] * len(spans)
    profile = _profile(*commands, run={"clients": 2})
    told = as_given(profile, Given(maintained=tuple(spans)), seed)
    found = [command.at_frac for command in told.workload.run.maintenance]
    in_turn = [found[n] for n in sorted(range(len(spans)), key=lambda n: spans[n])]
    assert in_turn == sorted(in_turn)
    for at, (low, _) in zip(found, spans, strict=True):
        assert low <= at <= max(high for _, high in spans)


def test_commands_of_one_moment_come_as_they_were_due() -> None:
    """
    All at the end of a run that was over before the first: in the order of their times.

    3011401-73 of make fuzz: VACUUM (FREEZE) stands before a TRUNCATE in the file, and comes behind
    it: 22,929 records were foreseen where 15.18 wrote 3,182.
    """
    vacuum = {"do": "vacuum", "table": "child", "at_frac": 0.9}
    truncate = {"do": "truncate", "table": "child", "at_frac": 0.4}
    profile = _profile(vacuum, truncate, run={"clients": 2})
    told = as_given(profile, Given(maintained=((1.0, 1.0), (1.0, 1.0))))
    found = [(command.do, command.at_frac) for command in told.workload.run.maintenance]
    assert found == [("truncate", 1.0), ("vacuum", 1.0)]


@pytest.mark.parametrize("command", ["reindex", "truncate", "vacuum full"])
def test_a_rebuilt_gin_is_shared_by_clients_as_before(command: str) -> None:
    """What builds an empty index again before the first transaction changes nothing after it."""
    gin = {"name": "t_g", "method": "gin", "columns": ["g"], "gin_pending_list_limit": 64}
    data: Json = {
        "schema_version": 1,
        "server": {"version": "18", "shared_buffers": "128MB", "full_page_writes": False},
        "table": [
            {
                "name": "t",
                "rows": 0,
                "columns": [
                    {"name": "k", "type": "int4"},
                    {
                        "name": "g",
                        "type": "text[]",
                        "width": 60,
                        "values": {"kind": "random", "ndistinct": 500},
                    },
                ],
                "indexes": [{"name": "t_pkey", "columns": ["k"], "unique": True}, gin],
            }
        ],
        "operation": [{"table": "t", "kind": "insert"}],
        "run": {"operations": 8000, "clients": 4, "seed": 5},
    }
    (alone,) = predict(parse_profile(data), seeds=2).cells
    data["run"] |= {"maintenance": [{"do": command, "table": "t", "at_frac": 0}]}
    (rebuilt,) = predict(parse_profile(data), seeds=2).cells
    assert rebuilt.predicted.index_pages == alone.predicted.index_pages
    own = mid(rebuilt.predicted.wal_records) - mid(alone.predicted.wal_records)
    assert 0 <= own < 20
