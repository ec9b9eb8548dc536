-- Writes one statement a table, which reads at most :sample_pages pages of it (TABLESAMPLE
-- SYSTEM draws each page by itself: the share is chosen 5 standard deviations below the bound).
-- OFFSET 0 keeps the lengths from being taken behind a sort, which shortens a row by 3 bytes.
-- Needs SELECT. Row lengths, which rows are recent, how full pages are: sums, never values.
WITH names AS MATERIALIZED (
\ir parts/sampled.sql
), chosen AS MATERIALIZED (
    SELECT *, coalesce(pg_relation_size(nullif(reltoastrelid, 0)), 0) > 0 AS is_toasted
    FROM names ORDER BY updated DESC, pages DESC LIMIT :sample_tables
), listed AS (
    SELECT a.attrelid,
           string_agg(format('pg_column_size(t.%I) AS w%s', a.attname, k), ', ' ORDER BY k) AS read,
           string_agg(format('count(w%1$s) AS n%1$s, sum(w%1$s) AS s%1$s, '
               'sum(w%1$s::float8 * w%1$s) AS q%1$s, min(w%1$s) AS l%1$s, max(w%1$s) AS h%1$s', k),
               ', ' ORDER BY k) AS summed,
           string_agg(a.attnum::text, ', ' ORDER BY k) AS attnums,
           string_agg(format('w%s', k), ', ' ORDER BY k) AS widths,
           string_agg(format('sum(n%s)', k), ', ' ORDER BY k) AS counts,
           string_agg(format('sum(s%s)', k), ', ' ORDER BY k) AS sums,
           string_agg(format('sum(q%s)', k), ', ' ORDER BY k) AS squares,
           string_agg(format('min(l%s)', k), ', ' ORDER BY k) AS lows,
           string_agg(format('max(h%s)', k), ', ' ORDER BY k) AS highs,
           string_agg(format('coalesce(CASE WHEN w%1$s > 2000 THEN 18 ELSE w%1$s END, 0)', k),
               ' + ' ORDER BY k) AS stored
    FROM chosen c
    JOIN (SELECT attrelid, attname, attnum,
                 row_number() OVER (PARTITION BY attrelid ORDER BY attnum) AS k
          FROM pg_attribute WHERE attnum > 0 AND NOT attisdropped) a
      ON a.attrelid = c.oid AND k <= 250
    GROUP BY a.attrelid
)
SELECT format($statement$WITH s AS (
  SELECT (t.ctid::text::point)[0]::int8 AS blk, greatest(age(t.xmin), 1) AS xids, %1$s, %2$s
  FROM ONLY %3$I.%4$I AS t TABLESAMPLE SYSTEM (%5$s) REPEATABLE (%6$s)
  OFFSET 0
), r AS (
  SELECT *, %7$s AS tuple_bytes FROM s
), b AS (
  SELECT blk, floor(ln(xids::float8) / 0.6931471805599453 + 1e-9)::int AS age_class, xids <= %8$s AS is_recent,
         count(*) AS n, sum(tuple_bytes) AS st, sum(tuple_bytes::float8 * tuple_bytes) AS qt,
         min(tuple_bytes) AS lt, max(tuple_bytes) AS ht, array_agg(tuple_bytes::int) AS lengths,
         sum((tuple_bytes + 7) / 8 * 8 + 4) AS used, %9$s
  FROM r GROUP BY 1, 2, 3
), p AS (
  SELECT blk, sum(n) AS n, sum(used) AS used,
         coalesce(sum(n) FILTER (WHERE is_recent), 0) AS recent
  FROM b GROUP BY blk
), ages AS (
  SELECT age_class, sum(n) AS n, sum(st) AS st FROM b GROUP BY age_class
), rooms AS (
  SELECT greatest(8168 - used, 0)::int / 128 AS room_class, count(*) AS n FROM p GROUP BY 1
)
SELECT jsonb_build_object('query', 'sample', 'pass', 'end', 'rows', jsonb_build_array(
  jsonb_build_object('oid', %10$s, 'table_pages', %11$s, 'drawn_percent', %5$s,
    'is_exact_length', %12$s, 'since_xids', %8$s,
    'pages', (SELECT count(*) FROM p), 'rows', (SELECT sum(n) FROM p),
    'recent_rows', (SELECT sum(recent) FROM p),
    'page_moments', (SELECT to_jsonb(ARRAY[sum(n * n), sum(recent * recent), sum(n * recent)])
                     FROM p),
    'ages', (SELECT jsonb_agg(jsonb_build_array(age_class, n, st) ORDER BY age_class) FROM ages),
    'rooms', (SELECT jsonb_agg(jsonb_build_array(room_class, n) ORDER BY room_class) FROM rooms),
    'attnums', ARRAY[%13$s])
  || (SELECT jsonb_build_object('counts', to_jsonb(ARRAY[%14$s]), 'sums', to_jsonb(ARRAY[%15$s]),
        'squares', to_jsonb(ARRAY[%16$s]), 'lows', to_jsonb(ARRAY[%17$s]),
        'highs', to_jsonb(ARRAY[%18$s]), 'tuple_sum', sum(st), 'tuple_squares', sum(qt),
        'tuple_low', min(lt), 'tuple_high', max(ht), 'used_sum', sum(used)) FROM b)
  || (SELECT jsonb_build_object('tuple_percentiles', to_jsonb(percentile_disc(
        ARRAY[0.05, 0.25, 0.5, 0.75, 0.95]) WITHIN GROUP (ORDER BY length)))
      FROM b, unnest(b.lengths) AS length)))$statement$,
    CASE WHEN c.is_toasted THEN '24' ELSE 'pg_column_size(t.*)' END || ' AS whole', l.read,
    c.nspname, c.relname, c.percent, :seed,
    CASE WHEN c.is_toasted  -- a row with NULLs has a bitmap of them in its header
         THEN format('CASE WHEN num_nulls(%s) > 0 THEN %s ELSE whole END + %s', l.widths,
                     (23 + (c.relnatts + 7) / 8 + 7) / 8 * 8, l.stored)
         ELSE 'whole' END,
    c.since, l.summed, c.oid::int8, c.pages, CASE WHEN c.is_toasted THEN 'false' ELSE 'true' END,
    l.attnums, l.counts, l.sums, l.squares, l.lows, l.highs) AS statement
FROM chosen c JOIN listed l ON l.attrelid = c.oid
ORDER BY c.updated DESC, c.pages DESC
