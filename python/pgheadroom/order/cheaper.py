"""
What is cheaper than to cluster, each foreseen in pages of a range of 1,000 rows.

    sorted_insert    rows of one INSERT in the order of the key: those of a range stand together
    covering_index   an index that has what is read: ranges read its leaves
    brin             a summary of each 128 pages: reads every one whose smallest and largest key
                     enclose the range, so a few rows out of their place open all of them; never
                     fewer pages than this index reads, so it is told as what needs order first
    partitions       rows are at least in their partition
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pgheadroom import _core
from pgheadroom.errors import HeadroomError
from pgheadroom.order.decay import MODEL_FRAC, Laid, RowChanges, later_fresh_pages
from pgheadroom.order.pages import LEVEL, random_pages
from pgheadroom.order.ranges import ReadRange
from pgheadroom.order.values import RANGE_ROWS, OrderRemedy
from pgheadroom.types import Interval
from pgheadroom.units import PAGE_BYTES

BRIN_PAGES = 128
"""Default of pages_per_range."""
PARTITIONS = 100
"""So many are told of; what they give follows for others. Arbitrary."""
INCLUDED_BYTES = 8
"""Of the values that a covering index is told with."""
_DAYS = 30.0
_LEAF_BYTES = PAGE_BYTES - 24 - 16
_LEAF_FILL = 0.9
_LINE_POINTER_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class CheaperCase:
    """
    What cheaper remedies follow from.

    Attributes:
        laid: The table.
        fresh: It as CLUSTER leaves it.
        now: Pages of a range.
        pages_fresh: The same freshly clustered.
        daily: Changes of a day; None: not known.
        added: Pages that a new row adds; None: not known.
        batch_rows: Of an INSERT on average; None: not known.
        entry_bytes: Of an entry of the index, if it INCLUDEd 8 bytes more, with its line pointer;
            None: not known.
        opened_pages: Of the ranges of pages of a BRIN index that have rows of a range, at least.
        has_one_column: The index.
    """

    laid: Laid
    fresh: Laid
    now: Interval
    pages_fresh: float
    daily: RowChanges | None
    added: float | None
    batch_rows: float | None
    entry_bytes: int | None
    opened_pages: int
    has_one_column: bool


def covering_entry_bytes(keys: Sequence[Mapping[str, Any]]) -> int | None:
    """
    An entry with 8 bytes more than the key, and its line pointer; None: a width is not known.

    Args:
        keys: Of `INDEXES_SQL`.
    """
    columns: list[tuple[str, int | None]] = []
    for key in keys:
        if not key["is_column"] or (key["typlen"] < 0 and key["avg_width"] is None):
            return None
        columns.append((key["type"], int(key["typlen"] if key["typlen"] > 0 else key["avg_width"])))
    try:
        return _core.index_tuple_bytes([*columns, ("int8", INCLUDED_BYTES)]) + _LINE_POINTER_BYTES
    except HeadroomError:
        return None


def cheaper(case: CheaperCase) -> tuple[OrderRemedy, ...]:
    """All that can be told, the cheapest first."""
    found = (_sorted_insert(case), _covering(case), _brin(case), _partitions(case))
    return tuple(one for one in found if one is not None)


def sorted_row_pages(batch_rows: float, table_rows: float, per_page: float) -> float:
    """
    Pages that a row adds where each INSERT has its rows in order, on pages with nothing else.

    Args:
        batch_rows: Of an INSERT.
        table_rows: Of the table: as many of the batch are in a range as of the table.
        per_page: Rows of a page.
    """
    together = max(RANGE_ROWS * batch_rows / max(table_rows, 1.0), 1.0)
    return (1 + (together - 1) / per_page) / together


def _sorted_insert(case: CheaperCase) -> OrderRemedy | None:
    if case.daily is None or case.daily.inserts <= 0:
        return None
    if case.batch_rows is None:
        return OrderRemedy(
            kind="sorted_insert",
            pages_per_range=None,
            size_bytes=None,
            text="ORDER BY the key in INSERT ... SELECT: what it gives depends on the rows of one "
            "INSERT, which pg_stat_statements would tell.",
        )
    least = sorted_row_pages(case.batch_rows, case.laid.rows, case.laid.per_page)
    most = 1.0 if case.added is None else max(case.added, least)
    if least > 0.5:
        return OrderRemedy(
            kind="sorted_insert",
            pages_per_range=None,
            size_bytes=None,
            text=f"Sorting INSERTs gives next to nothing: one has {case.batch_rows:,.3g} rows on "
            "average, fewer than two of them in a range.",
        )
    coming = case.daily.times(_DAYS)
    # Where rows are deleted, new ones fill single gaps, however they are sorted.
    gaps = min((case.daily.deletes + case.daily.moved) / case.daily.inserts, 1.0)
    ends = [
        later_fresh_pages(RANGE_ROWS, case.fresh, coming, added)
        for added in (least, least + gaps * (most - least))
    ]
    return OrderRemedy(
        kind="sorted_insert",
        pages_per_range=Interval(
            low=max(ends[0] * (1 - MODEL_FRAC), 1.0),
            mid=(ends[0] + ends[1]) / 2,
            high=min(ends[1] * (1 + MODEL_FRAC), float(RANGE_ROWS)),
            level=LEVEL,
        ),
        size_bytes=None,
        text=f"ORDER BY the key in INSERT ... SELECT, of {case.batch_rows:,.0f} rows on average: "
        f"{_DAYS:g} days after CLUSTER a range lies on so many pages, from all new rows on pages "
        "of their own to gaps filled one by one.",
    )


def covering_pages(entry_bytes: float) -> float:
    """
    Leaves of a range of an index-only scan, of a freshly built index.

    Args:
        entry_bytes: Of an entry with its line pointer.
    """
    return 1 + (RANGE_ROWS - 1) / _per_leaf(entry_bytes)


def _per_leaf(entry_bytes: float) -> int:
    return max(math.floor(_LEAF_BYTES * _LEAF_FILL / entry_bytes), 1)


def _covering(case: CheaperCase) -> OrderRemedy | None:
    if case.entry_bytes is None:
        return None
    pages = covering_pages(case.entry_bytes)
    size = case.laid.rows / _per_leaf(case.entry_bytes) * PAGE_BYTES
    return OrderRemedy(
        kind="covering_index",
        # Built, or with leaves that splits have left half full.
        pages_per_range=Interval(low=pages, mid=pages, high=2 * pages, level=LEVEL),
        size_bytes=round(size),
        text=f"An index on the key that INCLUDEs the columns which ranges read: with "
        f"{INCLUDED_BYTES} bytes of them so large, and a range reads so many of its leaves, from "
        "freshly built to half full, and of the table the pages that are not all-visible. Updates "
        "of those columns cannot be HOT then.",
    )


def brin_pages(one: ReadRange) -> int:
    """Pages of all ranges of pages that have a row of a range: BRIN opens no fewer."""
    return BRIN_PAGES * len({block // BRIN_PAGES for block in one.blocks})


def _brin(case: CheaperCase) -> OrderRemedy:
    whole = case.laid.pages
    text = (
        f"BRIN needs order: it opens ranges of {BRIN_PAGES} pages whole, as rows lie now at least "
        "those with a row of the range, and all whose smallest and largest key enclose it. It is "
        "smaller than a thousandth of the table."
    )
    if case.has_one_column:
        in_order = (math.ceil(case.pages_fresh / BRIN_PAGES) + 1) * BRIN_PAGES
        text += f" Cluster first: then it opens about {min(in_order, round(whole)):,}."
    else:
        text += " On one column of several it opens all pages of that column's value."
    return OrderRemedy(
        kind="brin",
        pages_per_range=Interval(
            low=min(float(case.opened_pages), whole), mid=whole, high=whole, level=LEVEL
        ),
        size_bytes=None,
        text=text,
    )


def _partitions(case: CheaperCase) -> OrderRemedy | None:
    rows, pages = case.laid.rows / PARTITIONS, case.laid.pages / PARTITIONS
    if rows < 10 * RANGE_ROWS:
        return None
    found = random_pages(RANGE_ROWS, rows, pages)
    if found >= case.now.low:
        return None  # rows lie nearer already than anywhere in a partition
    return OrderRemedy(
        kind="partitions",
        pages_per_range=Interval(
            low=min(case.pages_fresh, found), mid=found, high=found, level=LEVEL
        ),
        size_bytes=None,
        text=f"Partitions by ranges of the key: in {PARTITIONS} of them a range lies on at most "
        "so many pages, however rows lie in each.",
    )
