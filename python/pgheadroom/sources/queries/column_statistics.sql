-- What ANALYZE found of each column, without values. Columns with SELECT only.
SELECT schemaname AS schema, tablename AS "table", attname AS name, null_frac::float8,
       avg_width, n_distinct::float8, correlation::float8
FROM pg_stats
WHERE schemaname <> 'information_schema' AND schemaname !~ '^pg_' AND NOT inherited
