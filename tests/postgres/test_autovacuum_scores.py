"""In which order a worker of autovacuum takes tables that are due at once: on 19 by scores."""

from __future__ import annotations

from typing import Any

import pytest

from pgheadroom.play import play
from pgheadroom.predict import predict
from pgheadroom.profile import Profile, parse_profile
from pgheadroom.servers import ServerPrograms

pytestmark = [
    pytest.mark.pg(">= 18"),
    pytest.mark.long(reason="three runs at a rate, of 13 s each"),
    pytest.mark.usefixtures("run_parent"),
]

NAPTIME_S = 4
NO_SCALE = {
    f"autovacuum_{name}_scale_factor": "0" for name in ("vacuum", "vacuum_insert", "analyze")
}
THRESHOLDS = {
    f"autovacuum_{name}_threshold": "10" for name in ("vacuum", "vacuum_insert", "analyze")
}
COMPONENTS = ("freeze", "multixact_freeze", "vacuum", "vacuum_insert", "analyze")


def _weights(others: float, **weights: float) -> dict[str, str]:
    """Settings that give these components these weights, and all others the same."""
    return {
        f"autovacuum_{name}_score_weight": f"{weights.get(name, others):g}" for name in COMPONENTS
    }


def _profile(settings: dict[str, str]) -> Profile:
    """`first` has rows inserted, `second` twice as many updated, `third` four times as many."""
    columns = [
        {"name": "id", "type": "int4"},
        {"name": "n", "type": "int4"},
        {"name": "filler", "type": "bpchar(84)"},
    ]
    tables = [
        {
            "name": name,
            "rows": 2000,
            "fillfactor": 50,
            "columns": columns,
            "indexes": [{"name": f"{name}_pkey", "columns": ["id"], "unique": True}],
        }
        for name in ("first", "second", "third")
    ]
    update: dict[str, Any] = {"kind": "update", "sets": ["n"], "pick": {"distribution": "uniform"}}
    server = {"shared_buffers": "64MB", "autovacuum": True, "autovacuum_naptime_s": NAPTIME_S}
    return parse_profile(
        {
            "schema_version": 1,
            "server": {**server, "settings": {**NO_SCALE, **THRESHOLDS, **settings}},
            "table": tables,
            "operation": [
                {"table": "first", "kind": "insert", "weight": 1},
                {"table": "second", **update, "weight": 2},
                {"table": "third", **update, "weight": 4},
            ],
            "run": {"duration_s": 13, "rate_per_s": 350, "seed": 5},
        }
    )


ORDERS = {
    "as counted": ({}, ("third", "second", "first")),
    "insertions count": (_weights(0.01, vacuum_insert=10), ("first", "third", "second")),
    "no weight": (_weights(0), ("first", "second", "third")),
}


@pytest.mark.parametrize("weighted", ORDERS)
def test_the_farthest_over_its_threshold_comes_first(
    programs: ServerPrograms, weighted: str
) -> None:
    """
    By 19's scores, as its log and the twin's clock have it; to 18, and without weights, as created.

    A worker that comes while not all are due takes fewer: the last three are those of one.
    """
    settings, order = ORDERS[weighted]
    if programs.version.major < 19:
        if weighted != "as counted":
            pytest.skip(f"{programs.version} has no weights")
        order = ("first", "second", "third")
    profile = _profile(settings)
    played = play(profile, server=str(programs.bin_dir))
    own = profile.table_names
    seen = [
        event.table for event in played.events if event.kind == "autovacuum" and event.table in own
    ]
    (cell,) = predict(profile, server=str(programs.bin_dir)).cells
    assert cell.by_itself is not None
    foreseen = [item.table for item in cell.by_itself.happened if item.kind == "autovacuum"]
    assert _passes(seen) == [order] * len(_passes(seen)) != []
    assert _passes(foreseen) == [order] * len(_passes(foreseen)) != []


def _passes(tables: list[str | None]) -> list[tuple[str | None, ...]]:
    """Workers' tables, of those that have all three: a worker takes no table twice."""
    found: list[list[str | None]] = [[]]
    for table in tables:
        if table in found[-1]:
            found.append([])
        found[-1].append(table)
    return [tuple(one) for one in found if len(one) == 3]
