"""
The twin's clock beside a server: what autovacuum and checkpoints do, foreseen and not told.

A run of a minute at a rate; only the profile is known to the twin, no time of the server's run.
"""

from __future__ import annotations

from typing import Any

import pytest

from pgheadroom.accuracy import figures
from pgheadroom.play import Played, play
from pgheadroom.predict import predict
from pgheadroom.predict.values import PredictedCell
from pgheadroom.profile import Profile, parse_profile
from pgheadroom.servers import ServerPrograms
from pgheadroom.types import Interval

pytestmark = [
    pytest.mark.long(reason="runs of half a minute and more at a rate"),
    pytest.mark.usefixtures("run_parent"),
]

NAPTIME_S = 3
RATE_PER_S = 1200
ROWS = 120_000
"""So many that a few pages, which the unknown phase of autovacuum makes of an index, are little."""


def _profile(
    server: dict[str, Any],
    seconds: int,
    hot: dict[str, Any] | None = None,
) -> Profile:
    columns = [
        {"name": "id", "type": "int4"},
        {"name": "owner", "type": "int4", "values": {"kind": "random", "ndistinct": 3000}},
        {"name": "n", "type": "int4"},
        {"name": "filler", "type": "bpchar(84)"},
    ]
    table = {
        "name": "t",
        "rows": ROWS,
        "fillfactor": 90,
        "reloptions": {"autovacuum_vacuum_scale_factor": "0.03"},
        "columns": columns,
        "indexes": [
            {"name": "t_pkey", "columns": ["id"], "unique": True},
            {"name": "t_owner", "columns": ["owner"]},
        ],
    }
    hot = hot or {"distribution": "hot_set", "rows_frac": 0.1, "weight": 0.6}
    return parse_profile(
        {
            "schema_version": 1,
            "server": {"shared_buffers": "128MB", **server},
            "table": [table],
            "operation": [
                {"table": "t", "kind": "update", "sets": ["n"], "pick": hot, "weight": 3},
                {"table": "t", "kind": "update", "sets": ["owner"], "pick": hot, "weight": 1},
                {"table": "t", "kind": "insert", "weight": 1},
                {
                    "table": "t",
                    "kind": "delete",
                    "pick": {"distribution": "oldest"},
                    "weight": 1,
                },
            ],
            "run": {"duration_s": seconds, "rate_per_s": RATE_PER_S, "clients": 4, "seed": 5},
        }
    )


def _missed(cell: PredictedCell, played: Played) -> list[str]:
    """Figures beyond the bounds of the contract, or outside their interval."""
    found = figures(cell.predicted, played.measured)
    return [
        f"{figure.key}: predicted {figure.predicted}, measured {figure.measured}"
        for figure in found
        if figure.table is None and (figure.missed or figure.holds is False)
    ]


def _counts(value: object) -> tuple[float, float]:
    if isinstance(value, Interval):
        return value.low, value.high
    assert isinstance(value, int)
    return value, value


@pytest.mark.pg(">= 18, < 19")
def test_autovacuum_comes_when_the_twin_says(programs: ServerPrograms) -> None:
    """As many vacuums and analyzes, at times that differ by the unknown phase of the rhythm."""
    server = {"autovacuum": True, "autovacuum_naptime_s": NAPTIME_S, "checkpoint_interval_s": 30}
    profile = _profile(server, 50)
    played = play(profile, server=str(programs.bin_dir))
    (cell,) = predict(profile, server=str(played.server)).cells
    assert _missed(cell, played) == []
    assert cell.by_itself is not None
    for key, kind in (
        ("autovacuums", "autovacuum"),
        ("autoanalyzes", "autoanalyze"),
        ("checkpoints", "checkpoint_starting"),
    ):
        low, high = _counts(getattr(cell.by_itself, key))
        seen = [
            event
            for event in played.events
            if event.kind == kind and event.table in (None, "t") and event.t_s <= 50
        ]
        assert low - 1 <= len(seen) <= high + 1, (key, low, high, seen)
    first = next(event for event in played.events if event.table == "t")
    foreseen = next(item for item in cell.by_itself.happened if item.table == "t")
    began_s = first.t_s - first.elapsed_s
    assert abs(began_s - foreseen.began_s) <= NAPTIME_S + 1
    checkpoints = [event for event in played.events if event.kind == "checkpoint_starting"]
    assert checkpoints[0].t_s == pytest.approx(30, abs=1.1)


@pytest.mark.pg(">= 18, < 19")
def test_wal_brings_checkpoints_when_the_twin_says(programs: ServerPrograms) -> None:
    """One each segment of 16 MB: as many, and as many images."""
    profile = _profile({"max_wal_size": "48MB"}, 25, hot={"distribution": "uniform"})
    played = play(profile, server=str(programs.bin_dir))
    (cell,) = predict(profile, server=str(played.server)).cells
    assert _missed(cell, played) == []
    assert cell.by_itself is not None
    low, high = _counts(cell.by_itself.checkpoints)
    seen = [event for event in played.events if event.kind == "checkpoint_starting"]
    assert low >= 2
    assert low - 1 <= len(seen) <= high + 1
