-- Tables, partitioned parents and their TOAST tables. Anyone: catalogs only.
SELECT c.oid::int8 AS oid, n.nspname AS schema, c.relname AS name, c.relkind::text AS relkind,
       c.relpersistence::text AS relpersistence, c.relfilenode::int8 AS relfilenode,
       c.reltuples::float8 AS reltuples, c.relpages, c.relallvisible,
       c.relrowsecurity AS row_security, c.relreplident::text AS replica_identity,
       am.amname AS access_method,
       has_table_privilege(c.oid, 'SELECT') AS readable,
       (SELECT jsonb_object_agg(o.option_name, o.option_value)
        FROM pg_options_to_table(c.reloptions) o) AS reloptions,
       nullif(c.reltoastrelid, 0)::int8 AS toast_oid,
       (SELECT jsonb_object_agg(o.option_name, o.option_value)
        FROM pg_class t, pg_options_to_table(t.reloptions) o
        WHERE t.oid = c.reltoastrelid) AS toast_reloptions,
       i.inhparent::int8 AS parent_oid, c.relispartition AS is_partition,
       p.partstrat::text AS partition_strategy, nullif(p.partdefid, 0)::int8 AS default_oid,
       -- Each column that the key reads belongs to the table for it (StorePartitionKey, heap.c).
       (SELECT jsonb_agg(DISTINCT d.objsubid) FROM pg_depend d
        WHERE d.classid = 'pg_class'::regclass AND d.objid = p.partrelid AND d.objsubid > 0
          AND d.refclassid = 'pg_class'::regclass AND d.refobjid = p.partrelid
          AND d.refobjsubid = 0) AS partition_attnums
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_am am ON am.oid = c.relam
LEFT JOIN pg_inherits i ON i.inhrelid = c.oid AND i.inhseqno = 1
LEFT JOIN pg_partitioned_table p ON p.partrelid = c.oid
WHERE c.relkind IN ('r', 'p') AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
ORDER BY n.nspname, c.relname
