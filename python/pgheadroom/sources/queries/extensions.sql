-- Contrib modules that are installed here, with their schema. Anyone.
SELECT e.extname AS name, e.extversion AS version, n.nspname AS schema,
       has_schema_privilege(n.oid, 'USAGE') AS usable
FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
WHERE e.extname IN ('pg_stat_statements', 'pg_freespacemap', 'pageinspect', 'pgstattuple',
                    'pg_visibility', 'pg_buffercache', 'pg_walinspect', 'pg_repack',
                    'pg_squeeze')
ORDER BY e.extname
