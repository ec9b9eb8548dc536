"""
Counters of tables and indexes over an interval: what grew, and how fast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pgheadroom.sources.recording import AnswerRow

COUNTERS = (
    "n_tup_ins",
    "n_tup_upd",
    "n_tup_del",
    "n_tup_hot_upd",
    "n_tup_newpage_upd",
    "seq_scan",
    "seq_tup_read",
    "idx_scan",
    "idx_tup_fetch",
    "heap_blks_read",
    "heap_blks_hit",
    "idx_blks_read",
    "idx_blks_hit",
    "vacuum_count",
    "autovacuum_count",
    "analyze_count",
    "autoanalyze_count",
    "total_vacuum_ms",
    "total_autovacuum_ms",
)
"""Counters that only grow; the others of the query are states."""
STATES = (
    "n_live_tup",
    "n_dead_tup",
    "n_mod_since_analyze",
    "n_ins_since_vacuum",
    "last_vacuum_epoch_s",
    "last_autovacuum_epoch_s",
    "last_analyze_epoch_s",
    "last_autoanalyze_epoch_s",
)


def differences(
    before: AnswerRow | None, after: AnswerRow | None, names: Sequence[str]
) -> dict[str, int | float | None]:
    """
    Differences of counters; None for one that is missing or went backwards (a reset).

    A table without a row before the interval was made inside it.
    """
    found: dict[str, int | float | None] = {}
    for name in names:
        if after is None or name not in after or after[name] is None:
            continue
        first = 0 if before is None else before.get(name) or 0
        change = after[name] - first
        found[name] = change if change >= 0 else None
    return found


def rates(
    delta: Mapping[str, int | float | None], interval_s: float
) -> dict[str, int | float | None]:
    """Rows written a second, by kind; None where the difference is."""
    return {
        name: None if change is None else round(change / interval_s, 6)
        for name, change in delta.items()
        if name in COUNTERS[:5]
    }
