"""Variants as a user asks for them: every form names them; mistakes end before any work."""

from __future__ import annotations

import csv
import io
import json
import subprocess
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
full_page_writes = true

[[table]]
name = "t"
rows = 2000
fillfactor = 70
columns = [
  { name = "id", type = "int4" },
  { name = "n", type = "int4" },
]
indexes = [
  { name = "t_pkey", columns = ["id"], unique = true },
  { name = "t_n", columns = ["n"] },
]

[[operation]]
table = "t"
kind = "update"
sets = ["n"]

[run]
operations = 600
"""


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """Updates of an indexed column."""
    path = tmp_path / "small.toml"
    path.write_text(PROFILE)
    return path


def test_a_variant_in_every_form(in_process: Run, profile: Path, tmp_path: Path) -> None:
    """JSON, text, CSV, Markdown, page: the unchanged profile, the variant, the difference."""
    arguments = ("predict", profile.name, "--without-index", "t_n", "--fillfactor", "70,80")
    result = json.loads(in_process(*arguments, "-f", "json").stdout)
    assert result["storage"] == "local"
    cells = result["cells"]
    assert [cell["variant"] for cell in cells] == ["unchanged", "without t_n"] * 2
    assert cells[1]["difference"]["predicted"]["hot_frac"] == 1
    text = in_process(*arguments, "--html", "out.html").stdout
    assert "What the variant changes, against the unchanged profile" in text
    assert "without t_n (fillfactor 70): HOT updates 0.0 to 100.0 %" in text
    markdown = in_process(*arguments, "-f", "markdown").stdout
    assert "| 80 | without t_n | +100.00 |" in markdown
    rows = list(csv.DictReader(io.StringIO(in_process(*arguments, "-f", "csv").stdout)))
    assert len(rows) == 4 * 2 * len(KEYS)
    assert {row["variant"] for row in rows} == {"unchanged", "without t_n"}
    page = (tmp_path / "out.html").read_text()
    assert "without t_n" in page
    assert "as they are and in the variant" in page


def test_one_fillfactor_needs_no_column(in_process: Run, profile: Path) -> None:
    """Where nothing but the variant tells cells apart, nothing else is shown."""
    arguments = ("predict", profile.name, "--without-index", "t_n", "-f", "markdown")
    markdown = in_process(*arguments).stdout
    assert "### Beside the variant, all tables together" in markdown
    assert "| without t_n | +100.00 |" in markdown
    assert "| fillfactor" not in markdown


def test_storage_in_every_form(in_process: Run, profile: Path, tmp_path: Path) -> None:
    """The result has a field for it; people are told that it is a model."""
    arguments = ("predict", profile.name, "--storage", "log-structured")
    result = json.loads(in_process(*arguments, "-f", "json").stdout)
    assert result["storage"] == "log-structured"
    assert result["cells"][0]["predicted"]["wal_fpi"] == 0
    said = "Storage log-structured, a model"
    assert said in in_process(*arguments, "--html", "out.html").stdout
    assert said in (tmp_path / "out.html").read_text()


def test_engines_in_every_form(in_process: Run, profile: Path, tmp_path: Path) -> None:
    """A model is called one wherever its numbers are shown; the order has a table."""
    arguments = ("predict", profile.name, "--engine", "undo", "--order")
    result = json.loads(in_process(*arguments, "-f", "json").stdout)
    assert (result["engine"], result["evidence"]) == ("undo", "model")
    (cell,) = result["cells"]
    order = cell["order"]["t"]
    assert order["range_keys"] == 1000
    assert order["pages_per_range"] == order["pages_per_range_start"] > 0
    said = "Engine undo, a model"
    text = in_process(*arguments, "--html", "out.html").stdout
    assert said in text
    assert "Order of rows by key" in text
    page = (tmp_path / "out.html").read_text()
    assert said in page
    assert "Order of rows by key" in page
    clustered = json.loads(
        in_process("predict", profile.name, "--engine", "clustered", "-f", "json").stdout
    )
    assert "order" in clustered["cells"][0], "what the engine is for is always shown"


MISTAKES = [
    (("--without-index", "t_m"), "did you mean t_n?"),
    (("--without-index", "t_pkey"), "t_pkey is the key of t"),
    (("--narrow-index", "t_n"), "expected NAME=COLUMN,..."),
    (("--narrow-index", "t_n=m"), "t_n does not hold m"),
    (("--index-fillfactor", "t_n=half"), "expected a whole number"),
    (("--index-fillfactor", "t_n=5"), "10 to 100"),
    (("--brin-index", "t_n", "--without-index", "t_n"), "exclude each other"),
    (("--storage", "aurora"), "log-structured"),
    (("--engine", "columnar"), "clustered"),
    (("--page", "0", "--engine", "undo"), "expected no variant"),
    (("--page", "0", "--without-index", "t_n"), "expected no variant"),
]


@pytest.mark.parametrize(("options", "message"), MISTAKES, ids=[m[1] for m in MISTAKES])
def test_mistakes_are_named(
    in_process: Run, profile: Path, options: tuple[str, ...], message: str
) -> None:
    """Exit code 2, and what to do instead."""
    done = in_process("predict", profile.name, *options)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())


@pytest.mark.usefixtures("run_parent")
def test_a_variant_is_proved(in_process: Run, profile: Path) -> None:
    """Both cells on a server; each side's own difference, and they are equal."""
    done = in_process("prove", profile.name, "--brin-index", "t_n", "-f", "json", "--fail-over")
    assert done.returncode == 0, done.stderr
    difference = json.loads(done.stdout)["cells"][1]["difference"]
    assert difference["predicted"] == difference["measured"]
    assert difference["measured"]["hot_frac"] == 1
