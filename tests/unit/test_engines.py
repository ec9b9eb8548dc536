"""Engines and the order of tables, as a prediction shows them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pgheadroom import _core
from pgheadroom.errors import InputError, TwinError
from pgheadroom.lab.design import Request, Trial
from pgheadroom.lab.experiments.cluster_decay import draws as cluster_decay_draws
from pgheadroom.lab.experiments.cluster_decay.draws import drawn, predicted
from pgheadroom.predict import predict
from pgheadroom.predict.order import KeyOrder, order_of
from pgheadroom.profile import Profile, parse_profile, read_profile, to_json
from pgheadroom.types import PgVersion

Json = dict[str, Any]


def _profile(*operations: Json, clients: int = 1) -> Profile:
    """A full table of 21 rows a page."""
    return parse_profile(
        {
            "schema_version": 1,
            "server": {"version": "18.4"},
            "table": [
                {
                    "name": "t",
                    "rows": 4000,
                    "columns": [
                        {"name": "id", "type": "int4"},
                        {"name": "n", "type": "int4"},
                        {"name": "d", "type": "bpchar(346)"},
                    ],
                    "indexes": [{"name": "t_pkey", "columns": ["id"], "unique": True}],
                },
                {"name": "log", "rows": 0, "columns": [{"name": "at", "type": "int4"}]},
            ],
            "operation": list(operations),
            "run": {"operations": 2000, "clients": clients},
        }
    )


UPDATE: Json = {"table": "t", "kind": "update", "sets": ["n"]}
DELETE: Json = {"table": "t", "kind": "delete", "pick": {"distribution": "uniform"}}
UPSERT: Json = {
    "table": "t",
    "kind": "upsert",
    "sets": ["n"],
    "pick": {"distribution": "uniform"},
    "weight": 2,
}


def test_the_heap_is_exact_and_says_so() -> None:
    """Every result names its engine, its storage and what its numbers are worth."""
    found = predict(_profile(UPDATE)).to_json()
    assert (found["engine"], found["storage"], found["evidence"]) == ("heap", "local", "exact")
    assert "twin.model" not in found["assumed"]
    assert "order" not in found["cells"][0]
    drawn_ = predict(_profile(UPDATE, clients=4), seeds=2)
    assert drawn_.evidence == "interval"


@pytest.mark.parametrize("engine", ["clustered", "undo"])
def test_other_engines_are_models(engine: Any) -> None:
    """Plain numbers, since they repeat, but never taken for what a server does."""
    found = predict(_profile(UPDATE), engine=engine)
    assert (found.engine, found.evidence) == (engine, "model")
    assert found.cells[0].predicted.is_exact
    (said,) = found.assumed["twin.model"]
    assert said.startswith(f"the engine {engine} is a model")


def test_log_structured_storage_is_a_model() -> None:
    """No server of ours has it."""
    assert predict(_profile(UPDATE), storage="log-structured").evidence == "model"


def test_undo_updates_in_place() -> None:
    """
    A full table: the heap moves rows, the undo engine none, and tells no index.

    What happened: its updates were counted as HOT, which that engine has not.
    """
    heap, undo = (
        predict(_profile(UPDATE), engine=engine, order=True).cells[0] for engine in ("heap", "undo")
    )
    assert heap.predicted.n_tup_newpage_upd
    assert undo.predicted.n_tup_newpage_upd == 0
    assert (undo.predicted.n_tup_hot_upd, undo.predicted.hot_frac) == (0, 0)
    assert undo.predicted.index_pages is not None
    assert undo.predicted.index_pages <= heap.predicted.index_pages
    assert undo.order is not None
    assert undo.order["t"].pages_per_range == undo.order["t"].pages_per_range_start


def test_clustered_inserts_keep_the_order() -> None:
    """Rows that come back with their keys go where the keys are; the heap takes what is free."""
    heap, clustered = (
        predict(_profile(DELETE, UPSERT), engine=engine, order=True).cells[0].order
        for engine in ("heap", "clustered")
    )
    assert heap is not None
    assert clustered is not None
    assert heap["t"].pages_per_range_start == clustered["t"].pages_per_range_start
    assert clustered["t"].pages_per_range < heap["t"].pages_per_range
    assert list(heap) == ["t"], "a table without an index has no order"


def test_a_statistical_cell_has_the_mean_order() -> None:
    """Over the runs of a cell; the state after loading is the same in all."""
    before = (48.0, 1.0)
    found = order_of([{"t": (before, (50.0, 0.5))}, {"t": (before, (60.0, 0.7))}])
    assert found == {
        "t": KeyOrder(
            pages_per_range_start=48.0,
            pages_per_range=55.0,
            correlation_start=1.0,
            correlation=0.6,
        )
    }
    assert order_of([{}]) is None


def test_the_core_knows_its_engines() -> None:
    """Names are checked where they arrive."""
    with pytest.raises(TwinError, match="heap or clustered or undo"):
        _decay(engine="columnar")
    with pytest.raises(InputError, match="fillfactor"):
        _decay(fillfactor=5)


def test_a_program_is_of_one_table_with_a_key() -> None:
    """What cannot be played is said, with what was found."""
    with pytest.raises(TwinError, match="0 tables, expected one"):
        _decay(table=[])
    with pytest.raises(TwinError, match="no key of integers"):
        _decay(indexes=[])


def _decay(*, engine: str = "heap", table: Any = None, **changed: Any) -> None:
    """The experiment's program without a round, and with something else in its profile."""
    path = Path(cluster_decay_draws.__file__).with_name("churn.toml")
    profile = to_json(read_profile(path))
    profile["table"] = [profile["table"][0] | changed] if table is None else table
    text = json.dumps(profile)
    _core.cluster_decay(text, "18.4", [], [], range_span=10, churn_frac=0.1, engine=engine)


def _trial(engine: str) -> tuple[Request, Trial]:
    request = Request(
        experiment="cluster-decay",
        server="18",
        scale=1,
        seed=3,
        repetitions=1,
        levels={"round": (0, 2)},
        options={"ranges": 5},
    )
    cell = {"engine": engine, "fillfactor": 100, "churn_pct": 2, "index": "btree"}
    return request, Trial(cell=cell, repetition=1, arm="measured")


def test_arms_of_a_block_draw_the_same() -> None:
    """Keys and ranges belong to the block, not to the engine."""
    rows = 5000
    one, other = (drawn(*_trial(engine), rows) for engine in ("heap", "sorted"))
    assert one == other
    assert len(one.rounds) == 2
    assert all(len(item.starts) == 5 for item in one.rounds)
    assert all(1 <= start <= rows - 1000 for start in one.starts)


def test_every_round_is_predicted() -> None:
    """Plain heap falls out of order faster than with sorted inserts, and than clustered."""
    rows, version = 5000, PgVersion.parse("18.4")
    found = {}
    for engine in ("heap", "sorted"):
        request, trial = _trial(engine)
        found[engine] = predicted(trial, drawn(request, trial, rows), rows, version)
        assert len(found[engine]) == 3
    heap, by_key = found["heap"][2], found["sorted"][2]
    order = [
        heap["clustered_pages_per_range"],
        by_key["predicted_pages_per_range"],
        heap["predicted_pages_per_range"],
    ]
    assert order == sorted(order, key=lambda pages: pages or 0)
    assert order[0] != order[2]


def test_versions_that_the_twin_lacks_are_not_predicted() -> None:
    """14 has another generator; a version to come has nobody seen."""
    request, trial = _trial("heap")
    draws = drawn(request, trial, 5000)
    for version in ("14.9", "20.1"):
        states = predicted(trial, draws, 5000, PgVersion.parse(version))
        assert [set(state.values()) for state in states] == [{None}] * 3
