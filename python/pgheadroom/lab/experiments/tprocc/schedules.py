"""
Which fillfactor each of the nine tables has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pgheadroom.errors import InputError

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


_PART = rf"({'|'.join(TABLES)}):(100|[1-9][0-9])"

OWN_FORM = (rf"{_PART}(\+{_PART})*", "a schedule such as stock:95+customer:90, the rest at 100")
"""A schedule of one's own as a level, and what it looks like."""


def fillfactors(level: str | int) -> dict[str, int]:
    """
    Fillfactor of each table, in percent.

    Args:
        level: One for all tables, the name of a published schedule, or one of the form `OWN_FORM`;
            what a schedule does not name has 100.

    Raises:
        InputError: A table is named twice.
    """
    if isinstance(level, int):
        return dict.fromkeys(TABLES, level)
    if level in PUBLISHED:
        return {table: PUBLISHED[level].get(table, 100) for table in TABLES}
    found = dict.fromkeys(TABLES, 100)
    named = re.findall(_PART, level)
    for table, percent in named:
        found[table] = int(percent)
    if len({table for table, _ in named}) < len(named):
        raise InputError(f"fillfactor={level}: a table is named twice")
    return found
