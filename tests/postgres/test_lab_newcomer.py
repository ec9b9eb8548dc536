"""The example of CONTRIBUTING.md, put among the experiments and run on a real server."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pgheadroom.cli.lab_run import make_request
from pgheadroom.lab import experiments
from pgheadroom.lab.run import run
from pgheadroom.servers import ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

EXAMPLE = Path(__file__).parents[2] / "examples" / "experiment" / "null_share"


def test_one_folder_is_an_experiment(
    newest: ServerPrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Found, planned, played, summarised; its result keeps answer and figures.

    A row of eight bigints takes 24 + 64 bytes and a line pointer, so 88 fit a page; one of eight
    NULLs takes its header alone, and 291 fit (MaxHeapTuplesPerPage).
    """
    shutil.copytree(EXAMPLE, tmp_path / "folder" / EXAMPLE.name)
    paths = [*experiments.__path__, str(tmp_path / "folder")]
    monkeypatch.setattr(experiments, "__path__", paths)
    monkeypatch.setattr(experiments, "ALL", experiments.found(paths))
    experiment = experiments.get("null-share")
    request = make_request(experiment, ["nulls=0,8"], 1, 1, 1, str(newest.version))
    result = run(
        request,
        tmp_path / "record",
        server=str(newest.bin_dir),
        command="test",
        report=lambda _: None,
    )
    assert result["complete"]
    assert {cell["nulls"]: cell["heap_pages"] for cell in result["cells"]} == {
        0: -(-20_000 // 88),
        8: -(-20_000 // 291),
    }
    kept = result["presentation"]
    assert [form["kind"] for form in (*kept["tables"], *kept["figures"])] == ["cells", "against"]
    assert kept["answer"]
