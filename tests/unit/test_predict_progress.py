"""How far a prediction is: of how much, from its beginning on."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

import pytest

from pgheadroom.predict.cells import make_cells
from pgheadroom.predict.planning import Asked, planned
from pgheadroom.predict.run_plan import Model, RunPlan, Timing
from pgheadroom.predict.twin import predict_cells, simulate
from pgheadroom.profile import Profile, parse_profile
from pgheadroom.types import PgVersion

Json = dict[str, Any]


def _profile(server: Json | None = None, **run: Any) -> Profile:
    return parse_profile(
        {
            "schema_version": 1,
            "server": server or {},
            "table": [
                {
                    "name": "t",
                    "rows": 3000,
                    "columns": [{"name": "a", "type": "int4"}, {"name": "n", "type": "int4"}],
                    "indexes": [{"name": "t_pkey", "columns": ["a"], "unique": True}],
                }
            ],
            "operation": [{"table": "t", "kind": "update", "sets": ["n"]}],
            "run": run or {"operations": 20_000},
        }
    )


def _plan(
    profile: Profile, fillfactors: Sequence[int] | None = None, seeds: int | None = None
) -> RunPlan:
    asked = Asked(model=Model(), timing=Timing(), seeds=seeds)
    return planned(make_cells(profile, fillfactors), PgVersion(18, 4), asked).runs


REPEATED = [
    _profile(operations=20_000, clients=2),
    _profile(duration_s=20, rate_per_s=1000),
    _profile({"autovacuum": True}),
    _profile({"checkpoint_interval_s": 30}),
    _profile({"max_wal_size": "32MB"}),
    _profile(operations=20_000, snapshot=[{"start_frac": 0.2, "length_frac": 0.5}]),
]


@pytest.mark.parametrize("profile", REPEATED)
@pytest.mark.parametrize("elsewhere", [False, True])
def test_what_is_to_be_done_is_known_from_the_start(profile: Profile, elsewhere: bool) -> None:
    """
    Once the first run of each fillfactor was counted alone, up to all of it.

    Then it began anew with four times as much or more, and so had been the time that was left.
    """
    told: list[tuple[int, int]] = []
    executor: Executor | None = ThreadPoolExecutor(2) if elsewhere else None
    predict_cells(
        _plan(profile, [100, 90], 5),
        executor=executor,
        report=lambda done, total, _what: told.append((done, total)),
    )
    last = told[-1]
    assert last[0] == last[1]
    assert told == sorted(told)
    assert all(total == pytest.approx(last[1], rel=0.02) for _, total in told)
    if elsewhere:
        assert {total for _, total in told} == {10}


@pytest.mark.parametrize("profile", [_profile(), *REPEATED])
def test_what_is_repeated_is_what_one_run_does_not_say(profile: Profile) -> None:
    """What is said before any run, and what the first run says."""
    plan = _plan(profile)
    assert plan.is_repeated(0) is not plan.says_all(0, simulate(plan.piece(0, 0)))
