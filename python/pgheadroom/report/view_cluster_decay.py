"""
The view of `cluster-decay`: rounds of churn, first what a range query pays, then the steps.

Tables only; the charts are in `charts_cluster_decay.py`, which imports the chart library.
"""

from __future__ import annotations

from pgheadroom.report.reading import Result
from pgheadroom.report.table import Table
from pgheadroom.report.view_common import cells_table, constant_note
from pgheadroom.report.view_generic import further

ORDER = (
    "pages_per_range",
    "predicted_pages_per_range",
    "clustered_pages_per_range",
    "buffers_per_range",
    "correlation",
    "range_ms",
)
STEPS = ("delete_ms", "vacuum_ms", "insert_ms", "count_ms")
_WAL_AND_SIZE = (
    "insert_wal_bytes",
    "wal_bytes",
    "checkpoints",
    "heap_pages",
    "predicted_heap_pages",
    "index_pages",
)
_AGAIN = ("recluster_ms", "recluster_wal_bytes")
_ROWS = ("live_rows", "deleted_rows")


def tables(result: Result) -> list[Table]:
    """What ranges pay, the steps, WAL and size, clustering again."""
    last = [cell for cell in result.get("cells") or () if cell.get(_AGAIN[0]) is not None]
    found = [
        cells_table(
            result,
            "What a range SELECT pays after each round",
            ORDER,
            note=constant_note(result),
            repetitions=True,
        ),
        cells_table(
            result,
            "The steps of each round",
            STEPS,
            note="Times are noisier than counters; read the comparisons for what they show.",
        ),
        cells_table(result, "WAL and size", _WAL_AND_SIZE, note="Pages of 8192 bytes."),
        cells_table(result, "Clustering again after the last round", _AGAIN, cells=last),
        cells_table(result, "Rows, a check of the workload", _ROWS),
    ]
    seen = {*ORDER, *STEPS, *_WAL_AND_SIZE, *_AGAIN, *_ROWS}
    return [table for table in found if table is not None] + further(result, seen)
