-- What ANALYZE found of each column, and of each expression of an index under the index's name,
-- without values; how often the most common one stands, and of enums, and domains over them, each
-- label. Columns with SELECT only.
WITH RECURSIVE enums AS (
    SELECT t.oid FROM pg_type t WHERE t.typtype = 'e'
    UNION ALL
    SELECT t.oid FROM pg_type t JOIN enums e ON t.typbasetype = e.oid AND t.typtype = 'd'
)
SELECT s.schemaname AS schema, s.tablename AS "table", s.attname AS name, s.null_frac::float8,
       s.avg_width, s.n_distinct::float8, s.correlation::float8,
       s.most_common_freqs[1]::float8 AS common_frac,
       CASE WHEN e.attrelid IS NOT NULL THEN s.most_common_vals::text::text[] END AS labels,
       CASE WHEN e.attrelid IS NOT NULL THEN s.most_common_freqs::float8[] END AS label_fracs
FROM pg_stats s
LEFT JOIN (SELECT n.nspname, c.relname, a.attname, a.attrelid
           FROM pg_attribute a
           JOIN enums t ON t.oid = a.atttypid
           JOIN pg_class c ON c.oid = a.attrelid AND c.relkind IN ('r', 'p')
           JOIN pg_namespace n ON n.oid = c.relnamespace
           WHERE NOT a.attisdropped) e
  ON (e.nspname, e.relname, e.attname) = (s.schemaname, s.tablename, s.attname)
WHERE s.schemaname <> 'information_schema' AND s.schemaname !~ '^pg_' AND NOT s.inherited
  AND (:'tables' = '' OR (s.schemaname, s.tablename) IN (
        SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.oid = ANY (string_to_array(:'tables', ',')::oid[])
           OR c.oid IN (SELECT i.indexrelid FROM pg_index i
                        WHERE i.indrelid = ANY (string_to_array(:'tables', ',')::oid[]))))
