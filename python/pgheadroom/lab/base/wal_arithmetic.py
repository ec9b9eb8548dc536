"""
Sizes of WAL records by arithmetic, for experiments that hold them against a server's.

A record has a header of 24 bytes; its first block reference takes 20, main data up to 255 bytes
two more than they hold. Sizes are those that pg_stat_wal and EXPLAIN (WAL) add up: without page
headers of the WAL and without alignment.
Source: src/include/access/xlogrecord.h, heapam_xlog.h, nbtxlog.h (REL_18_STABLE); where a minor or
a major differs, the function says so.
"""

from __future__ import annotations

PAGE_HEADER_BYTES = 24
LINE_POINTER_BYTES = 4
TUPLE_HEADER_BYTES = 23
"""Of a heap tuple: what comes before the null bitmap, and is not in a record as such."""

_RECORD_BYTES = 24
_BLOCK_BYTES = 20
_SAME_RELATION_BYTES = 8
_IMAGE_BYTES = 5

COMMIT_BYTES = 34
"""COMMIT of a transaction that only changed rows."""

HINT_WITHOUT_IMAGE_BYTES = _RECORD_BYTES + _BLOCK_BYTES
"""XLOG/FPI_FOR_HINT where full_page_writes is off: a record, but no image."""


def aligned(size: int) -> int:
    """A size rounded up to 8 bytes."""
    return -(-size // 8) * 8


def _main_data(size: int) -> int:
    return size + (2 if size <= 255 else 5)


def image_bytes(line_pointers: int, tuples: int, tuple_bytes: int) -> int:
    """
    A heap page as an image holds it, without its hole and without compression.

    Args:
        line_pointers: Of the page, dead ones included.
        tuples: That are still stored.
        tuple_bytes: Length of each, not rounded.
    """
    lower = PAGE_HEADER_BYTES + LINE_POINTER_BYTES * line_pointers
    return lower + tuples * aligned(tuple_bytes)


def with_image(image: int, main_data_bytes: int) -> int:
    """A record of one block that holds an image instead of the block's data."""
    main = _main_data(main_data_bytes) if main_data_bytes else 0
    return _RECORD_BYTES + _BLOCK_BYTES + _IMAGE_BYTES + image + main


def image_beside(image: int) -> int:
    """What an image adds to a record of more blocks."""
    return _IMAGE_BYTES + image


def prune_main_bytes(major: int) -> int:
    """
    Main data of the record of an on-access pruning that removes committed versions.

    Source: xl_heap_prune; 8 bytes until 15, 9 in 16, from 17 on 2 and the conflict's xid.
    """
    if major >= 17:
        return 6
    return 9 if major == 16 else 8


def prune_bytes(major: int, dead: int) -> int:
    """The same record without an image, where it turns so many line pointers dead."""
    block_data = 2 * dead + (2 if major >= 17 else 0)
    return _RECORD_BYTES + _BLOCK_BYTES + block_data + _main_data(prune_main_bytes(major))


def set_visible_bytes(major: int) -> int:
    """
    The same record, 19 and later, where it only sets a bit of the visibility map.

    Its second block is of the same relation, so that it is named by fork and number alone.

    Source: `log_heap_prune_and_freeze`, pruneheap.c (19rc1).
    """
    return _RECORD_BYTES + _BLOCK_BYTES + _SAME_RELATION_BYTES + _main_data(prune_main_bytes(major))


def insert_bytes(tuple_bytes: int) -> int:
    """Heap/INSERT of one row, the length of its heap tuple given; the same with +INIT."""
    return _RECORD_BYTES + _BLOCK_BYTES + _main_data(3) + 5 + tuple_bytes - TUPLE_HEADER_BYTES


def multi_insert_bytes(tuple_bytes: int, rows: int, *, new_page: bool) -> int:
    """
    Heap2/MULTI_INSERT of rows of equal length on one page.

    Args:
        tuple_bytes: Length of each heap tuple.
        rows: How many.
        new_page: Whether they are its first, so that their places need not be said.
    """
    each = 7 + tuple_bytes - TUPLE_HEADER_BYTES
    data = (rows - 1) * (each + each % 2) + each  # each begins at an even place
    main = _main_data(4 + (0 if new_page else 2 * rows))
    return _RECORD_BYTES + _BLOCK_BYTES + data + main


def insert_leaf_bytes(index_tuple_bytes: int) -> int:
    """Btree/INSERT_LEAF of one entry."""
    return _RECORD_BYTES + _BLOCK_BYTES + _main_data(2) + index_tuple_bytes
