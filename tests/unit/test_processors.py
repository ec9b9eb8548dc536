"""How many processors there are for a process and those that it starts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pgheadroom.servers.processors import usable


@pytest.mark.parametrize(
    "quota", ["max 100000", "150000 100000", "1000 100000", "12345", "", "a b"]
)
def test_a_quota_is_no_more_than_there_are(quota: str, tmp_path: Path) -> None:
    """At least one, and a part of one is one; what is no quota is none."""
    file = tmp_path / "cpu.max"
    file.write_text(quota)
    expected = {"150000 100000": 2, "1000 100000": 1}.get(quota, 8)
    assert usable(file, 8) == expected
    assert usable(file, 1) == 1


def test_where_nobody_limits_all_are_usable(tmp_path: Path) -> None:
    """As without control groups."""
    assert usable(tmp_path / "none") == len(os.sched_getaffinity(0))
