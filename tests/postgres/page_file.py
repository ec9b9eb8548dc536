"""
Reads pages of a relation file, as far as the layout tests need: line pointers and lengths.

An independent decoder, written against src/include/storage/bufpage.h, itemid.h and
access/nbtree.h; where the server has pageinspect, a test compares the two.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

BLCKSZ = 8192
LP_NORMAL = 1
BTP_LEAF = 1
BTREE_METAPAGE_BLKNO = 0


@dataclass(frozen=True)
class Item:
    """One line pointer and what it points to."""

    offnum: int
    lp_off: int
    lp_flags: int
    lp_len: int
    data: bytes


@dataclass(frozen=True)
class PageImage:
    """One page: header fields and items."""

    blkno: int
    pd_lower: int
    pd_upper: int
    pd_special: int
    items: list[Item]
    special: bytes

    @property
    def normal_items(self) -> list[Item]:
        """Items with storage."""
        return [item for item in self.items if item.lp_flags == LP_NORMAL]


def read_pages(path: Path) -> list[PageImage]:
    """All pages of a relation's main fork; the caller has made a CHECKPOINT before."""
    content = path.read_bytes()
    assert len(content) % BLCKSZ == 0, path
    return [
        decode(number, content[start : start + BLCKSZ])
        for number, start in enumerate(range(0, len(content), BLCKSZ))
    ]


def decode(blkno: int, page: bytes) -> PageImage:
    """One page."""
    pd_lower, pd_upper, pd_special, sizes = struct.unpack_from("<HHHH", page, 12)
    if pd_upper == 0:  # never initialised
        return PageImage(blkno, 0, 0, 0, [], b"")
    assert sizes == BLCKSZ | 4, "page size and layout version"
    items = []
    for offnum, at in enumerate(range(24, pd_lower, 4), start=1):
        (word,) = struct.unpack_from("<I", page, at)
        lp_off, lp_flags, lp_len = word & 0x7FFF, word >> 15 & 3, word >> 17
        items.append(Item(offnum, lp_off, lp_flags, lp_len, page[lp_off : lp_off + lp_len]))
    return PageImage(blkno, pd_lower, pd_upper, pd_special, items, page[pd_special:])


def leaf_sizes(pages: list[PageImage]) -> dict[tuple[int, int], int]:
    """Size of each leaf tuple of a B-tree without posting lists, by the heap TID it names."""
    sizes = {}
    for page in pages:
        if page.blkno == BTREE_METAPAGE_BLKNO:
            continue
        _, right, _, flags, _ = struct.unpack("<IIIHH", page.special)
        if not flags & BTP_LEAF:
            continue
        for item in page.items[0 if right == 0 else 1 :]:  # item 1 is the high key
            high, low, offnum, info = struct.unpack_from("<HHHH", item.data)
            assert not info & 0x2000, "posting list or pivot"
            assert info & 0x1FFF == item.lp_len
            sizes[high << 16 | low, offnum] = item.lp_len
    return sizes
