"""Forms of indexes on real servers: every figure of the twin is the server's, to the unit."""

from __future__ import annotations

from typing import Any

import pytest

from pgheadroom.predict import predict
from pgheadroom.profile import parse_profile
from pgheadroom.prove import prove
from pgheadroom.servers import ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

Json = dict[str, Any]
MANY = {"kind": "random", "ndistinct": 900}
COLUMNS: list[Json] = [
    {"name": "id", "type": "int4"},
    {"name": "n", "type": "int4", "values": MANY, "null_frac": 0.2},
    {"name": "w", "type": "timestamptz", "values": MANY, "null_frac": 0.1},
    {"name": "s", "type": "text", "width": {"min_bytes": 9, "max_bytes": 60}, "null_frac": 0.1},
    {"name": "u", "type": "uuid", "values": {"kind": "serial"}},
    {"name": "e", "type": "text", "width": 24, "values": {"kind": "serial"}},
    {"name": "v", "type": "int8", "values": {"kind": "serial"}},
]
ORDERED: list[Json] = [
    {"name": "i1", "columns": ["n DESC"]},
    {"name": "i2", "columns": ["w"], "order": ["DESC NULLS LAST"]},
    {"name": "i3", "columns": ["s", "n"], "order": ["DESC", "ASC NULLS FIRST"]},
    {"name": "i4", "columns": ["u DESC", "v"]},
    {"name": "i5", "columns": ["s"], "opclass": ["text_pattern_ops"]},
    {"name": "i6", "columns": ["n"], "expressions": ["lower(s)"]},
    {"name": "i7", "columns": ["w", "n"], "order": ["NULLS FIRST", ""]},
    {"name": "i8", "columns": ["n", "s"], "opclass": ["", "text_pattern_ops"]},
]
UNIQUE: list[Json] = [
    {"name": "before", "columns": ["v"], "unique": True, "where": "n IS NOT NULL"},
    {"name": "t_pkey", "columns": ["id"], "unique": True},
    {"name": "lower", "expressions": ["lower(e)"], "unique": True},
    {"name": "one", "columns": ["u"], "unique": True, "nulls_not_distinct": True},
    {"name": "ranges", "columns": ["id", "w"], "method": "brin", "pages_per_range": 3},
]
HASHES: list[Json] = [
    {"name": "h1", "columns": ["n"], "method": "hash"},
    {"name": "h2", "columns": ["s"], "method": "hash", "fillfactor": 20},
    {"name": "h3", "columns": ["w"], "method": "hash", "where": "n IS NOT NULL"},
    {"name": "h4", "expressions": ["lower(e)"], "method": "hash"},
    {"name": "h5", "columns": ["u"], "method": "hash"},
]
UNPRICED: list[Json] = [
    {"name": "sp", "columns": ["s"], "method": "spgist"},
]
KEY: Json = {"name": "t_pkey", "columns": ["id"], "unique": True}


def _profile(indexes: list[Json], sets: Any) -> Json:
    update = {"table": "t", "kind": "update", "sets": sets, "pick": {"distribution": "uniform"}}
    return {
        "schema_version": 1,
        "server": {"shared_buffers": "64MB"},
        "table": [
            {"name": "t", "rows": 800, "fillfactor": 90, "columns": COLUMNS, "indexes": indexes}
        ],
        "operation": [
            {"table": "t", "kind": "insert", "rows_per_statement": 2},
            update | {"weight": 4},
            {"table": "t", "kind": "delete", "pick": {"distribution": "uniform"}},
        ],
        "run": {"operations": 800, "seed": 9},
    }


def _wrong(data: Json, programs: ServerPrograms) -> list[Any]:
    proof = prove(parse_profile(data), server=str(programs.bin_dir))
    (cell,) = proof.cells
    assert cell.predicted.is_exact
    return [(figure.key, figure.predicted, figure.measured) for _, figure in proof.beyond]


def test_orders_and_operator_classes(programs: ServerPrograms) -> None:
    """DESC turns a tree round, NULLs stand at the end that is said."""
    sets = {name: {"changed_frac": 0.2} for name in ("n", "w", "s", "u")}
    assert _wrong(_profile([KEY, *ORDERED], sets), programs) == []


def test_unique_indexes_beside_the_key(programs: ServerPrograms) -> None:
    """Rows are found by the first that has all of them; the others are checked and written."""
    sets = {"w": {"changed_frac": 0.2}, "e": {"changed_frac": 0.1}}
    assert _wrong(_profile(UNIQUE, sets), programs) == []


def test_hash_indexes(programs: ServerPrograms) -> None:
    """Pages and records are a server's: of all rows and of some, of columns and expressions."""
    sets = {name: {"changed_frac": 0.2} for name in ("n", "w", "s", "e")}
    assert _wrong(_profile([KEY, *HASHES], sets), programs) == []


@pytest.mark.pg(">= 18, < 19")
def test_other_methods_end_hot_and_nothing_else(programs: ServerPrograms) -> None:
    """HOT, the heap and the B-trees are exact; what others write is in no figure."""
    data = _profile([KEY, *UNPRICED], {"n": {"changed_frac": 0.5}, "v": {}})
    assert _wrong(data, programs) == []
    said = str(predict(parse_profile(data), server="18.4").assumed["twin.approximations"])
    assert "sp (spgist) of t is not priced" in said
