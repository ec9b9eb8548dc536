"""Autovacuum by age: tables older than `autovacuum_freeze_max_age`, beside a server."""

from __future__ import annotations

from typing import Any

import pytest

from pgheadroom.play import play
from pgheadroom.predict import predict
from pgheadroom.predict.values import PredictedCell
from pgheadroom.profile import Profile, parse_profile
from pgheadroom.prove import prove
from pgheadroom.servers import ServerPrograms

pytestmark = [
    pytest.mark.long(reason="140,000 transactions, for the least age is 100,000"),
    pytest.mark.usefixtures("run_parent"),
]

AGE = 100_000
WAKES_AT = 131_072
"""The first multiple of 65,536 after it (`GetNewTransactionId`, varsup.c)."""


def _profile(operations: int, **server: Any) -> Profile:
    columns = [
        {"name": "id", "type": "int4"},
        {"name": "n", "type": "int4"},
        {"name": "filler", "type": "bpchar(84)"},
    ]
    table = {
        "name": "t",
        "rows": 20_000,
        "fillfactor": 90,
        "columns": columns,
        "indexes": [{"name": "t_pkey", "columns": ["id"], "unique": True}],
    }
    hot = {"distribution": "hot_set", "rows_frac": 0.3, "weight": 0.99}
    return parse_profile(
        {
            "schema_version": 1,
            "server": {
                "shared_buffers": "128MB",
                "settings": {"autovacuum_freeze_max_age": str(AGE)},
                **server,
            },
            "table": [table],
            "operation": [{"table": "t", "kind": "update", "sets": ["n"], "pick": hot}],
            "run": {"operations": operations},
        }
    )


def _vacuums(cell: PredictedCell) -> list[str | None]:
    assert cell.by_itself is not None
    return [one.table for one in cell.by_itself.happened if one.kind == "autovacuum"]


@pytest.mark.pg(">= 15")
def test_an_old_table_is_vacuumed_though_autovacuum_is_off(programs: ServerPrograms) -> None:
    """Once the launcher is woken: aggressively, so that rows that nobody touched are frozen."""
    profile = _profile(140_000)
    played = play(profile, server=str(programs.bin_dir))
    (vacuum,) = [event for event in played.events if event.table == "t"]
    assert vacuum.kind == "autovacuum"
    assert vacuum.at_frac is not None
    assert vacuum.at_frac * 140_000 == pytest.approx(WAKES_AT, abs=9_000)
    (cell,) = predict(profile, server=str(played.server)).cells
    assert _vacuums(cell) == ["t", "t (TOAST)"]


@pytest.mark.pg(">= 18, < 19")
def test_a_proof_knows_when_it_came(programs: ServerPrograms) -> None:
    """Every figure lies in its interval, within the bounds of a run with autovacuum."""
    proof = prove(_profile(140_000), server=str(programs.bin_dir))
    assert [key for key in proof.assumed if key.endswith(".events")]
    assert proof.beyond == []


def test_a_run_that_is_too_short_for_it_is_exact() -> None:
    """Nothing becomes old enough, so no clock is asked."""
    (cell,) = predict(_profile(120_000), server="18.4").cells
    assert cell.predicted.is_exact
    assert cell.by_itself is None
