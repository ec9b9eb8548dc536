"""A VACUUM beside clients: who is in a transaction that has locked the table keeps its end."""

from __future__ import annotations

from typing import Any

import pytest

from pgheadroom.outcome import ends
from pgheadroom.profile import parse_profile
from pgheadroom.prove import prove
from pgheadroom.servers import ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

COLUMNS = [{"name": "id", "type": "int4"}, {"name": "filler", "type": "bpchar(200)"}]
ROWS = 320


def _data(clients: int, **of_operation: Any) -> dict[str, Any]:
    tables = [
        {
            "name": name,
            "rows": ROWS,
            "columns": COLUMNS,
            "indexes": [{"name": f"{name}_pkey", "columns": ["id"], "unique": True}],
        }
        for name in ("t", "o")
    ]
    emptied = {"table": "t", "kind": "delete", "pick": {"distribution": "oldest"}}
    return {
        "schema_version": 1,
        "server": {"shared_buffers": "64MB"},
        "table": tables,
        "operation": [emptied | of_operation, {"table": "o", "kind": "select"} | of_operation],
        "run": {
            "clients": clients,
            "maintenance": [{"do": "vacuum", "table": "t", "at_frac": 0.15}],
        },
    }


def test_transactions_keep_the_end(programs: ServerPrograms) -> None:
    """Of 32 clients some are in a transaction at any time: both players' VACUUMs give up."""
    data = _data(32, transaction="x")
    data["run"]["duration_s"] = 8  # VACUUM waits for five of them
    (cell,) = prove(parse_profile(data), server=str(programs.bin_dir)).cells
    predicted, measured = cell.predicted.by_table["t"], cell.measured.by_table["t"]
    assert measured.n_tup_del == ROWS
    assert measured.heap_pages is not None
    assert measured.heap_pages >= 10
    assert predicted.heap_pages is not None
    assert ends(predicted.heap_pages)[1] == measured.heap_pages


def test_single_statements_let_it_go(programs: ServerPrograms) -> None:
    """Four clients are now and then all between two statements, and the table is cut off."""
    data = _data(4)
    data["run"]["operations"] = 40_000
    (cell,) = prove(parse_profile(data), server=str(programs.bin_dir)).cells
    predicted, measured = cell.predicted.by_table["t"], cell.measured.by_table["t"]
    assert measured.n_tup_del == ROWS
    # A page may have been pinned when VACUUM came to it: then those up to it stay.
    assert measured.heap_pages is not None
    assert measured.heap_pages <= 10
    assert predicted.heap_pages is not None
    assert ends(predicted.heap_pages) == (0, 0, 1)
