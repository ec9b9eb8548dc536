"""
What `fillfactor` shows: pgbench over fillfactors, also as the document prints it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pgheadroom.lab import presentation as forms
from pgheadroom.lab import reading
from pgheadroom.lab.answer_words import (
    Compared,
    Sentence,
    comparisons,
    tally,
)
from pgheadroom.lab.reading import Result
from pgheadroom.stats import ComparisonVerdict

_APART = ("memory",)

TABLES: tuple[forms.TableForm, ...] = (
    forms.CellsTable(
        title="Throughput and update time",
        measures=("tps", "accounts_update_ms", "buffer_hit_frac"),
        constants=True,
        repetitions=True,
    ),
    forms.CellsTable(
        title="Latency per transaction",
        measures=("latency_ms_p50", "latency_ms_p90", "latency_ms_p99", "latency_ms_max"),
    ),
    forms.CellsTable(
        title="Where the new row versions went",
        measures=("hot_frac", "newpage_frac", "n_tup_upd", "n_tup_hot_upd", "n_tup_newpage_upd"),
    ),
    forms.CellsTable(
        title="Size",
        measures=(
            "heap_pages_before",
            "heap_pages",
            "heap_growth_pages_per_h",
            "index_pages_before",
            "index_pages",
            "index_growth_pages_per_h",
        ),
        note="Pages of 8192 bytes.",
    ),
    forms.CellsTable(
        title="WAL, and what fell into the window",
        measures=("wal_bytes_per_tx", "wal_fpi_per_tx", "checkpoints", "autovacuums"),
    ),
    forms.PairedTable(),
)

FIGURES: tuple[forms.FigureForm, ...] = (
    forms.Ratios(
        across="fillfactor",
        measures=("tps", "accounts_update_ms", "wal_bytes_per_tx", "latency_ms_p99", "hot_frac"),
        told_apart=_APART,
        key=True,
    ),
    forms.Levels(
        title="Where the new row versions went",
        across="fillfactor",
        measures=("hot_frac", "newpage_frac"),
        told_apart=_APART,
    ),
    forms.Levels(
        title="WAL per transaction",
        across="fillfactor",
        measures=("wal_bytes_per_tx", "wal_fpi_per_tx"),
        form="bar",
        told_apart=_APART,
    ),
    forms.Levels(
        title="Size",
        across="fillfactor",
        measures=("heap_pages", "index_pages"),
        form="bar",
        unit="MiB",
        told_apart=_APART,
    ),
    forms.PairedPoints(
        across="fillfactor", measures=("hot_frac", "heap_pages", "wal_bytes_per_tx")
    ),
    forms.Percentiles(
        title="Latency per transaction",
        across="fillfactor",
        prefix="latency_ms_",
        unit="ms",
        told_apart=_APART,
    ),
)


def tables(result: Result) -> tuple[forms.TableForm, ...]:
    """The document's own form first."""
    first = _as_the_document(result)
    return TABLES if first is None else (first, *TABLES)


def _as_the_document(result: Result) -> forms.GivenTable | None:
    """The accounts UPDATE in ms with TPS in brackets: fillfactor across, the rest down."""
    fillfactor = next((item for item in reading.factors(result) if item.name == "fillfactor"), None)
    if fillfactor is None:
        return None
    levels = [reading.label(level) for level in reading.present(result, fillfactor)]
    rest = reading.told_apart(result, "fillfactor", _APART)
    groups: dict[tuple[str, ...], dict[str, Mapping[str, Any]]] = {}
    for cell in reading.cells(result):
        place = tuple(reading.label(cell.get(factor.name)) for factor in rest)
        groups.setdefault(place, {})[reading.label(cell.get("fillfactor"))] = cell
    rows = []
    for group in groups.values():
        first = next(iter(group.values()))
        row = [first.get(factor.name) for factor in rest]
        rows.append((*row, *(_bracketed(group.get(level)) for level in levels)))
    if not levels or all(value is None for row in rows for value in row[len(rest) :]):
        return None
    known = {measure.name: measure for measure in reading.measures(result)}
    evidence = known["tps"].evidence if "tps" in known else None
    return forms.GivenTable(
        title="Ours, in the document's form",
        columns=(
            *(
                forms.GivenColumn(name=factor.name, title=factor.name, factor=True)
                for factor in rest
            ),
            *(
                forms.GivenColumn(
                    name=f"fillfactor_{level}", title=level, group="fillfactor", style="text"
                )
                for level in levels
            ),
        ),
        rows=tuple(rows),
        note="Mean time of the accounts UPDATE in ms, TPS in brackets"
        + (f"; {evidence}." if evidence else "."),
    )


def _bracketed(cell: Mapping[str, Any] | None) -> str | None:
    if cell is None:
        return None
    update = reading.number(cell.get("accounts_update_ms"))
    tps = reading.number(cell.get("tps"))
    if update is None and tps is None:
        return None
    shown = "-" if update is None else f"{update:.3f}"
    return shown if tps is None else f"{shown} ({tps:.0f})"


_MOST_SAID = 3
"""Comparisons that still read as one sentence."""

_FILLFACTOR_MEASURES = {
    "accounts_update_ms": "the time of the accounts UPDATE",
    "tps": "throughput",
    "wal_bytes_per_tx": "WAL per transaction",
}

_MEMORY = {
    "fits": "where the data fit in memory",
    "twice": "where they are twice as large",
    "tenfold": "where they are ten times as large",
    "server": "with the server's own memory",
}


def answer(result: Result) -> str | None:
    """Time of the UPDATE, else throughput, else WAL, at the next lower fillfactor."""
    found = {
        measure: [item for item in comparisons(result, measure) if _levels(item) is not None]
        for measure in _FILLFACTOR_MEASURES
    }
    measure = next((measure for measure, items in found.items() if items), None)
    if measure is None:
        return None
    every = found[measure]
    # The first step below the reference, whatever came out at it.
    step = max(every, key=lambda item: (_levels(item) or (0, 0))[0])
    near = [item for item in every if _levels(item) == _levels(step)]
    said = Sentence()
    low, high = _levels(step) or (0, 0)
    shown = [f"{said.compared(item)}{_where(result, item)}" for item in near[:_MOST_SAID]]
    text = f"at fillfactor {low:g} against {high:g} {_FILLFACTOR_MEASURES[measure]} is "
    text += ", ".join(shown)
    if len(every) > len(shown):
        text += f"; of all {len(every)} such comparisons {tally(every)}"
    if measure != "wal_bytes_per_tx" and all(
        item.verdict is ComparisonVerdict.UNDECIDED for item in near
    ):
        for item in found["wal_bytes_per_tx"]:
            if (item.cell, item.against) == (step.cell, step.against):
                text += f"; WAL per transaction is {said.compared(item)}{_where(result, item)}"
    return said.ended(text)


def _levels(item: Compared) -> tuple[float, float] | None:
    """Fillfactors of both cells; None for a comparison of anything else."""
    found = [reading.number(cell.get("fillfactor")) for cell in (item.cell, item.against)]
    if item.changed != ("fillfactor",) or found[0] is None or found[1] is None:
        return None
    return float(found[0]), float(found[1])


def _where(result: Result, item: Compared) -> str:
    names = [factor.name for factor in reading.varying(result) if factor.name != "fillfactor"]
    memory = item.cell.get("memory")
    known = _MEMORY.get(memory) if isinstance(memory, str) else None
    parts = []
    if "memory" in names:
        parts.append(known or f"with memory {reading.label(memory)}")
    rest = reading.at(item.cell, [name for name in names if name != "memory"])
    parts += [f"with {rest}"] if rest else []
    return f" {' and '.join(parts)}" if parts else ""
