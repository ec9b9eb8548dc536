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
from pgheadroom.units import PAGE_BYTES

HEAP_PAGES_PER_MAP_PAGE = (PAGE_BYTES - wal.PAGE_HEADER_BYTES) * 4
"""Heap pages in a page of the visibility map, two bits each (HEAPBLOCKS_PER_PAGE)."""

ROOMS_PER_MAP_PAGE = PAGE_BYTES - wal.PAGE_HEADER_BYTES - 4 - (PAGE_BYTES // 2 - 1)
"""Heap pages in a leaf page of the free space map: a byte each, above them a binary tree of
BLCKSZ / 2 - 1 nodes, before it fp_next_slot (LeafNodesPerPage, fsm_internals.h)."""


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


@dataclass(slots=True, kw_only=True)
class _Written:
    """What the read has written so far; pages are clean before it, and owe an image."""

    logs_hints: bool
    full_page_writes: bool
    dirtied: int = 0
    records: int = 0
    images: int = 0
    bytes: int = 0

    def hint(self, image_bytes: int) -> None:
        """A hint makes a page dirty."""
        self.dirtied += 1
        if self.logs_hints:
            self.records += 1
            self.images += self.full_page_writes
            self.bytes += (
                wal.with_image(image_bytes, 0)
                if self.full_page_writes
                else wal.HINT_WITHOUT_IMAGE_BYTES
            )

    def prune(self, image_bytes: int, dead: int, major: int) -> None:
        """Versions are removed from a page that has its hints."""
        self.records += 1
        if self.full_page_writes and not self.logs_hints:
            self.images += 1
            self.bytes += wal.with_image(image_bytes, wal.prune_main_bytes(major))
        else:
            self.bytes += wal.prune_bytes(major, dead)

    def set_visible(self, heap_blknos: list[int], major: int) -> None:
        """The bits of these heap pages, whose own changes are hints."""
        map_pages = len({blkno // HEAP_PAGES_PER_MAP_PAGE for blkno in heap_blknos})
        self.dirtied += map_pages
        self.records += len(heap_blknos)
        self.bytes += len(heap_blknos) * wal.set_visible_bytes(major)
        if self.full_page_writes:
            self.images += map_pages
            self.bytes += map_pages * wal.image_beside(PAGE_BYTES)


def expected(
    *,
    rows: int,
    row_bytes: int,
    update_every: int | None,
    is_settled: bool,
    has_free_space_map: bool,
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
        has_free_space_map: Filling the table noted the room of each page, as INSERT does; COPY
            into a table of its own transaction does not.
        logs_hints: Data checksums or wal_log_hints.
        full_page_writes: The server's setting.
        major: The server's major version.

    Source: `MarkBufferDirtyHint`, bufmgr.c: FPI_FOR_HINT for a page that is clean and not
    changed since the last checkpoint began; `heap_page_prune_opt`, pruneheap.c: a page on which
    an UPDATE found no room is pruned by the next reader, which is logged in any case. From 19 on
    that is done to each page with less than a tenth free, for rows that come say that there may be
    something to prune, and sets its bit in the visibility map where all versions are visible to all
    (`heap_page_will_set_vm`); its room goes into the free space map.
    """
    per_page = _core.rows_per_page(row_bytes, 100)
    pages = list(_pages(rows, per_page, update_every, is_hinted=is_settled))
    written = _Written(logs_hints=logs_hints, full_page_writes=full_page_writes)
    visible: list[int] = []
    for blkno, page in enumerate(pages):
        if page.is_hinted and not page.dead:
            continue
        # Also on a page that is pruned: looking at its versions sets the first hint.
        written.hint(wal.image_bytes(page.versions, page.versions, row_bytes))
        if page.dead:
            image = wal.image_bytes(page.versions, page.versions - page.dead, row_bytes)
            written.prune(image, page.dead, major)
        elif major >= 19 and _is_nearly_full(page, row_bytes):
            visible.append(blkno)
    written.set_visible(visible, major)
    if not has_free_space_map:
        for _ in {blkno // ROOMS_PER_MAP_PAGE for blkno in visible}:
            written.hint(PAGE_BYTES)
    return FirstRead(
        heap_pages=len(pages),
        pages_dirtied=written.dirtied,
        wal_records=written.records,
        wal_fpi=written.images,
        wal_bytes=written.bytes,
    )


def _is_nearly_full(page: _Page, row_bytes: int) -> bool:
    """Whether less than a tenth of the page is free, so that a reader tries to prune it."""
    used = page.versions * (wal.LINE_POINTER_BYTES + wal.aligned(row_bytes))
    return PAGE_BYTES - wal.PAGE_HEADER_BYTES - used < PAGE_BYTES // 10


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
