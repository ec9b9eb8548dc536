"""An option that does nothing where it stands is refused, with what would do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pgheadroom.cli.app import run
from pgheadroom.profile import to_json
from pgheadroom.profile.reading import read_profile

RECORD = Path(__file__).parents[2] / "experiments" / "advice" / "record" / "observed"

WRITTEN = """
schema_version = 1

[[table]]
name = "t"
rows = 100
columns = [{name = "id", type = "int4"}, {name = "v", type = "int4"}]
indexes = [
    {name = "t_pkey", columns = ["id"], unique = true},
    {name = "t_v", columns = ["v"]},
]

[[operation]]
table = "t"
kind = "update"
sets = ["v"]

[run]
operations = 100
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An observed profile, one written by hand, and what a psql script may have written."""
    (file,) = RECORD.glob("indexed-second-????????.json")
    (tmp_path / "observed.json").write_text(json.dumps(to_json(read_profile(file))))
    (tmp_path / "written.toml").write_text(WRITTEN)
    (tmp_path / "script").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "option", "does"),
    [
        ("advise observed.json --for 1m", "--for", "observe"),
        ("advise observed.json --no-sample", "--no-sample", "observe"),
        ("advise observed.json --log x.log", "--log", "observe"),
        ("advise observed.json --statements x.sql", "--statements", "observe"),
        ("advise observed.json --rewrite auto", "--rewrite", "--plan"),
        ("advise observed.json --verbose -f json", "--verbose", "--format text"),
        ("advise script --for 1m", "--for", "--print-sql"),
        ("advise script --no-sample", "--no-sample", "--print-sql"),
        ("observe --print-sql --mask", "--mask", "--from"),
        ("observe --print-grants -t orders", "--table", "observe"),
        ("observe --print-sql --log x.log", "--log", "--from"),
        ("observe --print-sql --print-grants", "--print-grants", "--from"),
        ("observe --print-grants --for 1m", "--for", "observe"),
        ("observe --print-grants --mask", "--mask", "observe"),
        ("observe --print-grants -o x.json", "-o", "observe"),
        ("observe --from script --for 1m", "--for", "--print-sql"),
        ("observe --from script --no-sample", "--no-sample", "--print-sql"),
        ("predict written.toml --windows 8", "--windows", "--series"),
        ("predict written.toml --page 0 -t t --series", "--series", "--page"),
        ("predict written.toml --page 0 -t t --seeds 3", "--seeds", "--page"),
        ("predict written.toml --rewrite-how online", "--rewrite-how", "--rewrite"),
        ("predict written.toml --rewrite 0.3", "--rewrite", "--from-fillfactor"),
        ("predict written.toml -t t", "--table", "--fillfactor"),
        ("predict observed.json --without-index x --series", "--series", "leave it out"),
        ("predict observed.json --without-index x --sample-pages 9", "--sample-pages", "leave"),
        ("predict observed.json --without-index x --tps 5", "--tps", "leave it out"),
        ("predict observed.json --without-index x --engine undo", "--engine", "leave it out"),
    ],
)
def test_an_option_that_does_nothing_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], command: str, option: str, does: str
) -> None:
    """Exit code 2 before anything is read or played, naming the option and what would do."""
    before = sorted(folder.iterdir())
    assert run(command.split()) == 2
    said = capsys.readouterr()
    assert option in said.err
    assert does in said.err
    assert said.out == ""
    assert sorted(folder.iterdir()) == before
