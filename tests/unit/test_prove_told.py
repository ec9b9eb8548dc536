"""What a proof tells the twin of several clients."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pgheadroom.errors import LabError, MeasurementInvalid, TwinError
from pgheadroom.play import Played
from pgheadroom.play.events import Event
from pgheadroom.play.session_times import SessionTimes
from pgheadroom.play.standing import Standing
from pgheadroom.play.workers import Hold
from pgheadroom.predict import Given, RunPlan, make_cells, predict_cells
from pgheadroom.profile import Profile, parse_profile
from pgheadroom.prove import _both
from pgheadroom.prove.told import given_by
from pgheadroom.types import PgVersion

COURSE = ((30, 20), (20, 30))


@pytest.mark.parametrize("server", [{}, {"autovacuum": True}])
def test_how_clients_came_on_is_told_in_every_way(server: dict[str, Any]) -> None:
    """Whether the twin needs more of the run, such as its autovacuums, or nothing else."""
    profile = parse_profile(
        {
            "schema_version": 1,
            "server": server,
            "table": [{"name": "t", "rows": 10, "columns": [{"name": "a", "type": "int4"}]}],
            "operation": [{"table": "t", "kind": "insert"}],
            "run": {"operations": 100, "clients": 2},
        }
    )
    run = SimpleNamespace(
        maintained=(),
        standing=Standing(share=0.1, lengths=(12.0,)),
        course=COURSE,
        session_times=SessionTimes(at_work_s=0.2, in_transaction_s=0.0, between_s=0.4),
        transactions=200,
        processors=2,
        events=(),
        snapshots=(),
        holds=(),
        duration_s=1.0,
    )
    played: list[RunPlan] = []

    def twin(plan: RunPlan) -> list[Any]:
        played.append(plan)
        return [SimpleNamespace(worked_each=2.0, pauses_each=0.0)]

    plan = RunPlan(cells=make_cells(profile, None, None, ()), version=PgVersion.parse("18.4"))
    (given,), _, _ = _both(profile, plan, twin, lambda: [run])  # type: ignore[list-item]
    assert isinstance(given, Given)
    assert (given.standing, given.course) == ((0.1, (12.0,), None), COURSE)
    assert given.machine is not None
    assert given.machine.between_us == 2000
    assert played[-1].given == [given]


@pytest.mark.parametrize("server_settings", [{}, {"autovacuum": True}])
@pytest.mark.parametrize(
    ("failure", "raised"),
    [
        (LabError("pgbench failed"), TwinError),
        (MeasurementInvalid("deadlocks"), MeasurementInvalid),
    ],
)
def test_the_twin_says_why_a_server_failed(
    failure: LabError, raised: type[Exception], server_settings: dict[str, Any]
) -> None:
    """A key that no short run of the twin brings out of range: 291108-70 of make fuzz."""
    profile = parse_profile(
        {
            "schema_version": 1,
            "server": server_settings,
            "table": [{"name": "t", "rows": 10, "columns": [{"name": "a", "type": "int2"}]}],
            "operation": [{"table": "t", "kind": "insert"}],
            "run": {"operations": 100, "clients": 2},
        }
    )

    def twin(plan: RunPlan) -> list[Any]:
        if plan.seeds > 2:
            raise TwinError("32768 is out of range for type int2")
        return []

    def server() -> list[Any]:
        raise failure

    plan = RunPlan(cells=make_cells(profile, None, None, ()), version=PgVersion.parse("18.4"))
    with pytest.raises(raised):
        _both(profile, plan, twin, server)


@pytest.mark.parametrize(
    "settings",
    [{"max_wal_size": "32MB"}, {"autovacuum": True}, {"checkpoint_interval_s": 30}, {}],
)
@pytest.mark.parametrize("run", [{"operations": 100}, {"duration_s": 2}])
def test_a_server_that_fails_is_heard_where_the_twin_was_told_nothing(
    settings: dict[str, Any], run: dict[str, Any]
) -> None:
    """
    What is said is why the server failed, not that the twin cannot play `max_wal_size`.

    That it said of a server built without lz4, for it was asked without the times of checkpoints.
    """
    profile = parse_profile(
        {
            "schema_version": 1,
            "server": settings,
            "table": [{"name": "t", "rows": 10, "columns": [{"name": "a", "type": "int4"}]}],
            "operation": [{"table": "t", "kind": "insert"}],
            "run": run | {"clients": 2},
        }
    )

    def server() -> list[Any]:
        raise LabError("this server was built without lz4")

    plan = RunPlan(cells=make_cells(profile, None, None, ()), version=PgVersion.parse("18.4"))
    with pytest.raises(LabError, match="built without lz4"):
        _both(profile, plan, predict_cells, server)


def _profile(run: dict[str, Any] | None = None) -> Profile:
    columns = [{"name": "id", "type": "int4"}, {"name": "n", "type": "int4"}]
    key = {"name": "jobs_pkey", "columns": ["id"], "unique": True}
    pick = {"distribution": "uniform"}
    return parse_profile(
        {
            "schema_version": 1,
            "table": [{"name": "jobs", "rows": 10, "columns": columns, "indexes": [key]}],
            "operation": [{"table": "jobs", "kind": "update", "sets": ["n"], "pick": pick}],
            "run": run or {"operations": 10},
        }
    )


FIRST: Any = SimpleNamespace(worked_each=1.0, pauses_each=0.0)


def _played(events: tuple[Event, ...], transactions: int = 10) -> Played:
    return Played(
        server=PgVersion(18, 4),
        measured={},
        assumed={},
        duration_s=10.0,
        transactions=transactions,
        plans={},
        events=events,
        snapshots=(),
        checks={},
        by_record={},
        places=None,
        turns={},
    )


def test_what_a_run_tells_the_twin() -> None:
    """Events of the profile's tables, as fractions of the run."""
    events = (
        Event(t_s=5.0, kind="autovacuum", table="jobs", elapsed_s=2.45),
        Event(t_s=2.5, kind="checkpoint_starting"),
        Event(t_s=2.6, kind="checkpoint_complete"),
        Event(t_s=3.0, kind="autoanalyze", table="pg_class"),
    )
    (cell,) = make_cells(_profile({"duration_s": 10}))
    given = given_by(cell, _played(events, 77), FIRST)
    assert given.events == (
        (0.25, "checkpoint_starting", None),
        (0.255, "autovacuum_starting", "jobs"),
        (0.26, "checkpoint_complete", None),
        (0.5, "autovacuum", "jobs"),
    )
    assert given.operations == 77
    placed = Event(
        t_s=5.0, kind="autoanalyze", table="jobs", elapsed_s=0.1, began_frac=0.4, at_frac=0.45
    )
    hold = Hold(began=(0.4, 0.41), ended=(0.45, 0.45))
    given = given_by(cell, replace(_played((placed,)), holds=(hold,)), FIRST)
    assert given.events == ((0.45, "autoanalyze", "jobs"),)
    assert given.snapshots == ()
    assert given.holds == (((0.4, 0.41), (0.45, 0.45)),)
    timed = Event(
        t_s=5.0, kind="autovacuum", table="jobs", began_s=4.9, began=(0.4, 0.41), ended=(0.5, 0.52)
    )
    given = given_by(cell, _played((timed, placed)), FIRST)
    assert given.events == ((0.45, "autoanalyze", "jobs"),)
    assert given.vacuums == (((0.4, 0.41), (0.5, 0.52), "jobs"),)
    (cell,) = make_cells(_profile())
    assert given_by(cell, _played(()), FIRST).operations is None
    assert given_by(cell, _played(()), FIRST).events == (), "nothing happened, which is known"
