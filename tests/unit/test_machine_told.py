"""What the times of a server's sessions say of the machine, and what a profile says of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pgheadroom.errors import InputError
from pgheadroom.play.session_times import Looks, SessionTimes, present_s, session_times
from pgheadroom.play.standing import Standing, inside
from pgheadroom.predict import Given, RunPlan, make_cells, predict_cells
from pgheadroom.profile import MachineTimes, Run, parse_profile, to_json
from pgheadroom.prove.told import at_work_of, given_by_clients, machine_of, told
from pgheadroom.servers.pgbench import TransactionLog
from pgheadroom.types import PgVersion, Span

TIMES = SessionTimes(at_work_s=4.0, in_transaction_s=6.0, between_s=2.0)


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
    worked: float,
    pauses: float,
    times: SessionTimes | None = TIMES,
    stated: MachineTimes | None = None,
    clients: int = 4,
) -> MachineTimes | None:
    run = SimpleNamespace(session_times=times, transactions=100_000)
    first = SimpleNamespace(worked_each=worked, pauses_each=pauses)
    asked = Run(operations=100_000, clients=clients, machine=stated)
    return machine_of(asked, run, first)  # type: ignore[arg-type]


def test_times_are_divided_by_what_took_them() -> None:
    """A transaction of 2 statements and a COMMIT has three pauses."""
    expected = MachineTimes(statement_us=12.5, pause_us=20.0, between_us=20.0)
    assert _machine(worked=3.2, pauses=3.0) == expected


def test_who_is_at_work_at_a_time_is_a_share_of_the_clients() -> None:
    """Of the time that they were there; nobody knows where a part of that is not known."""
    run = SimpleNamespace(session_times=TIMES)
    asked = Run(operations=100_000, clients=9)
    assert at_work_of(asked, run) == 3.0  # type: ignore[arg-type]
    for unknown in (None, replace(TIMES, at_work_s=None), replace(TIMES, between_s=None)):
        run = SimpleNamespace(session_times=unknown)
        assert at_work_of(asked, run) is None  # type: ignore[arg-type]


def test_what_is_not_known_is_not_told() -> None:
    """Nothing of it is 0, which would be sessions that take no time."""
    assert _machine(2.0, 0.0) == MachineTimes(statement_us=20.0, between_us=20.0)
    waits = SessionTimes(at_work_s=None, in_transaction_s=6.0, between_s=None)
    assert _machine(2.0, 3.0, waits) == MachineTimes(pause_us=20.0)
    tiny = SessionTimes(at_work_s=1e-9, in_transaction_s=0.0, between_s=1.0)
    assert _machine(2.0, 0.0, tiny) == MachineTimes(between_us=10.0)


def test_what_is_stated_is_of_another_machine() -> None:
    """A COMMIT's flush and a wake-up are none of this server's, and short runs tell nothing."""
    stated = MachineTimes(statement_us=1, commit_us=2000, wake_us=7)
    found = _machine(2.0, 0.0, stated=stated)
    assert found == MachineTimes(statement_us=20.0, between_us=20.0)
    assert _machine(2.0, 0.0, None, stated) is None
    assert _machine(2.0, 0.0, TIMES, stated, clients=1001) is None


def test_a_prediction_leaves_the_profile_its_machine() -> None:
    """In every run of the twin, not in every other one."""
    profile = parse_profile(_profile(machine={"commit_us": 2000}))
    plan = RunPlan(
        cells=make_cells(profile, None, None, ()),
        version=PgVersion.parse("18.4"),
        given=[Given(standing=(0.0, (), None))],
    )
    for seed in range(2):
        run = json.loads(plan.piece(0, seed).profile_json)["run"]
        assert run["machine"] == {"commit_us": 2000}


@pytest.mark.parametrize("rate", [{}, {"rate_per_s": 100, "duration_s": 12}])
def test_a_proof_that_measured_nothing_takes_no_other_servers_machine(
    rate: dict[str, float],
) -> None:
    """
    Its clients and its server are no throw-away ones.

    3011301-8 of make fuzz: 16 clients of 60 inserts each, too few to be measured, and a statement
    of 5 us by the profile. Nobody waited for the extension lock in the twin, and 371 to 440 pages
    of 16.14 were foreseen as 368 to 381. 1201001-22: who has waited goes on 5 us later by the
    profile, and 2,081 to 9,714 HOT updates of 16.14 were foreseen as 9,502 to 27,718.
    """
    machine = {"statement_us": 5, "wake_us": 7, "processors": 8}
    asked = _profile(machine=machine)
    if rate:
        asked["run"] = {key: value for key, value in asked["run"].items() if key != "operations"}
    asked["run"] |= rate
    profile = parse_profile(asked)
    (cell,) = make_cells(profile, None, None, ())
    run = SimpleNamespace(
        session_times=None, transactions=1200, standing=None, course=(), processors=2
    )
    first = SimpleNamespace(worked_each=2.0, pauses_each=0.0)
    given = given_by_clients(cell, run, first)  # type: ignore[arg-type]
    assert (given.machine, given.processors) == (MachineTimes(), 2)
    begun = 1200 if rate else None
    assert given.operations == begun, "a rate that was kept or not"
    plan = RunPlan(cells=[cell], version=PgVersion.parse("16.14"), given=[given])
    for seed in range(2):
        piece = plan.piece(0, seed)
        assert piece.transactions == begun
        assert json.loads(piece.profile_json)["run"]["machine"] == {"processors": 2}
    said = told(0, profile, given, SimpleNamespace(duration_s=1.0))  # type: ignore[arg-type]
    assert "of another server" in str(said["cells[0].machine"])
    assert said["cells[0].processors"] == 2


def _seen(at_work: int, waiting: int = 0, idle: int = 0, age_s: float = 0.001) -> Looks:
    looks = Looks()
    for pid, (is_active, waits) in enumerate(
        [(True, False)] * at_work + [(True, True)] * waiting + [(False, False)] * idle
    ):
        looks.see(pid, 1.0, age_s, is_active=is_active, waits=waits)
    return looks


def test_waits_are_no_work() -> None:
    """By the share of looks; where hardly any finds work, nobody knows how much there was."""
    log = _log([(0, 0.0, 5.0), (1, 0.0, 5.0)])
    found = session_times(4.0, 2.0, _seen(30, 10), log)
    assert found == SessionTimes(at_work_s=3.0, in_transaction_s=2.0, between_s=4.0)
    few = session_times(4.0, 2.0, _seen(19, 10), log)
    assert few is not None
    assert few.at_work_s is None
    never = session_times(4.0, 7.0, _seen(2), log)
    assert never == SessionTimes(at_work_s=4.0, in_transaction_s=7.0, between_s=None)
    assert session_times(0.0, 0.0, _seen(0), log) is None


def test_a_look_that_met_a_wait_tells_nothing_of_the_statement() -> None:
    """Until the session's next one; it is at work all the same."""
    looks = Looks()
    looks.see(1, 5.0, 0.2, is_active=True, waits=True)
    looks.see(1, 5.0, 0.3, is_active=True, waits=False)
    looks.see(1, 6.0, 0.1, is_active=True, waits=False)
    assert (looks.waiting, looks.at_work, looks.at_work_for_s) == (1, 2, [0.1])


def _log(spans: list[tuple[int, float, float]], failed: Sequence[Span] = ()) -> TransactionLog:
    """Client, beginning and end; failed ones' clients and ends."""
    spans = sorted(spans, key=lambda span: span[2])
    return TransactionLog(
        ends_s=np.array([end for _, _, end in spans]),
        latency_ms=np.array([1000 * (end - begin) for _, begin, end in spans]),
        script=np.zeros(len(spans), dtype=np.int64),
        client=np.array([client for client, _, _ in spans]),
        failed_ends_s=np.array([end for _, end in failed]),
        failed_client=np.array([client for client, _ in failed], dtype=np.int64),
    )


def test_which_part_lies_within_statements_is_a_share_of_looks() -> None:
    """Of 100 times of 25 transactions each, that 10,000 looks meet some 200 times."""
    spans = [(client, n / 100, (n + 1) / 100) for client in (0, 1) for n in range(5000)]
    log = _log(spans)
    found = Standing(share=0.01, lengths=(25.0,))
    none = inside(found, _seen(50, idle=950), log)
    some = inside(found, _seen(50, idle=950, age_s=0.2), log)
    every = inside(found, _seen(500, idle=500, age_s=0.2), log)
    assert none is not None
    assert some is not None
    assert every is not None
    assert none[0] == 0.0
    assert none[1] < 0.05
    assert 0.15 < some[0] < 0.25 < some[1] < 0.4
    assert every[0] > 0.9
    assert inside(found, _seen(1, idle=2), log) is None, "no look is expected to meet any"
    assert inside(Standing(0.0, ()), _seen(500, idle=500), log) is None


def test_clients_are_present_from_their_first_beginning_to_their_last_end() -> None:
    """Whatever the order of the lines, and whether a transaction at either end has failed."""
    spans = [(0, 0.5, 1.0), (1, 1.25, 1.5), (0, 1.1, 2.0), (1, 2.0, 4.0)]
    assert present_s(_log(spans)) == pytest.approx((2.0 - 0.5) + (4.0 - 1.25))
    late = _log(spans, [(0, 3.0), (2, 1.0), (2, 6.0)])
    assert present_s(late) == pytest.approx((3.0 - 0.5) + (4.0 - 1.25) + (6.0 - 1.0))


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
    assert "times a pause after it is free" in said
    assert "one processor, 2 with clients in step, or each its own" in said
    for count, expected in (
        (1, "all backends have one processor with the clients, a client"),
        (2, "one processor, 2 with clients in step, or 2 with the clients"),
        (3, "one processor, 3 with clients in step, or each its own"),
    ):
        known = parse_profile(_profile(machine={"processors": count}))
        (found,) = predict_cells(_plan(known, seeds=2))
        assert expected in "".join(found.approximations)


@pytest.mark.parametrize(
    ("processors", "at_work", "expected"),
    [
        (2, 0.4, "all backends have one processor, 2 with clients in step, or 2 with the clients"),
        (2, 1.5, "all backends have 2 with clients in step, or 2 with the clients"),
        (2, 2.5, "each backend has its own processor"),
        (1, 1.5, "each backend has its own processor"),
    ],
)
def test_what_is_said_of_processors_knows_who_is_at_work(
    processors: int, at_work: float, expected: str
) -> None:
    """As the twin plays it; how many were at work is told beside the processors."""
    profile = parse_profile(_profile())
    given = Given(processors=processors, at_work=at_work)
    plan = replace(_plan(profile, seeds=2), given=[given])
    (found,) = predict_cells(plan)
    assert expected in "".join(found.approximations)
    said = told(0, profile, given, SimpleNamespace(duration_s=1.0))  # type: ignore[arg-type]
    assert (said["cells[0].processors"], said["cells[0].sessions_at_work"]) == (processors, at_work)


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        ({"pause_us": -1}, "run.machine.pause_us"),
        ({"statement_us": 0}, "run.machine.statement_us"),
        ({"processors": 0}, "run.machine.processors"),
        ({"processors": 1.5}, "run.machine.processors"),
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
        given=[Given(machine=told, processors=2)],
    )
    assert json.loads(plan.piece(0, 0).profile_json)["run"]["machine"] == {
        "statement_us": 10,
        "pause_us": 30,
        "between_us": 90,
        "processors": 2,
    }
    # Every other run draws it, for what means do not tell.
    drawn = json.loads(plan.piece(0, 1).profile_json)["run"]["machine"]
    assert drawn == {"processors": 2}


def test_a_slow_commit_is_waited_for() -> None:
    """Locks last until COMMIT has ended: with a flush of 5 ms others find rows held far more."""
    few_rows = _profile(clients=4, operations=4000)
    few_rows["table"][0]["rows"] = 8
    few_rows["operation"] = [dict(few_rows["operation"][0], transaction="one")]
    times = {"statement_us": 20, "pause_us": 20, "between_us": 2000}

    def records(commit_us: float) -> int:
        few_rows["run"]["machine"] = times | {"commit_us": commit_us}
        (found,) = predict_cells(_plan(parse_profile(few_rows), seeds=2))
        outcome = found.outcome.wal_records
        assert outcome is not None
        return round(outcome if isinstance(outcome, int) else outcome.mid)

    assert records(5000) > 1.05 * records(5)


def _plan(profile: Any, seeds: int) -> RunPlan:
    cells = make_cells(profile, None, None, ())
    return RunPlan(cells=cells, version=PgVersion.parse("18.4"), seeds=seeds)


def test_work_is_what_statements_read() -> None:
    """A scan's parts are work too: 200 times the rows are more than ten times the work."""

    def worked(rows: int) -> float:
        profile = _profile(clients=2, operations=40)
        profile["table"][0]["rows"] = rows
        for operation in profile["operation"]:
            operation["find"] = "seqscan"
        (found,) = predict_cells(_plan(parse_profile(profile), seeds=2))
        return found.worked_each

    assert worked(24_000) > 10 * worked(120)


def test_a_pause_at_a_rate_is_that_within_transactions() -> None:
    """Which is said; when transactions begin the rate says."""
    profile = _profile(clients=4, machine={"pause_us": 77, "between_us": 5})
    profile["run"] |= {"duration_s": 1, "rate_per_s": 300}
    del profile["run"]["operations"]
    (found,) = predict_cells(_plan(parse_profile(profile), seeds=2))
    (said,) = (line for line in found.approximations if "statements of 4 clients" in line)
    assert "pauses are 77 us within a transaction" in said
    assert "a statement takes 30 to 300 us" in said
