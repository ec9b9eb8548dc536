-- Writes one statement a table into which rows come and whose rows are updated or deleted: how far
-- rows lie behind the newest one, by columns that may ascend with the inserts, beside the age of
-- their last write, and which of their columns are NULL. Reads the pages that sample_statements read.
-- Needs SELECT. Distances between values, ages, NULLs and lengths, of some thousand rows; never
-- values.
WITH names AS MATERIALIZED (
\ir parts/sampled.sql
), chosen AS MATERIALIZED (
    SELECT *, coalesce(pg_relation_size(nullif(reltoastrelid, 0)), 0) > 0 AS is_toasted
    FROM (SELECT *, pg_stat_get_tuples_deleted(oid) AS deleted FROM names) AS named
    WHERE pg_stat_get_tuples_inserted(oid) > 0 AND updated + deleted > 0
    ORDER BY updated + deleted DESC, pages DESC LIMIT :sample_tables
), candidates AS (
    -- The first column of a B-tree has its newest value at its end; of the others the newest that
    -- the sample has stands for it.
    SELECT a.attrelid, a.attname, a.attnum, a.atttypid IN (20, 21, 23) AS is_integer,
           coalesce(bool_or(i.indisunique), false) AS is_unique,
           coalesce(bool_or(i.indkey[0] = a.attnum AND i.indisvalid AND i.indpred IS NULL
                            AND m.amname = 'btree'), false) AS is_first
    FROM chosen c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN (pg_index i JOIN pg_class x ON x.oid = i.indexrelid
               JOIN pg_am m ON m.oid = x.relam)
      ON i.indrelid = c.oid AND a.attnum = ANY (i.indkey::int2[])
    WHERE a.attnotnull AND a.atttypid IN (20, 21, 23, 1114, 1184)
    GROUP BY a.attrelid, a.attname, a.attnum, a.atttypid
), ordered AS (
    SELECT *, row_number() OVER (PARTITION BY attrelid ORDER BY
               is_integer AND is_unique AND is_first DESC, NOT is_integer DESC,
               is_integer AND is_unique DESC, attnum) AS k
    FROM candidates WHERE is_unique OR NOT is_integer
), listed AS (
    SELECT o.attrelid,
           string_agg(format(CASE WHEN is_integer AND is_first
               THEN '((SELECT max(m.%1$I) FROM ONLY %2$I.%3$I AS m)::numeric - t.%1$I)::float8 AS d%4$s'
               WHEN is_integer THEN '(max(t.%1$I) OVER ()::numeric - t.%1$I)::float8 AS d%4$s'
               ELSE 'extract(epoch FROM max(t.%1$I) OVER () - t.%1$I)::float8 AS d%4$s' END,
               o.attname, c.nspname, c.relname, k), ', ' ORDER BY k) AS distances,
           string_agg(format('d%s', k), ', ' ORDER BY k) AS names,
           string_agg(o.attnum::text, ', ' ORDER BY k) AS attnums,
           min(o.attname) FILTER (WHERE k = 1 AND is_integer AND is_first) AS newest_by
    FROM ordered o JOIN chosen c ON c.oid = o.attrelid
    WHERE k <= 4 GROUP BY o.attrelid
), nullable AS (
    SELECT a.attrelid, a.attname, a.attnum,
           row_number() OVER (PARTITION BY a.attrelid ORDER BY a.attnum) - 1 AS bit
    FROM chosen c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE NOT a.attnotnull
), masks AS (
    SELECT attrelid,
           string_agg(format('(num_nulls(t.%I)::int8 << %s)', attname, bit), ' | ' ORDER BY bit)
             AS nulls,
           string_agg(attnum::text, ', ' ORDER BY bit) AS attnums
    FROM nullable WHERE bit < 50  -- a mask that JSON's numbers hold
    GROUP BY attrelid
)
SELECT format($statement$WITH s AS (
  SELECT (t.ctid::text::point)[0]::int8 AS blk, hashtext(t.ctid::text) AS place,
         greatest(age(t.xmin), 1) AS xids, %1$s,
         %10$s AS nulls, %11$s AS bytes
  FROM ONLY %2$I.%3$I AS t TABLESAMPLE SYSTEM (%4$s) REPEATABLE (%5$s)
), g AS (
  SELECT *, count(*) OVER (PARTITION BY blk, xids) AS beside, xids <= %6$s AS is_recent FROM s
), n AS (
  SELECT *, row_number() OVER (PARTITION BY is_recent ORDER BY place) AS number FROM g
)
SELECT jsonb_build_object('query', 'row_ages', 'pass', 'end', 'rows', jsonb_build_array(
  jsonb_build_object('oid', %7$s, 'drawn_percent', %4$s, 'since_xids', %6$s,
    'attnums', ARRAY[%8$s], 'nullable', ARRAY[%12$s]::int[], 'rows', (SELECT count(*) FROM n),
    'recent_rows', (SELECT count(*) FROM n WHERE is_recent),
    'recent', (SELECT jsonb_agg(jsonb_build_array(xids, beside, %9$s, nulls, bytes) ORDER BY number)
               FROM n WHERE is_recent AND number <= 3000),
    'older', (SELECT jsonb_agg(jsonb_build_array(%9$s, nulls, bytes) ORDER BY number)
              FROM n WHERE NOT is_recent AND number <= 1000),
    'newest', %13$s)))$statement$,
    l.distances, c.nspname, c.relname, c.percent, :seed, c.since, c.oid::int8, l.attnums, l.names,
    coalesce(m.nulls, '0::int8'),
    CASE WHEN c.is_toasted THEN 'NULL::int' ELSE 'pg_column_size(t.*)' END, coalesce(m.attnums, ''),
    -- Young rows stand together, on few pages: of those a sample of pages may miss all.
    CASE WHEN l.newest_by IS NULL THEN 'NULL' ELSE format($newest$(
      SELECT jsonb_agg(jsonb_build_array(d, nulls, bytes, blk) ORDER BY d)
      FROM (SELECT ((SELECT max(m.%1$I) FROM ONLY %2$I.%3$I AS m)::numeric - t.%1$I)::float8 AS d,
                   %4$s AS nulls, %5$s AS bytes, (t.ctid::text::point)[0]::int8 AS blk
            FROM ONLY %2$I.%3$I AS t ORDER BY t.%1$I DESC LIMIT 1000) AS young)$newest$,
      l.newest_by, c.nspname, c.relname, coalesce(m.nulls, '0::int8'),
      CASE WHEN c.is_toasted THEN 'NULL::int' ELSE 'pg_column_size(t.*)' END) END) AS statement
FROM chosen c JOIN listed l ON l.attrelid = c.oid
LEFT JOIN masks m ON m.attrelid = c.oid
ORDER BY c.updated + c.deleted DESC, c.pages DESC
