"""
Where a row's bytes go: a table's columns become a layout, from a profile or a live table.

    columns.py     a column as the core lays it out
    mean_row.py    the mean over which columns are NULL
    laying_out.py  a table's rows, its pages by fillfactor, its index entries
    values.py      the layout as a value
"""

from __future__ import annotations

from pgheadroom.layout.columns import profile_columns
from pgheadroom.layout.laying_out import FILLFACTORS, of_live_tables, of_profile
from pgheadroom.layout.values import (
    ColumnLayout,
    Computed,
    IndexLayout,
    Layout,
    MeasuredRows,
    Room,
    TableLayout,
)

__all__ = [
    "FILLFACTORS",
    "ColumnLayout",
    "Computed",
    "IndexLayout",
    "Layout",
    "MeasuredRows",
    "Room",
    "TableLayout",
    "of_live_tables",
    "of_profile",
    "profile_columns",
]
