"""Transactions that fail in REPEATABLE READ: counted, rolled back, and said where they are many."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pgheadroom import _core
from pgheadroom.forms import read
from pgheadroom.predict import failing, predict
from pgheadroom.predict.values import Prediction
from pgheadroom.profile import parse_profile, to_json
from pgheadroom.types import Interval
from pgheadroom.units import percent

Json = dict[str, Any]


def _profile(rows: int, **run: Any) -> Json:
    """One row in each transaction, whose statement always finds it."""
    key = {"name": "t_pkey", "columns": ["id"], "unique": True}
    columns = [{"name": "id", "type": "int4"}, {"name": "n", "type": "int4"}]
    update = {"table": "t", "kind": "update", "sets": ["n"], "pick": {"distribution": "uniform"}}
    return {
        "schema_version": 1,
        "table": [{"name": "t", "rows": rows, "columns": columns, "indexes": [key]}],
        "operation": [update],
        "run": {"operations": 2000, "clients": 4, "isolation": "repeatable read"} | run,
    }


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_each_transaction_updates_or_fails(seed: int) -> None:
    """One that fails has changed nothing: updates and failures are all transactions together."""
    text = json.dumps(to_json(parse_profile(_profile(8))))
    run = _core.simulate(text, "18.4", interleaving=seed, standing=None)
    updated = run.tables[0].n_tup_upd
    assert (run.transactions, updated + run.failed_transactions) == (2000, 2000)
    assert run.failed_transactions > 0


def test_nobody_fails_who_waits() -> None:
    """READ COMMITTED goes on with the row's newest version, and one client meets nobody."""
    for other in ({"isolation": "read committed"}, {"clients": 1}):
        prediction = predict(parse_profile(_profile(8, **other)))
        assert prediction.cells[0].predicted.failed_transactions is None
        assert "failed_transactions" not in prediction.to_json()["cells"][0]["predicted"]


def test_what_fails_is_told() -> None:
    """In the figures, from the fewest to the most, and in a sentence before them."""
    prediction = predict(parse_profile(_profile(8)))
    failed = prediction.cells[0].predicted.failed_transactions
    assert isinstance(failed, Interval)
    assert 0 < failed.low <= failed.mid <= failed.high < 2000
    said, *others = prediction.warnings
    assert all("depends on the machine" in other for other in others)
    assert said.startswith(f"{percent(failed.mid / 2000, 1)} of the transactions fail")
    data = prediction.to_json()
    form = {key: value for key, value in data.items() if key not in ("schema_version", "kind")}
    assert read(Prediction, form).cells == prediction.cells


def test_one_in_a_hundred_is_borne() -> None:
    """Nothing is said before the figures where few fail."""
    assert failing.sentences([0.01, 0.0]) == ()
    assert len(failing.sentences([0.01, 0.0101])) == 1
