-- Writes one statement a table, which reads at most :sample_pages pages of it (TABLESAMPLE
-- SYSTEM draws each page by itself: the share is chosen 5 standard deviations below the bound).
-- OFFSET 0 keeps the lengths from being taken behind a sort, which shortens a row by 3 bytes.
-- Needs SELECT. Row lengths, which rows are recent, how full pages are, how many line pointers before
-- a page's last row are of none: sums, never values.
-- A whole row of a table with dropped columns has their old values, and one from before a column
-- was added with a default has a value of it that no page has: there the row is also made anew from
-- the columns that it stores, with the header that the next UPDATE gives it.
WITH names AS MATERIALIZED (
\ir parts/sampled.sql
), chosen AS MATERIALIZED (
    SELECT *, coalesce(pg_relation_size(nullif(reltoastrelid, 0)), 0) > 0 AS is_toasted
    FROM names ORDER BY updated DESC, pages DESC LIMIT :sample_tables
), listed AS (
    SELECT a.attrelid,
           max(nulls) > 0 AS has_nulls, bool_or(is_virtual) AS has_virtual,
           bool_or(atthasmissing) AS has_missing, count(*) + max(nulls) = c.relnatts
             AND (max(nulls) > 0 OR bool_or(atthasmissing)) AS is_made,
           (23 + (c.relnatts + 7) / 8 + 7) / 8 * 8 AS hoff_bytes,
           (23 + (count(*) + 7) / 8 + 7) / 8 * 8 AS made_hoff_bytes,
           string_agg(format('t.%I', a.attname), ', ' ORDER BY k) AS named,
           string_agg(format(  -- a missing value has a long header until it is written
               CASE WHEN atthasmissing AND attlen = -1
                    THEN 'CASE WHEN pg_column_size(t.%1$I) BETWEEN 5 AND 130 THEN '
                         'pg_column_size(ROW(t.%1$I)) - 24 ELSE pg_column_size(t.%1$I) END AS w%2$s'
                    ELSE 'pg_column_size(t.%1$I) AS w%2$s' END, a.attname, k),
               ', ' ORDER BY k) AS read,
           string_agg(format('count(w%1$s) AS n%1$s, sum(w%1$s) AS s%1$s, '
               'sum(w%1$s::float8 * w%1$s) AS q%1$s, min(w%1$s) AS l%1$s, max(w%1$s) AS h%1$s', k),
               ', ' ORDER BY k) AS summed,
           string_agg(a.attnum::text, ', ' ORDER BY k) AS attnums,
           string_agg(format('w%s', k), ', ' ORDER BY k) AS widths,
           CASE WHEN max(nulls) > 0 THEN 'true'
                ELSE format('num_nulls(VARIADIC ARRAY[%s]) > 0',
                            string_agg(format('w%s', k), ', ' ORDER BY k)) END AS any_null,
           string_agg(format('sum(n%s)', k), ', ' ORDER BY k) AS counts,
           string_agg(format('sum(s%s)', k), ', ' ORDER BY k) AS sums,
           string_agg(format('sum(q%s)', k), ', ' ORDER BY k) AS squares,
           string_agg(format('min(l%s)', k), ', ' ORDER BY k) AS lows,
           string_agg(format('max(h%s)', k), ', ' ORDER BY k) AS highs,
           string_agg(format('coalesce(CASE WHEN w%1$s > 2000 THEN 18 ELSE w%1$s END, 0)', k),
               ' + ' ORDER BY k) AS stored
    FROM chosen c
    JOIN (SELECT attrelid, attname, attnum, attlen, atthasmissing, nulls, is_virtual,
                 row_number() OVER (PARTITION BY attrelid ORDER BY attnum) AS k
          FROM pg_attribute l
          CROSS JOIN LATERAL (
              SELECT count(*) AS nulls, bool_or(NOT o.attisdropped) AS is_virtual
              FROM pg_attribute o WHERE o.attrelid = l.attrelid AND o.attnum > 0
                AND (o.attisdropped OR o.attgenerated = 'v')  -- both are NULL in a row
          ) AS unstored
          WHERE attnum > 0 AND NOT attisdropped AND attgenerated <> 'v') a
      ON a.attrelid = c.oid AND k <= 250
    GROUP BY a.attrelid, c.relnatts
)
SELECT format($statement$WITH s AS (
  SELECT (t.ctid::text::point)[0]::int8 AS blk, (t.ctid::text::point)[1]::int4 AS offnum,
         greatest(age(t.xmin), 1) AS xids, %1$s, %2$s
  FROM ONLY %3$I.%4$I AS t TABLESAMPLE SYSTEM (%5$s) REPEATABLE (%6$s)
  OFFSET 0
), r AS (
  SELECT *, %7$s AS tuple_bytes FROM s
), l AS (
  SELECT *, %19$s AS lying_bytes FROM r
), b AS (
  SELECT blk, floor(ln(xids::float8) / 0.6931471805599453 + 1e-9)::int AS age_class, xids <= %8$s AS is_recent,
         count(*) AS n, max(offnum) AS last, sum(tuple_bytes) AS st, sum(tuple_bytes::float8 * tuple_bytes) AS qt,
         min(tuple_bytes) AS lt, max(tuple_bytes) AS ht, array_agg(tuple_bytes::int) AS lengths,
         sum((tuple_bytes + 7) / 8 * 8 + 4) AS used,
         sum((lying_bytes + 7) / 8 * 8 + 4) AS lying, %9$s
  FROM l GROUP BY 1, 2, 3
), p AS (
  SELECT blk, sum(n) AS n, sum(lying) AS used, max(last) - sum(n) AS gaps,
         coalesce(sum(n) FILTER (WHERE is_recent), 0) AS recent
  FROM b GROUP BY blk
), ages AS (
  SELECT age_class, sum(n) AS n, sum(st) AS st FROM b GROUP BY age_class
), rooms AS (
  SELECT greatest(8168 - used, 0)::int / 128 AS room_class, count(*) AS n FROM p GROUP BY 1
), fills AS (
  SELECT round(used * (SELECT sum(n) / sum(used) FROM p))::int AS mean_rows, gaps, count(*) AS n
  FROM p GROUP BY 1, 2
)
SELECT jsonb_build_object('query', 'sample', 'pass', 'end', 'rows', jsonb_build_array(
  jsonb_build_object('oid', %10$s, 'table_pages', %11$s, 'drawn_percent', %5$s,
    'is_exact_length', %12$s, 'since_xids', %8$s,
    'pages', (SELECT count(*) FROM p), 'last_page', (SELECT max(blk) FROM p), 'rows', (SELECT sum(n) FROM p),
    'recent_rows', (SELECT sum(recent) FROM p),
    'page_moments', (SELECT to_jsonb(ARRAY[sum(n * n), sum(recent * recent), sum(n * recent)])
                     FROM p),
    'ages', (SELECT jsonb_agg(jsonb_build_array(age_class, n, st) ORDER BY age_class) FROM ages),
    'rooms', (SELECT jsonb_agg(jsonb_build_array(room_class, n) ORDER BY room_class) FROM rooms
              WHERE %20$s),
    'fills', (SELECT jsonb_agg(jsonb_build_array(mean_rows, n, gaps) ORDER BY mean_rows, gaps) FROM fills
              WHERE %20$s),
    'attnums', ARRAY[%13$s])
  || (SELECT jsonb_build_object('counts', to_jsonb(ARRAY[%14$s]), 'sums', to_jsonb(ARRAY[%15$s]),
        'squares', to_jsonb(ARRAY[%16$s]), 'lows', to_jsonb(ARRAY[%17$s]),
        'highs', to_jsonb(ARRAY[%18$s]), 'tuple_sum', sum(st), 'tuple_squares', sum(qt),
        'tuple_low', min(lt), 'tuple_high', max(ht), 'used_sum', sum(used)) FROM b)
  || (SELECT jsonb_build_object('tuple_percentiles', to_jsonb(percentile_disc(
        ARRAY[0.05, 0.25, 0.5, 0.75, 0.95]) WITHIN GROUP (ORDER BY length)))
      FROM b, unnest(b.lengths) AS length)))$statement$,
    CASE WHEN c.is_toasted THEN '24 AS whole' ELSE 'pg_column_size(t.*) AS whole' END
      || CASE WHEN l.is_made AND NOT c.is_toasted
              THEN format(', pg_column_size(ROW(%s)) AS made', l.named) ELSE '' END,
    l.read, c.nspname, c.relname, c.percent, :seed,
    CASE WHEN c.is_toasted  -- a row with NULLs has a bitmap of them in its header
         THEN format('CASE WHEN %s THEN %s ELSE whole END + %s', l.any_null, l.hoff_bytes, l.stored)
         WHEN l.is_made AND l.has_nulls
         THEN format('made + %s - CASE WHEN num_nulls(VARIADIC ARRAY[%s]) > 0 THEN %s ELSE 24 END',
                     l.hoff_bytes, l.widths, l.made_hoff_bytes)
         WHEN l.is_made THEN 'made' ELSE 'whole' END,
    c.since, l.summed, c.oid::int8, c.pages, CASE WHEN c.is_toasted THEN 'false' ELSE 'true' END,
    l.attnums, l.counts, l.sums, l.squares, l.lows, l.highs,
    CASE WHEN c.is_toasted OR l.has_virtual THEN 'tuple_bytes' ELSE 'whole' END,
    -- What rows lack of a missing value cannot be seen. Where the fullest page is as full as pages
    -- get if they lack none, they do: shorter ones would have been more on it.
    CASE WHEN l.has_missing
         THEN '(SELECT max(used) BETWEEN 8168 - 2 * sum(used) / sum(n) AND 8168 FROM p)'
         ELSE 'true' END) AS statement
FROM chosen c JOIN listed l ON l.attrelid = c.oid
ORDER BY c.updated DESC, c.pages DESC
