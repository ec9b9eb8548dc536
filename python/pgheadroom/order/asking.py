"""
What is asked of a database: B-trees and their keys, counters, statements.

Nothing here reads a row or waits for a lock. What a role may not see is null, and is told.
"""

from __future__ import annotations

from collections.abc import Iterable

from pgheadroom.sources.since import SINCE_EPOCH_S

_OURS = "n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'"

MOMENT_SQL = f"""
SELECT extract(epoch FROM now())::float8 AS now_s,
       current_database()::text AS database,
       current_setting('server_version') AS server_version,
       pg_is_in_recovery() AS in_recovery,
       pg_has_role('pg_monitor', 'USAGE') OR pg_has_role('pg_read_all_stats', 'USAGE') AS monitors,
       quote_ident(current_user) AS role,
       {SINCE_EPOCH_S} AS since_epoch_s
"""
"""Who asks whom, and since when statistics count."""

INDEXES_SQL = f"""
SELECT i.indexrelid::int8 AS oid, i.indrelid::int8 AS table_oid, n.nspname::text AS schema,
       c.relname::text AS table, ic.relname::text AS name, ic.relpages AS pages,
       i.indisclustered AS is_marked, i.indisunique AS is_unique, i.indisprimary AS is_primary,
       i.indpred IS NOT NULL AS is_partial, tam.amname::text AS table_method,
       c.relpersistence::text AS persistence, c.relfilenode <> c.oid AS was_rewritten,
       has_table_privilege(c.oid, 'SELECT') AS is_readable,
       row_security_active(c.oid) AS has_row_security,
       pg_stat_get_numscans(i.indexrelid)::int8 AS scans,
       pg_stat_get_tuples_returned(i.indexrelid)::int8 AS entries,
       (SELECT jsonb_agg(jsonb_build_object(
           'name', coalesce(a.attname::text, '(expression)'),
           'is_column', a.attnum IS NOT NULL,
           'not_null', coalesce(a.attnotnull, false),
           'option', (i.indoption::int2[])[k - 1],
           'type', format_type(coalesce(t.oid, a.atttypid), NULL),
           'is_known', coalesce(
               t.typtype = 'b' AND t.typnamespace = 'pg_catalog'::regnamespace, false)
             OR coalesce(t.typtype = 'e', false),
           'is_own_collation', coalesce((i.indcollation::oid[])[k - 1] = a.attcollation, false),
           'is_default', coalesce((SELECT o.opcdefault FROM pg_opclass o
                                   WHERE o.oid = (i.indclass::oid[])[k - 1]), false),
           'typlen', coalesce(t.typlen, -1), 'avg_width', s.avg_width,
           'correlation', s.correlation::float8, 'n_distinct', s.n_distinct::float8,
           'has_statistics', s.attname IS NOT NULL) ORDER BY k)
        FROM generate_series(1, i.indnkeyatts) k
        LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[k - 1]
          AND a.attnum > 0
        LEFT JOIN pg_type own ON own.oid = a.atttypid
        LEFT JOIN pg_type t ON t.oid = CASE own.typtype WHEN 'd' THEN own.typbasetype
                                                        ELSE own.oid END
        LEFT JOIN pg_stats s ON NOT s.inherited
          AND (s.schemaname, s.tablename, s.attname) = (n.nspname, c.relname, a.attname)
       ) AS keys
FROM pg_index i
JOIN pg_class ic ON ic.oid = i.indexrelid AND ic.relkind = 'i'
JOIN pg_am am ON am.oid = ic.relam AND am.amname = 'btree'
JOIN pg_class c ON c.oid = i.indrelid AND c.relkind IN ('r', 'm') AND c.relpersistence <> 't'
JOIN pg_am tam ON tam.oid = c.relam
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE i.indisvalid AND {_OURS} AND c.relpages >= {{pages_min}}
ORDER BY c.relpages DESC, i.indrelid, ic.relname
"""
"""Valid B-trees of tables of at least `pages_min` pages, the largest tables first."""

LEFT_SQL = f"""
SELECT count(*) FILTER (WHERE c.reltuples >= 0 AND c.relpages > 0)::int8 AS small,
       count(*) FILTER (WHERE c.reltuples < 0 AND pg_stat_get_live_tuples(c.oid) > 10000)::int8
         AS unknown
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'm') AND c.relpersistence <> 't' AND {_OURS}
  AND c.relpages < {{pages_min}}
"""
"""How many tables are smaller, and how many have rows and no size that anybody wrote down."""

_COUNTERS = """
SELECT c.oid::int8 AS oid,
       pg_stat_get_tuples_inserted(c.oid)::int8 AS inserts,
       pg_stat_get_tuples_updated(c.oid)::int8 AS updates,
       pg_stat_get_tuples_hot_updated(c.oid)::int8 AS hot_updates,
       {newpage} AS newpage_updates,
       pg_stat_get_tuples_deleted(c.oid)::int8 AS deletes,
       pg_stat_get_blocks_fetched(c.oid)::int8 AS blocks,
       pg_stat_get_blocks_hit(c.oid)::int8 AS blocks_hit
FROM pg_class c WHERE c.oid IN ({oids})
"""

_STATEMENTS = """
SELECT s.queryid::int8 AS queryid, min(s.query) AS query, sum(s.calls)::int8 AS calls,
       sum(s.rows)::int8 AS rows,
       sum(s.shared_blks_hit + s.shared_blks_read)::int8 AS blocks,
       sum(s.shared_blks_read)::int8 AS blocks_read
FROM {schema}.pg_stat_statements s
WHERE s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND s.queryid IS NOT NULL
GROUP BY s.queryid
ORDER BY 5 DESC LIMIT 1000
"""


NAMESAKES_SQL = """
SELECT relname::text AS name, count(*)::int8 AS tables
FROM pg_class WHERE relkind IN ('r', 'm', 'p', 'v', 'f') GROUP BY relname HAVING count(*) > 1
"""
"""Names that several tables have, in different schemas."""


def counters_sql(oids: Iterable[int], major: int) -> str:
    """Rows changed and pages fetched, of tables."""
    newpage = "NULL::int8"
    if major >= 16:
        newpage = "pg_stat_get_tuples_newpage_updated(c.oid)::int8"
    return _COUNTERS.format(oids=", ".join(f"{int(oid)}" for oid in oids), newpage=newpage)


def index_counters_sql(oids: Iterable[int]) -> str:
    """Scans of indexes and entries that they gave."""
    listed = ", ".join(f"{int(oid)}" for oid in oids)
    return f"""
SELECT c.oid::int8 AS oid, pg_stat_get_numscans(c.oid)::int8 AS scans,
       pg_stat_get_tuples_returned(c.oid)::int8 AS entries
FROM pg_class c WHERE c.oid IN ({listed})
"""


def statements_sql(schema: str) -> str:
    """Statements of this database that touched most pages."""
    return _STATEMENTS.format(schema=schema)
