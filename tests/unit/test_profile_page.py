"""`docs/profile.md` says what the reader takes: every field, every default, examples that read."""

from __future__ import annotations

import copy
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pgheadroom.errors import InputError
from pgheadroom.outcome import KEYS
from pgheadroom.profile import parse_profile

PAGE = (Path(__file__).parents[2] / "docs" / "profile.md").read_text(encoding="utf-8")
EXAMPLES = [tomllib.loads(text) for text in re.findall(r"^```toml\n(.*?)^```", PAGE, re.M | re.S)]
SECTIONS = {
    "## `[server]`": ["server"],
    "## `[[table]]`": ["table", 0],
    "A column:": ["table", 0, "columns", 2],
    "An index has": ["table", 0, "indexes", 0],
    "## `[[operation]]`": ["operation", 0],
    "`pick.distribution`": ["operation", 0, "pick"],
    "## `[run]`": ["run"],
    "## `[pgbench]`": ["pgbench"],
}


def _part(heading: str) -> str:
    """What stands from a heading to the next paragraph that begins a table of its own."""
    start = PAGE.index(f"\n{heading}")
    ends = [PAGE.find(f"\n{other}", start + 1) for other in (*SECTIONS, "A foreign key", "## ")]
    return PAGE[start : min((end for end in ends if end > 0), default=len(PAGE))]


def _at(data: Any, path: list[Any]) -> Any:
    for step in path:
        data = data.setdefault(step, {}) if isinstance(data, dict) else data[step]
    return data


@pytest.mark.parametrize("data", EXAMPLES, ids=range(len(EXAMPLES)))
def test_examples_are_profiles(data: dict[str, Any]) -> None:
    """A block without a word beside `toml` is a whole file."""
    parse_profile(data)


@pytest.mark.parametrize("heading", SECTIONS)
def test_every_field_is_on_the_page(heading: str) -> None:
    """And none that the reader does not know."""
    path = SECTIONS[heading]
    data = copy.deepcopy(EXAMPLES[1] if path == ["pgbench"] else EXAMPLES[0])
    _at(data, path)["no_such_field"] = 1
    if path[-1] == "pick":
        _at(data, path)["distribution"] = "uniform"
    with pytest.raises(InputError, match="no_such_field") as caught:
        parse_profile(data)
    known = set(re.findall(r"\w+", str(caught.value).partition("known here: ")[2]))
    assert len(known) > 2
    rows = [line.split("|")[1:3] for line in _part(heading).splitlines() if line.startswith("| `")]
    if path[-1] == "pick":
        told = {name for _, fields in rows for name in re.findall(r"`(\w+)`", fields)}
        told |= {"distribution"}
        told -= {"random_zipfian", "random_gaussian"}
    else:
        told = {name for first, _ in rows for name in re.findall(r"`(\w+)`", first)}
    assert told == known


def test_defaults_are_those_of_the_reader() -> None:
    """Of what a minimal profile leaves out and the page gives as a plain value."""
    assumed = parse_profile(EXAMPLES[0]).assumed
    checked = 0
    for heading, path in SECTIONS.items():
        if path[-1] in ("pick", "pgbench"):
            continue
        place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)[1:]
        for line in _part(heading).splitlines():
            cells = [cell.strip() for cell in line.split("|")]
            if len(cells) < 5 or not cells[1].startswith("`"):
                continue
            value = assumed.get(f"{place}.{cells[1].strip('`')}")
            plain = {"true": True, "false": False}.get(cells[3], cells[3].strip('`"'))
            if value is not None and re.fullmatch(r"[\w.\"`]+", cells[3]):
                assert str(value).removesuffix(".0") == str(plain), line
                checked += 1
    assert checked > 10


def test_every_figure_is_on_the_page() -> None:
    """The keys of an outcome, all of them."""
    told = set(re.findall(r"`(\w+)`", PAGE.partition("## What comes out")[2]))
    assert set(KEYS) <= told
