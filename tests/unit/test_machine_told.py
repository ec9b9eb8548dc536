"""What the times of a server's sessions say of the machine, and what a profile says of it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pgheadroom.errors import InputError
from pgheadroom.play.session_times import SessionTimes, present_s
from pgheadroom.predict import Given, RunPlan, make_cells, predict_cells
from pgheadroom.profile import MachineTimes, parse_profile, to_json
from pgheadroom.prove.told import machine_of
from pgheadroom.servers.pgbench import TransactionLog
from pgheadroom.types import PgVersion

TIMES = SessionTimes(at_work_s=4.0, waiting_s=1.0, in_transaction_s=6.0, between_s=2.0)


def _profile(clients: int = 3, **run: Any) -> dict[str, Any]:
    key = {"name": "t_pkey", "columns": ["id"], "unique": True}
    columns = [{"name": "id", "type": "int8"}, {"name": "n", "type": "int4"}]
    update = {"table": "t", "kind": "update", "sets": ["n"], "pick": {"distribution": "uniform"}}
    return {
        "schema_version": 1,
        "table": [{"name": "t", "rows": 120, "columns": columns, "indexes": [key]}],
        "operation": [update | {"transaction": "two"}, update | {"transaction": "two"}],
        "run": {"operations": 1200, "clients": clients} | run,
    }


def _machine(
    worked: float, pauses: float, times: SessionTimes | None = TIMES
) -> MachineTimes | None:
    run = SimpleNamespace(session_times=times, transactions=100_000)
    first = SimpleNamespace(worked_each=worked, pauses_each=pauses)
    return machine_of(run, first)  # type: ignore[arg-type]


def test_times_are_divided_by_what_took_them() -> None:
    """Waits are left out; a transaction of 2 statements and a COMMIT has three pauses."""
    expected = MachineTimes(statement_us=12.5, pause_us=20.0, between_us=20.0)
    assert _machine(worked=3.2, pauses=3.0) == expected


def test_who_has_no_pauses_has_none_told() -> None:
    """Statements of their own; and a run whose time is not known has no machine."""
    assert _machine(worked=2.0, pauses=0.0) == MachineTimes(statement_us=20.0, between_us=20.0)
    assert _machine(worked=2.0, pauses=0.0, times=None) is None


def test_clients_are_present_from_their_first_beginning_to_their_last_end() -> None:
    """Whatever the order of the lines; what they do in between is theirs."""
    log = TransactionLog(
        ends_s=np.array([1.0, 1.5, 2.0, 4.0]),
        latency_ms=np.array([500.0, 250.0, 900.0, 2000.0]),
        script=np.zeros(4, dtype=np.int64),
        client=np.array([0, 1, 0, 1]),
        failed_ends_s=np.array([]),
    )
    assert present_s(log) == pytest.approx((2.0 - 0.5) + (4.0 - 1.25))


def test_a_profile_keeps_what_it_says_of_the_machine() -> None:
    """Written and read again; a prediction says that it took it, and what it drew all the same."""
    known = {"statement_us": 40, "commit_us": 2000, "pause_us": 300.5}
    profile = parse_profile(_profile(machine=known))
    assert profile.workload.run.machine == MachineTimes(
        statement_us=40, commit_us=2000, pause_us=300.5
    )
    assert parse_profile(json.loads(json.dumps(to_json(profile)))) == profile
    (found,) = predict_cells(_plan(profile, seeds=2))
    (said,) = (line for line in found.approximations if "statements of 3 clients" in line)
    assert "an UPDATE 40 us, a COMMIT 2000 us" in said
    assert "300.5 us within a transaction" in said
    assert "times a statement after it is free" in said


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        ({"pause_us": -1}, "run.machine.pause_us"),
        ({"statement_us": 0}, "run.machine.statement_us"),
        ({"commits_us": 1}, "commits_us: unknown field; did you mean commit_us"),
        (12, "run.machine"),
    ],
)
def test_a_machine_that_cannot_be_is_refused(machine: object, said: str) -> None:
    """By the field's name, with what was expected."""
    with pytest.raises(InputError, match=said):
        parse_profile(_profile(machine=machine))


def test_what_a_server_told_goes_before_the_profile() -> None:
    """Of one run there is one machine."""
    profile = parse_profile(_profile(machine={"wake_us": 7}))
    told = MachineTimes(statement_us=10, pause_us=30, between_us=90)
    plan = RunPlan(
        cells=make_cells(profile, None, None, ()),
        version=PgVersion.parse("18.4"),
        given=[Given(machine=told)],
    )
    assert json.loads(plan.piece(0, 0).profile_json)["run"]["machine"] == {
        "statement_us": 10,
        "pause_us": 30,
        "between_us": 90,
    }


def test_a_slow_commit_is_waited_for() -> None:
    """Locks last until COMMIT has ended: with a flush of 5 ms others find rows held far more."""
    few_rows = _profile(clients=4, operations=4000)
    few_rows["table"][0]["rows"] = 8
    few_rows["operation"] = [dict(few_rows["operation"][0], transaction="one")]
    times = {"statement_us": 20, "pause_us": 20, "between_us": 2000}

    def locks(commit_us: float) -> int:
        few_rows["run"]["machine"] = times | {"commit_us": commit_us}
        (found,) = predict_cells(_plan(parse_profile(few_rows), seeds=2))
        outcome = found.outcome.wal_records
        assert outcome is not None
        return round(outcome if isinstance(outcome, int) else outcome.mid)

    assert locks(5000) > 1.05 * locks(5)


def _plan(profile: Any, seeds: int) -> RunPlan:
    cells = make_cells(profile, None, None, ())
    return RunPlan(cells=cells, version=PgVersion.parse("18.4"), seeds=seeds)
