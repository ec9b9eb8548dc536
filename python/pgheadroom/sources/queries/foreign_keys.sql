-- Foreign keys between tables: columns by number at both ends, and the index at the referenced one.
-- Anyone: catalogs only. Those that partitions have from their parent's are left out.
SELECT k.conname AS name, k.conrelid::int8 AS table_oid, k.conkey AS attnums,
       k.confrelid::int8 AS references_oid, k.confkey AS references_attnums,
       nullif(k.conindid, 0)::int8 AS references_index_oid, k.convalidated AS is_valid,
       -- CASCADE, SET NULL and SET DEFAULT; of DELETE the last two alone.
       k.confupdtype IN ('c', 'n', 'd') OR k.confdeltype IN ('n', 'd') AS may_update
FROM pg_constraint k
JOIN pg_class c ON c.oid = k.conrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE k.contype = 'f' AND k.conparentid = 0
  AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
ORDER BY k.conrelid, k.conname
