"""Indexes that another one begins with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgheadroom.doctor import index_cost
from pgheadroom.doctor.rule import Facts, QueryRow, Rule
from pgheadroom.doctor.values import Finding, Remedy
from pgheadroom.quoting import called, shown_relation
from pgheadroom.units import PAGE_BYTES, show_bytes

_SQL = f"""
WITH own AS MATERIALIZED (
    SELECT i.indexrelid, i.indrelid, i.indnatts, i.indnkeyatts, i.indkey::text AS keys,
           i.indclass::text AS classes, i.indcollation::text AS collations,
           i.indoption::text AS options, i.indisunique,
           regexp_replace(i.indpred::text, ':location -?[0-9]+', '', 'g') AS pred,
           c.relispartition OR i.indisreplident OR i.indisclustered OR i.indisprimary
             OR i.indisexclusion
             OR EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid) AS is_needed
    FROM pg_index i
    JOIN pg_class c ON c.oid = i.indexrelid
    JOIN pg_am am ON am.oid = c.relam AND am.amname = 'btree'
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE i.indisvalid AND i.indexprs IS NULL
      AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
)
SELECT DISTINCT ON (a.indexrelid)
       a.indexrelid::int8 AS oid, n.nspname AS schema, c.relname AS name,
       tn.nspname AS table_schema, t.relname AS table_name, c.relkind = 'I' AS is_partitioned,
       kc.relname AS kept_name,
       {index_cost.PAGES.format(oid="b.indexrelid")} AS kept_relpages,
       b.indexrelid::int8 AS kept_oid,
       {index_cost.WHOLE.format(oid="b.indexrelid")}::int8 AS kept_whole_oid,
{index_cost.LEAF_COLUMNS}
FROM own a
-- As many keys and more columns are those of INCLUDE, which have no class nor order.
JOIN own b ON b.indrelid = a.indrelid AND b.indnkeyatts >= a.indnkeyatts
  AND starts_with(b.keys, a.keys || ' ') AND starts_with(b.classes || ' ', a.classes || ' ')
  AND starts_with(b.collations || ' ', a.collations || ' ')
  AND starts_with(b.options || ' ', a.options || ' ') AND b.pred IS NOT DISTINCT FROM a.pred
JOIN pg_index i ON i.indexrelid = a.indexrelid
JOIN pg_class c ON c.oid = a.indexrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_class t ON t.oid = a.indrelid
JOIN pg_namespace tn ON tn.oid = t.relnamespace
JOIN pg_class kc ON kc.oid = b.indexrelid
JOIN pg_am am ON am.oid = c.relam
{index_cost.LEAVES}
WHERE NOT a.is_needed AND NOT a.indisunique AND a.indnatts = a.indnkeyatts
ORDER BY a.indexrelid, kept_relpages, b.indexrelid
"""


def _decide(facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding]:
    for row in rows:
        cost = index_cost.cost_of(facts, row)
        kept, kept_bytes = str(row["kept_name"]), int(row["kept_relpages"]) * PAGE_BYTES
        concurrently = "" if row["is_partitioned"] else "CONCURRENTLY "
        table = called(row["table_schema"], row["table_name"])
        yield RULE.finding(
            "info",
            called(row["schema"], row["name"]),
            f"{kept} begins with all columns of this index of {table}; it costs {cost.text}, and "
            f"its {row['idx_scan']:,} reads would go to one of {show_bytes(kept_bytes)}.",
            remedy=Remedy(
                sql=(f"DROP INDEX {concurrently}{shown_relation(row['schema'], row['name'])}",),
                text=f"Drop it if a wider index is as good for its queries: entries of {kept} are "
                "longer, so fewer lie on a page, and duplicates fold less.",
                lock="SHARE UPDATE EXCLUSIVE: readers and writers go on"
                if concurrently
                else "ACCESS EXCLUSIVE on the table and its partitions, for a moment",
                cost="reads go to more pages",
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
            kept_size_bytes=kept_bytes,
        )


RULE = Rule(
    id="overlapping-index",
    question="Which indexes does another one begin with?",
    book=("B9.31", "B9.30"),
    sql={15: _SQL},
    decide=_decide,
    counters=index_cost.COUNTERS,
    key=("oid",),
    threshold="All columns of a B-tree are the first key columns of another, in the same order, of "
    "the same classes, collations and predicate; the other has more of them, or includes some "
    "(INCLUDE). Never one that includes columns itself, a unique "
    "one, one that enforces a constraint or is a replica identity.",
    severity="info: the narrower one is quicker to read, so which is better is a question of use.",
    price="WAL a day of its entries where counters tell it, else its pages.",
    remedy="DROP INDEX CONCURRENTLY of the narrower one.",
    blind="Indexes on expressions are not compared. Which queries read it is not known.",
    link="https://www.postgresql.org/docs/current/indexes-multicolumn.html",
)
