"""The proof that the advice is good, one small workload end to end on a real server."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench_advice import __main__ as bench
from bench_advice import live
from bench_advice.goal import GOALS, candidates
from bench_advice.record import Record
from bench_advice.rules import counters_of
from bench_advice.score import noise, score
from bench_advice.workloads import Workload, workloads

from pgheadroom.profile import parse_profile
from pgheadroom.servers import ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")


def small(name: str, rows: int, operations: int, **run: Any) -> Workload:
    """A workload of the benchmark, shrunk."""
    found = next(item for item in workloads() if item.name == name)
    data = dict(found.data)
    data["table"] = [{**data["table"][0], "rows": rows}]
    data["run"] = {**data["run"], "operations": operations, **run}
    return replace(found, data=data, settle=operations, observe_s=2.0)


@pytest.mark.long(
    reason="a tool of the repository; its parts are in tests/unit/test_bench_advice.py"
)
def test_a_workload_end_to_end(
    newest: ServerPrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Observed, measured and scored; a stopped run goes on; a repeated cell is the same to the byte.

    A row is inserted and later updated once. The snapshot keeps old versions for half of a cycle.
    """
    monkeypatch.setattr(live, "_LEAD_S", 1.0)
    monkeypatch.setattr("bench_advice.goal.FILLFACTORS", (100, 50))
    held = {"start_frac": 0.2, "length_frac": 0.5}
    workload = small("once-later160", 2000, 200, snapshot=[held])
    record = Record(tmp_path)
    bench.observe(record, newest, [workload])
    found = record.observed(workload)
    assert found is not None
    (table,) = parse_profile(found).tables
    assert table.rows > 2000
    updates = found["table"][0]["observed"]["updates"]
    assert (updates["source"], updates["classes"][0]["columns"]) == ("log", ["n"])
    assert counters_of(found["table"][0]).n_tup_upd > 0

    bench.measure(record, newest, [workload])
    cells, lines = record.cells(workload), list(record.lines("cells"))
    assert set(candidates(workload)) == {100, 50} <= set(cells)
    (again,) = record.cells(workload, "repeats").values()
    assert again == cells[100]
    for cell in cells.values():
        # Five rows a statement: each of the window's transactions inserts or updates five.
        assert cell["n_tup_ins"] + cell["n_tup_upd"] == 5 * workload.window
        assert min(cell["n_tup_ins"], cell["n_tup_upd"]) > 0
    assert cells[50]["n_tup_hot_upd"] == cells[50]["n_tup_upd"] > cells[100]["n_tup_hot_upd"]
    assert cells[50]["heap_pages"] > cells[100]["heap_pages"]

    bench.measure(record, newest, [workload])
    assert list(record.lines("cells")) == lines, "nothing was missing"
    result = score(record, workload, GOALS[0])
    assert result is not None
    assert min(result.regret(rule) for rule in result.chosen) >= 0
    assert noise(record, [workload], GOALS[0]) == [0.0]
