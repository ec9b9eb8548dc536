"""Long output on a terminal goes through the reader's pager; short output, and a pipe's, do not."""

from __future__ import annotations

import pydoc
import sys

import pytest

from pgheadroom.cli import output
from pgheadroom.cli.terminal import Terminal


@pytest.mark.parametrize(
    ("is_terminal", "lines", "paged"), [(True, 30, True), (True, 5, False), (False, 30, False)]
)
def test_what_does_not_fit_is_paged(
    is_terminal: bool,
    lines: int,
    paged: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whole, and once."""
    shown: list[str] = []
    monkeypatch.setattr(pydoc, "pager", shown.append)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    console = Terminal(force_terminal=is_terminal, width=80, height=10, highlight=False)
    with output.paged(console):
        for number in range(lines):
            console.print(f"line {number}")
    printed = capsys.readouterr().out
    found = shown[0] if paged else printed
    assert len(shown) == paged
    assert (printed == "") == paged
    assert found.splitlines() == [f"line {number}" for number in range(lines)]
