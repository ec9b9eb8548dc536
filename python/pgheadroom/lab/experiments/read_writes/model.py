"""
What the first read of fresh rows writes, by arithmetic: pages, records, images, bytes.

The rules of MarkBufferDirtyHint and of pruning, for a table of equal rows that was loaded in one
go, with a checkpoint between its last change and the read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pgheadroom import _core
from pgheadroom.lab.base import wal_arithmetic as wal


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRead:
    """Predicted counts of the first read; `heap_pages` are the pages that hold rows."""

    heap_pages: int
    pages_dirtied: int
    wal_records: int
    wal_fpi: int
    wal_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    """A heap page before the read: all versions, and those that an update left behind."""

    versions: int
    dead: int
    is_hinted: bool


def expected(
    *,
    rows: int,
    row_bytes: int,
    update_every: int | None,
    is_settled: bool,
    logs_hints: bool,
    full_page_writes: bool,
    major: int,
) -> FirstRead:
    """
    Counts of the first read.

    Args:
        rows: Of the table, keys from 1 in the order of loading.
        row_bytes: Heap tuple length, not rounded.
        update_every: After loading and a VACUUM each row whose key is a multiple of it was
            updated by one statement; None: nothing was.
        is_settled: Hint bits were set before: by VACUUM, or by COPY FREEZE.
        logs_hints: Data checksums or wal_log_hints.
        full_page_writes: The server's setting.
        major: The server's major version.

    Source: `MarkBufferDirtyHint`, bufmgr.c: FPI_FOR_HINT for a page that is clean and not
    changed since the last checkpoint began; `heap_page_prune_opt`, pruneheap.c: a page on which
    an UPDATE found no room is pruned by the next reader, which is logged in any case.
    """
    per_page = _core.rows_per_page(row_bytes, 100)
    pages = list(_pages(rows, per_page, update_every, is_hinted=is_settled))
    dirtied = records = images = size = 0
    for page in pages:
        if page.is_hinted and not page.dead:
            continue
        dirtied += 1
        has_image = False
        if logs_hints:
            # Also on a page that is pruned: looking at its versions sets the first hint.
            image = wal.image_bytes(page.versions, page.versions, row_bytes)
            records += 1
            has_image = full_page_writes
            images += has_image
            size += wal.with_image(image, 0) if has_image else wal.HINT_WITHOUT_IMAGE_BYTES
        if page.dead:
            records += 1
            if full_page_writes and not has_image:
                image = wal.image_bytes(page.versions, page.versions - page.dead, row_bytes)
                images += 1
                size += wal.with_image(image, wal.prune_main_bytes(major))
            else:
                size += wal.prune_bytes(major, page.dead)
    return FirstRead(
        heap_pages=len(pages),
        pages_dirtied=dirtied,
        wal_records=records,
        wal_fpi=images,
        wal_bytes=size,
    )


def _pages(
    rows: int, per_page: int, update_every: int | None, *, is_hinted: bool
) -> Iterator[_Page]:
    """Pages in order; new versions fill the last page first, since no other has room for one."""
    if update_every is None:
        for first in range(0, rows, per_page):
            yield _Page(versions=min(per_page, rows - first), dead=0, is_hinted=is_hinted)
        return
    moved = rows // update_every
    for first in range(0, rows, per_page):
        last = min(first + per_page, rows)
        dead = last // update_every - first // update_every
        added = min(per_page - (last - first), moved)
        moved -= added
        yield _Page(versions=last - first + added, dead=dead, is_hinted=not added)
    while moved:
        yield _Page(versions=min(per_page, moved), dead=0, is_hinted=False)
        moved -= min(per_page, moved)
