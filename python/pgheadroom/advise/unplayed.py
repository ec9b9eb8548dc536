"""
WAL of indexes that the twin does not play: what was measured beyond the twin's.

An index of another method than B-tree and BRIN gets entries where a B-tree does, with each version
that is not heap-only (`heap_update` and `ExecInsertIndexTuples`, 15 to 19), and none with a HOT
update. What the statements of a table's updates have written beyond what the twin plays of them is
therefore theirs, for each update that was not HOT, and so it is at any other fillfactor.

Who moves a GIN index's pending entries to their places writes it, where there are many: a session
whose UPDATE or INSERT fills the list (`ginHeapTupleFastInsert`), or autovacuum, whose WAL is in no
statement's. So the rest is that of the interval's share of both. Images of such an index's pages
are in no statement's WAL without images, and in no figure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from pgheadroom.outcome import Value, ends
from pgheadroom.profile.tables import TableProfile
from pgheadroom.profile.unpriced import said_left_out
from pgheadroom.types import Interval

_COUNTED_MIN = 0.9
"""Of the updates whose WAL is known: those that are not, such as upserts', may be HOT or not."""

_COLD_MIN = 0.02
"""Of the updates: of fewer that are not HOT the rest of the WAL says nothing (arbitrary)."""


def unplayed_wal(
    table: TableProfile, known: Interval | None, twins: Value, *, counted: float | None
) -> Interval | None:
    """
    Bytes that such indexes write with an update that is not HOT; None where that is not known.

    Args:
        table: Observed.
        known: WAL of an update as measured, images apart.
        twins: What the twin has of it at the same setting, without these indexes.
        counted: Updates that it was measured of; None: all.
    """
    assert table.observed is not None, "an observed profile"
    counters = table.observed.counters
    updates, hot = counters.n_tup_upd, counters.n_tup_hot_upd
    if known is None or twins is None or not updates or hot is None:
        return None
    cold = 1 - hot / updates
    if cold < _COLD_MIN or (counted is not None and counted < _COUNTED_MIN * updates):
        return None
    low, mid, high = ends(twins)
    if not (math.isfinite(low) and math.isfinite(high)) or mid >= known.mid:
        return None  # a twin that has more than was measured leaves nothing to go by
    rest = Interval(
        low=min(known.low - high, known.mid - mid),
        mid=known.mid - mid,
        high=max(known.high - low, known.mid - mid),
        level=0.9,
    )
    return rest.clipped(0.0, rest.high).scaled(1 / cold)


def with_unplayed(
    wal: Value, hot: Value, unplayed: Interval | None, *, inserts: float = 0.0
) -> Value:
    """
    WAL of an update with that of these indexes, at any share of HOT updates.

    Args:
        wal: By the twin.
        hot: The share there.
        unplayed: Bytes for each update that is not HOT.
        inserts: Rows inserted for each update, where their WAL counts too: each has its entries.
    """
    if wal is None or hot is None or unplayed is None:
        return wal
    (low, mid, high), (least, middle, most) = ends(wal), ends(hot)
    return Interval(
        low=low + unplayed.low * (1 - most + inserts),
        mid=mid + unplayed.mid * (1 - middle + inserts),
        high=high + unplayed.high * (1 - least + inserts),
        level=0.9,
    )


def said_unplayed(names: Iterable[str], unplayed: Interval | None) -> str:
    """What of these indexes is in the figures, as a sentence; empty where there are none."""
    listed = list(names)
    if not listed:
        return ""
    if unplayed is None:
        return f"{said_left_out(listed)}: what room saves of it comes on top"
    one = len(listed) == 1
    its, ends_hot = ("its", "it ends") if one else ("their", "they end")
    low, mid, high = unplayed.ends
    return (
        f"{', '.join(listed)}: which updates {ends_hot} HOT for is played; {its} WAL is what was "
        f"measured beyond the twin's, {mid:,.0f} bytes [{low:,.0f}, {high:,.0f}] with each update "
        f"that is not HOT; {its} size and images are in no figure"
    )
