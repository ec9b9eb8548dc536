"""Indexes that a build without locks left unfinished: written by everybody, read by nobody."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgheadroom.doctor import index_cost
from pgheadroom.doctor.rule import Facts, QueryRow, Rule
from pgheadroom.doctor.values import Finding, Remedy
from pgheadroom.quoting import called, shown_relation

_TREE = "regexp_replace({}::text, ':location -?[0-9]+', '', 'g')"
"""An expression as stored, without the place in the statement that it came from; pg_get_expr would
wait for whoever holds the table."""

_SQL = f"""
SELECT i.indexrelid::int8 AS oid, n.nspname AS schema, c.relname AS name,
       tn.nspname AS table_schema, t.relname AS table_name,
       i.indisready AS is_ready, i.indisunique AS is_unique,
       -- By what it is, not by its name: anybody may name an index so.
       (SELECT quote_ident(vn.nspname) || '.' || quote_ident(vc.relname)
        FROM pg_index v
        JOIN pg_class vc ON vc.oid = v.indexrelid
        JOIN pg_namespace vn ON vn.oid = vc.relnamespace
        WHERE v.indrelid = i.indrelid AND v.indexrelid <> i.indexrelid AND v.indisvalid
          AND vc.relam = c.relam AND v.indnatts = i.indnatts AND v.indnkeyatts = i.indnkeyatts
          AND (v.indkey::text, v.indclass::text, v.indcollation::text, v.indoption::text)
            = (i.indkey::text, i.indclass::text, i.indcollation::text, i.indoption::text)
          AND v.indisexclusion = i.indisexclusion
          AND (NOT i.indisunique
               OR (v.indisunique AND v.indnullsnotdistinct = i.indnullsnotdistinct))
          AND vc.reloptions IS NOT DISTINCT FROM c.reloptions
          AND {_TREE.format("v.indexprs")} IS NOT DISTINCT FROM {_TREE.format("i.indexprs")}
          AND {_TREE.format("v.indpred")} IS NOT DISTINCT FROM {_TREE.format("i.indpred")}
          AND ARRAY(SELECT a.attoptions::text FROM pg_attribute a
                    WHERE a.attrelid = v.indexrelid ORDER BY a.attnum)
            = ARRAY(SELECT a.attoptions::text FROM pg_attribute a
                    WHERE a.attrelid = i.indexrelid ORDER BY a.attnum)
        ORDER BY v.indexrelid LIMIT 1) AS valid_one,
{index_cost.COLUMNS}
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid AND c.relkind = 'i'
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_class t ON t.oid = i.indrelid
JOIN pg_namespace tn ON tn.oid = t.relnamespace
JOIN pg_am am ON am.oid = c.relam
WHERE NOT i.indisvalid AND NOT c.relispartition
  -- None of a table on which indexes are being built: REINDEX has several at a time, and tells of
  -- one. What runs for others is hidden from some roles; then it is whoever holds the table so.
  AND NOT EXISTS (SELECT FROM pg_stat_progress_create_index p
                  WHERE p.datname = current_database()
                    AND (p.relid = i.indrelid
                         OR p.relid IS NULL
                            AND EXISTS (SELECT FROM pg_locks l
                                        WHERE l.pid = p.pid AND l.locktype = 'relation'
                                          AND l.relation = i.indrelid AND l.granted
                                          AND l.mode = 'ShareUpdateExclusiveLock'
                                          AND l.database = p.datid)))
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
        text = f"Drop it: {row['valid_one']} is the same, and valid. So REINDEX CONCURRENTLY "
        text += "leaves one behind."
        if row["valid_one"] is None:
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
            oid=int(row["oid"]),
            size_bytes=cost.size_bytes,
            entries_a_day=cost.entries_a_day,
            valid_one=row["valid_one"],
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
    remedy="REINDEX INDEX CONCURRENTLY; where a valid index of the table is the same, DROP INDEX "
    "CONCURRENTLY.",
    blind="An index on a partition is not told by itself; its parent's is by `partitioned-index`.",
    link="https://www.postgresql.org/docs/current/sql-createindex.html",
)
