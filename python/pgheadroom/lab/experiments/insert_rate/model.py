"""
What inserting rows writes, by arithmetic: records and bytes of WAL, pages of the table.

For one client and an empty table whose rows are equally long. Rows come one by one (a
Heap/INSERT each) or by COPY (a MULTI_INSERT for each batch and page), so many a transaction.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from pgheadroom import _core
from pgheadroom.lab.base import wal_arithmetic as wal
from pgheadroom.lab.base.ascending_btree import AscendingBtree
from pgheadroom.lab.base.copy_model import Copied, batches
from pgheadroom.units import PAGE_BYTES

TUPLE_MAX_BYTES = 2032
"""A row up to this length has all its values in it (TOAST_TUPLE_THRESHOLD, heaptoast.h)."""

_SEQUENCE_BYTES = 99
_SEQUENCE_VALUES = 33
"""nextval logs 32 values ahead, and the one that it gives (SEQ_LOG_VALS, sequence.c)."""

_FSM_UPPER_PAGES = 2
"""They are told when a range of pages is new, or by VACUUM, not when a single page is full."""
_FSM_PAGES_PER_LEAF = 4069
"""Heap pages that a leaf page of the free space map holds (SlotsPerFSMPage, fsm_internals.h)."""

_XIDS_PER_CLOG_PAGE = 32_768


@dataclass(frozen=True, slots=True, kw_only=True)
class Inserted:
    """Predicted counts."""

    wal_records: int
    wal_bytes: int
    heap_pages: int


def expected(
    *,
    statements: int,
    rows_per_statement: int,
    tuple_bytes: int,
    value_bytes: int,
    is_copy: bool,
    is_serial: bool,
    logs_hints: bool,
    next_xid: int,
    major: int,
) -> Inserted | None:
    """
    Counts of so many statements into an empty table, each a transaction of its own.

    Args:
        statements: How many.
        rows_per_statement: Rows of each.
        tuple_bytes: Length of a heap tuple, not rounded.
        value_bytes: Length of a line that COPY reads.
        is_copy: By COPY.
        is_serial: Keys from a sequence, with a unique index.
        logs_hints: Data checksums or wal_log_hints: new pages of the free space map are logged.
        next_xid: Of the first statement: the commit log grows a page each 32,768.
        major: The server's major version.

    Returns:
        None for rows whose values are stored out of line.
    """
    if tuple_bytes > TUPLE_MAX_BYTES:
        return None
    rows = statements * rows_per_statement
    fsm_upper_pages = 0
    if is_copy:
        table = Copied(tuple_bytes=tuple_bytes, extends_by_many=major >= 16)
        of_each = list(batches(itertools.repeat(value_bytes, rows_per_statement)))
        for _ in range(statements):
            table.copy(iter(of_each))
        pages, records, size = table.pages, table.wal_records, table.wal_bytes
        fsm_upper_pages = _FSM_UPPER_PAGES if table.updates_fsm_root else 0
    else:
        pages = _core.heap_pages(rows, tuple_bytes, 100)
        records, size = rows, rows * wal.insert_bytes(tuple_bytes)
    records += statements
    size += statements * wal.COMMIT_BYTES
    if logs_hints and pages > 1:
        hinted = fsm_upper_pages + -(-(pages - 1) // _FSM_PAGES_PER_LEAF)
        records += hinted
        size += hinted * wal.with_image(PAGE_BYTES, 0)
    clog_pages = (next_xid + statements - 1) // _XIDS_PER_CLOG_PAGE - (
        next_xid - 1
    ) // _XIDS_PER_CLOG_PAGE
    records += clog_pages
    size += clog_pages * (34 if major >= 17 else 30)
    if is_serial:
        index = AscendingBtree()
        index.insert(rows)
        logged = -(-rows // _SEQUENCE_VALUES)
        records += index.wal_records + logged
        size += index.wal_bytes + logged * _SEQUENCE_BYTES
    return Inserted(wal_records=records, wal_bytes=size, heap_pages=pages)
