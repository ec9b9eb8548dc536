"""Indexes that a build without locks left unfinished: written by everybody, read by nobody."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgheadroom.doctor import index_cost
from pgheadroom.doctor.rule import Facts, QueryRow, Rule
from pgheadroom.doctor.values import Finding, Remedy
from pgheadroom.quoting import called, shown_relation

_SQL = f"""
SELECT i.indexrelid::int8 AS oid, n.nspname AS schema, c.relname AS name,
       tn.nspname AS table_schema, t.relname AS table_name,
       i.indisready AS is_ready, i.indisunique AS is_unique,
       c.relname ~ '_cc(new|old)[0-9]*$' AS is_leftover,
{index_cost.COLUMNS}
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid AND c.relkind = 'i'
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_class t ON t.oid = i.indrelid
JOIN pg_namespace tn ON tn.oid = t.relnamespace
JOIN pg_am am ON am.oid = c.relam
WHERE NOT i.indisvalid AND NOT c.relispartition
  -- One that is being built holds its table so; VACUUM and ANALYZE do too.
  AND NOT EXISTS (SELECT FROM pg_locks l
                  WHERE l.locktype = 'relation' AND l.relation = i.indrelid AND l.granted
                    AND l.mode = 'ShareUpdateExclusiveLock'
                    AND l.database = (SELECT oid FROM pg_database
                                      WHERE datname = current_database())
                    AND l.pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum
                                      UNION ALL SELECT pid FROM pg_stat_progress_analyze))
"""


def _decide(facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding]:
    for row in rows:
        # One that was never ready gets no entries.
        seen = row if row["is_ready"] else {**row, "n_tup_ins": None}
        cost = index_cost.cost_of(facts, seen)
        name = shown_relation(row["schema"], row["name"])
        table = called(row["table_schema"], row["table_name"])
        is_written = bool(row["is_ready"])
        keeps = "and is written all the same" if is_written else "and is not written either"
        sql = [f"DROP INDEX CONCURRENTLY {name}"]
        text = "Drop it; it is a leftover of REINDEX CONCURRENTLY, whose index is there besides."
        if not row["is_leftover"]:
            sql = [f"REINDEX INDEX CONCURRENTLY {name}"]
            text = "Build it again, or drop it (DROP INDEX CONCURRENTLY) if nobody has missed it."
            if row["is_unique"]:
                text += " If its build failed for rows that are there twice, it fails again until "
                text += "these are gone; meanwhile it may refuse new ones."
        yield RULE.finding(
            "warning" if is_written else "info",
            called(row["schema"], row["name"]),
            f"The index of {table} is invalid: no query reads it, {keeps} ({cost.text}).",
            remedy=Remedy(
                sql=tuple(sql),
                text=text,
                lock="SHARE UPDATE EXCLUSIVE: readers and writers go on",
                cost="two scans of the table to build it, none to drop it",
                undo=None,
            ),
            price=cost.price,
            size_bytes=cost.size_bytes,
            entries_a_day=cost.entries_a_day,
            wal_bytes_a_day=cost.wal_bytes_a_day,
        )


RULE = Rule(
    id="invalid-index",
    question="Which indexes are written but never read, for their build failed?",
    book=("B9.19", "B7.54"),
    sql={15: _SQL},
    decide=_decide,
    counters=index_cost.COUNTERS,
    key=("oid",),
    on_standby=False,  # nothing there says that one is being built
    threshold="Any: it is waste from the first write on. One that is being built is none.",
    severity="warning where it is written (indisready), info where it only takes pages.",
    price="WAL a day of its entries where counters tell it, else its pages.",
    remedy="REINDEX INDEX CONCURRENTLY, or DROP INDEX CONCURRENTLY.",
    blind="An index on a partition is not told by itself; its parent's is by `partitioned-index`.",
    link="https://www.postgresql.org/docs/current/sql-createindex.html",
)
