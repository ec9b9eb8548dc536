"""`predict` and `prove` as a user runs them: forms, files, mistakes, exit codes, a clean stop."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pgheadroom.outcome import KEYS

Run = Callable[..., subprocess.CompletedProcess[str]]

PROFILE = """\
schema_version = 1

[server]
version = "18"
shared_buffers = "64MB"

[[table]]
name = "t"
rows = 2000
columns = [
  { name = "id", type = "int4" },
  { name = "n", type = "int4" },
  { name = "filler", type = "bpchar(84)" },
]
indexes = [ { name = "t_pkey", columns = ["id"], unique = true } ]

[[operation]]
table = "t"
kind = "update"
sets = ["n"]

[run]
operations = 1000
"""


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """A profile that takes a second to play."""
    path = tmp_path / "small.toml"
    path.write_text(PROFILE)
    return path


def test_predict_needs_no_server(pgheadroom: Run, profile: Path) -> None:
    """A curve as JSON: a cell a fillfactor in the order given, exact numbers, what was assumed."""
    done = pgheadroom("predict", profile.name, "--fillfactor", "100,70..90:10", "-f", "json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", "what takes less than a second needs no progress"
    result = json.loads(done.stdout)
    assert (result["schema_version"], result["kind"], result["server"]) == (1, "prediction", "18.4")
    assert [cell["fillfactor"] for cell in result["cells"]] == [100, 70, 80, 90]
    assert result["assumed"]["run.clients"] == 1
    for cell in result["cells"]:
        assert list(cell) == ["fillfactor", "predicted"]
        assert list(cell["predicted"]) == [*KEYS, "by_table"]
        assert cell["predicted"]["n_tup_upd"] == 1000
    # A row takes 120 bytes and 4 for its line pointer; at 70 percent 46 of them fill a page.
    assert result["cells"][1]["predicted"]["heap_pages"] == -(-2000 // 46)


def test_predict_in_every_form(pgheadroom: Run, profile: Path, tmp_path: Path) -> None:
    """Text, CSV, Markdown, a file, a page; the same number in each."""
    arguments = ("predict", profile.name, "--fillfactor", "100,80", "--server", "16.14")
    text = pgheadroom(*arguments)
    assert text.returncode == 0, text.stderr
    assert "What the twin predicts, PostgreSQL 16.14" in text.stdout
    assert "HOT updates" in text.stdout
    rows = list(csv.DictReader(io.StringIO(pgheadroom(*arguments, "-f", "csv").stdout)))
    assert len(rows) == 2 * 2 * len(KEYS)
    markdown = pgheadroom(*arguments, "-f", "markdown").stdout
    assert "| 80 | 100.0" in markdown
    done = pgheadroom(*arguments, "-o", "out.txt", "--html", "out.html")
    assert done.stdout == ""
    assert str(tmp_path / "out.html") in done.stderr
    assert "Every figure at fillfactor 80" in (tmp_path / "out.txt").read_text()
    page = (tmp_path / "out.html").read_text()
    assert "pgheadroom predict small.toml" in page


def test_what_is_to_be_read_first_is_in_every_form(pgheadroom: Run, profile: Path) -> None:
    """
    Beside the rows of CSV on standard error, and before a page's life.

    An operation that finds no row in most of its turns was told in neither.
    """
    queue = profile.with_name("queue.toml")
    delete = '[[operation]]\ntable = "t"\nkind = "delete"\npick = { distribution = "oldest" }\n'
    before, _, run = PROFILE.partition("[[operation]]")
    run = run[run.index("[run]") :].replace("1000", "3000")
    queue.write_text(before + delete + run)
    for command in ("predict", "prove"):
        done = pgheadroom(command, queue.name, "-f", "csv")
        assert done.returncode == 0, done.stderr
        assert (
            "! operation[0], delete on t by oldest, found no row in 1,000 of 3,000" in done.stderr
        )
        rows = list(csv.DictReader(io.StringIO(done.stdout)))
        assert len(rows) == 2 * len(KEYS)
        assert "found no row" not in done.stdout
    done = pgheadroom("predict", queue.name, "--page", "0")
    assert done.stdout.splitlines()[1].startswith("! operation[0], delete on t by oldest, found")


@pytest.mark.usefixtures("run_parent")
def test_prove_is_exact_and_says_so(pgheadroom: Run, profile: Path) -> None:
    """Both players, every key, error 0; --fail-over is content."""
    done = pgheadroom("prove", profile.name, "--fillfactor", "100,80", "-f", "json", "--fail-over")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["kind"], result["server"]) == ("proof", "18.4")
    for cell in result["cells"]:
        assert list(cell) == ["fillfactor", "predicted", "measured", "error"]
        for error in (cell["error"], cell["error"]["by_table"]["t"]):
            assert [key for key in KEYS if error[key] != 0] == []
    assert "cells[0].duration_s" in result["assumed"]


@pytest.mark.usefixtures("run_parent")
def test_prove_as_text(pgheadroom: Run, profile: Path) -> None:
    """The answer first, then every figure with both sides."""
    done = pgheadroom("prove", profile.name)
    assert done.returncode == 0, done.stderr
    assert "* All 16 figures are equal." in done.stdout
    assert "server: load" in done.stderr


MISTAKES = [
    ("rows = 2000", "rows = 2000\ncolour = 1", "line 10", "table[0].colour: unknown field"),
    ("rows = 2000", "rows = 2000\nfillfactor = 5", "line 10", "table[0].fillfactor: found 5"),
    ('columns = ["id"]', 'columns = ["ident"]', "line 15", "ident"),
    ("operations = 1000", "operations = 1000\nclients = 3", "line 23", "run.operations"),
    ("operations = 1000", "operations = 999\nclients = 2", "line 23", "a multiple of run.clients"),
    ('kind = "update"', 'kind = "updat"', "line 19", "one of insert, update"),
    ('sets = ["n"]', 'sets = ["m"]', "line 20", "m"),
    ('version = "18"', 'version = "12"', "line 4", "a version from 15"),
]


@pytest.mark.parametrize("command", ["predict", "prove"])
@pytest.mark.parametrize(("old", "new", "line", "message"), MISTAKES)
def test_a_wrong_field_is_named_with_its_line(
    in_process: Run, profile: Path, command: str, old: str, new: str, line: str, message: str
) -> None:
    """Input errors end with 2, name path and line, and start nothing."""
    assert old in PROFILE
    profile.write_text(PROFILE.replace(old, new))
    done = in_process(command, profile.name)
    assert done.returncode == 2, done.stderr
    assert line in done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--fillfactor", "5"], 2, "from 10 to 100"),
        (["--fillfactor", "80,80"], 2, "given twice"),
        (["--fillfactor", "eighty"], 2, "--fillfactor"),
        (["--fillfactor", "100..50"], 2, "--fillfactor"),
        (["--fillfactor", ""], 2, "--fillfactor"),
        (["--fillfactor", "80", "--table", "u"], 2, "no such table, expected one of t"),
        (["--table", "t"], 2, "give both"),
        (["--server", "host=localhost"], 2, "not a connection"),
        (["--server", "/nowhere"], 2, "/nowhere"),
        (["--server", "12"], 4, "PostgreSQL 12"),
        (["--html", "nowhere/page.html"], 2, "nowhere does not exist"),
        (["--seeds", "1"], 2, "--seeds"),
        (["--format", "xml"], 2, "--format"),
    ],
)
@pytest.mark.parametrize("command", ["predict", "prove"])
def test_mistakes_in_options(
    in_process: Run, profile: Path, command: str, arguments: list[str], code: int, message: str
) -> None:
    """What was found and expected, before anything runs; nothing is written."""
    done = in_process(command, profile.name, *arguments)
    assert message in done.stderr
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert [path.name for path in profile.parent.iterdir()] == [profile.name]


@pytest.mark.parametrize("command", ["predict", "prove"])
def test_a_profile_that_is_none(in_process: Run, tmp_path: Path, command: str) -> None:
    """A missing file, a folder, bytes, TOML that is broken."""
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    (tmp_path / "broken.toml").write_text("[server\n")
    for name, message in (
        ("missing.toml", "no such file: missing.toml"),
        (".", ". is a folder"),
        ("bytes.toml", "not UTF-8"),
        ("broken.toml", "not valid TOML"),
    ):
        done = in_process(command, name)
        assert done.returncode == 2, done.stderr
        assert message in done.stderr


@pytest.mark.parametrize("command", ["predict", "prove"])
def test_what_the_twin_cannot_play_ends_with_5(
    in_process: Run, profile: Path, command: str
) -> None:
    """Before the server is started, with the field that it cannot play."""
    profile.write_text(PROFILE.replace("64MB", "1MB"))
    done = in_process(command, profile.name)
    assert done.returncode == 5, done.stderr
    assert "server.shared_buffers" in done.stderr
    assert "server: load" not in done.stderr


def test_a_duration_alone_needs_an_assumption(in_process: Run, profile: Path) -> None:
    """How many transactions a machine does in ten seconds is assumed, and said, or told."""
    profile.write_text(PROFILE.replace("operations = 1000", "duration_s = 2"))
    done = in_process("predict", profile.name, "-f", "json")
    assert done.returncode == 0, done.stderr
    guessed = json.loads(done.stdout)
    assert guessed["assumed"]["run.operations"].startswith("2000: 1000 transactions a second")
    assert guessed["cells"][0]["predicted"]["n_tup_upd"] == 2000
    done = in_process("predict", profile.name, "-f", "json", "--tps", "150")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert "150 transactions a second, as asked for" in told["assumed"]["run.operations"]
    assert told["cells"][0]["predicted"]["n_tup_upd"] == 300


def test_autovacuum_and_checkpoints_are_predicted(in_process: Run, profile: Path) -> None:
    """By a clock whose pace is said under `assumed`; intervals over seeds; windows add up."""
    server = """version = "18"
autovacuum = true
autovacuum_naptime_s = 2
checkpoint_interval_s = 40
"""
    profile.write_text(PROFILE.replace('version = "18"', server, 1))
    done = in_process(
        "predict", profile.name, "--tps", "10", "--series", "--windows", "5", "-f", "json"
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["assumed"]["run.duration_s"].startswith("100: 10 transactions a second")
    (cell,) = result["cells"]
    assert cell["by_itself"]["duration_s"] == 100
    assert cell["by_itself"]["checkpoints"] == 2
    # 250 changed rows at 10 a second: the first look after 25 s, every two seconds, and up to a
    # second for the session's report.
    found = [item for item in cell["by_itself"]["example"] if item["kind"] == "autoanalyze"]
    assert 25 <= found[0]["began_s"] <= 28.2
    series = cell["series"]
    assert series["t_s"] == [20, 40, 60, 80, 100]
    assert sum(item["mid"] if isinstance(item, dict) else item for item in series["n_tup_upd"]) == (
        1000
    )


def test_a_change_of_fillfactor_takes_effect(in_process: Run, profile: Path) -> None:
    """Altered and rewritten side by side, and the verdict."""
    done = in_process(
        *("predict", profile.name, "--from-fillfactor", "100", "--fillfactor", "80"),
        *("--series", "--windows", "8", "-f", "json"),
    )
    assert done.returncode == 0, done.stderr
    (cell,) = json.loads(done.stdout)["cells"]
    assert (cell["from_fillfactor"], cell["fillfactor"]) == (100, 80)
    altered, rewritten = cell["predicted"], cell["rewritten"]["predicted"]
    assert altered["hot_frac"] < rewritten["hot_frac"]
    assert altered["heap_pages"] < rewritten["heap_pages"]
    assert cell["effect"]["rewritten_hot_frac"] >= cell["effect"]["final_hot_frac"]
    done = in_process("predict", profile.name, "--from-fillfactor", "100")
    assert done.returncode == 2
    assert "--fillfactor" in done.stderr


def test_a_rewrite_in_the_middle(in_process: Run, profile: Path) -> None:
    """No rewrite, one at the start and one in the middle, each with its time to effect."""
    change = ("predict", profile.name, "--from-fillfactor", "100", "--fillfactor", "80")
    done = in_process(*change, "--series", "--windows", "8", "--rewrite", "0.5", "-f", "json")
    assert done.returncode == 0, done.stderr
    (cell,) = json.loads(done.stdout)["cells"]
    later = cell["rewritten_later"]
    assert (later["how"], later["evidence"]) == ("full", "exact")
    assert later["at_s"] == later["until_s"] == cell["series"]["t_s"][-1] / 2
    (work,) = later["tables"]
    assert work["heap_pages_before"] < work["heap_pages_after"]
    assert work["wal_bytes"] > work["heap_pages_after"] * 1000
    for part in (cell, cell["rewritten"], later):
        assert part["effect"]["verdict"]
    assert cell["growth"]["t"]["verdict"] in ("steady", "converging")
    for wrong in (("--rewrite", "1.5"), ("--rewrite-how", "online"), ("--rewrite-for", "3")):
        done = in_process(*change, *wrong)
        assert done.returncode == 2
        assert "--rewrite" in done.stderr


def test_ctrl_c_stops_the_twin(environment: dict[str, str], profile: Path) -> None:
    """A long prediction ends at once, with 130 and no trace."""
    profile.write_text(
        PROFILE.replace("rows = 2000", "rows = 2_000_000").replace(
            "operations = 1000", "operations = 900_000_000"
        )
    )
    with subprocess.Popen(
        [sys.executable, "-m", "pgheadroom", "predict", profile.name, "--fillfactor", "100,90,80"],
        cwd=profile.parent,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        os.killpg(process.pid, signal.SIGINT)
        # That it was not played to its end is what the exit code and the missing result say.
        said = process.stderr.read()
        assert process.wait(timeout=60) == 130
    assert first.startswith("predict: ")
    assert "interrupted" in said
    assert "Traceback" not in said


INDEX_OPTIONS = ("--without-index", "--narrow-index", "--brin-index", "--index-fillfactor")


def test_help_names_every_option(in_process: Run) -> None:
    """--help, since -h is the host in this family of tools."""
    for command, options in (
        (
            "predict",
            ("--fillfactor", "--table", "--server", "--seeds", "--tps", "--series", "--html"),
        ),
        ("predict", ("--storage", "--engine", "--order", *INDEX_OPTIONS)),
        ("prove", ("--fillfactor", "--table", "--server", "--fail-over", "--format", "--output")),
        ("prove", INDEX_OPTIONS),
    ):
        done = in_process(command, "--help")
        assert done.returncode == 0
        assert all(option in done.stdout for option in options)
        assert "50..100:5" in done.stdout
