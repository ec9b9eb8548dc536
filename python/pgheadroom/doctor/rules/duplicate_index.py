"""Indexes that are there twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgheadroom.doctor import index_cost
from pgheadroom.doctor.rule import Facts, QueryRow, Rule
from pgheadroom.doctor.values import Finding, Remedy
from pgheadroom.quoting import called, shown_relation

# Trees of expressions are compared as stored, without the place in the statement they came from.
_SQL = f"""
WITH own AS MATERIALIZED (
    SELECT i.indexrelid, i.indrelid, c.relam, i.indnatts, i.indnkeyatts, i.indkey::text AS keys,
           i.indclass::text AS classes, i.indcollation::text AS collations,
           i.indoption::text AS options, i.indisunique, i.indnullsnotdistinct,
           regexp_replace(i.indexprs::text, ':location -?[0-9]+', '', 'g') AS exprs,
           regexp_replace(i.indpred::text, ':location -?[0-9]+', '', 'g') AS pred,
           i.indisreplident OR i.indisclustered OR i.indisprimary OR i.indisexclusion
             OR EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid) AS is_needed
    FROM pg_index i
    JOIN pg_class c ON c.oid = i.indexrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE i.indisvalid AND NOT c.relispartition
      AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
)
SELECT DISTINCT ON (a.indexrelid)
       a.indexrelid::int8 AS oid, n.nspname AS schema, c.relname AS name,
       tn.nspname AS table_schema, t.relname AS table_name, c.relkind = 'I' AS is_partitioned,
       kc.relname AS kept_name, b.is_needed AS kept_is_needed, b.indisunique AS kept_is_unique,
       pg_get_indexdef(a.indexrelid) AS definition,
{index_cost.COLUMNS}
FROM own a
JOIN own b ON b.indrelid = a.indrelid AND b.indexrelid <> a.indexrelid
  AND (b.relam, b.indnatts, b.indnkeyatts, b.keys, b.classes, b.collations, b.options)
    = (a.relam, a.indnatts, a.indnkeyatts, a.keys, a.classes, a.collations, a.options)
  AND b.exprs IS NOT DISTINCT FROM a.exprs AND b.pred IS NOT DISTINCT FROM a.pred
  AND (NOT a.indisunique OR (b.indisunique AND b.indnullsnotdistinct = a.indnullsnotdistinct))
JOIN pg_index i ON i.indexrelid = a.indexrelid
JOIN pg_class c ON c.oid = a.indexrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_class t ON t.oid = a.indrelid
JOIN pg_namespace tn ON tn.oid = t.relnamespace
JOIN pg_class kc ON kc.oid = b.indexrelid
JOIN pg_am am ON am.oid = c.relam
-- Which of the two goes: the one that nothing needs; the one that is not unique; the younger.
WHERE NOT a.is_needed
  AND (b.is_needed OR (b.indisunique AND NOT a.indisunique)
       OR (b.indisunique = a.indisunique AND a.indexrelid > b.indexrelid))
ORDER BY a.indexrelid, b.is_needed DESC, b.indexrelid
"""


def _decide(facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding]:
    for row in rows:
        cost = index_cost.cost_of(facts, row)
        concurrently = "" if row["is_partitioned"] else "CONCURRENTLY "
        table = called(row["table_schema"], row["table_name"])
        kept = str(row["kept_name"])
        what = ", which has to stay" if row["kept_is_needed"] else ""
        yield RULE.finding(
            cost.severity,
            called(row["schema"], row["name"]),
            f"The index of {table} has the same columns, in the same order and of the same method, "
            f"as {kept}{what}; it costs {cost.text}.",
            remedy=Remedy(
                sql=(f"DROP INDEX {concurrently}{shown_relation(row['schema'], row['name'])}",),
                text=f"Drop it; {kept} serves the same queries, on standbys too.",
                lock="SHARE UPDATE EXCLUSIVE: readers and writers go on"
                if concurrently
                else "ACCESS EXCLUSIVE on the table, for a moment",
                cost="none",
                undo=row["definition"],
            ),
            price=cost.price,
            size_bytes=cost.size_bytes,
            entries_a_day=cost.entries_a_day,
            wal_bytes_a_day=cost.wal_bytes_a_day,
            kept=kept,
        )


RULE = Rule(
    id="duplicate-index",
    question="Which indexes are there twice?",
    book=("B9.31",),
    sql={15: _SQL},
    decide=_decide,
    counters=index_cost.COUNTERS,
    key=("oid",),
    threshold="Any two valid indexes of the same method, columns, operator classes, collations, "
    "orders, expressions and predicate. Never one that enforces a constraint or is a replica "
    "identity; a unique one only beside another unique one.",
    severity="warning from 1 GiB of pages or of WAL a day on, else info.",
    price="WAL a day of its entries where counters tell it, else its pages.",
    remedy="DROP INDEX CONCURRENTLY of the one that nothing needs.",
    blind="Two constraints on the same columns are both kept. Two that differ in a storage "
    "parameter (fillfactor) or an operator class's option count as the same.",
    link="https://www.postgresql.org/docs/current/indexes-multicolumn.html",
)
