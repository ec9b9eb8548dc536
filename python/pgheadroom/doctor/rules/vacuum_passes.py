"""A VACUUM that reads its indexes again and again, for its memory is too small."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgheadroom.doctor.rule import Facts, QueryRow, Rule, bytes_held
from pgheadroom.doctor.values import Finding, Remedy
from pgheadroom.quoting import called
from pgheadroom.units import PAGE_BYTES, percent, show_count

_WARN_BYTES = 1024**3

_SQL = """
SELECT n.nspname AS schema, c.relname AS name, p.index_vacuum_count AS passes,
       p.heap_blks_scanned, p.heap_blks_total, a.backend_type,
       (SELECT sum(ic.relpages) FROM pg_index i JOIN pg_class ic ON ic.oid = i.indexrelid
        WHERE i.indrelid = c.oid)::int8 AS index_pages
FROM pg_stat_progress_vacuum p
JOIN pg_class c ON c.oid = p.relid
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_stat_activity a ON a.pid = p.pid
WHERE p.datname = current_database() AND p.index_vacuum_count >= 1
  AND p.heap_blks_scanned < p.heap_blks_total
"""


def _decide(facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding]:
    for row in rows:
        passes, scanned = int(row["passes"]), int(row["heap_blks_scanned"])
        again = passes * int(row["index_pages"] or 0) * PAGE_BYTES
        is_automatic = row["backend_type"] == "autovacuum worker"
        setting = "maintenance_work_mem"
        if is_automatic and facts.number("autovacuum_work_mem") >= 0:
            setting = "autovacuum_work_mem"
        yield RULE.finding(
            "warning" if again >= _WARN_BYTES else "info",
            called(row["schema"], row["name"]),
            f"VACUUM has gone through the table's indexes {show_count(passes, 'time')} by now, and "
            f"has read {percent(scanned / row['heap_blks_total'])} of the table: {setting} "
            f"({facts.settings[setting]} kB) does not hold its dead rows, so it reads them all "
            "again.",
            remedy=Remedy(
                text=f"More {setting}. Up to 16 a dead row takes 6 bytes of it, and 1 GB is the "
                "most that is used; from 17 on it takes far less.",
                cost="memory, for each worker of autovacuum at once",
            ),
            price=bytes_held(
                again, "pages of its indexes (relpages), once for each pass that is not the last"
            ),
            passes=passes,
            heap_blks_scanned=scanned,
            heap_blks_total=int(row["heap_blks_total"]),
            read_again_bytes=again,
        )


RULE = Rule(
    id="vacuum-passes",
    question="Does a VACUUM read indexes several times?",
    book=("B7.28",),
    sql={15: _SQL},
    decide=_decide,
    needs_monitor=True,
    on_standby=False,
    threshold="At this moment one has been through the indexes and has more of the table to read: "
    "it will go through them again.",
    severity="warning from 1 GiB that is read again on, else info.",
    price="Bytes of indexes that are read again.",
    remedy="More maintenance_work_mem, or autovacuum_work_mem.",
    blind="It looks at one moment. `index scans` in autovacuum's log (log_autovacuum_min_duration) "
    "has those that are done.",
    link="https://www.postgresql.org/docs/current/progress-reporting.html"
    "#VACUUM-PROGRESS-REPORTING",
)
