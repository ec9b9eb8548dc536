"""
Counters of tables, indexes and statements over a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pgheadroom.order.values import TableChanges

CountedRow = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedTime:
    """
    Counters over a time.

    Attributes:
        tables: Rows of `counters_sql` by OID.
        indexes: Rows of `index_counters_sql` by OID.
        statements: Of pg_stat_statements.
        over_s: The time; None: nothing says it.
        is_watched: It was watched.
    """

    tables: Mapping[int, CountedRow]
    indexes: Mapping[int, CountedRow]
    statements: Sequence[CountedRow]
    over_s: float | None
    is_watched: bool = False

    def lasting(self, over_s: float | None) -> CountedTime:
        """The same, with its time."""
        return replace(self, over_s=over_s)

    def since(self, first: CountedTime) -> CountedTime:
        """What came since then."""
        before = {int(row["queryid"]): row for row in first.statements}
        return CountedTime(
            is_watched=True,
            tables={oid: _less(row, first.tables.get(oid)) for oid, row in self.tables.items()},
            indexes={oid: _less(row, first.indexes.get(oid)) for oid, row in self.indexes.items()},
            statements=[_less(row, before.get(int(row["queryid"]))) for row in self.statements],
            over_s=None,
        )

    def scans(self, oid: int) -> tuple[int, int]:
        """Scans of an index, and entries that they gave."""
        row = self.indexes.get(oid)
        return (0, 0) if row is None else (int(row["scans"]), int(row["entries"]))

    def changes(self, oid: int) -> TableChanges:
        """Of a table."""
        row = self.tables.get(oid, {})
        newpage = row.get("newpage_updates")

        def count(name: str) -> int:
            return int(row.get(name) or 0)

        return TableChanges(
            over_s=self.over_s,
            is_watched=self.is_watched,
            inserts=count("inserts"),
            updates=count("updates"),
            hot_updates=count("hot_updates"),
            newpage_updates=None if newpage is None else int(newpage),
            deletes=count("deletes"),
            blocks_hit=count("blocks_hit"),
            blocks_read=max(count("blocks") - count("blocks_hit"), 0),
        )


_COUNTED = (
    "inserts", "updates", "hot_updates", "newpage_updates", "deletes", "blocks", "blocks_hit",
    "scans", "entries", "calls", "rows", "blocks_read",
)  # fmt: skip


def _less(row: CountedRow, before: CountedRow | None) -> CountedRow:
    """A row whose counts are those since then; one that was reset meanwhile counts from there."""
    if before is None:
        return row
    return {
        name: value - before[name]
        if name in _COUNTED and value is not None and value >= (before[name] or 0)
        else value
        for name, value in row.items()
    }
