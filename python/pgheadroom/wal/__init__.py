"""
The write-ahead log, read and summed: which relation writes it, and why.

The core reads (`_core.wal_sums`); here is what the numbers of relations are called, and the result
as a value.

    reading.py     files become sums with names    archive.py     segments out of an archive
    parts.py       the same in parts, elsewhere    paths.py       what names files
    live.py        the log of a running server     inspecting.py  the same by its pg_walinspect
    names.py       what relations are called       values.py      the sums as a value
    cause_names.py what causes are called
    course.py      the log over time
    beside.py      the log of an observation's interval, by live.py or from_files.py; observed.py:
                   what a profile keeps of it
    what_if.py     what the log would be otherwise; what_if_values.py: as a value
    other_checkpoints.py  with checkpoints at other distances
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgheadroom.on_demand import on_demand

if TYPE_CHECKING:
    from pgheadroom.wal.names import NAMES_EXPECTED, Names, add_names, names_of_server, read_names
    from pgheadroom.wal.other_checkpoints import Grid
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
    from pgheadroom.wal.what_if import wal_what_if
    from pgheadroom.wal.what_if_values import WhatIf

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
    "Grid": "other_checkpoints",
    "Names": "names",
    "RecordType": "values",
    "RelationWal": "values",
    "Stretch": "values",
    "TransactionWal": "values",
    "WalStats": "values",
    "WhatIf": "what_if_values",
    "add_names": "names",
    "names_of_server": "names",
    "read_archive": "reading",
    "read_names": "names",
    "read_wal": "reading",
    "wal_what_if": "what_if",
}

__getattr__ = on_demand(__name__, _HOMES)
