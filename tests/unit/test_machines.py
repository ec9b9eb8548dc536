"""Forecasts for several clients hold quiet and busy machines, and say where that is much."""

from __future__ import annotations

from typing import Any

import pytest

from pgheadroom.outcome import Outcome
from pgheadroom.predict import Prediction, predict
from pgheadroom.predict.machines import sentences
from pgheadroom.profile import parse_profile
from pgheadroom.types import Interval


def _profile(pick: dict[str, Any], clients: int) -> dict[str, Any]:
    """A row by this pick, then any row, in one transaction."""
    update = {"table": "t", "kind": "update", "sets": ["n"], "transaction": "both"}
    key = {"name": "t_pkey", "columns": ["id"], "unique": True}
    columns = [{"name": "id", "type": "int4"}, {"name": "n", "type": "int4"}]
    return {
        "schema_version": 1,
        "table": [{"name": "t", "rows": 2000, "columns": columns, "indexes": [key]}],
        "operation": [update | {"pick": pick}, update | {"pick": {"distribution": "uniform"}}],
        "run": {"operations": 4000, "clients": clients},
    }


HOT_ROW = {"distribution": "hot_set", "rows_frac": 0.0005, "weight": 1.0}


def test_a_row_that_everybody_wants_is_said_to_be_unsure() -> None:
    """Its waits are the machine's: wider than for rows that seldom meet, never for one client."""
    hot = predict(parse_profile(_profile(HOT_ROW, 4)))
    (said,) = hot.warnings
    assert f"WAL {_wal_percent(hot):.0f} %" in said
    assert any("from a quiet to a busy one" in str(line) for line in hot.assumed.values())
    uniform = {"distribution": "uniform"}
    assert _wal_percent(predict(parse_profile(_profile(uniform, 4)))) < _wal_percent(hot)
    assert predict(parse_profile(_profile(HOT_ROW, 1))).warnings == ()


def _wal_percent(prediction: Prediction) -> float:
    wal = prediction.cells[0].predicted.wal_bytes
    assert isinstance(wal, Interval)
    return 100 * (wal.high - wal.low) / wal.mid


def _outcome(hot: float, wal: float) -> Outcome:
    exact = predict(parse_profile(_profile(HOT_ROW, 1))).cells[0].predicted
    values = {key: getattr(exact, key) for key in Outcome.__dataclass_fields__}
    values["hot_frac"] = Interval(low=0.5 - hot / 2, mid=0.5, high=0.5 + hot / 2, level=0.9)
    values["wal_bytes"] = Interval(
        low=100 * (1 - wal / 2), mid=100, high=100 * (1 + wal / 2), level=0.9
    )
    return Outcome(**values)


@pytest.mark.parametrize(
    ("hot", "wal", "named"),
    [(0.04, 0.09, ()), (0.06, 0.09, ("6 points",)), (0.06, 0.2, ("6 points", "20 %"))],
)
def test_the_widest_are_named(hot: float, wal: float, named: tuple[str, ...]) -> None:
    """Beyond five points of HOT and a tenth of WAL, of the widest cell; never of one client."""
    narrow, wide = _outcome(0.01, 0.01), _outcome(hot, wal)
    said = sentences(4, [narrow, wide])
    assert len(said) == bool(named)
    assert all(name in said[0] for name in named)
    assert sentences(1, [narrow, wide]) == ()
