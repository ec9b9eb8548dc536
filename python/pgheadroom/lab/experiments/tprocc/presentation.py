"""
What `tprocc` shows: throughput, HOT by table, size and WAL, each a table of its own.
"""

from __future__ import annotations

from pgheadroom.lab import presentation as forms
from pgheadroom.lab import reading
from pgheadroom.lab.answer_words import (
    Compared,
    Sentence,
    comparisons,
    tally,
)
from pgheadroom.lab.experiments.tprocc.schedules import UPDATED
from pgheadroom.lab.reading import Result

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
_HOT = ("hot_frac", *(f"{table}_hot_frac" for table in UPDATED))
_PREDICTED = tuple(f"predicted_{table}_hot_frac" for table in UPDATED)
_MOVED = tuple(f"{table}_newpage_frac" for table in UPDATED)
_RATES = tuple(f"{table}_updates_per_h" for table in UPDATED)
_LATENCY = tuple(
    f"{transaction}_ms_p{percent}"
    for transaction in ("new_order", "payment", "delivery", "order_status", "stock_level")
    for percent in (50, 90, 99)
)

TABLES: tuple[forms.TableForm, ...] = (
    forms.CellsTable(title="Throughput", measures=_SPEED, constants=True, repetitions=True),
    forms.CellsTable(title="HOT share by table, counter window", measures=_HOT),
    forms.CellsTable(title="HOT share by table, predicted", measures=_PREDICTED),
    forms.CellsTable(title="Updates that went to another page", measures=_MOVED),
    forms.CellsTable(title="Updates an hour at the pace of the throughput window", measures=_RATES),
    forms.CellsTable(title="Latency by transaction", measures=_LATENCY),
    forms.CellsTable(
        title="Size",
        measures=_SIZE,
        note="Loaded and aged once; growth in the counter window.",
    ),
    forms.CellsTable(title="WAL, counter window", measures=_WAL),
)

FIGURES: tuple[forms.FigureForm, ...] = (
    forms.ByEither(
        title="Throughput and processors",
        first="users",
        second="fillfactor",
        measures=("nopm", "tpm", "cpu_frac"),
        key=True,
    ),
    forms.ByEither(
        title="HOT share of each table",
        first="users",
        second="fillfactor",
        measures=_HOT[1:],
        height=110,
    ),
    forms.PairedBars(
        title="HOT share of each table, predicted beside measured",
        across="fillfactor",
        measures=_HOT[1:],
        least="users",
    ),
    forms.PairedBars(
        title="Size and WAL, predicted beside measured",
        across="fillfactor",
        measures=("data_bytes", "wal_nonfpi_bytes_per_tx"),
        least="users",
    ),
)

_MEASURES = {
    "nopm": "new orders per minute are",
    "hot_frac": "the HOT share of all updates is",
    "wal_nonfpi_bytes_per_tx": "WAL per transaction without images is",
}


def answer(result: Result) -> str | None:
    """Throughput, HOT, WAL and size of one comparison, fixed before anything was measured."""
    found = {
        measure: [item for item in comparisons(result, measure) if "fillfactor" in item.changed]
        for measure in _MEASURES
    }
    known = next((items for items in found.values() if items), None)
    if known is None:
        return None
    chosen = max(known, key=lambda item: (_users(item), -known.index(item)))
    said = Sentence()
    parts = []
    for measure, words in _MEASURES.items():
        for item in found[measure]:
            if (item.cell, item.against) == (chosen.cell, chosen.against):
                parts.append(f"{words} {said.compared(item)}")
    varying = [factor.name for factor in reading.varying(result) if factor.name != "fillfactor"]
    where = reading.at(chosen.cell, varying)
    text = (
        f"at fillfactor {reading.label(chosen.cell.get('fillfactor'))} against "
        f"{reading.label(chosen.against.get('fillfactor'))}{f' ({where})' if where else ''} "
        f"{', '.join(parts)}"
    )
    orders = found["nopm"]
    if len(orders) > 1:
        text += f"; of all {len(orders)} comparisons of new orders per minute {tally(orders)}"
    return said.ended(text)


def _users(item: Compared) -> float:
    return float(reading.number(item.cell.get("users")) or 0)
