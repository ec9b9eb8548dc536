"""
Pages that a table's heap and its B-trees have for certain: those that were loaded.

An interval that is made of runs and of chance may reach below them, where no server can come: only
a VACUUM gives pages of a heap back, and commands that write the table anew.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from pgheadroom.predict import pgbench_tables
from pgheadroom.predict.cells import Cell
from pgheadroom.profile.pages import loaded_rows_per_page
from pgheadroom.profile.tables import ColumnProfile, TableProfile

_BTREE_PAGES = 2  # metapage and root; of an empty one the metapage alone
_WIDTH_BYTES_MAX = 1500  # with more values may be moved out or compressed; arbitrary
_KEEPING = frozenset({"vacuum", "analyze"})
"""Commands of maintenance after which a B-tree has as many pages as before."""

LeastPages = Mapping[str, int]
"""Pages by the figure that counts them."""


def least_pages_of(cell: Cell) -> Mapping[str, LeastPages]:
    """Of each table; without a figure of which nothing is certain."""
    profile = cell.profile
    if (builtin := profile.workload.builtin) is not None:
        loaded = pgbench_tables.loaded(builtin)
        if profile.may_autovacuum:
            return {name: {"index_pages": one["index_pages"]} for name, one in loaded.items()}
        return loaded
    commands = {command.do for command in profile.workload.run.maintenance}
    if cell.rewrites or not commands <= _KEEPING:
        return {}
    keeps_heap = not (commands & {"vacuum"} or profile.may_autovacuum)
    found: dict[str, LeastPages] = {}
    for table in profile.tables:
        btrees = sum(index.method == "btree" and index.where is None for index in table.indexes)
        least = {"index_pages": btrees * (_BTREE_PAGES if table.rows else 1)}
        if keeps_heap:
            least["heap_pages"] = _loaded(table)
        found[table.name] = least
    return found


def together(least: Mapping[str, LeastPages]) -> LeastPages:
    """Pages that all tables have for certain."""
    keys = {key for of_table in least.values() for key in of_table}
    return {key: sum(of_table.get(key, 0) for of_table in least.values()) for key in keys}


def _loaded(table: TableProfile) -> int:
    """Heap pages as loaded where all rows are of one length; else one, where there are rows."""
    width_bytes = sum(column.mean_width_bytes or 0 for column in table.columns)
    is_even = all(map(_is_even, table.columns)) and width_bytes <= _WIDTH_BYTES_MAX
    if table.rows and is_even and not table.pages:
        return math.ceil(table.rows / loaded_rows_per_page(table))
    return min(table.rows, 1)


def _is_even(column: ColumnProfile) -> bool:
    """Whether all values of a column take as many bytes, and each row has one."""
    if column.null_frac > 0 or column.elements is not None or column.stands_for is not None:
        return False
    if column.form.payload_bytes is not None or column.base_type == "varbit":  # a mean
        return False
    return column.width is None or column.width.min_bytes == column.width.max_bytes
