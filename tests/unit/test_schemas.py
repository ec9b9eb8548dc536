"""docs/schema: one JSON Schema a file, made from what reads and writes it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from schemas import FOLDER, schemas

from pgheadroom.advise.advice import Advice
from pgheadroom.forms import read, write
from pgheadroom.lab.record import Record
from pgheadroom.layout import Layout
from pgheadroom.migration import MigrationCheck
from pgheadroom.plan.reading import plan_text
from pgheadroom.plan.record import AppliedRecord as Applied
from pgheadroom.plan.values import Plan
from pgheadroom.predict.values import Prediction
from pgheadroom.prove import Proof
from pgheadroom.verify.values import Verification
from pgheadroom.wal import Names, WalStats, WhatIf

ROOT = Path(__file__).parents[2]
WRITTEN = Path(__file__).parent / "written"
RECORDS = sorted(path.parent for path in (ROOT / "experiments" / "record").glob("*/request.json"))
LAB_FILES = ("request", "environment", "result")


def _files() -> Iterator[tuple[str, Path]]:
    """Files of ours in the repository, each with the name of its schema."""
    for pattern in ("examples/*.toml", "golden/profiles/*.toml", "tests/unit/observed/*.json"):
        yield from (("profile", path) for path in sorted(ROOT.glob(pattern)))
    recorded = sorted((ROOT / "experiments" / "advice" / "record" / "observed").glob("*.json"))
    yield from (("profile", path) for path in recorded[::10])
    for record in RECORDS:
        yield from ((f"lab-{name}", record / f"{name}.json") for name in LAB_FILES)
        yield from (("lab-series", path) for path in sorted(record.glob("series/*.json"))[:2])
        yield "lab-sample", record / "samples.jsonl"
    proofs = sorted((ROOT / "experiments" / "record" / "accuracy").glob("*.json"))
    yield from (("proof", path) for path in proofs[::10])
    yield from ((path.stem, path) for path in sorted(WRITTEN.glob("*.json")))


def _data(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".jsonl":
        text = text.partition("\n")[0]
    return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)


@pytest.mark.parametrize("name", schemas())
def test_schemas_are_current(name: str) -> None:
    """`python tools/schemas.py` writes them anew."""
    text = (FOLDER / f"{name}.schema.json").read_text(encoding="utf-8")
    assert json.loads(text) == schemas()[name], "run python tools/schemas.py"
    Draft202012Validator.check_schema(schemas()[name])


def test_there_is_no_other_schema() -> None:
    """One that nothing makes would grow stale."""
    found = {path.name.removesuffix(".schema.json") for path in FOLDER.glob("*.json")}
    assert found == set(schemas())


@pytest.mark.parametrize("name", schemas())
def test_files_of_ours_are_valid(name: str) -> None:
    """What ships and what was recorded is what the schema describes."""
    validator = Draft202012Validator(schemas()[name])
    paths = [path for kind, path in _files() if kind == name]
    assert paths
    for path in paths:
        assert [error.message for error in validator.iter_errors(_data(path))] == [], path


def _plan(text: str) -> str:
    return plan_text(Plan.from_json(json.loads(text)))


def _by(kind: Any) -> Callable[[str], str]:
    def again(text: str) -> str:
        data = json.loads(text)
        frame = {name: data.pop(name) for name in ("schema_version", "kind")}
        made = frame | write(read(kind, data, exact=True), added=False)
        return json.dumps(made, indent=1, ensure_ascii=False) + "\n"

    return again


@pytest.mark.parametrize(
    ("name", "again"),
    [
        ("plan", _plan),
        ("advice", _by(Advice)),
        ("applied", _by(Applied)),
        ("verification", _by(Verification)),
        ("prediction", _by(Prediction)),
        ("migration-check", _by(MigrationCheck)),
        ("layout", _by(Layout)),
        ("wal-stats", _by(WalStats)),
        ("wal-what-if", _by(WhatIf)),
        ("wal-names", _by(Names)),
    ],
)
def test_files_that_were_written_before_are_read(name: str, again: Callable[[str], str]) -> None:
    """0.1.0 has written them by other code; they are the same text after reading, digest too."""
    text = (WRITTEN / f"{name}.json").read_text(encoding="utf-8")
    assert again(text) == text


def test_proofs_that_were_written_before_are_read() -> None:
    """Each that the repository keeps, to the same text."""
    paths = sorted((ROOT / "experiments" / "record" / "accuracy").glob("*.json"))
    assert paths
    for path in paths:
        text = path.read_text(encoding="utf-8")
        assert json.loads(_by(Proof)(text)) == json.loads(text), path


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.name)
def test_records_that_were_written_before_are_read(path: Path) -> None:
    """Every file of each record that the repository keeps, to what it says."""
    record = Record.open(path)
    assert record.request.to_json() == _data(path / "request.json")
    assert record.read_environment() == _data(path / "environment.json")
    assert write(record.read_result()) == _data(path / "result.json")
    lines = (path / "samples.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.dumps(write(sample), ensure_ascii=False) for sample in record.samples] == lines
    series = sorted((path / "series").glob("*.json"))
    assert [write(found) for found in record.read_series()] == list(map(_data, series))


def test_a_schema_refuses_what_the_reader_refuses() -> None:
    """A misspelt field, a number in quotes, a value out of range."""
    validator = Draft202012Validator(schemas()["profile"])
    for place, value in ((("run", "sead"), 1), (("run", "seed"), "1"), (("run", "seed"), -1)):
        data = _data(ROOT / "examples" / "accounts.toml")
        data[place[0]][place[1]] = value
        assert not validator.is_valid(data)
