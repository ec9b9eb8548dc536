"""
Which fillfactor each of the nine tables has.
"""

from __future__ import annotations

from collections.abc import Mapping

TABLES = (
    "item",
    "warehouse",
    "district",
    "customer",
    "history",
    "new_order",
    "orders",
    "order_line",
    "stock",
)

UPDATED = ("warehouse", "district", "customer", "orders", "order_line", "stock")
"""Tables whose rows the transactions update."""

PUBLISHED: Mapping[str, Mapping[str, int]] = {
    # sql.postgres/extraCommandsBeforeLoad.sql of pgsql-io/benchmarksql; the rest at 100.
    "benchmarksql": {
        "orders": 85,
        "order_line": 85,
        "warehouse": 50,
        "district": 79,
        "customer": 90,
        "stock": 95,
    },
    # src/postgresql/pgoltp.tcl of TPC-Council/HammerDB before 2021-01-08, when all went to 100.
    "hammerdb2020": {table: 10 if table in ("warehouse", "district") else 50 for table in TABLES},
}
"""Schedules that others shipped, by name."""

SOURCES: Mapping[str, str] = {
    "benchmarksql": "BenchmarkSQL 6, extraCommandsBeforeLoad.sql",
    "hammerdb2020": "HammerDB before January 2021, pgoltp.tcl",
}


def fillfactors(level: str | int) -> dict[str, int]:
    """
    Fillfactor of each table, in percent.

    Args:
        level: One for all tables, or the name of a published schedule; its other tables have 100.
    """
    if isinstance(level, int):
        return dict.fromkeys(TABLES, level)
    return {table: PUBLISHED[level].get(table, 100) for table in TABLES}
