"""Experiment index-walkthrough: arithmetic and server agree on every block."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pgheadroom.cli.lab_run import make_request
from pgheadroom.lab.experiments import get
from pgheadroom.lab.run import run
from pgheadroom.servers import ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")


def _run(programs: ServerPrograms, folder: Path, *settings: str, scale: int = 1) -> dict[str, Any]:
    experiment = get("index-walkthrough")
    request = make_request(experiment, list(settings), scale, 1, 1, str(programs.version))
    return run(request, folder, server=str(programs.bin_dir), command="test", report=lambda _: None)


def _disagreeing(result: dict[str, Any]) -> list[str]:
    return [text for text in result["findings"] if text.startswith("Not as predicted")]


@pytest.mark.pg(">= 15")
def test_every_block_is_as_predicted(programs: ServerPrograms, tmp_path: Path) -> None:
    """
    Each step of each index touches exactly the predicted blocks, on every version.

    443 heap pages and 274 leaves are the book's, on 9.6. From 12 on the keys that separate equal
    values carry a heap TID, so that one inner page no longer holds 273 of them: two inner pages
    and a root make 278 with the metapage, where the book has 276.
    """
    result = _run(programs, tmp_path / "record", "index_fillfactor=90,70")
    assert _disagreeing(result) == []
    cells = {
        (cell["deduplicate"], cell["index_fillfactor"], cell["step"]): cell
        for cell in result["cells"]
    }
    assert len(cells) == 24
    assert cells["off", 90, "load"]["heap_pages"] == 443
    assert cells["off", 90, "load"]["index_pages"] == 274 + 2 + 1 + 1
    assert cells["on", 90, "load"]["index_pages"] == 87
    assert cells["off", 90, "key-lookup"]["buffers"] == 3
    assert cells["off", 90, "clustered"]["heap_fetches"] == 50_000
    assert cells["off", 90, "vacuumed"]["heap_fetches"] == 0


@pytest.mark.long(reason="seven seconds; a tree of two is compared block by block")
def test_a_tree_of_three_levels_too(newest: ServerPrograms, tmp_path: Path) -> None:
    """400,000 keys need a level more, and so does every descent."""
    result = _run(newest, tmp_path / "record", scale=4)
    assert _disagreeing(result) == []
    lookups = {cell["buffers"] for cell in result["cells"] if cell["step"] == "key-lookup"}
    assert lookups == {4}
