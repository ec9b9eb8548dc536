"""
Commands that the README and the pages show: each is understood, and what is fixed is as shown.

Of a line in a block the command reads all arguments; of words in a sentence, which often leave
the rest away, the command and its options are looked up. Nothing here runs a server: `make docs`
plays the README's and the tutorial's commands whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typed_commands import COMMANDS_BY_PATH, path_of, understood

import pgheadroom as ph
from pgheadroom.cli.commands import COMMANDS

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "extension").rglob("*.md")),
]
_FENCE = re.compile(r"^ *```[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)


def _shown_in_blocks() -> Iterator[tuple[str, str]]:
    """Page and command, without the words behind it, alternatives and where output goes."""
    for page in PAGES:
        for block in _FENCE.findall(page.read_text(encoding="utf-8")):
            for line in re.findall(r"^(?:\$ )?(pgheadroom .*)$", block, re.MULTILINE):
                typed = re.split(r" {2,}| [|>#] | && |;", line)[0]
                typed = re.sub(r" or \S+| \.\.\.(?= )", "", typed)
                yield page.name, typed


SHOWN = sorted(set(_shown_in_blocks()))


@pytest.mark.parametrize("typed", sorted({typed for _, typed in SHOWN}))
def test_a_command_in_a_block_is_understood(typed: str) -> None:
    """It is one of ours, and takes these arguments."""
    understood(typed)


def test_blocks_were_found() -> None:
    """Not by a pattern that has come to find nothing."""
    assert len(SHOWN) > 100
    assert {page for page, _ in SHOWN} >= {"README.md", "commands.md", "tutorial.md", "wal.md"}


def test_commands_in_sentences_are_there() -> None:
    """Their options too."""
    found = [
        (page.name, typed)
        for page in PAGES
        for typed in re.findall(
            r"`pgheadroom ([a-z][^`\n]*)`", _FENCE.sub("", page.read_text(encoding="utf-8"))
        )
    ]
    for page, typed in found:
        assert typed.split()[0] in COMMANDS, page
        options = re.findall(r"(?:^| )(-{1,2}[a-z][a-z-]*)", typed)
        if options:
            command = COMMANDS_BY_PATH[path_of(f"pgheadroom {typed}")]
            known = {name for parameter in command.params for name in parameter.opts}
            assert known.issuperset(options), (page, typed)
    assert len(found) > 40


def test_the_readme_has_a_row_for_every_command() -> None:
    """What it does, for whoever reads no further."""
    table = (ROOT / "README.md").read_text(encoding="utf-8").partition("## What it does")[2]
    rows = re.findall(r"^\| (`pgheadroom .*?) \|", table, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`pgheadroom ([a-z]+)", row)}
    assert named == set(COMMANDS)


def test_the_proof_in_the_readme_has_the_figures_of_its_profile() -> None:
    """With one client they are exact, so what is shown is fixed."""
    table = (ROOT / "README.md").read_text(encoding="utf-8").partition("All 16 figures")[2]
    rows = re.findall(r"^ (\w+) +\| \w+ +\| +(\d+) \| +(\d+) \| +0$", table, re.MULTILINE)
    assert len(rows) >= 6
    (cell,) = ph.predict(ROOT / "examples" / "queue.toml", server="18").cells
    for name, predicted, measured in rows:
        assert getattr(cell.predicted, name) == int(predicted) == int(measured), name
