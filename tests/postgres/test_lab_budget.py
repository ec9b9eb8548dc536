"""A budget on a real server: further blocks, kept in the record, and why it ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgheadroom.lab.design import Request, parse_settings
from pgheadroom.lab.experiments import get
from pgheadroom.lab.record import Record
from pgheadroom.lab.run import run, summarise_record
from pgheadroom.servers import ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")


@pytest.mark.long(reason="a budget is time; tests/cli/test_cli_runs.py spends one of seconds")
def test_a_budget_adds_whole_blocks_and_says_why_it_ended(
    newest: ServerPrograms, tmp_path: Path
) -> None:
    """
    Times of two trials are never known to 2 %, so the budget is spent, in blocks.

    The planned blocks count as complete, and the result can be made anew from the samples, those
    of the further blocks included.
    """
    experiment = get("update-cost")
    settings = ("filler_length=64", "fillfactor=100", "update_bid=0", "indexes=0,1")
    levels, options = parse_settings(settings, experiment.factors, experiment.options, name="x")
    request = Request(
        experiment="update-cost",
        server="18",
        scale=1,
        seed=1,
        repetitions=2,
        levels=levels,
        options=options,
    )
    folder = tmp_path / "record"
    result = run(
        request,
        folder,
        server=str(newest.bin_dir),
        command="test",
        report=lambda _: None,
        budget_s=25,
    )
    samples = Record.open(folder).samples
    assert len(samples) >= 3 * 3, "two planned blocks of three trials, and a further one"
    assert result["complete"]
    assert all(cell["repetitions"] >= 3 for cell in result["cells"])
    assert "2 blocks planned" in result["assumed"]["repetitions"]
    assert all("host_busy_frac" in sample.measures for sample in samples)
    (folder / "result.json").unlink()
    assert summarise_record(folder).read_result().to_json() == result.to_json()
    # As a run that was killed among its further blocks leaves it; without a budget it ends there.
    (folder / "conduct.json").unlink()
    assert not summarise_record(folder).read_result()["complete"]
    ended = run(request, folder, server=str(newest.bin_dir), command="test", report=lambda _: None)
    assert ended["complete"]
    assert "ended without a budget" in ended["assumed"]["repetitions"]
    assert len(Record.open(folder).samples) == len(samples)
