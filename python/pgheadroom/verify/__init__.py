"""
Forecast against outcome: the same measures over a comparable window.

    windows.py    shares over the windows of an interval, with intervals that know of clustering
    comparing.py  whether the workload is still the same; a verdict a measure
    state.py      what has happened to a table since its plan, by the counters
    foreseeing.py a forecast again, for what has happened since
    room.py       what of a heap's growth nobody knows
    values.py     the verification as a value
    measures.py   HOT, pages, heap and WAL of a table, as foreseen and as found
    table.py      one table: whether it can be compared, and its verdict
    verifying.py  plan, record and a new observation -> verification
"""

from __future__ import annotations

from pgheadroom.verify.values import Verification
from pgheadroom.verify.verifying import verify

__all__ = ["Verification", "verify"]
