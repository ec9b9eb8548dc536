"""The generator of random profiles and what makes a profile smaller: what `make fuzz` rests on."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from fuzz_profiles.generator import generate
from fuzz_profiles.smaller import smallest

from pgheadroom.errors import InputError
from pgheadroom.profile import read_profile

_COUNT = 150


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


def test_a_profile_is_not_tried_for_ever() -> None:
    """At most so many are tried, also when every one is smaller and none is the smallest."""
    tried = []

    def still(candidate: dict[str, Any]) -> bool:
        tried.append(candidate)
        return len(tried) % 2 == 0

    smallest(generate(1, 5, 1, ("18",)), still, tries=7)
    assert len(tried) <= 7
