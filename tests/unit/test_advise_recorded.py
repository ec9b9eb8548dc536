"""Advice on tables that a server was observed with, beside what that server did when measured."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pgheadroom.advise import Options, TableAdvice, advise, settling
from pgheadroom.outcome import Value
from pgheadroom.profile import read_profile
from pgheadroom.types import Interval
from pgheadroom.units import PAGE_BYTES

RECORD = Path(__file__).parents[2] / "experiments" / "advice" / "record"
"""Observed profiles and measured cells, 18.4; see its README."""


@cache
def measured(workload: str) -> dict[int, dict[str, Any]]:
    """Cells by fillfactor."""
    lines = (RECORD / "cells.jsonl").read_text().splitlines()
    cells = [cell for cell in map(json.loads, lines) if cell["workload"] == workload]
    return {cell["fillfactor"]: cell["measured"] for cell in cells}


@cache
def advised(workload: str) -> TableAdvice:
    """The advice on its table, as old as the server's was: no run goes on for longer."""
    (file,) = (RECORD / "observed").glob(f"{workload}-????????.json")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settling, "LONGER_MAX", 0)
        (table,) = advise(read_profile(file), Options(budget_s=600)).tables
    return table


def mid(value: Value) -> float:
    """Its middle."""
    assert value is not None
    return value.mid if isinstance(value, Interval) else value


@pytest.mark.parametrize(
    ("workload", "verdict"),
    [
        ("uniform-1250", "CHANGE"),  # six rows a page
        ("uniform-1900", "CHANGE"),
        ("set-wide70", "KEEP"),  # has its room already
        pytest.param(
            *("indexed-second", "KEEP"),
            marks=pytest.mark.long(reason="18 s; test_advise_parts has an index that ends HOT"),
        ),
        ("fine-set380", "KEEP"),
    ],
)
def test_the_curve_is_what_the_server_measured(workload: str, verdict: str) -> None:
    """
    HOT within five points and the heap within 5 % at every fillfactor that both have.

    The server was measured two updates a row after a rewrite, the twin from two on.
    """
    table, cells = advised(workload), measured(workload)
    assert table.verdict == verdict, table.reason
    compared = 0
    for point in table.curve:
        cell = cells.get(point.fillfactor)
        if cell is None:
            continue
        compared += 1
        hot = cell["n_tup_hot_upd"] / cell["n_tup_upd"]
        assert mid(point.hot_frac) == pytest.approx(hot, abs=0.05), point.fillfactor
        heap_bytes = cell["heap_pages"] * PAGE_BYTES
        assert mid(point.heap_bytes) == pytest.approx(heap_bytes, rel=0.05), point.fillfactor
    assert compared >= 4


@pytest.mark.parametrize("workload", ["inserts-600", "once-later110"])
def test_a_table_that_takes_rows_in_is_held_at_its_own_rows(workload: str) -> None:
    """
    What it grows by while the twin plays on does not contradict the size that it has.

    Both end with twice the rows of the observation; the servers measured 85 and 95 as best.
    """
    (file,) = (RECORD / "observed").glob(f"{workload}-????????.json")
    (table,) = advise(read_profile(file), Options(budget_s=600)).tables
    assert table.calibration is not None
    assert table.calibration.contradicted == ()
    assert table.verdict == "CHANGE"
