"""
An advice as CSV: one line a table.
"""

from __future__ import annotations

from pgheadroom.advise.advice import Advice
from pgheadroom.advise.cold_updates import CAUSES
from pgheadroom.outcome import middle
from pgheadroom.report import csv_file
from pgheadroom.report.advice.values import known_wal, three

_CSV: tuple[str, ...] = (
    "rank", "schema", "table", "parent", "verdict", "fillfactor", "advised_fillfactor",
    "gain_frac", "gain_frac_low", "gain_frac_high", "rows", "heap_bytes", "updates",
    "updates_per_s", "hot_frac", "then_hot_frac", "then_hot_frac_low", "then_hot_frac_high",
    "now_wal_bytes_per_update", "then_wal_bytes_per_update", "then_heap_bytes",
    *(f"{kind}_frac" for kind in CAUSES if kind != "hot"),
    "blamed_indexes", "transition", "transition_s", "remarks", "reason",
)  # fmt: skip


def as_csv(advice: Advice) -> str:
    """One line a table, by gain; where a value is missing, nothing."""
    rows = []
    for rank, table in enumerate(advice.tables, start=1):
        then = table.point(table.advised_fillfactor)
        share = {cause.kind: cause.frac for cause in table.causes}
        hot = then.hot_frac if then else None
        indexes = [index.name for cause in table.causes for index in cause.indexes]
        rows.append([
            rank, table.schema, table.name, table.parent, table.verdict, table.fillfactor,
            table.advised_fillfactor, *three(table.gain_frac), table.rows, table.heap_bytes,
            table.updates, table.updates_per_s, table.hot_frac, *three(hot),
            middle(known_wal(table.wal_bytes_per_update)),
            middle(then.wal_bytes_per_update) if then else None,
            middle(then.heap_bytes) if then else None,
            *(middle(share.get(kind)) for kind in CAUSES if kind != "hot"),
            " ".join(indexes), table.transition.verdict if table.transition else None,
            table.transition.after_s if table.transition else None,
            " ".join(remark.kind for remark in table.remarks), table.reason,
        ])  # fmt: skip
    return csv_file.written(_CSV, rows)
