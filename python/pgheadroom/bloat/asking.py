"""
What is asked of a database: catalogs, pg_stats as far as the role may see it, counters.

Nothing here reads a row or waits for a lock. The size of a relation would wait for whoever holds
it, so it is asked by itself, where nobody does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pgheadroom.quoting import literal

RelationRow = Mapping[str, Any]
Ask = Callable[[str], Sequence[RelationRow]]
"""Gives the rows of a query."""

_DOMAINS = """
RECURSIVE domains AS (
    SELECT t.oid AS domain, t.typbasetype AS oid, t.typtypmod AS typmod
    FROM pg_type t WHERE t.typtype = 'd'
    UNION ALL
    SELECT d.domain, t.typbasetype, t.typtypmod
    FROM domains d JOIN pg_type t ON t.oid = d.oid AND t.typtype = 'd'
), base AS MATERIALIZED (
    SELECT d.* FROM domains d JOIN pg_type t ON t.oid = d.oid AND t.typtype <> 'd'
)"""
_OURS = "n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'"
_COUNTS = """
         pg_stat_get_live_tuples({oid}) AS n_live_tup,
         pg_stat_get_mod_since_analyze({oid}) AS n_mod_since_analyze,
         greatest(pg_stat_get_last_analyze_time({oid}),
                  pg_stat_get_last_autoanalyze_time({oid})) IS NOT NULL AS is_analyzed,
         greatest(pg_stat_get_last_vacuum_time({oid}),
                  pg_stat_get_last_autovacuum_time({oid})) IS NOT NULL AS is_vacuumed,
         greatest(pg_stat_get_last_vacuum_time({oid}), pg_stat_get_last_autovacuum_time({oid}))
           > greatest(pg_stat_get_last_analyze_time({oid}),
                      pg_stat_get_last_autoanalyze_time({oid})) AS is_vacuumed_later"""
_TARGET = "coalesce(nullif(a.attstattarget, -1), current_setting('default_statistics_target')::int)"

HEAP_SQL = f"""
WITH {_DOMAINS}, big AS MATERIALIZED (
    SELECT c.oid, n.nspname, c.relname, c.relpages, c.reltuples, c.reloptions, c.reltoastrelid,
           c.relfilenode
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_am am ON am.oid = c.relam AND am.amname IN ({{methods}})
    LEFT JOIN pg_class tc ON tc.oid = c.reltoastrelid
    WHERE c.relkind IN ('r', 'm') AND c.relpersistence <> 't' AND {_OURS}
      AND (c.relpages >= {{pages_min}} OR tc.relpages >= {{pages_min}})
)
SELECT b.oid::int8 AS oid, b.nspname AS schema, b.relname AS name, b.relpages,
       b.reltuples::float8 AS reltuples, {_COUNTS.format(oid="b.oid")},
       (SELECT p.option_value FROM pg_options_to_table(b.reloptions) p
        WHERE p.option_name = 'fillfactor') AS fillfactor,
       tc.oid::int8 AS toast_oid, tc.relpages AS toast_relpages,
       tc.reltuples::float8 AS toast_reltuples,
       pg_stat_get_live_tuples(tc.oid) AS toast_n_live_tup,
       greatest(pg_stat_get_last_vacuum_time(tc.oid),
                pg_stat_get_last_autovacuum_time(tc.oid)) IS NOT NULL AS toast_is_vacuumed,
       (SELECT max({_TARGET}) FROM pg_attribute a
        WHERE a.attrelid = b.oid AND a.attnum > 0) AS statistics_target,
       jsonb_agg(jsonb_build_object(
         'name', a.attname, 'attnum', a.attnum,
         'type', format_type(coalesce(d.oid, a.atttypid), coalesce(d.typmod, a.atttypmod)),
         'is_user_type', coalesce(t.typnamespace <> 'pg_catalog'::regnamespace, true),
         'typlen', a.attlen, 'typalign', a.attalign, 'not_null', a.attnotnull,
         'storage', a.attstorage,
         'has_missing', a.atthasmissing, 'is_dropped', a.attisdropped,
         'is_virtual', a.attgenerated = 'v',
         'avg_width', s.avg_width, 'null_frac', s.null_frac, 'n_distinct', s.n_distinct)
         ORDER BY a.attnum) AS columns
FROM big b
LEFT JOIN pg_class tc ON tc.oid = b.reltoastrelid
JOIN pg_attribute a ON a.attrelid = b.oid AND a.attnum > 0
LEFT JOIN base d ON d.domain = a.atttypid
LEFT JOIN pg_type t ON t.oid = coalesce(d.oid, a.atttypid)
LEFT JOIN pg_stats s ON (s.schemaname, s.tablename, s.attname) = (b.nspname, b.relname, a.attname)
  AND NOT s.inherited
GROUP BY b.oid, b.nspname, b.relname, b.relpages, b.reltuples, b.reloptions, tc.oid, tc.relpages,
         tc.reltuples
"""
"""Tables of at least `pages_min` pages, or whose TOAST table has as many; their columns.

`methods` are access methods, as literals: of those whose pages are heap's."""

BTREE_SQL = f"""
WITH {_DOMAINS}, big AS MATERIALIZED (
    SELECT i.indexrelid AS oid, i.indrelid, n.nspname, c.relname, c.relpages, c.reltuples,
           c.reloptions, i.indisunique, i.indnkeyatts, i.indnatts, i.indkey, i.indclass,
           i.indcollation, i.indpred IS NOT NULL AS is_partial,
           tn.nspname AS table_schema, tc.relname AS table_name,
           tc.reltuples AS table_reltuples, tc.relpages AS table_relpages, i.indisexclusion,
           c.relpersistence = 'p' AS is_logged
    FROM pg_index i
    JOIN pg_class c ON c.oid = i.indexrelid AND c.relkind = 'i'
    JOIN pg_am am ON am.oid = c.relam AND am.amname = 'btree'
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_class tc ON tc.oid = i.indrelid
    JOIN pg_namespace tn ON tn.oid = tc.relnamespace
    WHERE i.indisvalid AND i.indisready AND c.relpersistence <> 't' AND {_OURS}
      AND c.relpages >= {{pages_min}}
)
SELECT b.oid::int8 AS oid, b.nspname AS schema, b.relname AS name, b.relpages,
       b.reltuples::float8 AS reltuples, b.table_schema, b.table_name,
       b.indrelid::int8 AS table_oid,
       b.table_reltuples::float8 AS table_reltuples, b.table_relpages,
       {_COUNTS.format(oid="b.indrelid")},
       b.is_partial, b.indisexclusion AS is_exclusion, b.is_logged,
       b.indisunique AS is_unique, b.indnkeyatts AS key_count,
       (SELECT p.option_value FROM pg_options_to_table(b.reloptions) p
        WHERE p.option_name = 'fillfactor') AS fillfactor,
       (SELECT p.option_value FROM pg_options_to_table(b.reloptions) p
        WHERE p.option_name = 'deduplicate_items') AS deduplicate_items,
       -- As _bt_allequalimage asks: every key's operator class has the support function 4
       -- (btequalimage; btvarstrequalimage where its collation is deterministic).
       b.indnatts = b.indnkeyatts AND (
         SELECT bool_and(EXISTS (
           SELECT FROM pg_opclass o
           JOIN pg_amproc m ON m.amprocfamily = o.opcfamily AND m.amprocnum = 4
             AND m.amproclefttype = o.opcintype AND m.amprocrighttype = o.opcintype
           LEFT JOIN pg_collation l ON l.oid = b.indcollation[k - 1]
           WHERE o.oid = b.indclass[k - 1]
             AND (m.amproc <> 'pg_catalog.btvarstrequalimage'::regproc
                  OR l.collisdeterministic)))
         FROM generate_series(1, b.indnkeyatts) k) AS is_all_equal_image,
       (SELECT max({_TARGET}) FROM pg_attribute a
        WHERE a.attrelid IN (b.indrelid, b.oid) AND a.attnum > 0) AS statistics_target,
       jsonb_agg(jsonb_build_object(
         'name', CASE WHEN a.attnum <= b.indnatts AND b.indkey[a.attnum - 1] <> 0
                      THEN ta.attname ELSE a.attname END,
         'attnum', b.indkey[a.attnum - 1],
         'of_index', b.indkey[a.attnum - 1] = 0,
         'type', format_type(coalesce(d.oid, a.atttypid), coalesce(d.typmod, a.atttypmod)),
         'is_user_type', t.typnamespace <> 'pg_catalog'::regnamespace,
         'typlen', a.attlen, 'typalign', a.attalign, 'not_null', coalesce(ta.attnotnull, false),
         'has_missing', coalesce(ta.atthasmissing, false), 'is_dropped', false, 'is_virtual', false,
         'avg_width', s.avg_width, 'null_frac', s.null_frac, 'n_distinct', s.n_distinct,
         'is_set', coalesce(ta.attoptions::text ~ 'n_distinct=', false))
         ORDER BY a.attnum) AS columns
FROM big b
JOIN pg_attribute a ON a.attrelid = b.oid AND a.attnum > 0
LEFT JOIN pg_attribute ta ON ta.attrelid = b.indrelid AND ta.attnum = b.indkey[a.attnum - 1]
  AND ta.attnum > 0
LEFT JOIN base d ON d.domain = a.atttypid
LEFT JOIN pg_type t ON t.oid = coalesce(d.oid, a.atttypid)
LEFT JOIN pg_stats s ON NOT s.inherited AND CASE WHEN ta.attnum IS NULL
  THEN (s.schemaname, s.tablename, s.attname) = (b.nspname, b.relname, a.attname)
  ELSE (s.schemaname, s.tablename, s.attname) = (b.table_schema, b.table_name, ta.attname) END
GROUP BY b.oid, b.nspname, b.relname, b.relpages, b.reltuples, b.table_schema, b.table_name,
         b.table_reltuples, b.table_relpages, b.indrelid, b.is_partial, b.indisunique,
         b.indisexclusion, b.is_logged,
         b.indnkeyatts, b.indnatts, b.indclass, b.indcollation, b.reloptions
"""
"""B-trees of at least `pages_min` pages, and the columns of their entries."""

DISTINCT_SQL = """
SELECT e.schemaname AS schema, e.tablename AS name, e.n_distinct::text AS n_distinct
FROM pg_stats_ext e WHERE e.n_distinct IS NOT NULL AND NOT e.inherited
"""
"""How many different values groups of columns have, where extended statistics say it."""


_TEXTS = ("cstring", "text", "character varying", "character(", "bpchar")
"""Types whose text is the value itself: a cast of it would be none."""


def size_sql(oids: Iterable[int]) -> str:
    """Pages of relations now, without waiting: those that somebody holds are not in the answer."""
    listed = ", ".join(f"{int(oid)}" for oid in oids)
    return f"""
SELECT c.oid::int8 AS oid, (pg_relation_size(c.oid) / 8192)::int8 AS pages
FROM pg_class c
WHERE c.oid IN ({listed})
  AND NOT EXISTS (SELECT FROM pg_locks l
                  WHERE l.locktype = 'relation' AND l.mode = 'AccessExclusiveLock'
                    AND l.relation = c.oid
                    AND l.database = (SELECT oid FROM pg_database
                                      WHERE datname = current_database()))
"""


def widths_sql(schema: str, relation: str, columns: Sequence[tuple[str, str]]) -> str:
    """
    The widths of the values that statistics have, and how common these are; no value leaves it.

    Args:
        schema: Of whose statistics it is.
        relation: Its name, a table's or an index's.
        columns: Names, and types as the server spells them, of variable length and built in.
    """
    parts = []
    for name, type_name in columns:
        # What a cast gives is a new value, with the four bytes of a header that is not packed.
        is_text = type_name.startswith(_TEXTS)
        width = "octet_length(v)" if is_text else f"pg_column_size(v::{type_name}) - 4"
        parts.append(f"""
SELECT s.attname::text AS name,
       (SELECT array_agg({width} ORDER BY n)
        FROM unnest(s.most_common_vals::text::text[]) WITH ORDINALITY u (v, n)) AS common_widths,
       s.most_common_freqs::float8[] AS common_fracs,
       (SELECT array_agg({width})
        FROM unnest(s.histogram_bounds::text::text[]) v) AS widths
FROM pg_stats s
WHERE NOT s.inherited AND s.schemaname = {literal(schema)}
  AND s.tablename = {literal(relation)} AND s.attname = {literal(name)}""")
    return "\nUNION ALL".join(parts)


def common_sql(schema: str, relation: str, columns: Sequence[str]) -> str:
    """How common the most common values of columns are, whatever their type."""
    listed = ", ".join(literal(name) for name in columns)
    return f"""
SELECT s.attname::text AS name, s.most_common_freqs::float8[] AS common_fracs
FROM pg_stats s
WHERE NOT s.inherited AND s.schemaname = {literal(schema)}
  AND s.tablename = {literal(relation)} AND s.attname IN ({listed})"""
