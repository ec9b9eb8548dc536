"""What a heap may have taken while nobody looked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pgheadroom.advise.worth import GROWTH_FREE_BYTES
from pgheadroom.plan.measured import measure
from pgheadroom.profile import read_profile
from pgheadroom.types import Interval
from pgheadroom.verify.foreseeing import Again
from pgheadroom.verify.since import Since
from pgheadroom.verify.sizes import (
    UNSEEN_S,
    cut_bytes,
    heap_again,
    is_cut_off,
    is_unseen,
    unseen_bytes,
)

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


def test_a_queue_is_as_large_as_its_last_vacuum_left_it() -> None:
    """
    Jobs of graphile-worker had 27 pages for 41 foreseen, and 46 a minute later.

    82 came a second, were updated and deleted, and 32 were there.
    """
    profile = read_profile(PROFILE)
    now = replace(measure(profile, profile.tables[0]), interval_s=120.0, rows=32, tuple_bytes=200.0)
    now = replace(now, inserts=9_900, updates=9_900, deletes=9_900)
    foreseen = Interval(low=44 * 8192, mid=44 * 8192, high=44 * 8192, level=0.9)
    sizes = (27 * 8192, 44 * 8192, 45 * 8192, None)
    assert [is_cut_off(replace(now, heap_bytes=size), foreseen) for size in sizes] == [
        True,
        *[False] * 3,
    ]
    assert cut_bytes(replace(now, inserts=60, updates=60)) == pytest.approx(60 * 204)
    assert cut_bytes(now) == GROWTH_FREE_BYTES
    assert cut_bytes(replace(now, deletes=319)) == 0, "rows that stay fill the last page"
    assert cut_bytes(replace(now, deletes=None)) == 0


GROWN = Interval(low=170_000, mid=300_000, high=450_000, level=0.9)


@pytest.mark.parametrize(
    ("now_bytes", "length_s", "verdict"),
    [
        (4_898_816, 12, "held"),  # 369 kB above: 64 pages at once, and a second's rows
        (4_530_000 + 64 * 8192 + 37_000, 12, "held"),
        (4_530_000 + 64 * 8192 + 39_000, 12, "failed"),
        (4_530_000 + 64 * 8192 + 37_000, 600, "failed"),  # a second is nothing of ten minutes
    ],
)
def test_a_size_may_be_off_by_what_its_growth_may(
    now_bytes: int, length_s: float, verdict: str
) -> None:
    """
    The size then is known, so the size now and the growth are one claim, and held or failed alike.

    Of a heap of 4.5 MB, observed for 6 s, the growth held, for a heap is extended by 64 pages at
    once, and its size failed by 8 %. And what a session has not reported yet lies on the pages.
    """
    profile = read_profile(PROFILE)
    measured = measure(profile, profile.tables[0])
    then = 4_080_000
    again = Again(
        hot_frac=Interval(low=0.9, mid=0.95, high=1, level=0.9),
        newpage_frac=Interval(low=0, mid=0.05, high=0.1, level=0.9),
        grown_bytes=GROWN,
        heap_bytes=Interval(
            low=then + GROWN.low, mid=then + GROWN.mid, high=then + GROWN.high, level=0.9
        ),
        new_rows_frac=0.1,
        by_page=None,
    )
    since = Since(
        rows=16_000,
        heap_bytes=then,
        inserts=1600,
        updates=3200,
        deletes=0,
        window_updates=1600,
        length_s=length_s,
        fillfactor_before=100,
        fillfactor=90,
    )
    found = heap_again(measured, None, replace(measured, heap_bytes=now_bytes), again, since)
    assert [(one.name, one.verdict) for one in found] == [
        ("heap_bytes", verdict),
        ("heap_grown_bytes", verdict),
    ]
