"""
What `watch` asks a server, by version: four short statements a tick, none of which needs a lock.

Statistics of tables are read by their functions and not by `pg_stat_all_tables`, which joins every
index to sum what nobody here looks at. Who holds the horizon is the doctor's query.
"""

from __future__ import annotations

from collections.abc import Mapping

from pgheadroom.doctor import rule_named

_MOMENT = """
SELECT extract(epoch FROM clock_timestamp())::float8 AS at_epoch_s,
       extract(epoch FROM pg_postmaster_start_time())::float8 AS started_epoch_s,
       current_setting('server_version') AS server_version,
       current_database() AS database,
       r.in_recovery,
       pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')
         OR (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) AS monitors,
       (CASE WHEN r.in_recovery THEN pg_last_wal_replay_lsn()
             ELSE pg_current_wal_insert_lsn() END - '0/0'::pg_lsn)::int8 AS wal_position_bytes,
       w.wal_fpi, extract(epoch FROM w.stats_reset)::float8 AS wal_reset_epoch_s,
       (SELECT extract(epoch FROM d.stats_reset)::float8 FROM pg_stat_database d
        WHERE d.datname = current_database()) AS tables_reset_epoch_s,
       {checkpoints},
       extract(epoch FROM c.stats_reset)::float8 AS checkpoints_reset_epoch_s,
       -- It waits for work in its main loop, for anything else in a checkpoint.
       (SELECT a.wait_event_type IS NOT NULL AND a.wait_event_type <> 'Activity'
        FROM pg_stat_activity a WHERE a.backend_type = 'checkpointer') AS is_writing
FROM (SELECT pg_is_in_recovery() AS in_recovery) r
CROSS JOIN pg_stat_wal w CROSS JOIN {view} c
"""
MOMENT: Mapping[int, str] = {
    15: _MOMENT.format(
        checkpoints="c.checkpoints_timed AS num_timed, c.checkpoints_req AS num_requested",
        view="pg_stat_bgwriter",
    ),
    17: _MOMENT.format(
        checkpoints="c.num_timed, c.num_requested",
        view="pg_stat_checkpointer",
    ),
}

# The clock stands beside the rows of one statement, for rates are of that moment. A table of which
# nothing is counted is left out: it counts as one with nothing.
_TABLES = """
SELECT extract(epoch FROM m.at)::float8 AS at_epoch_s, t.*
FROM (SELECT clock_timestamp() AS at) m LEFT JOIN (
    SELECT c.oid::int8 AS oid, n.nspname AS schema, c.relname AS name, s.*
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    CROSS JOIN LATERAL (
        SELECT pg_stat_get_tuples_inserted(c.oid) AS n_tup_ins,
               pg_stat_get_tuples_updated(c.oid) AS n_tup_upd,
               pg_stat_get_tuples_hot_updated(c.oid) AS n_tup_hot_upd,
               {newpage} AS n_tup_newpage_upd,
               pg_stat_get_tuples_deleted(c.oid) AS n_tup_del,
               pg_stat_get_live_tuples(c.oid) AS n_live_tup,
               pg_stat_get_dead_tuples(c.oid) AS n_dead_tup
        OFFSET 0) s
    WHERE c.relkind = 'r' AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
      AND s.n_tup_ins + s.n_tup_upd + s.n_tup_del + s.n_dead_tup > 0
) t ON true
"""
TABLES: Mapping[int, str] = {
    15: _TABLES.format(newpage="NULL::int8"),
    16: _TABLES.format(newpage="pg_stat_get_tuples_newpage_updated(c.oid)"),
}

# A TOAST table is told by its owner's name. Of another database's table only the number is known.
_VACUUMS = """
SELECT p.pid, p.datname::text AS database, p.datname = current_database() AS is_here,
       p.relid::int8 AS oid, n.nspname AS schema, coalesce(o.relname, c.relname) AS name,
       o.oid IS NOT NULL AS is_toast, p.phase,
       p.heap_blks_total, p.heap_blks_scanned, p.heap_blks_vacuumed, p.index_vacuum_count,
       {items} AS dead_items, {indexes},
       a.backend_type = 'autovacuum worker' AS is_auto,
       extract(epoch FROM clock_timestamp() - a.xact_start)::float8 AS for_s
FROM pg_stat_progress_vacuum p
LEFT JOIN pg_stat_activity a ON a.pid = p.pid
LEFT JOIN pg_class c ON c.oid = p.relid AND p.datname = current_database()
LEFT JOIN pg_class o ON o.reltoastrelid = c.oid AND c.relkind = 't'
LEFT JOIN pg_namespace n ON n.oid = coalesce(o.relnamespace, c.relnamespace)
ORDER BY a.xact_start, p.pid
"""
VACUUMS: Mapping[int, str] = {
    15: _VACUUMS.format(
        items="p.num_dead_tuples",
        indexes="NULL::int8 AS indexes_total, NULL::int8 AS indexes_processed",
    ),
    17: _VACUUMS.format(
        items="p.num_dead_item_ids", indexes="p.indexes_total, p.indexes_processed"
    ),
}


def text_for(texts: Mapping[int, str], major: int) -> str:
    """The text that stands for a version."""
    return texts[max(since for since in texts if since <= major)]


def holders_for(major: int) -> str:
    """Who keeps dead rows from being removed: the doctor's query."""
    text = rule_named("horizon-holder").text_for(major)
    assert text is not None, "the rule has a query for every version from 15 on"
    return text
