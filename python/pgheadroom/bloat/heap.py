"""
A table as VACUUM FULL would write it: rows one after the other, each page to its fillfactor.

Source: `raw_heap_insert`, rewriteheap.c: a row goes to the next page where it, its line pointer and
the room that the fillfactor leaves do not fit. Rows are laid out column by column by the core.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from pgheadroom import _core
from pgheadroom.bloat.drawing import Drawn, Sample, draw
from pgheadroom.bloat.values import ColumnFacts, Estimate, RowCount, TableFacts, estimate_of
from pgheadroom.units import PAGE_BYTES, percent

_HEADER_BYTES = 24  # SizeOfPageHeaderData
_LINE_POINTER_BYTES = 4
_ALIGN = {"c": 1, "s": 2, "i": 4, "d": 8}
_ROW_MAX = 2036  # TOAST_TUPLE_THRESHOLD and a line pointer: what is longer goes out of line
_FILLED_PAGES = 200  # whole pages that a filling is counted on
_DEVIATIONS = 3.0


def heap_estimate(table: TableFacts) -> Estimate:
    """
    What a rewrite of a table leaves.

    Args:
        table: Its pages now, rows, columns.
    """
    rows = table.count.rows
    blind = without_statistics(table.columns)
    if table.count.changed is None:
        why = "nothing says how many rows changed since its statistics were taken: ANALYZE"
        return estimate_of("heap", table.pages, 0.0, table.pages / 2, float(table.pages), [why])
    if blind:
        least = heap_pages(rows, [_least_bytes(table.columns)], table.fillfactor)
        why = f"no statistics of {', '.join(blind)}: ANALYZE, or the right to read them"
        high = max(table.pages * 100 / table.fillfactor, least)
        return estimate_of("heap", table.pages, least, (least + high) / 2, high, [why])
    sample = draw(table.columns, table.count)
    found = [
        (each, _pages_of(each, sample, rows, table.fillfactor, unknown=bool(sample.unknown)))
        for each in sample.draws
    ]
    lows = [low for _, (low, _) in found]
    highs = [high for _, (_, high) in found]
    own = [pages for each, pages in found if each.coupling == "by itself"]
    mid = math.fsum(low + high for low, high in own) / (2 * len(own))
    lengths = [_core.RowLayout(row).page_bytes for row in sample.draws[0].rows]
    mean = math.fsum(lengths) / len(lengths)
    # Rows that changed since may be of any length, but what is there now holds them.
    frac = table.count.changed_frac
    less, more = (frac * each / mean for each in sample.changed_bytes)
    counted = 0.0
    if table.pages > table.count.analyzed:
        counted = _DEVIATIONS / math.sqrt(table.count.analyzed)
    counted += table.count.rows_off / max(rows, 1.0)
    low, high = min(lows) * max(1 - counted, 0.0), max(highs) * (1 + counted)
    held = table.pages * 100 / table.fillfactor
    low, high = low * max(1 - less, 0.0), max(high, min(high * (1 + more), held))
    reasons = []
    if sample.unknown:
        reasons.append(
            f"how wide values of {', '.join(sample.unknown)} are one by one is not in the "
            "statistics, their mean is"
        )
    if table.count.unsure is not None:
        reasons.append(table.count.unsure)
    elif less + more > 0.01 or table.count.rows_off:
        reasons.append(
            f"{percent(_changed(table.count))} of the rows changed since its statistics were "
            "taken: ANALYZE"
        )
    if len(sample.draws) > 2:
        reasons.append("which columns are NULL in the same rows is in no statistics")
    return estimate_of("heap", table.pages, low, mid, high, reasons)


def _pages_of(
    drawn: Drawn, sample: Sample, rows: float, fillfactor: int, *, unknown: bool
) -> tuple[float, float]:
    """Pages, from and to, where rows are so."""
    lengths = [_core.RowLayout(row).page_bytes for row in drawn.rows]
    if not unknown:
        if min(lengths) == max(lengths):
            return (heap_pages(rows, lengths[:1], fillfactor),) * 2
        # Rows of a length may lie together, and each page ends in its own way; or short ones fill
        # what long ones leave, as those that come later do (the free space map).
        ways = [heap_pages(rows, order, fillfactor) for order in (lengths, sorted(lengths))]
        mean = math.fsum(lengths) / len(lengths)
        room = PAGE_BYTES - _HEADER_BYTES - PAGE_BYTES * (100 - fillfactor) // 100
        doubt = sample.padding_bytes / mean
        least = min(*ways, rows * mean / room)
        return least * (1 - doubt) - 1, max(ways) * (1 + doubt) + 1
    bare = [bare_bytes(row, sample.unknown) for row in drawn.rows]
    shortest = math.fsum(low for low, _ in bare) / len(bare)
    longest = math.fsum(high for _, high in bare) / len(bare)
    room = PAGE_BYTES - _HEADER_BYTES - PAGE_BYTES * (100 - fillfactor) // 100
    # What is left at a page's end is half of the mean row, weighted by length: at most this.
    left = min(_ROW_MAX / 2, room / 2)
    return rows * shortest / room, rows * longest / (room - left) + 1


def _changed(count: RowCount) -> float:
    """Share of the rows, for people."""
    return max(count.changed_frac, min(count.rows_off / max(count.rows, 1.0), 1.0))


def bare_bytes(row: Sequence[_core.Column], unknown: Sequence[str]) -> tuple[int, int]:
    """A row of which some widths are means: without padding behind these, and with the most."""
    laid = _core.RowLayout(row)
    begins = next(
        (n for n, each in enumerate(laid.columns) if each.column.name in unknown), len(row)
    )
    behind = laid.columns[begins:]
    least = laid.tuple_bytes - sum(each.padding_bytes for each in behind) + _LINE_POINTER_BYTES
    most = least + 7 + sum(_ALIGN[c.column.typalign] - 1 for c in behind if not c.column.is_null)
    return least, most


def heap_pages(rows: float, page_bytes: Sequence[int], fillfactor: int) -> float:
    """
    Pages of so many rows, whose lengths come round and round.

    Args:
        rows: How many.
        page_bytes: Of rows, aligned, with their line pointers.
        fillfactor: Percent.
    """
    if rows <= 0:
        return 0.0
    saved = PAGE_BYTES * (100 - fillfactor) // 100
    if len(page_bytes) == 1:
        each = page_bytes[0]
        fit = max((PAGE_BYTES - _HEADER_BYTES - saved) // each, 1)
        return float(math.ceil(rows / fit))
    pages = held = on_page = 0
    free = PAGE_BYTES - _HEADER_BYTES
    for length in _round(page_bytes):
        if on_page and length + saved > free:
            pages, held, on_page = pages + 1, held + on_page, 0
            free = PAGE_BYTES - _HEADER_BYTES
            if pages >= _FILLED_PAGES and held >= len(page_bytes):
                break
        on_page += 1
        free -= length
    return max(rows * pages / held, 1.0)


def _round(lengths: Sequence[int]) -> Iterator[int]:
    while True:
        yield from lengths


def without_statistics(columns: Sequence[ColumnFacts]) -> list[str]:
    """Columns of which something is needed that is not known."""
    return [
        column.name
        for column in columns
        if not column.is_always_null
        and (
            column.null_frac is None
            or (column.typlen < 0 and column.null_frac < 1 and column.avg_width is None)
        )
    ]


def _least_bytes(columns: Sequence[ColumnFacts]) -> int:
    """The shortest row that there can be, as far as is known."""
    null = _core.Column("bool", is_null=True)
    row = [
        column.core if column.null_frac == 0 and column.typlen > 0 else null for column in columns
    ]
    return _core.RowLayout(row).page_bytes
