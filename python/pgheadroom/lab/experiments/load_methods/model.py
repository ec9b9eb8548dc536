"""
Pages of a table and of its index after a load, by arithmetic, for each way of loading.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass

from pgheadroom import _core
from pgheadroom.lab.base.ascending_btree import AscendingBtree
from pgheadroom.lab.base.copy_model import Copied, batches

_KEY_TUPLE_BYTES = 16
_LEAF_ITEMS_RIGHTMOST, _LEAF_ITEMS = 407, 406
"""Items of 16 bytes and a line pointer in 8,152 bytes; all but the rightmost hold a high key."""

_LEFT_ITEMS_RIGHTMOST, _LEFT_ITEMS = 366, 203
"""Items that a full leaf keeps when it is split: 90 % of the space where it is the rightmost, else
half (`_bt_findsplitloc`, nbtsplitloc.c; `ascending_btree` has the formula)."""

_INNER_ITEMS = 407

_TRUNCATE_PAGES, _TRUNCATE_FRACTION = 1000, 16
"""VACUUM cuts empty pages off when they are so many, or a 16th (REL_TRUNCATE_*, vacuumlazy.c)."""

_SKIP_PAGES = 32
"""It skips all-frozen pages when so many follow each other (SKIP_PAGES_THRESHOLD, there)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedPages:
    """Pages after the load, after VACUUM, and of the index; None where none is predicted."""

    heap: int
    vacuumed: int
    index: int | None


def expected(
    keys: Sequence[int],
    *,
    tuple_bytes: int,
    value_bytes: int,
    method: str,
    index: str,
    extends_by_many: bool,
) -> LoadedPages:
    """
    Pages after loading these keys in this order.

    Args:
        keys: Distinct integers.
        tuple_bytes: Length of a heap tuple, not rounded.
        value_bytes: Length of the value as COPY reads it, with the tab before.
        method: One of `load_script.METHODS`.
        index: `none`, `before` or `after` the load.
        extends_by_many: Version 16 or later.
    """
    used = _core.heap_pages(len(keys), tuple_bytes, 100)
    heap = used
    if method == "unlogged":
        heap = _rewritten_pages(used) if extends_by_many else used
    elif method.startswith("copy"):
        table = Copied(
            tuple_bytes=tuple_bytes,
            extends_by_many=extends_by_many,
            uses_fsm=method == "copy",
        )
        table.copy(batches(len(str(key)) + value_bytes for key in keys))
        heap = table.pages
    empty = heap - used
    # Skipped pages do not count as filled for VACUUM: it then always tries to cut.
    is_skipped = method == "copy-freeze" and used >= _SKIP_PAGES
    seen_empty = heap if is_skipped and empty else empty
    is_cut = seen_empty >= _TRUNCATE_PAGES or (
        seen_empty > 0 and seen_empty >= heap // _TRUNCATE_FRACTION
    )
    built = _core.btree_build_pages(len(keys), _KEY_TUPLE_BYTES)
    index_pages: int | None = 0
    if index == "after" or (index == "before" and method == "unlogged"):
        index_pages = built  # SET LOGGED writes table and index anew
    elif index == "before":
        index_pages = _inserted_pages(keys)
    return LoadedPages(heap=heap, vacuumed=used if is_cut else heap, index=index_pages)


def _rewritten_pages(used: int) -> int:
    """
    A rewrite puts row by row into a table that it extends by as much as it has already.

    Source: `RelationAddBlocks`, hio.c, with a bulk insert state: 1, 1, 2, 4, ... 64, 64 pages.
    """
    pages = 0
    while pages < used:
        pages += min(max(pages, 1), 64)
    return pages


def _inserted_pages(keys: Sequence[int]) -> int | None:
    """A unique B-tree after inserting keys one by one; None for more leaves than one page knows."""
    if all(first < second for first, second in itertools.pairwise(keys)):
        tree = AscendingBtree()
        tree.insert(len(keys))
        return tree.pages
    lows, leaves = [min(keys)], [list[int]()]
    for key in keys:
        place = max(bisect_right(lows, key) - 1, 0)
        leaf = leaves[place]
        insort(leaf, key)
        is_rightmost = place == len(leaves) - 1
        if len(leaf) <= (_LEAF_ITEMS_RIGHTMOST if is_rightmost else _LEAF_ITEMS):
            continue
        kept = _LEFT_ITEMS_RIGHTMOST if is_rightmost else _LEFT_ITEMS
        leaves[place : place + 1] = [leaf[:kept], leaf[kept:]]
        lows.insert(place + 1, leaf[kept])
        if len(leaves) > _INNER_ITEMS:
            return None
    return len(leaves) + (2 if len(leaves) > 1 else 1)
