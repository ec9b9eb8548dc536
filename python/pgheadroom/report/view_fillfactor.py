"""
The view of `fillfactor`: pgbench over fillfactors, printed also as the document prints it.

Tables only; the charts are in `charts_fillfactor.py`, which imports the chart library.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pgheadroom.report import reading
from pgheadroom.report.reading import Factor, Result
from pgheadroom.report.table import Column, Table
from pgheadroom.report.view_common import by_name, cells_table, constant_note, factor_column, level
from pgheadroom.report.view_generic import further
from pgheadroom.report.view_predicted import beside, counterparts, paired

_SPEED = ("tps", "accounts_update_ms", "buffer_hit_frac")
_LATENCY = ("latency_ms_p50", "latency_ms_p90", "latency_ms_p99", "latency_ms_max")
_VERSIONS = ("hot_frac", "newpage_frac", "n_tup_upd", "n_tup_hot_upd", "n_tup_newpage_upd")
_SIZE = (
    "heap_pages_before",
    "heap_pages",
    "heap_growth_pages_per_h",
    "index_pages_before",
    "index_pages",
    "index_growth_pages_per_h",
)
_WAL = ("wal_bytes_per_tx", "wal_fpi_per_tx", "checkpoints", "autovacuums")


def tables(result: Result) -> list[Table]:
    """Tables of the results, the document's own form first."""
    found = [
        _as_the_document(result),
        cells_table(
            result,
            "Throughput and update time",
            _SPEED,
            note=constant_note(result),
            repetitions=True,
        ),
        cells_table(result, "Latency per transaction", _LATENCY),
        cells_table(result, "Where the new row versions went", _VERSIONS),
        cells_table(result, "Size", _SIZE, note="Pages of 8192 bytes."),
        cells_table(result, "WAL, and what fell into the window", _WAL),
        beside(result),
    ]
    seen = counterparts(paired(result)) | {*_SPEED, *_LATENCY, *_VERSIONS, *_SIZE, *_WAL}
    return [table for table in found if table is not None] + further(result, seen)


def _as_the_document(result: Result) -> Table | None:
    """The accounts UPDATE in ms with TPS in brackets: fillfactor across, the rest down."""
    fillfactor = next((item for item in reading.factors(result) if item.name == "fillfactor"), None)
    if fillfactor is None:
        return None
    levels = reading.present(result, fillfactor)
    rest = rest_factors(result)
    groups: dict[tuple[str, ...], dict[str, Mapping[str, Any]]] = {}
    for cell in reading.cells(result):
        place = tuple(reading.label(cell.get(factor.name)) for factor in rest)
        groups.setdefault(place, {})[reading.label(cell.get("fillfactor"))] = cell
    if not levels or not groups:
        return None
    columns = [factor_column(factor) for factor in rest]
    columns += [
        Column(
            f"fillfactor_{reading.label(item)}",
            reading.label(item),
            group="fillfactor",
            style="text",
        )
        for item in levels
    ]
    rows = []
    for group in groups.values():
        first = next(iter(group.values()))
        row: list[object] = [level(first, factor) for factor in rest]
        row += [_bracketed(group.get(reading.label(item))) for item in levels]
        rows.append(tuple(row))
    if all(value is None for row in rows for value in row[len(rest) :]):
        return None
    known = by_name(result)
    evidence = known["tps"].evidence if "tps" in known else None
    note = "Mean time of the accounts UPDATE in ms, TPS in brackets" + (
        f"; {evidence}." if evidence else "."
    )
    return Table("Ours, in the document's form", tuple(columns), tuple(rows), note)


def rest_factors(result: Result) -> list[Factor]:
    """The factors besides fillfactor: those that vary, and memory in any case."""
    varying = {factor.name for factor in reading.varying(result)}
    return [
        factor
        for factor in reading.factors(result)
        if factor.name != "fillfactor" and (factor.name in varying or factor.name == "memory")
    ]


def _bracketed(cell: Mapping[str, Any] | None) -> str | None:
    if cell is None:
        return None
    update = reading.number(cell.get("accounts_update_ms"))
    tps = reading.number(cell.get("tps"))
    if update is None and tps is None:
        return None
    shown = "-" if update is None else f"{update:.3f}"
    return shown if tps is None else f"{shown} ({tps:.0f})"
