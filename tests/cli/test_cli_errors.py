"""Each mistake gets one clear message and its exit code, before anything is started."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["lab", "run", "update-cots"], 2, "did you mean update-cost?"),
        (["lab", "run", "update-cost", "--set", "filler=1"], 2, "no factor or option 'filler'"),
        (["lab", "run", "update-cost", "--set", "fillfactor=5"], 2, "a whole number from 10 to"),
        (["lab", "run", "update-cost", "--scale", "0"], 2, "greater than or equal to 1"),
        (["lab", "run", "update-cost", "--scale", "x"], 2, "'--scale'"),
        (["lab", "run", "update-cost", "--format", "xml"], 2, "'--format'"),
        (["lab", "run", "update-cost", "--budget", "soon"], 2, "duration 'soon' is not understood"),
        (["lab", "run", "update-cost", "--io", "direct"], 2, "no factor or option 'io'"),
        (["lab", "run", "update-cost", "--server", "12"], 4, "12"),
        (["lab", "run", "update-cost", "--server", "/nowhere/bin"], 2, "/nowhere/bin"),
        (
            ["lab", "run", "fillfactor", "--server", "15", "--io", "direct"],
            3,
            "needs PostgreSQL 16",
        ),
        (["lab", "run", "fillfactor", "--script", "no.sql"], 2, "script no.sql cannot be read"),
        (["lab", "report", "nowhere"], 2, "nowhere/request.json does not exist"),
        (["lab", "nothing"], 2, "No such command"),
        (["--no-such-option"], 2, "No such option"),
        (
            ["lab", "run", "update-cost", "--server", "host=/nowhere user=u password=secret"],
            3,
            "/nowhere",
        ),
    ],
)
def test_mistakes(in_process: Run, arguments: list[str], code: int, message: str) -> None:
    """The message names what was found or expected; there is no trace; nothing is left."""
    if "15" in arguments and not Path("/usr/lib/postgresql/15/bin/postgres").exists():
        pytest.skip("PostgreSQL 15 is not installed")
    done = in_process(*arguments)
    assert message in done.stderr
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert "secret" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("mistake", [["--set", "fillfactor=5"], ["--server", "/nowhere/bin"]])
def test_a_wrong_request_makes_no_record(
    pgheadroom: Run, tmp_path: Path, mistake: list[str]
) -> None:
    """A mistake in the options leaves the folder as it was."""
    pgheadroom("lab", "run", "update-cost", *mistake)
    assert list(tmp_path.iterdir()) == []


def test_help_and_version(pgheadroom: Run) -> None:
    """-h is the host in this family of tools, so help is --help; everything has some."""
    for arguments in ([], ["lab"], ["lab", "run"], ["lab", "list"], ["lab", "report"], ["demo"]):
        done = pgheadroom(*arguments, "--help")
        assert done.returncode == 0
        assert "Usage:" in done.stdout
    assert pgheadroom("--version").stdout.startswith("pgheadroom 0.")


def test_lab_list_names_what_there_is(in_process: Run) -> None:
    """Each experiment with its question, and the servers that can be used."""
    text = in_process("lab", "list").stdout
    assert "update-cost" in text
    assert "fillfactor" in text
    assert "18.4" in text
    whole = in_process("lab", "list", "fillfactor").stdout
    assert "tenfold" in whole
    assert "default tpcb-like" in whole


@pytest.mark.parametrize("damage", ["samples", "request", "environment"])
def test_a_damaged_record_is_named(in_process: Run, tmp_path: Path, damage: str) -> None:
    """A report of a damaged record ends with the file that is damaged, and changes nothing."""
    folder = tmp_path / "record"
    folder.mkdir()
    request = (
        '{"schema_version": 1, "kind": "lab_request", "experiment": "update-cost", "server": "18",'
        ' "scale": 1, "seed": 1, "repetitions": 1, "levels": {"fillfactor": [80]}, "options": {}}'
    )
    environment = '{"schema_version": 1, "kind": "lab_environment", "server": "18.4"}'
    texts = {"request.json": request, "samples.jsonl": "", "environment.json": environment}
    damaged = {"samples": "samples.jsonl"}.get(damage, f"{damage}.json")
    texts[damaged] = "damaged\n"
    for name, text in texts.items():
        (folder / name).write_text(text)
    done = in_process("lab", "report", "record")
    assert done.returncode == 2
    assert damaged in done.stderr
    assert "Traceback" not in done.stderr
    assert (folder / damaged).read_text() == "damaged\n"


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("request.json", '"fillfactor": [80]', '"fillfactor": ["x"]', "fillfactor=x"),
        ("request.json", '"fillfactor": [80]', '"other": [80]', "lacks"),
        ("environment.json", '"server": "18.4"', '"serve": "18.4"', "server: missing"),
    ],
)
def test_a_record_with_a_changed_field_is_named(
    in_process: Run, tmp_path: Path, name: str, old: str, new: str, message: str
) -> None:
    """Damage that is still JSON is found by its content."""
    folder = tmp_path / "record"
    folder.mkdir()
    levels = '{"filler_length": [64], "fillfactor": [80], "update_bid": [0]}'
    cell = '{"filler_length": 64, "fillfactor": 80, "update_bid": 0}'
    texts = {
        "request.json": '{"schema_version": 1, "kind": "lab_request", "server": "18", "seed": 1, '
        '"experiment": "update-cost", "scale": 1, "repetitions": 1, '
        f'"levels": {levels}, "options": {{"change": "random"}}}}',
        "environment.json": '{"schema_version": 1, "kind": "lab_environment", "server": "18.4"}',
        "samples.jsonl": '{"trial": "r001_measured_filler_length=64_fillfactor=80_update_bid=0", '
        f'"cell": {cell}, "repetition": 1, "arm": "measured", "started_at": "x", '
        '"duration_s": 1, "measures": {"wal_bytes": 7200}, "notes": [], "assumed": {}}\n',
    }
    for file, text in texts.items():
        (folder / file).write_text(text)
    assert in_process("lab", "report", "record").returncode == 0
    (folder / "result.json").unlink()
    assert old in texts[name]
    (folder / name).write_text(texts[name].replace(old, new))
    done = in_process("lab", "report", "record")
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_closed_pipe_is_no_error(environment: dict[str, str], tmp_path: Path) -> None:
    """`| head` ends quietly: exit code 1 would mean findings."""
    done = subprocess.run(
        f"{sys.executable} -m pgheadroom lab list | true; echo ${{PIPESTATUS[0]}}",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        check=False,
    )
    assert done.stdout.strip() == "0", done.stderr
