-- Writes one statement a table, the most updated ones, which reads some rows of it: for each the hash of
-- its key, its xmin, and in one string a short hash of each
-- value (five digits; ----- for NULL, ????? for one that is not read). Asked
-- before the interval and after it, for pages and rows that are the same both times (TABLESAMPLE ... REPEATABLE draws by block number, and
-- a share that only halves draws some of the same ones; of their rows those with the least hashes of
-- a key are taken). Rows that were written meanwhile say which of their columns are others.
-- Needs SELECT. Values are written by their types' own functions (a cast to text may be anyone's),
-- and hashed with a salt that is drawn for the session; those of over 1,000 bytes are not read.
WITH names AS MATERIALIZED (
\ir parts/sampled.sql
), keys AS MATERIALIZED (
    SELECT DISTINCT ON (i.indrelid) i.indrelid, i.indkey::int2[] AS attnums, i.indnkeyatts
    FROM pg_index i JOIN names c ON c.oid = i.indrelid
    WHERE i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
      AND NOT EXISTS (SELECT FROM pg_attribute a
                      WHERE a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey::int2[])
                        AND NOT a.attnotnull)
    ORDER BY i.indrelid, i.indisprimary DESC, i.indnkeyatts, i.indexrelid
), chosen AS MATERIALIZED (
    SELECT c.*, k.key, round(100 / 2 ^ greatest(ceil(log(2, c.pages / :value_pages::numeric)), 0), 8)
             AS drawn_percent
    FROM names c JOIN (
        SELECT k.indrelid, string_agg(format('t.%I', a.attname), ', ' ORDER BY n) AS key
        FROM keys k
        CROSS JOIN LATERAL unnest(k.attnums) WITH ORDINALITY AS listed (attnum, n)
        JOIN pg_attribute a ON a.attrelid = k.indrelid AND a.attnum = listed.attnum
        WHERE n <= k.indnkeyatts GROUP BY k.indrelid
    ) AS k ON k.indrelid = c.oid
    WHERE c.updated > 0 OR :'moment' = 'start'  -- counters may be as young as the server
    ORDER BY c.updated DESC, c.pages DESC LIMIT :value_tables
), listed AS (
    SELECT a.attrelid,
           string_agg(format('t.%I AS c%s', a.attname, k), ', ' ORDER BY k) AS read,
           string_agg(format(CASE WHEN a.attlen = -1
               THEN 'CASE WHEN pg_column_size(c%1$s) > 1000 THEN ''?????'' ELSE %2$s END'
               ELSE '%2$s' END, k, format('coalesce(lpad(to_hex(hashtextextended(CASE WHEN '
               'c%1$s IS NOT NULL THEN ROW(c%1$s)::text END COLLATE "C", %2$s) & 1048575), 5, ''0''), '
               '''-----'')', k, :salt)),
               ' || ' ORDER BY k) AS hashed,
           string_agg(a.attnum::text, ', ' ORDER BY k) AS attnums, count(*) AS columns
    FROM (SELECT attrelid, attname, attnum, attlen,
                 row_number() OVER (PARTITION BY attrelid ORDER BY attnum) AS k
          FROM pg_attribute
          WHERE attnum > 0 AND NOT attisdropped AND attgenerated <> 'v') a
    WHERE a.k <= 250 AND a.attrelid IN (SELECT oid FROM chosen)
    GROUP BY a.attrelid
)
SELECT format($statement$WITH s AS MATERIALIZED (
  SELECT hashtextextended(ROW(%1$s)::text COLLATE "C", %11$s) AS key, t.xmin::text::int8 AS xmin, %2$s
  FROM ONLY %3$I.%4$I AS t TABLESAMPLE SYSTEM (%5$s) REPEATABLE (%6$s)
  ORDER BY 1 LIMIT %12$s
)
SELECT jsonb_build_object('query', 'row_values', 'pass', %7$L, 'rows', jsonb_build_array(
  jsonb_build_object('oid', %8$s, 'filenode', pg_relation_filenode(%8$s), 'attnums', ARRAY[%9$s],
    'read', (SELECT jsonb_agg(jsonb_build_array(key, xmin, %10$s) ORDER BY key) FROM s))))$statement$,
    c.key, l.read, c.nspname, c.relname, c.drawn_percent, :seed, :'moment', c.oid::int8, l.attnums,
    l.hashed, :salt, least(:value_cells / l.columns, 4000)) AS statement
FROM chosen c JOIN listed l ON l.attrelid = c.oid
ORDER BY c.updated DESC, c.pages DESC
