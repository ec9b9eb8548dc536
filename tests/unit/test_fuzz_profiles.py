"""The generator of random profiles and what makes a profile smaller: what `make fuzz` rests on."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fuzz_profiles.__main__ import is_asked_for
from fuzz_profiles.generator import generate
from fuzz_profiles.smaller import smallest

from pgheadroom.errors import InputError
from pgheadroom.forms import json_schema
from pgheadroom.profile import parse_profile, read_profile
from pgheadroom.profile.model import ProfileFile

_COUNT = 150


_OF_A_PROGRAM = "is written by the program, not by who makes a profile"
_NOT_DRAWN = {
    "pgbench": "its tables and scripts are fixed: golden/profiles has every one of them",
    "server.observed": "predictions and proofs ignore it",
    "table.observed": "predictions and proofs ignore it",
    "server.wal_compression": "compressed images are estimated, docs/limits.md",
    "table.indexes.stated.assumed": _OF_A_PROGRAM,
    "table.indexes.stated.columns": _OF_A_PROGRAM,
    "table.indexes.stated.true_for": _OF_A_PROGRAM,
    "table.indexes.stated.false_for": _OF_A_PROGRAM,
    "operation.find=index": "stands where nothing is said",
    "run.isolation=read committed": "stands where nothing is said",
    "server.wal_level=replica": "stands where nothing is said",
    "table.indexes.method=btree": "stands where nothing is said",
}
"""Fields, and values that are words, which the generator leaves out; what is within them too."""


def _declared(node: Any, path: str, kinds: dict[str, Any]) -> Iterator[str]:
    """Fields of the format by their paths, and words that a field may be: `find=bitmap`."""
    while "$ref" in node:
        node = kinds[node["$ref"].rpartition("/")[2]]
    for word in (*node.get("enum", ()), *([node["const"]] if "const" in node else ())):
        if isinstance(word, str):
            yield f"{path}={word}"
    for one in (*node.get("anyOf", ()), *node.get("oneOf", ())):
        yield from _declared(one, path, kinds)
    if "items" in node:
        yield from _declared(node["items"], path, kinds)
    if isinstance(node.get("additionalProperties"), dict):
        yield from _declared(node["additionalProperties"], f"{path}.*", kinds)
    for name, one in node.get("properties", {}).items():
        within = f"{path}.{name}".removeprefix(".")
        yield within
        if within not in _NOT_DRAWN:
            yield from _declared(one, within, kinds)


def _drawn(part: Any, path: str, declared: frozenset[str]) -> Iterator[str]:
    """The same of one profile."""
    if isinstance(part, list):
        for one in part:
            yield from _drawn(one, path, declared)
    elif isinstance(part, dict):
        for name, one in part.items():
            within = f"{path}.{name}".removeprefix(".")
            # A name of somebody's own: a column's among `sets`, a setting's.
            within = within if within in declared else f"{path}.*"
            yield within
            yield from _drawn(one, within, declared)
    elif isinstance(part, str):
        yield f"{path}={part}"


def test_every_field_of_the_format_is_drawn() -> None:
    """
    What the format declares, but for a list with reasons, is in a profile that is not refused.

    1,200 profiles once had no isolation, no autovacuum and a dozen fields more, while the twin's
    README had it that they were drawn over the whole format.
    """
    schema = json_schema(ProfileFile, title="profile", nulls=False)
    declared = frozenset(_declared(schema, "", schema["$defs"]))
    assert {"run.isolation", "table.columns.values.ordered", "operation.pick.within"} < declared
    assert {"operation.sets.*.grows_bytes.min", "table.indexes.method=gist"} < declared
    assert set(_NOT_DRAWN) < declared
    left = declared - set(_NOT_DRAWN)
    found: set[str] = set()
    for number in range(1200):
        profile = generate(1, number, (1, 3)[number % 2], ("18",))
        try:
            parse_profile(profile)
        except InputError:
            continue
        found.update(_drawn(profile, "", declared))
    assert left <= found, sorted(left - found)
    assert not found & set(_NOT_DRAWN), "what is drawn is no exception any more"


def test_a_profile_is_asked_for_by_a_field_of_any_part() -> None:
    """Once only tables, columns and kinds of pages were looked at, not indexes, picks, the run."""
    profile = generate(1, 0, 1, ("18",))
    profile["run"]["isolation"] = "repeatable read"
    profile["table"][0]["indexes"][0]["nulls_not_distinct"] = True
    assert is_asked_for(profile, "isolation")
    assert is_asked_for(profile, "wal,nulls_not_distinct")
    assert is_asked_for(profile, "")
    assert not is_asked_for(profile, "wal")


def _refusal(profile: dict[str, Any], folder: Path) -> str | None:
    path = folder / "made.json"
    path.write_text(json.dumps(profile))
    try:
        read_profile(path)
    except InputError as error:
        return str(error)
    return None


@pytest.mark.parametrize("clients", [1, 3])
def test_most_made_profiles_are_profiles(tmp_path: Path, clients: int) -> None:
    """The same seed makes the same; few are refused, and all that the format has is made."""
    made = [generate(1, number, clients, ("18",)) for number in range(_COUNT)]
    assert made == [generate(1, number, clients, ("18",)) for number in range(_COUNT)]
    assert made[0] != generate(2, 0, clients, ("18",))
    refused = [said for profile in made if (said := _refusal(profile, tmp_path)) is not None]
    assert len(refused) < _COUNT / 8, refused
    operations = [one for profile in made for one in profile["operation"]]
    assert {one["kind"] for one in operations} == {
        "insert", "update", "delete", "select", "lock", "upsert",
    }  # fmt: skip
    assert {one["pick"]["distribution"] for one in operations if "pick" in one} >= {
        "uniform", "zipfian", "gaussian", "hot_set", "sequential", "stride", "newest", "oldest",
        "age", "head",
    }  # fmt: skip
    tables = [table for profile in made for table in profile["table"]]
    assert any("foreign_keys" in table for table in tables)
    assert any(table["rows"] == 0 for table in tables)


def test_a_profile_is_made_smaller_as_long_as_it_ends_so() -> None:
    """What the ending rests on stays, and little else; the given profile is left as it was."""
    profile = generate(1, 4, 1, ("18",))
    profile["operation"].append({"table": "t0", "kind": "update", "sets": ["a"], "weight": 7})
    whole = copy.deepcopy(profile)

    def still(candidate: dict[str, Any]) -> bool:
        return any(one.get("weight") == 7 for one in candidate["operation"])

    made = smallest(profile, still, tries=400)
    assert profile == whole
    assert still(made)
    assert [one["sets"] for one in made["operation"]] == [["a"]]
    assert [table["name"] for table in made["table"]] == ["t0"]
    assert made["run"]["operations"] < 10


def test_a_run_by_its_duration_is_made_smaller_too() -> None:
    """It has no number of transactions, and stays a run by its duration."""
    profile = next(
        made
        for made in (generate(1, number, 1, ("18",)) for number in range(300))
        if "duration_s" in made["run"]
    )
    made = smallest(profile, lambda _: True, tries=400)
    assert set(made["run"]) == {"duration_s", "clients"}


def test_a_profile_is_not_tried_for_ever() -> None:
    """At most so many are tried, also when every one is smaller and none is the smallest."""
    tried = []

    def still(candidate: dict[str, Any]) -> bool:
        tried.append(candidate)
        return len(tried) % 2 == 0

    smallest(generate(1, 5, 1, ("18",)), still, tries=7)
    assert len(tried) <= 7
