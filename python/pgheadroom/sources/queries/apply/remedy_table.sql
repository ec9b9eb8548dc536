-- A table that a step acts on. Anyone: catalogs and counters.
SELECT c.oid::int8 AS oid, c.relfilenode::int8 AS relfilenode, n.nspname AS schema,
       c.relname AS name, pg_relation_size(c.oid) AS size_bytes,
       pg_relation_size(nullif(c.reltoastrelid, 0)) AS toast_bytes,
       pg_stat_get_vacuum_count(c.oid) + pg_stat_get_autovacuum_count(c.oid) AS vacuums,
       pg_stat_get_vacuum_count(nullif(c.reltoastrelid, 0))
         + pg_stat_get_autovacuum_count(nullif(c.reltoastrelid, 0)) AS toast_vacuums,
       pg_stat_get_analyze_count(c.oid) + pg_stat_get_autoanalyze_count(c.oid) AS analyzes,
       pg_stat_get_tuples_deleted(%(referenced)s::oid) AS deletes,
       has_schema_privilege(c.relnamespace, 'CREATE') AS may_create,
       (SELECT coalesce(jsonb_object_agg(o.option_name, o.option_value), '{}')
        FROM pg_options_to_table(c.reloptions) o) AS options,
       (SELECT coalesce(jsonb_object_agg('toast.' || o.option_name, o.option_value), '{}')
        FROM pg_class t, pg_options_to_table(t.reloptions) o
        WHERE t.oid = c.reltoastrelid) AS toast_options
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = %(oid)s::oid
