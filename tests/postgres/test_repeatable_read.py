"""Several clients in REPEATABLE READ on real servers: who fails is counted by both players."""

from __future__ import annotations

from typing import Any

import pytest

from pgheadroom.outcome import middle
from pgheadroom.profile import parse_profile
from pgheadroom.prove import prove
from pgheadroom.servers import ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

OPERATIONS = 800


def _profile() -> dict[str, Any]:
    key = {"name": "t_pkey", "columns": ["id"], "unique": True}
    columns = [{"name": "id", "type": "int4"}, {"name": "n", "type": "int4"}]
    pick = {"distribution": "uniform"}
    changes = [
        {"table": "t", "kind": kind, "sets": ["n"], "pick": pick} for kind in ("update", "upsert")
    ]
    return {
        "schema_version": 1,
        "table": [{"name": "t", "rows": 4, "columns": columns, "indexes": [key]}],
        "operation": changes,
        "run": {"operations": OPERATIONS, "clients": 4, "isolation": "repeatable read"},
    }


def test_failures_end_no_run(programs: ServerPrograms) -> None:
    """The run goes on after each; what failed has changed no row, in either player."""
    proof = prove(parse_profile(_profile()), server=str(programs.bin_dir))
    (cell,) = proof.cells
    for side in (cell.predicted, cell.measured):
        updated, failed = middle(side.n_tup_upd), middle(side.failed_transactions) or 0
        assert updated is not None
        assert updated + failed == pytest.approx(OPERATIONS)
