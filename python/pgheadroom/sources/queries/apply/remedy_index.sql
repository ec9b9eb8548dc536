-- An index that a step acts on, by its number or its name. Anyone: catalogs only; its text waits for
-- who holds its table exclusively.
SELECT c.oid::int8 AS oid, c.relfilenode::int8 AS relfilenode, n.nspname AS schema,
       c.relname AS name, i.indrelid::int8 AS table_oid, i.indisvalid AND i.indislive AS is_valid,
       pg_get_indexdef(c.oid) AS definition, s.spcname AS tablespace,
       obj_description(c.oid, 'pg_class') AS comment,
       (SELECT jsonb_object_agg(a.attnum, a.attstattarget)
        FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attstattarget >= 0) AS statistics,
       c.reltablespace = 0 OR has_tablespace_privilege(s.oid, 'CREATE') AS may_place,
       pg_relation_size(c.oid) AS size_bytes, pg_stat_get_numscans(c.oid) AS idx_scan
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_tablespace s ON s.oid = c.reltablespace
WHERE c.oid = %(oid)s::oid OR n.nspname = %(schema)s AND c.relname = %(name)s
ORDER BY (n.nspname = %(schema)s AND c.relname = %(name)s) DESC
