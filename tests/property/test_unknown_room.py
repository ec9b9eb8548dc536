"""
How far a heap's growth may be off by the room that its pages had, over generated tables.

A server that hands out none of that room, all of it, or any part is inside; a table that no vacuum
visits, and that was as dense as the run's, is foreseen as played.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pgheadroom.types import Interval
from pgheadroom.units import PAGE_BYTES
from pgheadroom.verify.room import ROWS_ERROR, Came, Old, free_bytes, is_claimed, with_unknown_room

olds = st.builds(
    Old,
    heap_bytes=st.integers(1, 10**6).map(lambda pages: pages * PAGE_BYTES),
    rows=st.integers(1, 10**7),
    fillfactor=st.integers(10, 100),
    played_free_bytes=st.floats(0, 1e9),
)
cames = st.builds(
    Came,
    inserts=st.integers(0, 10**7),
    deletes=st.integers(0, 10**6),
    moved=st.floats(0, 1e7),
    played_vacuums=st.floats(0, 50),
    vacuums=st.none() | st.integers(0, 50),
    is_vacuumed=st.booleans(),
    fillfactor=st.integers(10, 100),
)
lengths = st.floats(30, 2000)
growths = st.tuples(st.floats(0, 1e9), st.floats(0, 1e8), st.floats(0, 1e8)).map(
    lambda one: Interval(low=max(0.0, one[0] - one[1]), mid=one[0], high=one[0] + one[2], level=0.9)
)


@given(played=growths, old=olds, came=cames, row_bytes=lengths)
def test_what_the_run_does_not_know_only_widens(
    played: Interval, old: Old, came: Came, row_bytes: float
) -> None:
    """To both sides, its middle stays, and a heap does not shrink."""
    found = with_unknown_room(played, old, came, row_bytes)
    assert 0 <= found.low <= played.low
    assert found.mid == played.mid
    assert found.high >= played.high


@given(played=growths, old=olds, came=cames, row_bytes=lengths, part=st.floats(0, 1))
def test_any_part_of_old_room_may_be_handed_out(
    played: Interval, old: Old, came: Came, row_bytes: float, part: float
) -> None:
    """Where autovacuum comes, growth less whatever part of the measured room is inside."""
    assert old.heap_bytes is not None
    came = replace(came, is_vacuumed=True)
    found = with_unknown_room(played, old, came, row_bytes)
    room = free_bytes(old.heap_bytes, old.rows, row_bytes, old.fillfactor)
    assert found.low <= max(0.0, played.mid - part * room) + 1e-6
    if not came.vacuums and came.played_vacuums <= 1:
        # And all that the run took again may not have been there.
        slot = PAGE_BYTES * came.inserts / max(1, 8168 / (row_bytes + 12))
        assert found.high >= min(slot, played.mid)


@given(played=growths, old=olds, came=cames, row_bytes=lengths)
def test_without_vacuums_only_what_the_run_had_not_is_unknown(
    played: Interval, old: Old, came: Came, row_bytes: float
) -> None:
    """A table as free as the run's grows as the run does, but for the server's count of rows."""
    assert old.heap_bytes is not None
    came = replace(came, is_vacuumed=False, vacuums=0)
    free = free_bytes(old.heap_bytes, old.rows * (1 - ROWS_ERROR), row_bytes, old.fillfactor)
    as_played = replace(old, played_free_bytes=free)
    assert with_unknown_room(played, as_played, came, row_bytes) == played
    fuller = with_unknown_room(played, replace(old, played_free_bytes=0.0), came, row_bytes)
    assert fuller.high == played.high
    assert fuller.low >= max(0.0, played.low - free) - 1e-6


def test_minutes_of_growth_are_no_claim_and_a_doubled_heap_is_one() -> None:
    """
    The demo's orders: 104 MB of 46,000 rows where 75 MB would do, and 0.4 to 3.3 MB foreseen.

    3.9 MB came, 1.0 MB in another run: when autovacuum hands room out decides, and nobody knew.
    """
    orders = Old(heap_bytes=104_000_000, rows=46_000, fillfactor=100, played_free_bytes=2e6)
    came = Came(
        inserts=3_500,
        deletes=0,
        moved=20.0,
        played_vacuums=1.0,
        vacuums=1,
        is_vacuumed=True,
        fillfactor=85,
    )
    played = Interval(low=0.4e6, mid=1.8e6, high=3.3e6, level=0.9)
    found = with_unknown_room(played, orders, came, 1392.0)
    assert found.low == 0
    assert found.high > 5e6
    assert not is_claimed(found, 64 * PAGE_BYTES)
    doubled = replace(came, inserts=50_000)
    played = Interval(low=98e6, mid=101e6, high=104e6, level=0.9)
    found = with_unknown_room(played, orders, doubled, 1392.0)
    assert is_claimed(found, 64 * PAGE_BYTES)
    assert found.low < 75e6 < found.mid
