"""
Where a row's bytes go: a table's columns become a layout, from a profile or a live table.
"""

from __future__ import annotations

from pgheadroom.layout.laying_out import FILLFACTORS, of_live_tables, of_profile, profile_columns
from pgheadroom.layout.values import (
    ColumnLayout,
    Computed,
    IndexLayout,
    Layout,
    Measured,
    Room,
    TableLayout,
)

__all__ = [
    "FILLFACTORS",
    "ColumnLayout",
    "Computed",
    "IndexLayout",
    "Layout",
    "Measured",
    "Room",
    "TableLayout",
    "of_live_tables",
    "of_profile",
    "profile_columns",
]
