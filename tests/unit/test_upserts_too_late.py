"""Upserts of several clients that come to their rows too late: what is counted of them."""

from __future__ import annotations

import pytest

from pgheadroom.predict import RunPlan, make_cells, predict_cells
from pgheadroom.profile import Profile, parse_profile
from pgheadroom.types import Interval, PgVersion


def _profile(changes: str, clients: int, **run: str) -> Profile:
    """Upserts of eight rows, all of which are there."""
    key = {"name": "t_pkey", "columns": ["id"], "unique": True}
    columns = [{"name": name, "type": "int8"} for name in ("id", "n", "free")]
    picked = {"distribution": "uniform"}
    upsert = {"table": "t", "kind": "upsert", "sets": [changes], "pick": picked}
    indexes = [key, {"name": "t_n", "columns": ["n"]}]
    table = {"name": "t", "rows": 8, "columns": columns, "indexes": indexes, "fillfactor": 10}
    return parse_profile(
        {
            "schema_version": 1,
            "table": [table],
            "operation": [upsert],
            "run": {"operations": 8000, "clients": clients} | run,
        }
    )


@pytest.mark.parametrize("version", ["15.18", "18.4"])
@pytest.mark.parametrize("isolation", ["read committed", "repeatable read"])
@pytest.mark.parametrize("changes", ["n", "free"])
def test_rows_stay_as_many_as_they_are(version: str, isolation: str, changes: str) -> None:
    """What is inserted is killed, and nothing where no version has an entry of its own."""
    profile = _profile(changes, 8, isolation=isolation)
    cells = make_cells(profile, None, None, ())
    plan = RunPlan(cells=cells, version=PgVersion.parse(version), seeds=8)
    (found,) = predict_cells(plan)
    inserted, deleted = found.outcome.n_tup_ins, found.outcome.n_tup_del
    assert isinstance(inserted, Interval), "chance alone may make some"
    assert isinstance(deleted, Interval)
    assert inserted.mid == deleted.mid
    if changes == "free":
        assert inserted.mid < 1, "all but a few versions are HOT, of one page"
    else:
        assert 0 < inserted.mid < 0.01 * 8000


def test_one_client_is_never_too_late() -> None:
    """Nobody is beside it."""
    cells = make_cells(_profile("n", 1), None, None, ())
    (found,) = predict_cells(RunPlan(cells=cells, version=PgVersion.parse("18.4"), seeds=2))
    assert (found.outcome.n_tup_ins, found.outcome.n_tup_upd) == (0, 8000)
