"""A point of an advice's curve, with what it is about said and the rest as it may be."""

from __future__ import annotations

from pgheadroom.advise.foreseen import Point


def point_of(fillfactor: int, *, hot: float = 0.9, heap_bytes: float = 1e9) -> Point:
    """What does not move in HOT goes to another page."""
    return Point(
        fillfactor=fillfactor,
        hot_frac=hot,
        newpage_frac=1 - hot,
        heap_bytes=heap_bytes,
        index_bytes=0.0,
        wal_bytes_per_update=100.0,
        all_wal_bytes_per_update=100.0,
        pages_modified_per_update=0.1,
        seq_scan_pages=1000.0,
    )
