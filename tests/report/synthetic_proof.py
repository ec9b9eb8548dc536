"""Proofs and predictions that look like real ones: one table, several, intervals, misses."""

from __future__ import annotations

from typing import Any

from pgheadroom.accuracy import error
from pgheadroom.forms import read, write
from pgheadroom.outcome import Outcome, put_together
from pgheadroom.types import Interval

Json = dict[str, Any]
# fillfactor: HOT updates, new-page updates, heap pages, WAL bytes, image bytes; 10,000 updates of
# pgbench_accounts at scale 1, from the demo on 18.4.
_CURVE = {
    100: (8340, 1240, 1652, 4_280_000, 3_100_000),
    95: (9120, 610, 1729, 3_640_000, 2_600_000),
    90: (10_000, 0, 1819, 2_910_000, 2_100_000),
    80: (10_000, 0, 2041, 2_915_000, 2_180_000),
    70: (10_000, 0, 2326, 2_920_000, 2_260_000),
}


def _sums(fillfactor: int, shift: int = 0) -> dict[str, int | None]:
    known = min(at for at in _CURVE if at >= fillfactor)
    hot, newpage, heap_pages, wal_bytes, fpi_bytes = _CURVE[known]
    return {
        "n_tup_ins": 0,
        "n_tup_upd": 10_000,
        "n_tup_del": 0,
        "n_tup_hot_upd": hot - shift,
        "n_tup_newpage_upd": newpage + shift,
        "heap_pages": heap_pages + shift,
        "index_pages": 276,
        "wal_records": 13_212 + 3 * shift,
        "wal_bytes": wal_bytes + 100 * shift,
        "wal_fpi_bytes": fpi_bytes,
        "wal_fpi": fpi_bytes // 8000,
        "pages_modified": 1600 + fillfactor,
    }


def _whole(tables: dict[str, dict[str, int | None]]) -> Outcome:
    return put_together(tables, {"wal_records": 10_000, "wal_bytes": 340_000})


def _tables(fillfactor: int, names: tuple[str, ...], shift: int = 0) -> Outcome:
    tables = {name: _sums(fillfactor, shift) for name in names}
    for n, table in enumerate(tables.values()):
        table["heap_pages"] = (table["heap_pages"] or 0) // (1 + 40 * n)
    return _whole(tables)


def _widened(outcome: Outcome) -> Outcome:
    """The same with intervals, as a cell with several clients has them."""

    def wide(data: Json) -> Json:
        return {
            key: {name: wide(table) for name, table in value.items()}
            if key == "by_table"
            else _interval(key, value)
            for key, value in data.items()
        }

    return read(Outcome, wide(write(outcome)), exact=True)


def _interval(key: str, value: float | None) -> Any:
    if value is None or key.startswith(("n_tup_ins", "n_tup_upd", "n_tup_del")):
        return value
    low, high = value * 0.96, value * 1.03
    if key.endswith("_frac"):
        high = min(1.0, high)
    return write(Interval(low=low, mid=value, high=max(high, value), level=0.9))


def proof(
    *,
    fillfactors: tuple[int, ...] = (100, 95, 90, 80, 70),
    names: tuple[str, ...] = ("pgbench_accounts",),
    shift: int = 0,
    intervals: bool = False,
    still: str | None = None,
) -> Json:
    """
    A proof; its twin is off by `shift` new-page updates.

    Args:
        fillfactors: One cell each.
        names: Its tables.
        shift: How far the prediction is off.
        intervals: Whether the prediction has intervals.
        still: A table whose fillfactor stays at 100, so that cells have one number a table.
    """
    cells = []
    for fillfactor in fillfactors:
        predicted = _tables(fillfactor, names, shift)
        measured = _tables(fillfactor, names)
        if intervals:
            predicted = _widened(predicted)
        label: Any = fillfactor
        if still is not None and fillfactor != 100:
            label = dict.fromkeys(names, fillfactor) | {still: 100}
        cells.append(
            {
                "fillfactor": label,
                "predicted": write(predicted),
                "measured": write(measured),
                "error": write(error(predicted, measured)),
            }
        )
    return {
        "schema_version": 1,
        "kind": "proof",
        "tool_version": "0.1.0",
        "server": "18.4",
        "assumed": {"server.wal_level": "replica", "cells[0].events": ["autovacuum t at 1.5 s"]},
        "cells": cells,
    }


def prediction(**options: Any) -> Json:
    """The same without a server's side."""
    found = proof(**options)
    return found | {
        "kind": "prediction",
        "storage": "local",
        "engine": "heap",
        "evidence": "interval" if options.get("intervals") else "exact",
        "cells": [
            {key: cell[key] for key in ("fillfactor", "predicted")} for cell in found["cells"]
        ],
    }
