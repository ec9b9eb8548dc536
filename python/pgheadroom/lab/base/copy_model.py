"""
COPY into an empty table of equal rows, by arithmetic: batches, pages, WAL records.

From 16 on COPY extends a table by several pages at once, of which some may stay empty: they are at
the end of the file, and the free space map knows of those that were more than asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pgheadroom import _core
from pgheadroom.lab.base import wal_arithmetic as wal

BATCH_ROWS = 1000
BATCH_INPUT_BYTES = 65_535
_EXTEND_MAX_PAGES = 64


def batches(line_bytes: Iterator[int]) -> Iterator[int]:
    """
    Rows of each batch of one COPY.

    Args:
        line_bytes: Length of each line, its end left out.

    Source: `CopyMultiInsertInfoIsFull`, copyfrom.c: a batch ends with the row that reaches 1,000
    rows (`MAX_BUFFERED_TUPLES`) or 65,535 bytes of input (`MAX_BUFFERED_BYTES`).
    """
    count = size = 0
    for length in line_bytes:
        count, size = count + 1, size + length
        if count >= BATCH_ROWS or size >= BATCH_INPUT_BYTES:
            yield count
            count = size = 0
    if count:
        yield count


@dataclass(slots=True)
class Copied:
    """
    A table that COPY fills, as far as it has come; `copy` adds one statement.

    Source: `heap_multi_insert`, heapam.c, `RelationGetBufferForTuple` and `RelationAddBlocks`,
    hio.c (REL_18_STABLE); before 16 a table is extended page by page. Differs: one session.

    Args:
        tuple_bytes: Length of a heap tuple, not rounded.
        extends_by_many: 16 or later.
        uses_fsm: Not for a table that its transaction has created.
    """

    tuple_bytes: int
    extends_by_many: bool
    uses_fsm: bool = True
    pages: int = 0
    used_pages: int = 0
    wal_records: int = 0
    wal_bytes: int = 0
    updates_fsm_root: bool = False
    _on_page: int = 0
    _empty_known: int = 0
    """Empty pages that the free space map knows of and no statement has taken."""
    _own: list[bool] = field(default_factory=list)
    """Empty pages of this statement, and whether the free space map knows them too."""
    _extended_by: int = 0

    def copy(self, batch_rows: Iterator[int]) -> None:
        """One COPY of so many batches."""
        per_page = _core.rows_per_page(self.tuple_bytes, 100)
        self._own, self._extended_by = [], 0
        for batch in batch_rows:
            left, budget, is_first = batch, 0, True
            was_empty = False
            while left:
                if is_first or not was_empty:
                    budget = -(-left // per_page)
                else:
                    budget -= 1
                is_first = False
                if self.used_pages == 0 or self._on_page == per_page:
                    self._next_page(budget)
                was_empty = self._on_page == 0
                count = min(left, per_page - self._on_page)
                self.wal_records += 1
                self.wal_bytes += wal.multi_insert_bytes(
                    self.tuple_bytes, count, new_page=was_empty
                )
                self._on_page, left = self._on_page + count, left - count
        self._empty_known += sum(self._own)

    def _next_page(self, wanted: int) -> None:
        self.used_pages, self._on_page = self.used_pages + 1, 0
        if self._own:
            self._own.pop(0)
        elif self.uses_fsm and self._empty_known:
            self._empty_known -= 1
        else:
            wanted = max(wanted, 1)
            by = min(max(wanted, self._extended_by), _EXTEND_MAX_PAGES)
            if not self.extends_by_many:
                by = 1
            self.pages += by
            self._extended_by += by
            self._own = [self.uses_fsm and number >= wanted for number in range(1, by)]
            self.updates_fsm_root |= any(self._own)
