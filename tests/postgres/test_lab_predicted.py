"""Experiments whose cells hold what the twin predicts: beside what a real server then did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pgheadroom.cli.lab_run import make_request
from pgheadroom.lab.experiments import get
from pgheadroom.lab.run import run
from pgheadroom.servers import ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")


def _run(
    name: str, programs: ServerPrograms, folder: Path, *settings: str, repetitions: int = 1
) -> dict[str, Any]:
    request = make_request(get(name), list(settings), 1, 1, repetitions, str(programs.version))
    return run(request, folder, server=str(programs.bin_dir), command="test", report=lambda _: None)


def _assert_held(cell: dict[str, Any], name: str) -> None:
    """The measured value lies in the predicted interval; or equals what has none."""
    span = cell[f"predicted_{name}_interval"]
    if span is None:
        assert cell[name] == cell[f"predicted_{name}"], name
    else:
        assert span["low"] <= cell[name] <= span["high"], name


def test_one_client_of_pgbench_is_foreseen_to_the_row(
    newest: ServerPrograms, tmp_path: Path
) -> None:
    """
    With pgbench's own seed every update goes where the twin says; only images are estimated.

    At fillfactor 100 a third of the updates finds no room, so that the twin has something to miss.
    """
    result = _run(
        "fillfactor",
        newest,
        tmp_path / "record",
        "fillfactor=100,90",
        "memory=fits",
        "measure=counters",
        "clients=1",
        "transactions=3000",
    )
    assert [cell["hot_frac"] == 1 for cell in result["cells"]] == [False, True]
    for cell in result["cells"]:
        for name in ("hot_frac", "newpage_frac", "heap_pages", "index_pages"):
            assert cell[f"predicted_{name}"] == cell[name]
            assert cell[f"predicted_{name}_interval"] is None
        _assert_held(cell, "wal_bytes_per_tx")
        _assert_held(cell, "wal_fpi_per_tx")
    said = next(text for text in result["findings"] if text.startswith("Predicted and measured"))
    assert "hot_frac 0.00 points, newpage_frac 0.00 points, heap_pages 0, index_pages 0," in said
    evidence = {m["name"]: m["evidence"] for m in result["measures"]}
    assert evidence["predicted_hot_frac"] == "predicted"
