"""Whole runs as a user types them: forms of output, interrupts, going on."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from leftovers import eventually_empty

import object_store
from pgheadroom.lab.record import Record

Run = Callable[..., subprocess.CompletedProcess[str]]
SMALL = ("update-cost", "--scale", "1", "--set", "filler_length=64", "--set", "update_bid=0")


@pytest.mark.usefixtures("run_parent")
def test_a_run_and_all_its_forms(pgheadroom: Run, in_process: Run, tmp_path: Path) -> None:
    """Data on stdout, messages on stderr; JSON, CSV, Markdown and the page say the same."""
    done = pgheadroom("lab", "run", *SMALL, "--repetitions", "2", "--record", "r", "-f", "json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["kind"] == "experiment"
    assert result["server"] == "18.4"
    assert result["command"].startswith("pgheadroom lab run update-cost --scale 1")
    assert {path.name for path in (tmp_path / "r").iterdir()} == {
        "environment.json",
        "report.html",
        "request.json",
        "result.json",
        "samples.jsonl",
        "series",
    }
    rows = list(csv.DictReader(io.StringIO(in_process("lab", "report", "r", "-f", "csv").stdout)))
    assert [int(row["pages_dirtied"]) for row in rows] == [
        cell["pages_dirtied"] for cell in result["cells"]
    ]
    assert "pages_dirtied_low" in rows[0]
    markdown = in_process("lab", "report", "r", "--format", "markdown").stdout
    assert "| 64 " in markdown
    text = in_process("lab", "report", "r", "-o", "r.txt")
    assert text.stdout == ""
    assert "pages_dirtied" in (tmp_path / "r.txt").read_text()
    page = (tmp_path / "r" / "report.html").read_text()
    assert "<html" in page
    both = in_process("lab", "report", "r", "r", "--html", "both.html")
    assert both.returncode == 0, both.stderr
    assert (tmp_path / "both.html").exists()
    assert both.stdout.count("= The WAL of a HOT UPDATE") == 2
    assert "pages dirtied" not in both.stdout
    details = in_process("lab", "report", "r", "r", "--html", "both.html", "--details")
    assert len(details.stdout.splitlines()) > 2 * len(both.stdout.splitlines())
    assert in_process("lab", "report", "r", "r", "-f", "json").returncode == 2
    assert "= The WAL of a HOT UPDATE" in (tmp_path / "r.txt").read_text()
    _a_site(in_process, tmp_path, result)


def _a_site(in_process: Run, folder: Path, result: dict[str, Any]) -> None:
    """The record as a site: answers on stdout, and an archive that is the record again."""
    done = in_process("lab", "report", "r", "--site", "s")
    assert done.returncode == 0, done.stderr
    assert done.stderr == f"Site: {folder / 's' / 'index.html'}\n"
    said = " ".join(done.stdout.split())
    assert said.startswith("What one UPDATE costs, PostgreSQL 18.4 = The WAL of a HOT UPDATE (")
    assert "is undecided (2 interleaved pairs; a verdict needs at least 5)" in said
    assert "index.html" in {path.name for path in (folder / "s").iterdir()}
    with zipfile.ZipFile(folder / "s" / "data" / "r" / "r.zip") as archive:
        archive.extractall(folder / "unpacked")
    again = Record.open(folder / "unpacked" / "r")
    assert again.read_result() == result
    # The control arm is in no cell: its samples are in the archive beside theirs.
    measured = [sample for sample in again.samples if sample.arm == "measured"]
    assert len(measured) == sum(cell["repetitions"] for cell in result["cells"])
    assert len(again.samples) == len(measured) + result["repetitions"]
    refused = in_process("lab", "report", "r", "--site", "r")
    assert refused.returncode == 2
    assert "is no site of pgheadroom" in refused.stderr


@pytest.mark.long(
    reason="tests/unit/test_stored.py kills a run that writes there, without a server"
)
def test_a_record_on_object_storage(
    pgheadroom: Run, environment: dict[str, str], run_parent: Path, tmp_path: Path
) -> None:
    """Killed in the middle, gone on with, reported, compared, merged: each trial is there once."""
    where = f"s3://{object_store.BUCKET}/runs/first"
    arguments = (*SMALL, "--repetitions", "2", "-o", where)
    with object_store.started() as store:
        environment |= {name: os.environ[name] for name in os.environ if name.startswith("AWS_")}

        def trials() -> int:
            return sum("/trials/" in name for name in store.find(object_store.BUCKET))

        process = _start(environment, tmp_path, *arguments)
        deadline = time.monotonic() + 120
        while not trials():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        before = trials()
        done = pgheadroom("lab", "run", *arguments)
        assert done.returncode == 0, done.stderr
        assert f"going on with {where}" in done.stderr
        assert f"Report: {where}/report.html" in done.stderr
        assert eventually_empty(run_parent) == []
        found = pgheadroom("lab", "report", where, "-f", "json")
        result = json.loads(found.stdout)
        assert result["complete"]
        cells = len(result["cells"])
        assert before < trials() == 2 * (cells + 1), "and the control arm"
        assert {cell["repetitions"] for cell in result["cells"]} == {2}
        other = pgheadroom("lab", "run", *arguments[:-1], f"{where}-2", "--seed", "2")
        assert other.returncode == 0, other.stderr
        assert pgheadroom("lab", "compare", where, f"{where}-2").returncode == 0
        merged = pgheadroom("lab", "merge", where, f"{where}-2", "-o", "both")
        assert merged.returncode == 0, merged.stderr
        assert len(Record.open(tmp_path / "both").samples) == trials()


def _start(environment: dict[str, str], cwd: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "pgheadroom", "lab", "run", *arguments],
        cwd=cwd,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _wait_for_sample(folder: Path, count: int) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        for path in folder.glob("pgheadroom-records/*/samples.jsonl"):
            if path.read_text().count("\n") >= count:
                return
        time.sleep(0.05)
    raise AssertionError("no sample within two minutes")


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        pytest.param(signal.SIGTERM, marks=pytest.mark.long(reason="ends as SIGINT does")),
        pytest.param(signal.SIGHUP, marks=pytest.mark.long(reason="ends as SIGINT does")),
        signal.SIGKILL,
    ],
)
def test_a_stopped_run_leaves_nothing_and_goes_on(
    pgheadroom: Run,
    in_process: Run,
    environment: dict[str, str],
    run_parent: Path,
    tmp_path: Path,
    number: signal.Signals,
) -> None:
    """Ctrl-C, SIGTERM, a closed terminal, kill -9: no server, no folder; then the rest runs."""
    arguments = (*SMALL, "--repetitions", "3")
    process = _start(environment, tmp_path, *arguments)
    _wait_for_sample(tmp_path, 2)
    os.killpg(process.pid, number)
    _, said = process.communicate(timeout=60)
    assert (
        process.returncode
        == {
            signal.SIGINT: 130,
            signal.SIGTERM: 143,
            signal.SIGHUP: 129,
            signal.SIGKILL: -9,
        }[number]
    )
    if number != signal.SIGKILL:
        assert "goes on where it stopped" in said
        assert "Traceback" not in said
    assert eventually_empty(run_parent) == []
    (record,) = (tmp_path / "pgheadroom-records").iterdir()
    assert not (record / "result.json").exists()
    kept = (record / "samples.jsonl").read_text().splitlines()[:2]
    partial = in_process("lab", "report", str(record), "-f", "json")
    assert json.loads(partial.stdout)["complete"] is False

    done = pgheadroom("lab", "run", *arguments, "-f", "json")
    assert done.returncode == 0, done.stderr
    assert "going on with" in done.stderr
    assert json.loads(done.stdout)["complete"] is True
    lines = (record / "samples.jsonl").read_text().splitlines()
    assert lines[:2] == kept
    assert len(lines) == 9, "three blocks of two cells and the control arm"


@pytest.mark.usefixtures("run_parent")
def test_a_spent_budget_ends_the_run_with_what_there_is(pgheadroom: Run) -> None:
    """The block that has begun is finished; the result says that it is partial."""
    done = pgheadroom("lab", "run", *SMALL, "--repetitions", "50", "--budget", "4s", "-f", "json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["complete"] is False
    assert "have not run" in result["warnings"][0]
    repetitions = {cell["repetitions"] for cell in result["cells"]}
    assert len(repetitions) == 1
    assert 1 <= repetitions.pop() < 50


@pytest.mark.usefixtures("run_parent")
def test_the_fillfactor_experiment_counts(pgheadroom: Run) -> None:
    """HOT share rises as fillfactor falls, with intervals, comparisons and an A/A control."""
    done = pgheadroom(
        "lab",
        "run",
        "fillfactor",
        *("--scale", "1", "--repetitions", "5", "--set", "measure=counters"),
        *("--set", "memory=fits", "--set", "fillfactor=100,80", "--set", "transactions=1000"),
        *("-f", "json"),
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    cells = {cell["fillfactor"]: cell for cell in result["cells"]}
    assert cells[80]["hot_frac"] > 0.99
    assert cells[100]["hot_frac"] < 0.9
    assert cells[100]["n_tup_upd"] == 1000
    # 61 accounts of 121 bytes fill a page, 49 at fillfactor 80.
    assert cells[100]["heap_pages_before"] == -(-100_000 // 61)
    assert cells[80]["heap_pages_before"] == -(-100_000 // 49)
    wal = next(
        comparison
        for comparison in result["comparisons"]
        if comparison["measure"] == "wal_bytes_per_tx"
    )
    assert wal["ratio"]["high"] < 0.9
    assert wal["pairs"] == 5
    control = next(each for each in result["controls"] if each["measure"] == "wal_bytes_per_tx")
    # A 95 % interval excludes the truth in one run of twenty; the rule for that is part of it.
    shown = control["ratio"]["low"] > 1 or control["ratio"]["high"] < 1
    assert wal["verdict"] == ("undecided" if shown else "lower")
    assert ("A/A control" in wal["reason"]) == shown
    assert result["cells"][0]["tps"] is None


@pytest.mark.long(reason="eight loads and windows; clients-scale times in tests/postgres")
def test_the_fillfactor_experiment_times(pgheadroom: Run, tmp_path: Path) -> None:
    """Throughput, percentiles and a per-second series; two pairs decide nothing."""
    done = pgheadroom(
        "lab",
        "run",
        "fillfactor",
        *("--scale", "2", "--repetitions", "2", "--set", "measure=throughput"),
        *("--set", "memory=tenfold", "--set", "fillfactor=100,80", "--set", "window_s=2"),
        *("--set", "autovacuum=aggressive", "--record", "r", "-f", "json"),
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    for cell in result["cells"]:
        assert cell["tps"] > 0
        assert 0 < cell["latency_ms_p50"] <= cell["latency_ms_p99"] <= cell["latency_ms_max"]
        assert 0 < cell["accounts_update_ms"] < cell["latency_ms_max"]
        assert 0 < cell["buffer_hit_frac"] < 1, "a tenth of the data is in memory"
    assert {comparison["verdict"] for comparison in result["comparisons"]} == {"undecided"}
    series = json.loads(next((tmp_path / "r" / "series").iterdir()).read_text())
    assert len(series["t_s"]) == len(series["tps"]) == len(series["heap_bytes"]) == 2
    assert any("short for throughput" in warning for warning in result["warnings"])
