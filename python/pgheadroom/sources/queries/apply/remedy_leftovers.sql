-- Indexes that REINDEX CONCURRENTLY of one has left, for it was stopped. Anyone: catalogs only.
SELECT n.nspname AS schema, c.relname AS name
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE i.indrelid = %(table_oid)s::oid AND NOT i.indisvalid AND n.nspname = %(schema)s
  AND c.relname ~ '_cc(new|old)[0-9]*$'
  -- A long name is cut where the ending is put behind it (ChooseRelationName).
  AND starts_with(%(name)s, regexp_replace(c.relname, '_cc(new|old)[0-9]*$', ''))
ORDER BY c.relname
