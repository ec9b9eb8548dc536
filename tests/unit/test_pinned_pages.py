"""A heap that a VACUUM beside clients makes empty is so in all but a few runs of a server."""

from __future__ import annotations

from typing import Any

import pytest

from pgheadroom.predict import predict
from pgheadroom.predict.pinned_pages import cut_off_of
from pgheadroom.profile import parse_profile
from pgheadroom.types import Interval

Json = dict[str, Any]


def _profile(*commands: str, clients: int = 4) -> Json:
    key = {"name": "t_pkey", "columns": ["id"], "unique": True}
    columns = [{"name": "id", "type": "int4"}, {"name": "n", "type": "int4"}]
    return {
        "schema_version": 1,
        "server": {"version": "18.4"},
        "table": [
            {"name": "t", "rows": 32, "columns": columns, "indexes": [key]},
            {"name": "unused", "rows": 0, "columns": columns},
        ],
        "operation": [{"table": "t", "kind": "delete", "pick": {"distribution": "oldest"}}],
        "run": {
            "operations": 2000,
            "clients": clients,
            "maintenance": [
                {"do": do, "table": table, "at_frac": 0.5}
                for do in commands
                for table in ("t", "unused")
            ],
        },
    }


def test_one_page_may_have_been_pinned() -> None:
    """A proof stated 0 pages exactly, and a server had one, which a scan had pinned."""
    cell = predict(parse_profile(_profile("vacuum"))).cells[0].predicted
    for found in (cell, cell.by_table["t"]):
        assert isinstance(found.heap_pages, Interval)
        assert found.heap_pages.ends == (0, 0, 1)
    assert cell.by_table["unused"].heap_pages == 0


@pytest.mark.parametrize("commands", [("truncate",), ("vacuum", "truncate"), ("vacuum full",)])
def test_new_files_are_empty(commands: tuple[str, ...]) -> None:
    """Nobody's pin keeps pages of files that are gone."""
    cell = predict(parse_profile(_profile(*commands))).cells[0].predicted
    assert cell.heap_pages == 0


def test_nobody_is_beside_one_client() -> None:
    """The client stands between two transactions then."""
    assert cut_off_of(parse_profile(_profile("vacuum", clients=1))) == frozenset()
    cell = predict(parse_profile(_profile("vacuum", clients=1))).cells[0].predicted
    assert cell.heap_pages == 0
