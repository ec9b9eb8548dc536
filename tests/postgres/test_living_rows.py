"""
Rows that come and go, on real servers: with one client every figure of the twin is the server's.

Each profile goes on long after its loaded rows are gone, or begins without any.
"""

from __future__ import annotations

from typing import Any

import pytest

from pgheadroom.outcome import KEYS
from pgheadroom.profile import parse_profile
from pgheadroom.prove import Proof, prove
from pgheadroom.servers import ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

Json = dict[str, Any]
COLUMNS = [
    {"name": "id", "type": "int8"},
    {"name": "n", "type": "int4"},
    {"name": "note", "type": "text", "width": {"min_bytes": 10, "max_bytes": 90}},
]
OLDEST = {"distribution": "oldest"}
LIVE = {"among": "live"}


def _table(rows: int, name: str = "t") -> Json:
    key = {"name": f"{name}_pkey", "columns": ["id"], "unique": True}
    return {"name": name, "rows": rows, "columns": COLUMNS, "indexes": [key]}


def _insert(**more: Any) -> Json:
    return {"table": "t", "kind": "insert"} | more


def _update(pick: Json, **more: Any) -> Json:
    return {"table": "t", "kind": "update", "sets": ["n"], "pick": pick} | more


def _delete(pick: Json = OLDEST, **more: Any) -> Json:
    return {"table": "t", "kind": "delete", "pick": pick} | more


def _age(low: int, high: int) -> Json:
    return {"distribution": "age", "min": low, "max": high}


def _profile(
    operations: list[Json], rows: int = 300, tables: list[Json] | None = None, **run: Any
) -> Json:
    return {
        "schema_version": 1,
        "server": {"shared_buffers": "64MB"},
        "table": tables or [_table(rows)],
        "operation": operations,
        "run": {"operations": 1500, "seed": 5} | run,
    }


PROFILES: dict[str, Json] = {
    "steady queue": _profile(
        [
            _insert(transaction="turn"),
            _update(_age(0, 20), transaction="turn"),
            _update(_age(0, 400), transaction="turn"),
            _delete(transaction="turn"),
        ]
    ),
    "from nothing, by chance": _profile([_insert(), _update(_age(0, 3)), _delete()], rows=0),
    "within blocks": _profile(
        [
            _insert(transaction="turn"),
            _update(OLDEST | {"within": 24}, transaction="turn"),
            _update(OLDEST, transaction="turn"),
            _delete(OLDEST | {"within": 24}, transaction="turn"),
        ]
    ),
    "among the living": _profile(
        [
            _insert(weight=3),
            _delete(weight=3),
            _update({"distribution": "uniform"} | LIVE),
            _update({"distribution": "zipfian", "theta": 1.2} | LIVE, weight=2),
            {"table": "t", "kind": "lock", "pick": {"distribution": "gaussian", "param": 3} | LIVE},
            {"table": "t", "kind": "select", "pick": _age(0, 9), "find": "seqscan"},
            _delete({"distribution": "uniform"} | LIVE),
        ],
        rows=100,
    ),
    "holes, and transactions that are rolled back": _profile(
        [
            _insert(rows_per_statement={"min": 1, "max": 4}, abort_frac=0.2),
            _update(
                {"distribution": "uniform"} | LIVE,
                sets={"n": {"changed_frac": 0.5}, "note": {"grows_bytes": {"min": 0, "max": 9}}},
                weight=2,
            ),
            _delete(weight=3, abort_frac=0.3),
        ],
        rows=60,
    ),
    "two tables": _profile(
        [
            _insert(transaction="a", rows_per_statement=2),
            _delete(transaction="a"),
            _delete(transaction="a"),
            _insert(table="u", transaction="a"),
            _update(_age(1, 30), table="u", transaction="a"),
            _delete(OLDEST | {"within": 5}, table="u", weight=2),
        ],
        tables=[_table(40), _table(0, "u")],
    ),
}


STARVED = _profile(
    [
        _insert(),
        _update({"distribution": "uniform"}),
        {"table": "t", "kind": "select", "pick": {"distribution": "uniform"}},
        _delete(weight=3),
    ],
    rows=100,
)


def _prove(data: Json, programs: ServerPrograms) -> Proof:
    return prove(parse_profile(data), server=str(programs.bin_dir))


@pytest.mark.parametrize("name", PROFILES)
def test_one_client_is_exact(programs: ServerPrograms, name: str) -> None:
    """Error 0 in every key of every table, also where statements find no row."""
    (cell,) = _prove(PROFILES[name], programs).cells
    assert cell.predicted.is_exact
    differing = {
        (table, key): (part.value(key), measured.value(key))
        for (table, part), (_, measured), (_, error) in zip(
            cell.predicted.parts(), cell.measured.parts(), cell.error.parts(), strict=True
        )
        for key in KEYS
        if error.value(key) not in (0, None)
    }
    assert differing == {}
    assert cell.measured.n_tup_del > max(table["rows"] for table in PROFILES[name]["table"])


def test_turns_without_a_row_are_those_of_the_server(programs: ServerPrograms) -> None:
    """Each turn that a counter tells of; nothing of those that only read."""
    proof = _prove(STARVED, programs)
    (cell,) = proof.to_json()["cells"]
    predicted, measured, error = (
        cell[side]["operations_without_row"] for side in ("predicted", "measured", "error")
    )
    assert set(predicted) == {"1", "2", "3"}
    assert min(predicted.values()) > 100
    assert measured == predicted | {"2": None}
    assert error == {"1": 0, "2": None, "3": 0}
    assert [line.partition(",")[0].partition(" ")[0] for line in proof.warnings] == [
        "t",  # shrinks
        *(f"operation[{n}]" for n in (1, 2, 3)),
    ]


@pytest.mark.pg(">= 18, < 19")
def test_several_clients_keep_their_own_rows(programs: ServerPrograms) -> None:
    """Nobody takes another's rows: as many turns, and as many rows deleted, as with one client."""
    turn = {"transaction": "turn"}
    operations = [
        _insert(**turn),
        _update(_age(0, 9), **turn),
        _delete(OLDEST | {"within": 6}, **turn),
    ]
    (cell,) = _prove(_profile(operations, rows=60, clients=3), programs).cells
    counted = ("n_tup_ins", "n_tup_upd", "n_tup_del")
    for outcome in (cell.predicted, cell.measured):
        assert [outcome.value(key) for key in counted] == [1500, 1500, 1500]
        assert outcome.operations_without_row == {}
