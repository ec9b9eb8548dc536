-- What ANALYZE found of each column, without values. Columns with SELECT only.
SELECT schemaname AS schema, tablename AS "table", attname AS name, null_frac::float8,
       avg_width, n_distinct::float8, correlation::float8
FROM pg_stats
WHERE schemaname <> 'information_schema' AND schemaname !~ '^pg_' AND NOT inherited
  AND (:'tables' = '' OR (schemaname, tablename) IN (
        SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.oid = ANY (string_to_array(:'tables', ',')::oid[])))
