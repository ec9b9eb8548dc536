"""
What nobody knows of a heap's growth: the room that its old pages had, and when vacuums hand it out.

Rows that come fill what the free space map knows of before a heap is extended. What pages have free
comes into the map with a vacuum, all at once, so that for a while nothing grows and then everything
does; a run has its vacuums at other moments than the server.

    heap when it began   [ rows as dense as they were loaded | free, or dead ]
                                                               of it: none to all is handed out
    since then           [ rows that came, versions that moved ] less what versions left behind,
                                                                 by a vacuum more or less

So a forecast of growth reaches from the run's with all that room to the run's without what it took
of it. That is nothing where a vacuum could not come, and little where much has grown.
"""

from __future__ import annotations

from dataclasses import dataclass

from pgheadroom import _core
from pgheadroom.types import Interval
from pgheadroom.units import PAGE_BYTES

ROWS_ERROR = 0.05
"""Rows are estimated by the server, and their mean length by a sample: as much as a heap's size is
judged with (arbitrary)."""
LINE_POINTER_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Old:
    """
    The pages that were there when it began.

    Attributes:
        heap_bytes: Measured; None where nobody looked.
        rows: On them.
        fillfactor: At which they had been filled.
        played_free_bytes: What the run's had free or dead.
    """

    heap_bytes: int | None
    rows: int
    fillfactor: int
    played_free_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """
    What came since, and what the run made of it.

    Attributes:
        inserts: Rows.
        deletes: Rows.
        moved: Versions that went to another page, in the run.
        played_vacuums: In the run.
        vacuums: Counted by the server; None: not known.
        is_vacuumed: Whether autovacuum may come.
        fillfactor: In force since then.
    """

    inserts: int
    deletes: int
    moved: float
    played_vacuums: float
    vacuums: int | None
    is_vacuumed: bool
    fillfactor: int


def free_bytes(heap_bytes: float, rows: float, row_bytes: float, fillfactor: int) -> float:
    """What a heap has beside its rows, as dense as they are loaded; never below 0."""
    return max(0.0, heap_bytes - rows * _slot_bytes(row_bytes, fillfactor))


def with_unknown_room(played: Interval, old: Old, came: Came, row_bytes: float) -> Interval:
    """
    Growth as played, as far as it may be off by room that nobody knows.

    Args:
        played: Bytes that the heap has grown by in the run.
        old: Pages that were there.
        came: Since then.
        row_bytes: Of a version on its page, with its line pointer.
    """
    may_vacuum = came.is_vacuumed or bool(came.vacuums)
    room = 0.0
    if old.heap_bytes is not None:
        rows = old.rows * (1 - ROWS_ERROR)
        room = free_bytes(old.heap_bytes, rows, row_bytes, old.fillfactor)
    slot = _slot_bytes(row_bytes, came.fillfactor)
    left_behind = taken_again = 0.0
    if may_vacuum:
        each = max(1.0, came.played_vacuums if came.vacuums is None else came.vacuums)
        if came.vacuums != 0:
            left_behind = (came.moved + came.deletes) * slot / each
        taken_again = max(0.0, (came.inserts + came.moved) * slot - played.mid) / each
    else:
        room = max(0.0, room - old.played_free_bytes)
    return Interval(
        low=max(0.0, played.low - room - left_behind),
        mid=played.mid,
        high=played.high + taken_again,
        level=played.level,
    )


def is_claimed(grown: Interval, steps_bytes: float) -> bool:
    """
    Whether a forecast of growth says anything: an interval wider than its middle does not.

    Args:
        grown: With the room that nobody knows.
        steps_bytes: What a server extends a heap by at once.
    """
    return grown.high - grown.low <= max(grown.mid, 2 * steps_bytes)


def _slot_bytes(row_bytes: float, fillfactor: int) -> float:
    length = max(1, round(row_bytes) - LINE_POINTER_BYTES)
    return PAGE_BYTES / max(1, _core.rows_per_page(length, fillfactor))
