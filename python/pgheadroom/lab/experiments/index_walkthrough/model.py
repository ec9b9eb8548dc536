"""
Block counts of the index walk-through by arithmetic: pages as loaded, and what a scan touches.

Exact, not an estimate: the steps have no chance in them. Rows come in key order, every value
equally often; the index is built by CREATE INDEX, whose rules are ported here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pgheadroom import _core
from pgheadroom.units import PAGE_BYTES

DISTINCT_VALUES = 10

_HEADER_BYTES = 24
_SPECIAL_BYTES = 16
_POINTER_BYTES = 4
_TID_BYTES = 6
_TUPLE_BYTES = 16  # an int4 key: 8 bytes of header and 4 of data, MAXALIGNed
_PIVOT_TUPLE_BYTES = 24  # with the heap TID that tells equal keys apart, MAXALIGNed
_NONLEAF_FILLFACTOR = 70
_MAX_POSTING_BYTES = PAGE_BYTES * 10 // 100 // 8 * 8 - _POINTER_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """
    A built B-tree: for each leaf the numbers of its first and its last heap row in index order.

    `levels` is the number of pages that a descent touches; `pages` counts the metapage.
    """

    leaves: tuple[tuple[int, int], ...]
    levels: int
    pages: int

    def touched(self, first: int, last: int) -> int:
        """
        Pages that a scan of rows first to last, in index order, touches: the descent and leaves.

        A scan that ends with a leaf's last entry reads that leaf's high key and stops there.
        """
        leaves = sum(1 for low, high in self.leaves if high >= first and low <= last)
        return self.levels - 1 + leaves


def build(rows: int, *, fillfactor: int, deduplicate: bool, distinct: int) -> Tree:
    """
    The tree that CREATE INDEX makes of an int4 column.

    Args:
        rows: Rows of the table, a multiple of `distinct`.
        fillfactor: Of the index, percent.
        deduplicate: Its `deduplicate_items`; without effect for distinct values.
        distinct: Values that each occur equally often; `rows` for a unique column.

    Source: `_bt_load`, `_bt_buildadd`, src/backend/access/nbtree/nbtsort.c, and
    `_bt_dedup_save_htid`, nbtdedup.c (REL_18_STABLE). Differs: no, for this one key type.
    """
    entries = list(_entries(rows, deduplicate=deduplicate, distinct=distinct))
    full_bytes = PAGE_BYTES * (100 - fillfactor) // 100
    # A high key that separates equal values keeps its TID; leaves end within values but for unique.
    pivot_bytes = _TUPLE_BYTES if distinct == rows else _PIVOT_TUPLE_BYTES
    leaves = _level(entries, full_bytes, leaf=True)
    pages, levels, children = len(leaves), 1, len(leaves)
    nonleaf_full = PAGE_BYTES * (100 - _NONLEAF_FILLFACTOR) // 100
    while children > 1:
        items = [(_TUPLE_BYTES // 2, 0, 0), *([(pivot_bytes, 0, 0)] * (children - 1))]
        children = len(_level(items, nonleaf_full, leaf=False))
        pages, levels = pages + children, levels + 1
    return Tree(leaves=tuple(leaves), levels=levels, pages=pages + 1)


def _entries(rows: int, *, deduplicate: bool, distinct: int) -> Iterator[tuple[int, int, int]]:
    """Tuples in index order: bytes, first row, last row; equal keys merged into posting lists."""
    most = (_MAX_POSTING_BYTES // 8 * 8 - _TUPLE_BYTES) // _TID_BYTES
    per_value = rows // distinct
    for value in range(distinct):
        start, end = value * per_value, (value + 1) * per_value
        step = most if deduplicate and per_value > 1 else 1
        for first in range(start, end, step):
            count = min(step, end - first)
            size = _TUPLE_BYTES if count == 1 else _aligned(_TUPLE_BYTES + count * _TID_BYTES)
            yield size, first, first + count - 1


def _aligned(size: int) -> int:
    return -(-size // 8) * 8


def _level(
    items: list[tuple[int, int, int]], full_bytes: int, *, leaf: bool
) -> list[tuple[int, int]]:
    """
    Pages of one level: a page that is full gives its last item to the next page.

    That item's place becomes the high key's, cut to what separates the two pages.
    """
    pages: list[tuple[int, int]] = []
    room_bytes = PAGE_BYTES - _HEADER_BYTES - _SPECIAL_BYTES - _POINTER_BYTES  # the high key's
    free, held = room_bytes, list[tuple[int, int, int]]()
    last_extra = 0
    for item in items:
        size = item[0]
        space = free - _POINTER_BYTES
        reserve = _aligned(_TID_BYTES) if leaf else 0
        if space < size + reserve or (space + last_extra < full_bytes and len(held) > 1):
            moved = held.pop()
            pages.append((held[0][1], held[-1][2]))
            held = [moved]
            free = room_bytes - moved[0] - _POINTER_BYTES
        held.append(item)
        free -= size + _POINTER_BYTES
        # What a posting list gives back when it is cut to a high key.
        last_extra = size - _TUPLE_BYTES if leaf and size > _TUPLE_BYTES else 0
    if held:
        pages.append((held[0][1], held[-1][2]))
    return pages


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedBlocks:
    """Predicted block counts of one step."""

    buffers: int | None
    heap_pages: int
    index_pages: int


def expected(rows: int, *, fillfactor: int, deduplicate: bool) -> dict[str, ExpectedBlocks]:
    """
    Block counts of every step.

    Args:
        rows: Rows of the table.
        fillfactor: Of the index on the value.
        deduplicate: Of the same index.
    """
    row_bytes = _core.heap_tuple_bytes([("int4", 4), ("int4", 4)])
    heap = _core.heap_pages(rows, row_bytes, 100)
    per_page = _core.rows_per_page(row_bytes, 100)
    key = build(rows, fillfactor=90, deduplicate=True, distinct=rows)
    value = build(rows, fillfactor=fillfactor, deduplicate=deduplicate, distinct=DISTINCT_VALUES)
    per_value = rows // DISTINCT_VALUES
    half = rows // 2
    half_heap = -(-half // per_page)
    one = value.touched(per_value, 2 * per_value - 1)
    below = value.touched(0, half - 1)

    def step(buffers: int | None) -> ExpectedBlocks:
        return ExpectedBlocks(buffers=buffers, heap_pages=heap, index_pages=value.pages)

    return {
        "load": step(None),
        "key-lookup": step(key.levels + 1),
        "seq-scan": step(heap),
        "bitmap": step(heap + one),
        "clustered": step(half_heap + below),
        "vacuumed": step(below + 1),
    }
