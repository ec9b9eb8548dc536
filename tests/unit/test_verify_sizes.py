"""What a heap may have taken while nobody looked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pgheadroom.advise.worth import GROWTH_FREE_BYTES
from pgheadroom.plan.measured import measure
from pgheadroom.profile import read_profile
from pgheadroom.types import Interval
from pgheadroom.verify.sizes import UNSEEN_S, is_unseen, unseen_bytes

PROFILE = Path(__file__).parent / "observed" / "ledger.json"


def test_versions_of_a_horizon_that_nobody_saw() -> None:
    """30 rows on one page, 200 updates a second: ten seconds' versions are 27 pages, no failure."""
    profile = read_profile(PROFILE)
    now = measure(profile, profile.tables[0])
    updates = round(200 * now.interval_s)
    now = replace(now, updates=updates, tuple_bytes=97.0)
    unseen = unseen_bytes(now)
    assert unseen == pytest.approx(200 * UNSEEN_S * (104 + 4), rel=0.01)
    page = Interval(low=8192, mid=8192, high=8192, level=0.9)
    sizes = (4096, 8192, 8193, 11 * 8192, int(8192 + unseen), int(8193 + unseen), None)
    found = [is_unseen(replace(now, heap_bytes=size), page) for size in sizes]
    assert found == [False, False, True, True, True, False, False]
    assert unseen_bytes(replace(now, updates=0)) == 0
    assert unseen_bytes(replace(now, updates=10**9)) == GROWTH_FREE_BYTES
    assert unseen_bytes(replace(now, tuple_bytes=None)) == 0
    assert unseen_bytes(replace(now, updates=None)) == 0
