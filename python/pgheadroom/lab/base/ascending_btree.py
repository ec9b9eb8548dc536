"""
A B-tree that is filled by ascending keys, page by page: its pages, and the WAL of filling it.

Exact for one unique integer column (leaf tuples of 16 bytes), which is what serial keys are. Only
the rightmost page of each level changes, so counts of items are all that is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pgheadroom.lab.base import wal_arithmetic as wal

_ITEM_BYTES = 16
_FIRST_INNER_BYTES = 8
"""The first item of an inner page has no key."""
_SLOT_BYTES = _ITEM_BYTES + wal.LINE_POINTER_BYTES
_PAGE_BYTES = 8192 - wal.PAGE_HEADER_BYTES - 16
_LEAF_WEIGHT, _INNER_WEIGHT = 0.90, 0.70
_BLOCK, _FURTHER_BLOCK = 20, 8
_FIRST_ROOT_BYTES = 90
_ROOT_BYTES = 24 + _BLOCK + 2 * _FURTHER_BLOCK + 10 + 28 + 8 + _ITEM_BYTES
_UPPER_BYTES = 24 + _BLOCK + _FURTHER_BLOCK + 4 + _ITEM_BYTES


@dataclass(slots=True)
class AscendingBtree:
    """
    The tree so far; `insert` adds the next keys.

    Source: `_bt_insertonpg`, `_bt_split`, nbtinsert.c, and `_bt_findsplitloc`, nbtsplitloc.c
    (REL_18_STABLE; the same from 14 on). Differs: no, for this key type.
    """

    rightmost: list[int] = field(default_factory=list)
    """Items of each level's rightmost page, leaves first."""
    pages: int = 1
    wal_records: int = 0
    wal_bytes: int = 0

    def insert(self, count: int) -> None:
        """Add so many keys, each above all before."""
        if count and not self.rightmost:
            self.rightmost.append(0)
            self.pages += 1
            self._log(_FIRST_ROOT_BYTES)
        while count:
            room = _leaf_capacity() - self.rightmost[0]
            added = min(room, count)
            self.rightmost[0] += added
            self._log(wal.insert_leaf_bytes(_ITEM_BYTES), added)
            count -= added
            if count:
                self._split(0)
                count -= 1

    def _log(self, size: int, times: int = 1) -> None:
        self.wal_records += times
        self.wal_bytes += size * times

    def _split(self, level: int) -> None:
        """Split the rightmost page of a level while an item is added behind its last."""
        items = self.rightmost[level]
        left = _split_point(items, is_leaf=level == 0)
        right = items + 1 - left
        self.rightmost[level] = right
        self.pages += 1
        moved = right * _ITEM_BYTES
        blocks = _BLOCK + _FURTHER_BLOCK
        if level:
            moved -= _ITEM_BYTES - _FIRST_INNER_BYTES
            blocks += _FURTHER_BLOCK  # the child whose split is thereby complete
        self._log(24 + blocks + 12 + _ITEM_BYTES + moved)
        above = level + 1
        if above == len(self.rightmost):
            self.rightmost.append(2)
            self.pages += 1
            self._log(_ROOT_BYTES)
        elif _fits_inner(self.rightmost[above] + 1):
            self.rightmost[above] += 1
            self._log(_UPPER_BYTES)
        else:
            self._split(above)


def _leaf_capacity() -> int:
    return _PAGE_BYTES // _SLOT_BYTES


def _inner_bytes(items: int) -> int:
    return items * _SLOT_BYTES - (_ITEM_BYTES - _FIRST_INNER_BYTES)


def _fits_inner(items: int) -> bool:
    return _inner_bytes(items) <= _PAGE_BYTES


def _split_point(items: int, *, is_leaf: bool) -> int:
    """Items that stay on the left page when one is added behind all others."""
    total = items * _SLOT_BYTES if is_leaf else _inner_bytes(items)
    weight = _LEAF_WEIGHT if is_leaf else _INNER_WEIGHT
    best: tuple[int, int] | None = None
    for left in range(1, items + 1):
        kept = left * _SLOT_BYTES if is_leaf else _inner_bytes(left)
        # The high key is a leaf tuple of the same width, with up to a TID; a leaf reserves that.
        left_free = _PAGE_BYTES - kept - _SLOT_BYTES - (8 if is_leaf else 0)
        right_free = _PAGE_BYTES - (total - kept) - _SLOT_BYTES
        if not is_leaf:
            right_free += _SLOT_BYTES - _FIRST_INNER_BYTES - wal.LINE_POINTER_BYTES
        if left_free < 0 or right_free < 0:
            continue
        delta = abs(int(weight * left_free - (1 - weight) * right_free))
        if best is None or delta < best[0]:
            best = (delta, left)
    assert best is not None, f"a page of {items} items can be split"
    return best[1]
