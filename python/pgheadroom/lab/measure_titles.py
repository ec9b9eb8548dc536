"""
Measures as people read them: `hot_frac` is the name in a file, "HOT share" that on a page.

Titles are singular, so that a sentence is right with each. A record of an earlier version has names
and descriptions only, so titles go by name. A measure that nobody knows here, as of an experiment
of somebody's own, keeps its name.
"""

from __future__ import annotations

import re

from pgheadroom.lab import reading

_TITLES = {
    "accounts_update_ms": "time of the UPDATE",
    "aged_bytes": "size after aging",
    "autovacuums": "number of autovacuums",
    "buffer_hit_frac": "share of pages found in shared buffers",
    "buffers": "number of blocks touched",
    "buffers_per_range": "number of blocks touched by a range SELECT",
    "buffers_per_update": "number of blocks touched by an update",
    "checkpoints": "number of checkpoints",
    "clustered_pages_per_range": "number of pages of a range, kept in order",
    "commits_per_sync": "number of commits that share a sync",
    "correlation": "correlation",
    "count_ms": "time of a count of all rows",
    "cpu_frac": "share of busy processors",
    "data_bytes": "size after loading",
    "delete_ms": "time of the DELETE",
    "disk_syncs_per_s": "rate of the disk's synced writes",
    "execution_ms": "time of the statement",
    "grown_bytes_per_tx": "growth per transaction",
    "heap_fetches": "number of rows looked up in the heap",
    "heap_growth_pages_per_h": "growth of the heap",
    "heap_pages": "heap size",
    "heap_pages_per_million_rows": "heap size per million rows",
    "hot_frac": "HOT share",
    "index_growth_pages_per_h": "growth of the index",
    "index_pages": "index size",
    "insert_ms": "time of the INSERT",
    "insert_wal_bytes": "WAL of the INSERT",
    "load_s": "time of loading",
    "n_tup_hot_upd": "number of HOT updates",
    "n_tup_ins": "number of rows inserted",
    "n_tup_del": "number of rows deleted",
    "n_tup_newpage_upd": "number of new-page updates",
    "n_tup_upd": "number of rows updated",
    "newpage_frac": "new-page share",
    "nopm": "rate of new orders",
    "pages_dirtied": "number of modified pages",
    "pages_per_range": "number of pages of a range",
    "range_ms": "time of a range SELECT",
    "recluster_ms": "time of CLUSTER",
    "recluster_wal_bytes": "WAL of CLUSTER",
    "rows_per_s": "rate of rows",
    "step_ms": "time of the step",
    "tpm": "rate of transactions",
    "tps": "throughput",
    "update_ms": "time of the UPDATE",
    "vacuum_ms": "time of VACUUM",
    "wal_bytes": "WAL",
    "wal_fpi": "number of full-page images",
    "wal_frac_of_heap": "WAL over the table's size",
    "wal_nonfpi_bytes_per_tx": "WAL per transaction without images",
    "wal_records": "number of WAL records",
    "wal_syncs_per_commit": "number of WAL syncs per commit",
}
_PER = {"tx": "transaction", "update": "update", "row": "row", "commit": "commit"}
_WAL = {
    "wal_bytes": "WAL",
    "wal_records": "number of WAL records",
    "wal_fpi": "number of full-page images",
}
_OF_TABLE = {
    "hot_frac": "HOT share of {}",
    "newpage_frac": "new-page share of {}",
    "updates_per_h": "rate of updates of {}",
}
_LATENCY = re.compile(r"(?P<of>.+)_ms_(?P<which>p50|p90|p99|max)")
_WHICH = {"p50": "median", "p90": "90th percentile", "p99": "99th percentile", "max": "largest"}


def title(name: str) -> str:
    """What a measure is called in text; its own name, safe to print, where it has no title."""
    for prefix, form in (("predicted_", "{}, predicted"), ("mean_", "mean {}")):
        if name.startswith(prefix) and (rest := _title(name.removeprefix(prefix))) is not None:
            return form.format(rest)
    if name.endswith("_before") and (rest := _title(name.removesuffix("_before"))) is not None:
        return f"{rest} before"
    return _title(name) or reading.printable(name)


def _title(name: str) -> str | None:
    if name in _TITLES:
        return _TITLES[name]
    if (match := _LATENCY.fullmatch(name)) is not None:
        of = "" if match["of"] == "latency" else f" of {match['of']}"
        return f"latency{of}, {_WHICH[match['which']]}"
    what, _, per = name.rpartition("_per_")
    if what in _WAL and per in _PER:
        return f"{_WAL[what]} per {_PER[per]}"
    for suffix, form in _OF_TABLE.items():
        if name.endswith(f"_{suffix}"):
            return form.format(reading.printable(name.removesuffix(f"_{suffix}")))
    return None
