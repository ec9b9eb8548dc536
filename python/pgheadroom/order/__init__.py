"""
How well the rows of tables lie in the order of their B-trees, and what ranges read for it.

    values.py      the report as a value
    asking.py      the queries: catalogs, statistics, counters
    ranges.py      ranges of a table read in an index's order: on which pages their rows lie
    pages.py       pages of a range: measured, freshly clustered, at random
    counted.py     counters over a time
    decay.py       how the order goes on, by what changes and where new rows go
    paying.py      what bad order costs, and how often it pays to cluster again
    cheaper.py     what is cheaper than to cluster, each foreseen
    indexing.py    all of that for one index
    statements.py  which statements read ranges of which table
    live.py        asks a server

What is measured is the number of distinct pages that 1,000 neighbouring rows lie on.
`pg_stats.correlation` is told beside it and is another thing: it stays near 1 while the pages of a
range treble (sorted inserts), and is near 0 where each range lies together (streams).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgheadroom.on_demand import on_demand

if TYPE_CHECKING:
    from pgheadroom.order.live import order_live
    from pgheadroom.order.values import IndexOrder, OrderReport, TableOrder

__all__ = ["IndexOrder", "OrderReport", "TableOrder", "order_live"]

_HOMES = {
    "IndexOrder": "values",
    "OrderReport": "values",
    "TableOrder": "values",
    "order_live": "live",
}

__getattr__ = on_demand(__name__, _HOMES)
