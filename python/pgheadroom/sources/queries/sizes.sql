-- Bytes of each fork of tables and indexes. Anyone. Takes ACCESS SHARE on each relation for a
-- moment, so relations that somebody holds or wants exclusively are left out.
WITH busy AS MATERIALIZED (
    SELECT DISTINCT l.relation FROM pg_locks l
    WHERE l.locktype = 'relation' AND l.mode = 'AccessExclusiveLock'
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
)
SELECT c.oid::int8 AS oid, c.relfilenode::int8 AS relfilenode,
       pg_relation_size(c.oid, 'main') AS main_bytes,
       CASE WHEN c.relkind <> 'i' THEN pg_relation_size(c.oid, 'fsm') END AS fsm_bytes
FROM pg_class c
LEFT JOIN pg_class owner ON c.relkind = 't' AND owner.reltoastrelid = c.oid
LEFT JOIN pg_index indexed ON c.relkind = 'i' AND indexed.indexrelid = c.oid
JOIN pg_namespace n ON n.oid = coalesce(owner.relnamespace, c.relnamespace)
WHERE c.relkind IN ('r', 'i', 't') AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
  AND (:'tables' = '' OR coalesce(owner.oid, indexed.indrelid, c.oid)
                         = ANY (string_to_array(:'tables', ',')::oid[]))
  AND NOT EXISTS (SELECT FROM busy b WHERE b.relation = c.oid)
