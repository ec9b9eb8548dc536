"""
When autovacuum comes to a table: its threshold, by settings and storage parameters.
"""

from __future__ import annotations

from pgheadroom.doctor.rule import Facts, QueryRow
from pgheadroom.settings import arithmetic
from pgheadroom.units import PAGE_BYTES

SQL = """
SELECT c.oid::int8 AS oid, coalesce(o.oid, c.oid)::int8 AS table_oid,
       coalesce(on_.nspname, n.nspname) AS schema,
       coalesce(o.relname, c.relname) AS name, c.relkind = 't' AS is_toast,
       c.relpages, c.reltuples::float8 AS reltuples,
       pg_stat_get_live_tuples(c.oid) AS n_live_tup, pg_stat_get_dead_tuples(c.oid) AS n_dead_tup,
       extract(epoch FROM greatest(pg_stat_get_last_autovacuum_time(c.oid),
                                   pg_stat_get_last_vacuum_time(c.oid)))::float8 AS vacuum_epoch_s,
       -- A TOAST table without any of its own has all of its table's (do_autovacuum).
       (SELECT jsonb_object_agg(p.option_name, p.option_value)
        FROM pg_options_to_table(coalesce(c.reloptions, o.reloptions)) p) AS reloptions,
       c.relkind = 't' AND c.reloptions IS NOT NULL AS has_own_toast_options,
       -- Whose work it is, is hidden from a role that does not monitor.
       EXISTS (SELECT FROM pg_stat_progress_vacuum v
               WHERE v.datname = current_database()
                 AND coalesce(v.relid, c.oid) IN (c.oid, o.oid)) AS is_being_vacuumed
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_class o ON c.relkind = 't' AND o.reltoastrelid = c.oid
LEFT JOIN pg_namespace on_ ON on_.oid = o.relnamespace
WHERE c.relkind IN ('r', 'm', 't') AND c.relpersistence <> 't'
  AND coalesce(on_.nspname, n.nspname) <> 'information_schema'
  AND coalesce(on_.nspname, n.nspname) !~ '^pg_'
  AND pg_stat_get_dead_tuples(c.oid) * c.relpages > 0
"""


def trigger_rows(facts: Facts, row: QueryRow) -> float:
    """Dead rows from which on autovacuum vacuums the table."""
    return arithmetic.trigger_rows(facts.settings, row)


def is_switched_off(facts: Facts, row: QueryRow) -> bool:
    """Whether autovacuum comes to the table only to freeze it."""
    return arithmetic.is_switched_off(facts.settings, row)


def dead_bytes(row: QueryRow) -> float:
    """Of the table's pages, as many as dead rows are of all."""
    dead, live = int(row["n_dead_tup"]), int(row["n_live_tup"])
    return int(row["relpages"]) * PAGE_BYTES * dead / max(dead + live, 1)
