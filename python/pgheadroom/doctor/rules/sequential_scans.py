"""Big tables that are read whole, again and again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgheadroom.doctor.rule import Facts, QueryRow, Rule, bytes_a_day
from pgheadroom.doctor.values import Finding, Remedy
from pgheadroom.quoting import called
from pgheadroom.units import PAGE_BYTES, show_bytes

_PAGES_MIN = 1000
_SCANS_MIN = 10
_INFO_BYTES_A_DAY = 100 * 1024**3
_WARN_BYTES_A_DAY = 1024**4

_SQL = """
SELECT c.oid::int8 AS oid, n.nspname AS schema, c.relname AS name, c.relpages,
       c.reltuples::float8 AS reltuples, pg_stat_get_numscans(c.oid) AS seq_scan,
       pg_stat_get_tuples_returned(c.oid) AS seq_tup_read
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'm') AND c.relpages >= 1000 AND c.reltuples > 0
  AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
"""


def _decide(facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding]:
    for row in rows:
        scans, read = int(row["seq_scan"]), int(row["seq_tup_read"])
        if row["relpages"] < _PAGES_MIN or scans < _SCANS_MIN:
            continue
        size_bytes = int(row["relpages"]) * PAGE_BYTES
        # A scan that ends early (LIMIT) reads as much less as it returns fewer rows.
        read_bytes = min(read / row["reltuples"], float(scans)) * size_bytes
        a_day = facts.a_day(row, read_bytes)
        if a_day is None or a_day < _INFO_BYTES_A_DAY:
            continue
        yield RULE.finding(
            "warning" if a_day >= _WARN_BYTES_A_DAY else "info",
            called(row["schema"], row["name"]),
            f"{scans:,} sequential scans read {read:,} rows of a table of "
            f"{show_bytes(size_bytes)} {facts.over(row)}: {show_bytes(a_day)} a day.",
            remedy=Remedy(
                text="Find the statements (pg_stat_statements, auto_explain) and what they look "
                "for; an index on that serves them if they want few of the rows.",
                cost="an index is written at every insert and ends HOT for updates of its columns: "
                "`pgheadroom check` says for which tables",
            ),
            price=bytes_a_day(
                a_day, "the table's pages (relpages), as often as its rows were read (seq_tup_read)"
            ),
            seq_scan=scans,
            seq_tup_read=read,
            size_bytes=size_bytes,
            read_bytes_a_day=round(a_day),
        )


RULE = Rule(
    id="sequential-scans",
    question="Which big tables are read whole again and again?",
    book=("B11.3", "B11.4"),
    sql={15: _SQL},
    decide=_decide,
    counters=("seq_scan", "seq_tup_read"),
    key=("oid",),
    is_rate=True,
    threshold="Tables of 1,000 pages (8 MiB) and more, at least 10 scans, and 100 GiB a day: at a "
    "gigabyte a second out of memory that is 100 s of a processor's day.",
    severity="warning from 1 TiB a day on (about 17 min of a processor's day), else info.",
    price="Bytes read a day: rows read over rows, times the table's pages.",
    remedy="An index for the statements that want few rows; none for those that want all.",
    blind="Which statements they were. Dumps and reports read tables whole by right.",
    link="https://www.postgresql.org/docs/current/monitoring-stats.html",
)
