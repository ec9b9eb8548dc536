"""A server lets its WAL writer wait with the COMMIT of what unlogged tables alone have."""

from __future__ import annotations

from typing import Any

import pytest

from pgheadroom.predict import predict
from pgheadroom.profile.reading import checked_profile
from pgheadroom.types import Interval

UPDATE = {"table": "t1", "kind": "update", "sets": ["a"], "pick": {"distribution": "uniform"}}


def _table(name: str, **more: Any) -> dict[str, Any]:
    columns = [{"name": "k", "type": "int4"}, {"name": "a", "type": "int4"}]
    index = {"name": f"{name}_pkey", "columns": ["k"], "unique": True}
    return {"name": name, "rows": 300, "columns": columns, "indexes": [index], **more}


@pytest.mark.parametrize(
    ("unlogged", "transaction", "is_exact"),
    [(True, "other", False), (True, "insert", True), (False, "other", True)],
)
def test_figures_beside_such_a_commit_are_intervals(
    unlogged: bool, transaction: str, is_exact: bool
) -> None:
    """Otherwise a VACUUM that came before the WAL writer was stated to the record (306-77)."""
    profile = checked_profile(
        {
            "schema_version": 1,
            "server": {"version": "18"},
            "table": [_table("t0"), _table("t1", **({"unlogged": True} if unlogged else {}))],
            "operation": [
                {"table": "t0", "kind": "insert", "transaction": "insert"},
                UPDATE | {"transaction": transaction},
            ],
            "run": {
                "operations": 300,
                "maintenance": [{"do": "vacuum", "table": "t0", "at_frac": 0.33}],
            },
        }
    )
    (cell,) = predict(profile).cells
    assert isinstance(cell.predicted.wal_records, Interval) != is_exact
