"""Statements that have to write pages themselves before they can read others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgheadroom.doctor.rule import Facts, QueryRow, Rule, bytes_a_day
from pgheadroom.doctor.values import Finding, Remedy
from pgheadroom.units import percent, show_bytes

_INFO_SHARE = 0.3
_WARN_SHARE = 0.5
_BYTES_A_DAY_MIN = 1024**3
_BYTES_MIN = 16 * 1024**2

_WRITTEN = """
SELECT 1 AS id,
       coalesce(sum({bytes}) FILTER (WHERE backend_type = 'client backend'
                                       AND context = 'normal'), 0)::float8 AS by_backends_bytes,
       coalesce(sum({bytes}), 0)::float8 AS written_bytes,
       coalesce(sum(write_time) FILTER (WHERE backend_type = 'client backend'
                                          AND context = 'normal'), 0)::float8 AS waited_ms,
       extract(epoch FROM min(stats_reset))::float8 AS since_epoch_s
FROM pg_stat_io WHERE object = 'relation'
"""
_SQL = {
    16: _WRITTEN.replace("{bytes}", "writes * op_bytes"),
    18: _WRITTEN.replace("{bytes}", "write_bytes"),
}


def _decide(facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding]:
    for row in rows:
        ours, whole = row["by_backends_bytes"], row["written_bytes"]
        a_day = facts.a_day(row, ours)
        if whole <= 0 or a_day is None or ours < _BYTES_MIN or a_day < _BYTES_A_DAY_MIN:
            continue
        share = ours / whole
        if share < _INFO_SHARE:
            continue
        waited_s = row["waited_ms"] / 1000
        waited = f" They waited {waited_s:,.1f} s for it." if waited_s > 0 else ""
        yield RULE.finding(
            "warning" if share >= _WARN_SHARE else "info",
            "shared_buffers",
            f"Statements wrote {show_bytes(ours)} of the {show_bytes(whole)} that were written "
            f"back ({percent(share)}) {facts.over(row)}, each to free a buffer for the page it "
            f"wanted.{waited}",
            remedy=Remedy(
                text="A larger shared_buffers, step by step, while the share falls; then a "
                "background writer that comes before them (bgwriter_lru_maxpages, "
                "bgwriter_lru_multiplier).",
                cost="shared_buffers takes memory from the system's cache, and a restart",
            ),
            price=bytes_a_day(a_day, "written by client backends (pg_stat_io)", basis="measured"),
            by_backends_bytes=round(ours),
            written_bytes=round(whole),
            by_backends_frac=round(share, 4),
            waited_s=round(waited_s, 3),
        )


RULE = Rule(
    id="backend-writes",
    question="Do statements write pages back themselves?",
    book=("B5.15", "B11.25"),
    sql=_SQL,
    decide=_decide,
    counters=("by_backends_bytes", "written_bytes", "waited_ms"),
    key=("id",),
    is_rate=True,
    threshold="From 30 % of all writes on, of 16 MiB and 1 GiB a day at least: best is that "
    "checkpoints write nearly all, for a page then is written once however often it changed. "
    "Extending a table is not counted, nor what bulk loads and VACUUM write by their rings.",
    severity="warning from half on, else info.",
    price="Bytes a day that client backends wrote; with track_io_timing also how long they waited.",
    remedy="A larger shared_buffers, or a more active background writer.",
    blind="15 counts extensions among them and cannot tell. Without track_io_timing no time is "
    "known.",
    link="https://www.postgresql.org/docs/current/monitoring-stats.html#MONITORING-PG-STAT-IO-VIEW",
)
