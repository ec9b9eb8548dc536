"""What a proof tells the twin of several clients."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pgheadroom.errors import LabError, MeasurementInvalid, TwinError
from pgheadroom.play.standing import Standing
from pgheadroom.predict import Given, RunPlan, make_cells, predict_cells
from pgheadroom.profile import parse_profile
from pgheadroom.prove import _both
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
        transactions=100,
        events=(),
        snapshots=(),
        holds=(),
        duration_s=1.0,
    )
    played: list[RunPlan] = []

    def twin(plan: RunPlan) -> list[Any]:
        played.append(plan)
        return []

    plan = RunPlan(cells=make_cells(profile, None, None, ()), version=PgVersion.parse("18.4"))
    (given,), _, _ = _both(profile, plan, twin, lambda: [run])  # type: ignore[list-item]
    assert isinstance(given, Given)
    assert (given.standing, given.course) == ((0.1, (12.0,)), COURSE)
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
