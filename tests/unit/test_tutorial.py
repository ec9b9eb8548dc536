"""The tutorial holds what its commands printed."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"<!-- run(?: \d)?: (.+?) -->\n(.*?)<!-- end -->", re.DOTALL)


def test_every_command_has_been_played() -> None:
    """A command whose output is missing, or is that of another command, was not played since."""
    text = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    blocks = _BLOCK.findall(text)
    assert len(blocks) == text.count("<!-- run") >= 6
    for command, body in blocks:
        lines = body.strip().splitlines()
        assert lines[:2] == ["```text", f"$ {command}"], f"{command}: run `make docs`"
        assert len(lines) > 3, command


def test_no_path_of_a_machine_is_left() -> None:
    """Sockets of run folders and folders of whoever played it are put away."""
    text = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    assert not re.search(r"/(?:tmp|root|home)/|pgheadroom-tutorial-", text)
