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
           i.indoption::text AS options, i.indisunique, i.indnullsnotdistinct, i.indimmediate,
           regexp_replace(i.indexprs::text, ':location -?[0-9]+', '', 'g') AS exprs,
           regexp_replace(i.indpred::text, ':location -?[0-9]+', '', 'g') AS pred,
           -- What changes which queries an index serves, and how well (BRIN, bloom, classes).
           (SELECT jsonb_object_agg(p.option_name, p.option_value)
            FROM pg_options_to_table(c.reloptions) p
            WHERE p.option_name NOT IN ('fillfactor', 'deduplicate_items', 'buffering',
                                        'fastupdate', 'gin_pending_list_limit')) AS parameters,
           ARRAY(SELECT at.attoptions::text FROM pg_attribute at
                 WHERE at.attrelid = i.indexrelid ORDER BY at.attnum) AS of_classes,
           pg_stat_get_numscans(i.indexrelid) AS scans,
           -- A partition's part of an index stays as long as the whole.
           c.relispartition OR i.indisreplident OR i.indisclustered OR i.indisprimary
             OR i.indisexclusion
             OR EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid) AS is_needed
    FROM pg_index i
    JOIN pg_class c ON c.oid = i.indexrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE i.indisvalid
      AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
)
SELECT DISTINCT ON (a.indexrelid)
       a.indexrelid::int8 AS oid, n.nspname AS schema, c.relname AS name,
       tn.nspname AS table_schema, t.relname AS table_name, c.relkind = 'I' AS is_partitioned,
       kc.relname AS kept_name, b.is_needed AS kept_is_needed, b.indisunique AS kept_is_unique,
       b.indexrelid::int8 AS kept_oid,
       {index_cost.WHOLE.format(oid="b.indexrelid")}::int8 AS kept_whole_oid,
{index_cost.LEAF_COLUMNS}
FROM own a
JOIN own b ON b.indrelid = a.indrelid AND b.indexrelid <> a.indexrelid
  AND (b.relam, b.indnatts, b.indnkeyatts, b.keys, b.classes, b.collations, b.options)
    = (a.relam, a.indnatts, a.indnkeyatts, a.keys, a.classes, a.collations, a.options)
  AND b.exprs IS NOT DISTINCT FROM a.exprs AND b.pred IS NOT DISTINCT FROM a.pred
  AND b.parameters IS NOT DISTINCT FROM a.parameters
  AND b.of_classes IS NOT DISTINCT FROM a.of_classes
  AND (NOT a.indisunique
       OR (b.indisunique AND b.indnullsnotdistinct = a.indnullsnotdistinct
           AND (b.indimmediate OR NOT a.indimmediate)))
JOIN pg_index i ON i.indexrelid = a.indexrelid
JOIN pg_class c ON c.oid = a.indexrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_class t ON t.oid = a.indrelid
JOIN pg_namespace tn ON tn.oid = t.relnamespace
JOIN pg_class kc ON kc.oid = b.indexrelid
JOIN pg_am am ON am.oid = c.relam
{index_cost.LEAVES}
-- Which goes: what nothing needs, is not unique, is read less, is younger, in this order. The one
-- that is kept is the first of all, which does not go for another.
WHERE NOT a.is_needed
  AND (b.is_needed, b.indisunique, b.scans, 0 - b.indexrelid::int8)
    > (a.is_needed, a.indisunique, a.scans, 0 - a.indexrelid::int8)
ORDER BY a.indexrelid, b.is_needed DESC, b.indisunique DESC, b.scans DESC, b.indexrelid
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
                else "ACCESS EXCLUSIVE on the table and its partitions, for a moment",
                cost="none",
            ),
            price=cost.price,
            size_bytes=cost.size_bytes,
            entries_a_day=cost.entries_a_day,
            wal_bytes_a_day=cost.wal_bytes_a_day,
            idx_scan=int(row["idx_scan"]),
            index_oid=int(row["oid"]),
            kept=kept,
            kept_oid=int(row["kept_oid"]),
            kept_whole_oid=int(row["kept_whole_oid"]),
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
    "orders, expressions, predicate and storage parameters. Never one that enforces a constraint "
    "or is a replica identity; a unique one only beside another unique one that is checked as "
    "early. Which one goes: what nothing needs, is not unique, was read less, is younger, in this "
    "order.",
    severity="warning from 1 GiB of pages or of WAL a day on, else info.",
    price="WAL a day of its entries where counters tell it, else its pages.",
    remedy="DROP INDEX CONCURRENTLY of the one that nothing needs.",
    blind="Two constraints on the same columns are both kept. Two that differ in "
    "fillfactor, deduplicate_items, buffering or GIN's pending list count as the same.",
    link="https://www.postgresql.org/docs/current/indexes-multicolumn.html",
)
