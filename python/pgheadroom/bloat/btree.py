"""
A B-tree as REINDEX would build it: leaves to their fillfactor, posting lists of equal keys.

```text
entries in the order of their keys    k1 k1 k1 | k2 | k3 k3 ...
posting lists, where types allow      [k1: 3 TIDs] k2 [k3: 2 TIDs]
leaves, until less than the share of the fillfactor is left
inner pages to 70 %, one entry for each page below
```

Source: `_bt_load`, `_bt_buildadd`, nbtsort.c; `_bt_dedup_save_htid`, nbtdedup.c (REL_18_STABLE).
How many rows a key has is `n_distinct` and the most common values; how the rest lie around their
mean is not in the statistics: all alike, or as unlike as a geometric distribution has them.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pgheadroom import _core
from pgheadroom.bloat.drawing import DRAWN, Drawn, draw
from pgheadroom.bloat.heap import bare_bytes, without_statistics
from pgheadroom.bloat.values import Estimate, IndexFacts, estimate_of
from pgheadroom.units import PAGE_BYTES, percent

_USABLE_BYTES = 8152  # without page header and special area
_LINE_POINTER_BYTES = 4
_TID_BYTES = 6
_TID_ROOM = 8  # of a high key that needs one to be told apart
_POSTING_MAX = 812  # BLCKSZ * 10 / 100, aligned down, less a line pointer (_bt_load)
_TUPLE_MAX = 2704  # BTMaxItemSize
_COMPRESSED_FROM = 508  # TOAST_INDEX_TARGET: wider values of index tuples are compressed
_INNER_FILLFACTOR = 70
_LEAVES = 120  # that a build is counted on
_WHOLE_LEAVES = 5000  # a key with more rows has leaves of its own
_DEVIATIONS = 3.0


Spread = Literal["alike", "random", "geometric"]
"""How the rows of keys lie around their mean: all as many, as chance has it, as a geometric
distribution."""


@dataclass(frozen=True, slots=True)
class Keys:
    """
    How many rows keys have.

    Attributes:
        common: Of the most common ones, as shares.
        others: How many others there are.
        spread: Of these.
        thinned: Rows for each one that ANALYZE read, less one: common ones are counted so much less
            surely.
    """

    common: tuple[float, ...]
    others: float
    spread: Spread = "alike"
    thinned: float = 0.0


def btree_estimate(index: IndexFacts) -> Estimate:
    """
    What a rebuild of a B-tree leaves.

    Args:
        index: Its pages now, entries, columns.
    """
    rows, now = index.count.rows, float(index.pages)
    blind = without_statistics(index.columns)
    if index.count.changed is None:
        why = "nothing says how many rows changed since the statistics were taken: ANALYZE"
        return estimate_of("btree", index.pages, 1.0, max(now / 2, 1.0), max(now, 1.0), [why])
    if blind:
        least = _least_pages(index)
        why = f"no statistics of {', '.join(blind)}: ANALYZE, or the right to read them"
        high = max(now * 100 / index.fillfactor, least)
        return estimate_of("btree", index.pages, least, (least + high) / 2, high, [why])
    sample = draw(index.columns, index.count)
    keys, unsure = keys_of(index)
    found: list[tuple[Drawn, float, float]] = []
    for each in sample.draws:
        low_bytes, high_bytes = _entries(each, sample.unknown, deduplicates=keys[0].common != ())
        orders = [low_bytes, high_bytes]
        if min(low_bytes) < max(low_bytes):  # keys of a width may lie together
            orders.append(sorted(high_bytes))
        pages = [
            built_pages(rows, sizes, way, index.fillfactor) for sizes in orders for way in keys
        ]
        is_exact = keys == [Keys((), rows)] and min(low_bytes) == max(high_bytes)
        slack = 0.0 if is_exact else 1.0
        found.append((each, min(pages) - slack, max(pages) + slack))
        if low_bytes is high_bytes and len(keys) == 1 and min(low_bytes) == max(low_bytes):
            break
    low = min(pages for _, pages, _ in found)
    high = max(pages for _, _, pages in found)
    own = [(a, b) for each, a, b in found if each.coupling == "by itself"]
    mid = math.fsum(a + b for a, b in own) / (2 * len(own))
    mean = math.fsum(_tuple_bytes(row) for row in sample.draws[0].rows) / DRAWN
    frac = index.count.changed_frac
    less, more = (frac * each / mean for each in sample.changed_bytes)
    if len(keys) > 1:  # an entry that joined others, or stands alone now
        less, more = less + frac / 2, more + frac
    off = index.count.rows_off / max(rows, 1.0) + sample.padding_bytes / (mean + 4)
    if index.pages > index.count.analyzed:
        off += _DEVIATIONS / math.sqrt(index.count.analyzed)
    low, high = max(low * (1 - off), 1.0), high * (1 + off)
    held = now * 100 / index.fillfactor
    low, high = max(low * (1 - less), 1.0), max(high, min(high * (1 + more), held))
    reasons = list(unsure)
    if sample.unknown:
        reasons.append(
            f"how wide values of {', '.join(sample.unknown)} are one by one is not in the "
            "statistics, their mean is"
        )
    if index.count.unsure is not None:
        reasons.append(index.count.unsure)
    elif less + more + index.count.rows_off / max(rows, 1.0) > 0.01:
        reasons.append(
            f"{percent(index.count.changed_frac)} of the rows changed since the statistics were "
            "taken: ANALYZE"
        )
    return estimate_of("btree", index.pages, low, mid, high, reasons)


def keys_of(index: IndexFacts) -> tuple[list[Keys], list[str]]:
    """
    How many rows keys may have, in all ways that the statistics leave open; and what is unsure.

    An index that makes no posting lists has each entry by itself.
    """
    rows = index.count.rows
    if not index.deduplicates or index.is_unique or rows <= 1:
        return [Keys((), rows)], []
    columns = index.columns[: index.key_count]
    counts = [max(_absolute(column.n_distinct or 0.0, rows), 1.0) for column in columns]
    reasons: list[str] = []
    by_hand = [column.name for column in columns if column.n_distinct is None]
    common: list[float] = []
    names = ", ".join(column.name for column in columns)
    if len(columns) == 1:
        common = list(columns[0].common_fracs)
        low, high = _sampled(max(counts[0] - len(common), 0.0), common, index)
        if columns[0].null_frac:
            common.append(columns[0].null_frac)
    elif index.distinct is not None:
        low, high = _sampled(_absolute(index.distinct, rows), common, index)
    else:
        low, high = _sampled(max(counts), common, index)
        high = max(min(math.prod(counts), rows), high)
        reasons.append(
            f"how many different keys ({names}) has is in no statistics: CREATE STATISTICS "
            "(ndistinct) has it"
        )
    if by_hand:
        low, high = 1.0, rows
        reasons = [f"n_distinct of {', '.join(by_hand)} is set by hand: nothing counts it"]
    if not reasons and high > low * 1.1:
        reasons.append(f"how many different keys ({names}) has is known of a sample alone")
    left = max(rows * (1 - math.fsum(common)), 0.0)
    thinned = max(rows / index.count.analyzed - 1, 0.0)
    ways = []
    for others in sorted({min(low, left), min(high, left)}):
        spreads: tuple[Spread, ...] = ("alike",)
        if 0 < others < left * 0.999:
            spreads = ("alike", "random", "geometric")
        ways += [Keys(tuple(common), others, spread, thinned) for spread in spreads]
    return ways, reasons


def _absolute(n_distinct: float, rows: float) -> float:
    return -n_distinct * rows if n_distinct < 0 else n_distinct


def _sampled(others: float, common: Sequence[float], index: IndexFacts) -> tuple[float, float]:
    """
    How many keys there may be, beside the most common ones, where not all rows were read.

    Of D alike keys n rows have n^2 / 2 D pairs, and D is off as that number is. Where some keys are
    rarer than others there are more than the estimate says (`compute_scalar_stats`, analyze.c, by
    Haas and Stokes: n d / (n - f1 + f1 n / N), of d different values f1 that were met once): each
    that was met once may stand for N / n. How many were met once is not kept, but d and f1 are
    bound by the estimate, by the rows that were met, and by what would be a most common value.
    """
    rows, read = index.count.rows, index.count.analyzed
    if rows <= read or others <= 0:
        return others, others
    doubt = _DEVIATIONS * math.sqrt(2 * others) / read
    part = read / rows
    met = max(1 - math.fsum(common), 0.0) * read
    mean = met / others
    most = max(mean + 2 * math.sqrt(mean) + 1.5, min(common, default=0.0) * read)
    if index.key_count > 1:
        most = met  # common groups of columns are in no list
    lost = others * (1 - part) / read
    once = min(met, others / (1 + lost))
    if most * (1 + lost) > 1:
        once = min(once, max(most * others - met, 0.0) / (most * (1 + lost) - 1))
    high = others - lost * once - once + once / part
    return others / (1 + doubt), max(others * (1 + doubt), high)


def _entries(
    drawn: Drawn, unknown: Sequence[str], *, deduplicates: bool
) -> tuple[list[int], list[int]]:
    """Bytes of entries, from and to."""
    rows = drawn.rows
    if deduplicates:  # NULL is a key of its own, as common as it is
        rows = tuple(row for row in rows if not all(c.is_null for c in row)) or rows[:1]
    if not unknown:
        sizes = [_tuple_bytes(row) for row in rows]
        return sizes, sizes
    low, high = [], []
    for row in rows:
        least, most = bare_bytes(row, unknown)
        # A heap tuple's header and its line pointer come off, an entry's header is 8 bytes, and 16
        # where a column is NULL (IndexInfoFindDataOffset, itup.h).
        header = 16 if any(column.is_null for column in row) else 8
        off = _core.RowLayout(row).hoff_bytes + _LINE_POINTER_BYTES - header
        least, most = least - off, most - off
        # Not rounded: of widths that are a mean, entries are as often rounded little as much, and
        # what they may be rounded to is in `most`.
        raw = min(least, _COMPRESSED_FROM) // 4 if most > _COMPRESSED_FROM else least
        low.append(max(raw, 16))
        high.append(min(max(most, 16), _TUPLE_MAX))
    return low, high


def _tuple_bytes(row: Sequence[_core.Column]) -> int:
    return min(_core.index_tuple_bytes(list(row)), _TUPLE_MAX)


def built_pages(rows: float, tuple_bytes: Sequence[int], keys: Keys, fillfactor: int) -> float:
    """
    Pages of a B-tree that a build leaves, its metapage included.

    Args:
        rows: Entries.
        tuple_bytes: Of entries, each as likely.
        keys: How many entries have the same key.
        fillfactor: Of leaves, percent.
    """
    if rows < 1:
        return 1.0
    mean = math.fsum(tuple_bytes) / len(tuple_bytes)
    leaves = 0.0
    small: list[int] = []
    for frac in keys.common:
        size = max(round(rows * frac), 1)
        if size <= _WHOLE_LEAVES:
            small.append(size)
        else:
            leaves += size / _rows_a_leaf(tuple_bytes, itertools.repeat(size).__next__, fillfactor)
    left = max(rows * (1 - math.fsum(keys.common)), 0.0)
    others = keys.others if left >= 1 else 0.0
    if small or others:
        sizes = _Sizes(small, others, left, keys.spread, keys.thinned)
        leaves += (left + sum(small)) / _rows_a_leaf(tuple_bytes, sizes, fillfactor)
    pages, level = 1.0, max(math.ceil(leaves - 1e-9), 1)
    pivot = -(-mean // 8) * 8 + _LINE_POINTER_BYTES
    inner = max((_USABLE_BYTES - PAGE_BYTES * (100 - _INNER_FILLFACTOR) // 100) // pivot, 2)
    pages += level
    while level > 1:
        level = math.ceil(level / inner)
        pages += level
    return pages


class _Sizes:
    """How many entries the next key has, called again and again."""

    def __init__(
        self, common: Sequence[int], others: float, left: float, spread: Spread, thinned: float
    ) -> None:
        self._thinned = thinned
        self._random = random.Random(2)  # noqa: S311 - the same draws each time, of no secret
        self._common = list(common)
        self._random.shuffle(self._common)
        self._place = 0
        self._common_frac = len(common) / (len(common) + max(others, 1e-9))
        self._mean = max(left / others, 1.0) if others else 1.0
        self._spread = spread
        self._owed = 0.0

    def __call__(self) -> int:
        if self._common and self._random.random() < self._common_frac:
            self._place += 1
            size = self._common[self._place % len(self._common)]
            if self._spread == "random":  # as far off as the sample may be
                size = max(round(self._random.gauss(size, math.sqrt(size * self._thinned))), 1)
            return size
        mean, random_ = self._mean, self._random
        if mean <= 1:
            return 1
        if self._spread == "geometric":  # one at least, and that mean
            return 1 + int(math.log(1 - random_.random()) / math.log(1 - 1 / mean))
        if self._spread == "random":  # Poisson's, one at least
            return 1 + _poisson(mean - 1, random_)
        self._owed += mean
        size = max(int(self._owed), 1)
        self._owed -= size
        return size


def _poisson(mean: float, random_: random.Random) -> int:
    """By its definition where it is small, else by the normal distribution that it comes near."""
    if mean > 50:
        return max(round(random_.gauss(mean, math.sqrt(mean))), 0)
    end, found, product = math.exp(-mean), 0, random_.random()
    while product > end:
        found += 1
        product *= random_.random()
    return found


def _rows_a_leaf(
    tuple_bytes: Sequence[int], next_size: Callable[[], int], fillfactor: int
) -> float:
    """Entries on a leaf in the mean, of a build that is played for some leaves."""
    full = PAGE_BYTES * (100 - fillfactor) // 100
    leaves = held = extra = 0
    on_leaf: list[tuple[int, int]] = []
    free = _USABLE_BYTES - _LINE_POINTER_BYTES  # the high key's line pointer
    for length, count, key in _items(tuple_bytes, next_size):
        usable = free - _LINE_POINTER_BYTES
        # What truncation takes of the last tuple, its posting list, is room as well.
        no_room = usable < length + _TID_ROOM
        if (no_room or usable + extra < full) and len(on_leaf) >= 2:
            # The last one goes on to the next leaf, and its key stays as the high key.
            moved = on_leaf.pop()
            leaves += 1
            held += sum(entries for _, entries in on_leaf)
            if leaves >= _LEAVES:
                break
            free = _USABLE_BYTES - 2 * _LINE_POINTER_BYTES - moved[0]
            on_leaf = [moved]
        on_leaf.append((length, count))
        free -= length + _LINE_POINTER_BYTES
        extra = length - key if count > 1 else 0
    return held / leaves


def _items(
    tuple_bytes: Sequence[int], next_size: Callable[[], int]
) -> Iterator[tuple[int, int, int]]:
    """Tuples in their order without end: bytes, entries, bytes of their key."""
    while True:
        for key in tuple_bytes:
            group = next_size()
            held = max((_POSTING_MAX - 4 - key) // _TID_BYTES, 1)
            while group > 0:
                count = min(group, held)
                length = key if count == 1 else -(-(key + count * _TID_BYTES) // 8) * 8
                yield length, count, key
                group -= count


def _least_pages(index: IndexFacts) -> float:
    """Of the narrowest entries that there can be."""
    rows = index.count.rows
    keys = Keys((1.0,), 0.0) if index.deduplicates else Keys((), rows)
    return built_pages(rows, [16], keys, index.fillfactor)
