-- What ANALYZE found of each column, and of each expression of an index under the index's name,
-- without values. Columns with SELECT only.
SELECT schemaname AS schema, tablename AS "table", attname AS name, null_frac::float8,
       avg_width, n_distinct::float8, correlation::float8
FROM pg_stats
WHERE schemaname <> 'information_schema' AND schemaname !~ '^pg_' AND NOT inherited
  AND (:'tables' = '' OR (schemaname, tablename) IN (
        SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.oid = ANY (string_to_array(:'tables', ',')::oid[])
           OR c.oid IN (SELECT i.indexrelid FROM pg_index i
                        WHERE i.indrelid = ANY (string_to_array(:'tables', ',')::oid[]))))
