"""
Which tables stand first, and which are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pgheadroom.quoting import called
from pgheadroom.watch.rates import TableRate

SORTS: dict[str, Callable[[TableRate], Any]] = {
    "updates": lambda table: -table.n_tup_upd,
    # The lowest first: that is where something is to be gained. Without updates there is none.
    "hot": lambda table: 2.0 if table.hot_frac is None else table.hot_frac,
    "newpage": lambda table: 1.0 if table.newpage_frac is None else -table.newpage_frac,
    "inserts": lambda table: -table.n_tup_ins,
    "deletes": lambda table: -table.n_tup_del,
    "dead": lambda table: -table.n_dead_tup,
    "name": lambda _: 0,
}
"""By what tables are sorted; the first is what stands first: the most, of HOT the lowest share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """
    What a reader wants to see.

    Attributes:
        by: A name of `SORTS`.
        is_reversed: The last first.
        only: Tables whose name, with their schema's, contains this, whatever the case.
    """

    by: str = "updates"
    is_reversed: bool = False
    only: str = ""


def chosen(tables: Iterable[TableRate], order: Order) -> list[TableRate]:
    """The tables as a reader wants to see them; equal ones by name."""
    only = order.only.lower()
    found = [table for table in tables if only in f"{table.schema}.{table.name}".lower()]
    found.sort(key=lambda table: (SORTS[order.by](table), called(table.schema, table.name)))
    return found[::-1] if order.is_reversed else found
