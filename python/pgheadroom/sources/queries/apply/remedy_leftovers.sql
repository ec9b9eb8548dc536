-- Indexes that REINDEX CONCURRENTLY of one has left, for it was stopped. Anyone: catalogs only.
SELECT n.nspname AS schema, c.relname AS name
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN LATERAL (SELECT regexp_replace(c.relname, '_cc(new|old)[0-9]*$', '') AS of) b
WHERE i.indrelid = %(table_oid)s::oid AND NOT i.indisvalid AND n.nspname = %(schema)s
  AND c.relname <> %(name)s AND c.relname ~ '_cc(new|old)[0-9]*$'
  -- A long name is cut where the ending is put behind it (makeObjectName, indexcmds.c).
  AND (b.of = %(name)s OR octet_length(%(name)s) > 55 AND octet_length(b.of) >= 50
                          AND starts_with(%(name)s, b.of))
ORDER BY c.relname
