"""
The view of `tprocc`: throughput, HOT by table, size and WAL, each a table of its own.
"""

from __future__ import annotations

from pgheadroom.report.reading import Result
from pgheadroom.report.table import Table
from pgheadroom.report.view_common import cells_table, constant_note
from pgheadroom.report.view_generic import further

TABLES = ("warehouse", "district", "customer", "orders", "order_line", "stock")
"""Those that are updated, in the order of their locks."""

_SPEED = ("nopm", "tpm", "cpu_frac", "new_order_ms_p50", "new_order_ms_p99", "checkpoints",
          "autovacuums")  # fmt: skip
_SIZE = (
    "data_bytes",
    "predicted_data_bytes",
    "aged_bytes",
    "grown_bytes_per_tx",
    "load_s",
)
_WAL = (
    "wal_nonfpi_bytes_per_tx",
    "predicted_wal_nonfpi_bytes_per_tx",
    "wal_bytes_per_tx",
    "predicted_wal_bytes_per_tx",
    "predicted_log_bytes_per_tx",
    "wal_fpi_per_tx",
)
_HOT = ("hot_frac", *(f"{table}_hot_frac" for table in TABLES))
_PREDICTED = tuple(f"predicted_{table}_hot_frac" for table in TABLES)
_MOVED = tuple(f"{table}_newpage_frac" for table in TABLES)
_RATES = tuple(f"{table}_updates_per_h" for table in TABLES)
_LATENCY = tuple(
    f"{transaction}_ms_p{percent}"
    for transaction in ("new_order", "payment", "delivery", "order_status", "stock_level")
    for percent in (50, 90, 99)
)


def tables(result: Result) -> list[Table]:
    """Tables of the results, throughput first."""
    shown = (
        ("Throughput", _SPEED, constant_note(result)),
        ("HOT share by table, counter window", _HOT, None),
        ("HOT share by table, predicted", _PREDICTED, None),
        ("Updates that went to another page", _MOVED, None),
        ("Updates an hour at the pace of the throughput window", _RATES, None),
        ("Latency by transaction", _LATENCY, None),
        ("Size", _SIZE, "Loaded and aged once; growth in the counter window."),
        ("WAL, counter window", _WAL, None),
    )
    found = [
        cells_table(result, title, names, note=note, repetitions=title == "Throughput")
        for title, names, note in shown
    ]
    seen = {name for _, names, _ in shown for name in names}
    return [table for table in found if table is not None] + further(result, seen)
