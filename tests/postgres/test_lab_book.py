"""Experiments of the book's chapters on a real server: what is predicted is measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pgheadroom.cli.lab_run import make_request
from pgheadroom.errors import InputError
from pgheadroom.lab.experiments import get
from pgheadroom.lab.record import read_json
from pgheadroom.lab.run import run
from pgheadroom.servers import ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")


def _run(
    name: str, programs: ServerPrograms, folder: Path, *settings: str, scale: int = 1
) -> dict[str, Any]:
    request = make_request(get(name), list(settings), scale, 1, 1, str(programs.version))
    return run(request, folder, server=str(programs.bin_dir), command="test", report=lambda _: None)


def _in_series(result: dict[str, Any], folder: Path) -> int:
    """Windows whose transactions of each second are in the record."""
    for item in result["series"]:
        form = read_json(folder / item["file"], kind="series")
        assert len(form["tps"]) == len(form["latency_ms_max"]) == 1
        assert form["tps"][0] > 0
    return len(result["series"])


def test_the_first_read_pays_for_the_load(newest: ServerPrograms, tmp_path: Path) -> None:
    """
    Pages, records, images and bytes of both reads are as predicted, and where they should be.

    Without logged hints a read of fresh rows dirties their pages and writes no WAL; removing what
    an UPDATE left behind is logged even then. VACUUM would have done it all before.
    """
    result = _run(
        "read-writes",
        newest,
        tmp_path / "record",
        "method=copy,update",
        "wal_log_hints=off",
    )
    assert [text for text in result["findings"] if text.startswith("Not as predicted")] == []
    assert result["findings"][0] == "32 of 32 counts are exactly as predicted."
    first = {
        (cell["method"], cell["checksums"]): cell
        for cell in result["cells"]
        if cell["step"] == "first-read"
    }
    pages = 1235  # 100,000 rows, 81 a page
    assert first["copy", "on"]["wal_fpi"] == first["copy", "off"]["pages_dirtied"] == pages
    assert first["copy", "off"]["wal_bytes"] == 0
    assert first["update", "off"]["wal_fpi"] == pages
    assert first["update", "on"]["wal_records"] == 2 * pages + 124


@pytest.mark.minors
@pytest.mark.pg(">= 19")
def test_a_read_of_19_makes_the_maps(programs: ServerPrograms, tmp_path: Path) -> None:
    """
    Its records, and the pages of both maps, are as predicted, with and without full-page images.

    What happened: pages by which the maps grew were taken for pages written to make room, and the
    experiment stopped.
    """
    result = _run(
        "read-writes",
        programs,
        tmp_path / "record",
        *("method=copy,update", "wal_log_hints=off", "full_page_writes=on,off"),
    )
    assert result["findings"][0] == "64 of 64 counts are exactly as predicted."
    (first,) = [
        cell
        for cell in result["cells"]
        if cell["step"] == "first-read"
        and (cell["method"], cell["checksums"], cell["full_page_writes"]) == ("copy", "off", "on")
    ]
    assert first["wal_records"] == 1234, "each page that is nearly full"
    assert first["pages_dirtied"] == 1235 + 2, "and one of each map"


def test_a_large_table_is_read_without_a_ring(newest: ServerPrograms, tmp_path: Path) -> None:
    """Pages whose hints nobody logs stay dirty: none is written to make room for the next."""
    result = _run(
        "read-writes",
        newest,
        tmp_path / "record",
        *("method=copy", "checksums=off", "wal_log_hints=off"),
        scale=10,
    )
    assert result["findings"][0] == "8 of 8 counts are exactly as predicted."
    (first,) = [cell for cell in result["cells"] if cell["step"] == "first-read"]
    assert first["pages_dirtied"] > 12_000


def test_checksums_are_chosen_on_our_servers_only(newest: ServerPrograms) -> None:
    """A server by connection has the checksums it has, and its checkpoints are not ours."""
    request = make_request(get("read-writes"), [], 1, 1, 1, "postgresql://somewhere/")
    with pytest.raises(InputError, match="this server is not ours"):
        get("read-writes").check(request, newest.version, throw_away=False)


def test_rows_a_statement_save_commits_to_the_byte(newest: ServerPrograms, tmp_path: Path) -> None:
    """
    WAL bytes and records a row, and pages, are as predicted: rows, commits, key, splits, maps.

    COPY of 1,000 rows of 100 bytes is two batches, and so extends by pages that it then leaves to
    the free space map.
    """
    result = _run(
        "insert-rate",
        newest,
        tmp_path / "record",
        "measure=counters",
        "method=values,copy",
        "rows=10,1000",
        "index=serial",
    )
    assert result["findings"][0] == "12 of 12 counts are exactly as predicted."
    of = {(cell["method"], cell["rows"]): cell for cell in result["cells"]}
    saved = of["values", 10]["wal_bytes_per_row"] - of["values", 1000]["wal_bytes_per_row"]
    assert saved == pytest.approx(34 * (1 / 10 - 1 / 1000))
    assert of["values", 1000]["heap_pages_per_million_rows"] == 345 * 50  # 58 rows a page
    assert of["copy", 1000]["wal_fpi"] == of["values", 1000]["wal_fpi"] + 2


def test_rows_a_second_are_ratios_with_a_control(newest: ServerPrograms, tmp_path: Path) -> None:
    """A window of a second has a rate, and one pair of it no verdict; the control is there."""
    result = _run(
        "insert-rate",
        newest,
        tmp_path / "record",
        "measure=throughput",
        "method=values",
        "rows=1,100",
        "window_s=1",
        "clients=2",
    )
    of = {cell["rows"]: cell for cell in result["cells"]}
    assert of[100]["rows_per_s"] == pytest.approx(100 * of[100]["tps"])
    assert of[100]["wal_bytes_per_row"] is None
    (comparison,) = result["comparisons"]
    assert comparison["verdict"] == "undecided"
    assert [control["cell"]["rows"] for control in result["controls"]] == [1]
    assert _in_series(result, tmp_path / "record") == 3


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["protocol=prepared"], "at most 255 parameters"),
        (["protocol=extended", "method=unnest", "value_bytes=1000"], "1,000,000 bytes"),
        (["rows=10000", "protocol=simple", "value_bytes=10"], None),
    ],
)
def test_statements_that_pgbench_cannot_send(
    newest: ServerPrograms, settings: list[str], said: str | None
) -> None:
    """Parameters are limited in number and in length; text is not."""
    experiment = get("insert-rate")
    request = make_request(experiment, settings, 1, 1, 1, str(newest.version))
    if said is None:
        experiment.check(request, newest.version, throw_away=True)
        return
    with pytest.raises(InputError, match=said):
        experiment.check(request, newest.version, throw_away=True)


def test_loads_leave_the_predicted_pages(newest: ServerPrograms, tmp_path: Path) -> None:
    """
    Pages of table and index are as predicted; a load that was not logged is logged by its reader.

    COPY extends the table in advance, and VACUUM cuts off what it left; keys in random order leave
    more index pages than building the index does, as SET LOGGED does too.
    """
    result = _run(
        "load-methods",
        newest,
        tmp_path / "record",
        "method=values,copy-new,copy-freeze,unlogged",
        "index=before",
        "order=random",
        "wal_level=minimal",
    )
    assert result["findings"][0] == "16 of 16 counts are exactly as predicted."
    of = {(cell["method"], cell["step"]): cell for cell in result["cells"]}
    assert of["values", "load"]["index_pages"] > of["unlogged", "load"]["index_pages"] + 10
    loaded, vacuumed = (of["copy-new", step] for step in ("load", "vacuum"))
    assert loaded["heap_pages"] > vacuumed["heap_pages"] == 345  # 20,000 rows, 58 a page
    # The table is synced, not logged; VACUUM's hints are logged, since 18 has checksums.
    assert loaded["wal_bytes_per_row"] < 50
    assert vacuumed["wal_fpi"] >= 345
    assert of["copy-freeze", "vacuum"]["wal_fpi"] < 10


def test_who_waits_syncs_and_who_does_not_shares(newest: ServerPrograms, tmp_path: Path) -> None:
    """One client that waits has a sync for each commit; without waiting several share one."""
    result = _run(
        "commit-cost",
        newest,
        tmp_path / "record",
        "clients=1",
        "window_s=1",
    )
    of = {cell["synchronous_commit"]: cell for cell in result["cells"]}
    # Others sync too, and a commit at either end may be counted without its sync.
    assert of["on"]["wal_syncs_per_commit"] >= 1 - 2 / of["on"]["tps"]
    assert of["off"]["commits_per_sync"] > of["on"]["commits_per_sync"]
    assert of["on"]["predicted_tps"] == of["on"]["disk_syncs_per_s"] > 0
    assert of["off"]["predicted_tps"] is None
    for cell in of.values():
        images = 2 * 8192 / cell["tps"]  # of catalog pages whose hints are set in the window
        expected = pytest.approx(59 + 34, abs=max(5, images))
        assert cell["wal_bytes_per_commit"] == expected
    assert any("600 ms" in text for text in result["findings"])
    assert result["environment"]["settings"]["fsync"] == "on", "that of the window"
    assert _in_series(result, tmp_path / "record") == 3


def test_a_delay_that_nothing_triggers_is_refused(newest: ServerPrograms) -> None:
    """commit_delay has no effect without commit_siblings others, so the levels would be equal."""
    experiment = get("commit-cost")
    for settings in (["commit_delay=0,100"], ["commit_delay=100", "commit_siblings=8"]):
        request = make_request(experiment, [*settings, "clients=1,4"], 1, 1, 1, "18")
        with pytest.raises(InputError, match="at most 4 clients"):
            experiment.check(request, newest.version, throw_away=True)
    request = make_request(experiment, ["commit_delay=0", "clients=1"], 1, 1, 1, "18")
    experiment.check(request, newest.version, throw_away=True)
