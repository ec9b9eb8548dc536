"""
The write-ahead log, read and summed: which relation writes it, and why.

The core reads (`_core.wal_sums`); here is what the numbers of relations are called, and the result
as a value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgheadroom.on_demand import on_demand

if TYPE_CHECKING:
    from pgheadroom.wal.names import NAMES_EXPECTED, Names, add_names, names_of_server, read_names
    from pgheadroom.wal.reading import read_archive, read_wal
    from pgheadroom.wal.values import (
        Count,
        Gap,
        RecordType,
        RelationWal,
        Stretch,
        TransactionWal,
        WalStats,
    )
    from pgheadroom.wal.what_if import Grid, WhatIf, wal_what_if

__all__ = [
    "NAMES_EXPECTED",
    "Count",
    "Gap",
    "Grid",
    "Names",
    "RecordType",
    "RelationWal",
    "Stretch",
    "TransactionWal",
    "WalStats",
    "WhatIf",
    "add_names",
    "names_of_server",
    "read_archive",
    "read_names",
    "read_wal",
    "wal_what_if",
]

_HOMES = {
    "NAMES_EXPECTED": "names",
    "Count": "values",
    "Gap": "values",
    "Grid": "what_if",
    "Names": "names",
    "RecordType": "values",
    "RelationWal": "values",
    "Stretch": "values",
    "TransactionWal": "values",
    "WalStats": "values",
    "WhatIf": "what_if",
    "add_names": "names",
    "names_of_server": "names",
    "read_archive": "reading",
    "read_names": "names",
    "read_wal": "reading",
    "wal_what_if": "what_if",
}

__getattr__ = on_demand(__name__, _HOMES)
