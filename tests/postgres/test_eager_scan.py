"""The eager scan of 18: a VACUUM freezes all-visible pages of a large table beside a server."""

from __future__ import annotations

from typing import Any

import pytest

from pgheadroom.outcome import Outcome
from pgheadroom.play import play
from pgheadroom.predict import predict
from pgheadroom.profile import Profile, parse_profile
from pgheadroom.servers import ServerPrograms
from pgheadroom.types import Interval

pytestmark = [pytest.mark.pg(">= 18"), pytest.mark.each, pytest.mark.usefixtures("run_parent")]

FIGURES = ("heap_pages", "n_tup_hot_upd", "pages_modified", "wal_records", "wal_bytes")


def _profile(rate: str | None, **table: Any) -> Profile:
    """12,000 pages of five rows; those that are updated are on a few of them."""
    settings = {"vacuum_freeze_min_age": "200"}
    if rate is not None:
        settings["vacuum_max_eager_freeze_failure_rate"] = rate
    columns = [
        {"name": "id", "type": "int4"},
        {"name": "v", "type": "int4"},
        {"name": "f", "type": "bpchar(100)"},
    ]
    pick = {"distribution": "hot_set", "rows_frac": 0.02, "weight": 1}
    return parse_profile(
        {
            "schema_version": 1,
            "server": {
                "shared_buffers": "512MB",
                "full_page_writes": False,
                "settings": settings,
            },
            "table": [
                {
                    "name": "t",
                    "rows": 60_000,
                    "fillfactor": 10,
                    "columns": columns,
                    "indexes": [{"name": "t_pk", "columns": ["id"], "unique": True}],
                    **table,
                }
            ],
            "operation": [{"table": "t", "kind": "update", "sets": ["v"], "pick": pick}],
            "run": {
                "operations": 1000,
                "maintenance": [{"do": "vacuum", "table": "t", "after": 600}],
            },
        }
    )


def _figures(outcome: Outcome) -> dict[str, Any]:
    return {name: outcome.value(name) for name in FIGURES}


def test_as_many_pages_are_frozen(programs: ServerPrograms) -> None:
    """A fifth of those that could be, wherever it begins: no figure is an interval."""
    profile = _profile(None)
    (cell,) = predict(profile, server=str(programs.version)).cells
    found = _figures(cell.predicted)
    assert not any(isinstance(value, Interval) for value in found.values())
    assert found == _figures(play(profile, server=str(programs.bin_dir)).measured)
    without = predict(_profile("0"), server=str(programs.version)).cells[0].predicted
    assert without.is_exact
    assert found["pages_modified"] > without.value("pages_modified") + 2000


def test_it_can_be_switched_off(programs: ServerPrograms) -> None:
    """By the storage parameter as by the setting."""
    profile = _profile(None, reloptions={"vacuum_max_eager_freeze_failure_rate": "0"})
    (cell,) = predict(profile, server=str(programs.version)).cells
    assert cell.predicted.is_exact
    assert _figures(cell.predicted) == _figures(
        play(profile, server=str(programs.bin_dir)).measured
    )
