"""What a proof tells the twin of several clients."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pgheadroom.play.standing import Standing
from pgheadroom.predict import Given, RunPlan, make_cells
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
