"""Laws of broken lines: nothing is lost, none is too long, and a number keeps its unit."""

from __future__ import annotations

import io
import re

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from pgheadroom.cli.terminal import Terminal
from pgheadroom.folding import wrapped
from pgheadroom.report.table import Column, Table
from pgheadroom.report.text import print_tables
from pgheadroom.units import percent, show_bytes, show_duration

_PARTED = re.compile(r"[0-9]\n\s*(%|kB|MB|GB|TB|s|ms|min|h)(?![A-Za-z0-9_])")
_FIGURES = st.one_of(
    st.builds(percent, st.floats(0, 99), st.integers(0, 3)),
    st.builds(show_bytes, st.floats(0, 1e14)),
    st.builds(show_duration, st.floats(0.01, 1e5)),
)
_WORDS = st.text("abc éß[]%", min_size=1, max_size=12)
_TEXTS = st.lists(st.one_of(_FIGURES, _WORDS), max_size=60).map(" ".join)
_WIDTHS = st.integers(40, 200)


@given(_TEXTS, _WIDTHS)
def test_lines_of_a_terminal(text: str, width: int) -> None:
    """What is printed is what was said, in lines that fit."""
    stream = io.StringIO()
    Terminal(file=stream, width=width, highlight=False).print(text, markup=False)
    shown = stream.getvalue()
    assert shown.split() == text.split()
    assert all(cell_len(line) <= width for line in shown.splitlines())
    assert not _PARTED.search(shown)


@given(_TEXTS, _WIDTHS)
def test_lines_of_comments(text: str, width: int) -> None:
    """The same of text that is broken for a file."""
    shown = "\n".join(wrapped(text, width))
    assert shown.split() == text.split()
    assert not _PARTED.search(shown)


@given(st.lists(_TEXTS, min_size=1, max_size=3), _TEXTS, _WIDTHS)
def test_cells_of_a_table(cells: list[str], note: str, width: int) -> None:
    """A column that is made narrower breaks its text, as the title and the note are broken."""
    columns = (Column("a", "a"), Column("b", "b", style="words"))
    rows = tuple(enumerate(cells))
    stream = io.StringIO()
    console = Terminal(file=stream, width=width, highlight=False)
    print_tables([Table(title=note, columns=columns, rows=rows, note=note)], console)
    shown = stream.getvalue()
    body = [line.partition("|")[2].strip() for line in shown.splitlines() if "|" in line]
    assert not _PARTED.search("\n".join(body))
    assert not _PARTED.search("\n".join(line for line in shown.splitlines() if "|" not in line))
