"""docs/schema: one JSON Schema a file, made from what reads and writes it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from schemas import FOLDER, schemas

ROOT = Path(__file__).parents[2]


def _files() -> Iterator[tuple[str, Path]]:
    """Files of ours in the repository, each with the name of its schema."""
    for pattern in ("examples/*.toml", "golden/profiles/*.toml", "tests/unit/observed/*.json"):
        yield from (("profile", path) for path in sorted(ROOT.glob(pattern)))
    recorded = sorted((ROOT / "experiments" / "advice" / "record" / "observed").glob("*.json"))
    yield from (("profile", path) for path in recorded[::10])


def _data(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
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


def test_a_schema_refuses_what_the_reader_refuses() -> None:
    """A misspelt field, a number in quotes, a value out of range."""
    validator = Draft202012Validator(schemas()["profile"])
    for place, value in ((("run", "sead"), 1), (("run", "seed"), "1"), (("run", "seed"), -1)):
        data = _data(ROOT / "examples" / "accounts.toml")
        data[place[0]][place[1]] = value
        assert not validator.is_valid(data)
