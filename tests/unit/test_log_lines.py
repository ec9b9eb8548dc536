"""
Lines of a throw-away server's log.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgheadroom.servers.log_lines import autovacuum_of, log_line

LINE = "2026-11-25 16:31:04.158 UTC [2287] {}:  {}"


@pytest.mark.parametrize("severity", ["LOG", "DEBUG", "ERROR"])
@given(said=st.text(alphabet=st.characters(exclude_categories=["C", "Z"]), min_size=1))
def test_a_line_is_read_whole(severity: str, said: str) -> None:
    """Whatever it says."""
    read = log_line(LINE.format(severity, said))
    assert read is not None
    assert (read.pid, read.severity, read.said) == (2287, severity, said)
    assert read.at_s == pytest.approx(1795624264.158, abs=1e-6)


@pytest.mark.parametrize("line", ["", "\tsystem usage: elapsed: 1 s", "[2287] LOG:  no time"])
def test_other_lines_begin_no_message(line: str) -> None:
    """Further lines of one begin with a tab."""
    assert log_line(line) is None


@given(
    name=st.text(alphabet=st.characters(exclude_categories=["C"]), min_size=1),
    kind=st.sampled_from(["vacuum", "analyze"]),
)
def test_a_table_may_be_called_anything(name: str, kind: str) -> None:
    """The log does not quote names: what is in one does not end it."""
    rest = ": index scans: 12" if kind == "vacuum" else ""
    assert autovacuum_of(f'automatic {kind} of table "{name}"{rest}') == (kind, name)
