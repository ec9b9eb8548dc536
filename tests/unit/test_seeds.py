"""How many runs a statistical cell has where nobody says."""

from __future__ import annotations

from typing import Any

from pgheadroom.predict import predict
from pgheadroom.predict.planning import seeds_of
from pgheadroom.predict.run_plan import interleaving_of
from pgheadroom.profile import Profile, parse_profile

Json = dict[str, Any]


def _profile(run: Json) -> Profile:
    table = {
        "name": "jobs",
        "rows": 100,
        "columns": [{"name": "id", "type": "int4"}, {"name": "n", "type": "int4"}],
        "indexes": [{"name": "jobs_pkey", "columns": ["id"], "unique": True}],
    }
    update = {"table": "jobs", "kind": "update", "sets": ["n"]}
    return parse_profile({"schema_version": 1, "table": [table], "operation": [update], "run": run})


def test_many_settings_have_fewer_runs_each() -> None:
    """Eight of one setting and of sixteen, four of more; samples stand for the whole by eight."""
    assert [seeds_of(count, sampled=False) for count in (1, 16, 17, 91)] == [8, 8, 4, 4]
    assert seeds_of(91, sampled=True) == 8


def test_how_many_runs_there_are_is_assumed() -> None:
    """Of a sweep, of one setting, and as somebody asks; one client's outcome needs none of them."""
    run = {"operations": 40, "clients": 2}
    sweep = list(range(84, 101))

    def interleavings(run: Json, fillfactors: list[int] | None, **asked: int) -> object:
        found = predict(_profile(run), fillfactors, server="18.4", **asked)
        return found.assumed.get("twin.interleavings")

    assert interleavings(run, sweep) == 4
    assert interleavings(run, sweep[1:]) == 8
    assert interleavings(run, None) == 8
    assert interleavings(run, sweep, seeds=3) == 3
    assert interleavings({"operations": 40}, sweep) is None


def test_four_runs_reach_as_far_as_eight() -> None:
    """In each range of machines one of four lies in the first quarter, one in the last third."""
    steps = (0.819_172_5, 0.618_034_0, 0.671_043_6, 0.549_700_5)  # run/machine.rs
    numbers = [interleaving_of(seed, 4) for seed in range(4)]
    assert numbers[0] == 0
    for step in steps:
        places = sorted((0.5 + number * step) % 1 for number in numbers)
        assert places[0] < 0.25
        assert places[-1] > 2 / 3
    assert [interleaving_of(seed, 8) for seed in range(8)] == list(range(8))
