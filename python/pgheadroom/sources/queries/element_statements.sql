-- Writes one statement a key of a GIN index, which reads some rows of its table: how many keys a
-- value has, how many different ones they are, how often the same one. Counts, never values.
-- Needs SELECT. Of an expression only one that calls no function or operator of a user's (pg_depend
-- has those, and none that initdb made), for it is evaluated by this role; of arrays those whose
-- elements are of a type of PostgreSQL's own, or enums. Trigrams are not counted.
-- About 10,000 rows, never more than twice as many, and about 30 MB of tables' rows, 5 MB where
-- something is evaluated.
WITH names AS MATERIALIZED (
\ir parts/sampled.sql
), listed AS MATERIALIZED (
    SELECT c.*, i.indexrelid, k.place, o.opcname, coalesce(a.attnum, 0) AS attnum,
           CASE WHEN a.attnum IS NOT NULL THEN format('t.%I', a.attname)
                ELSE format('(%s)', pg_get_indexdef(i.indexrelid, k.place::int, true)) END AS value,
           t.typlen, r.reltuples::float8 AS tuples,
           least(10000, greatest(200, CASE WHEN a.attnum IS NULL THEN 5e6 ELSE 3e7 END
             * greatest(r.reltuples, 1) / greatest(pg_table_size(c.oid), 1)))::int AS rows_max,
           CASE o.opcname
             WHEN 'array_ops' THEN
               format('SELECT DISTINCT u AS key, %s AS bytes FROM unnest(x.v) AS u '
                      'WHERE u IS NOT NULL',
                      CASE WHEN t.oid IN ('text'::regtype, 'varchar'::regtype, 'bpchar'::regtype)
                           THEN 'octet_length(u)' ELSE 'pg_column_size(u)' END)
             WHEN 'tsvector_ops' THEN
               'SELECT u COLLATE "C" AS key, octet_length(u) AS bytes '
               'FROM unnest(tsvector_to_array(x.v)) AS u'
             WHEN 'jsonb_ops' THEN  -- a long string's hash is kept (make_text_key, jsonb_gin.c)
               'SELECT DISTINCT key COLLATE "C" AS key, CASE WHEN octet_length(key) > 126 THEN 8 '
               'ELSE octet_length(key) - 1 END AS bytes FROM jsonb_path_query(x.v, ''strict $.**'') '
               'AS n CROSS JOIN LATERAL (SELECT ''k'' || k FROM jsonb_object_keys(CASE '
               'jsonb_typeof(n) WHEN ''object'' THEN n ELSE ''{}'' END) AS k UNION ALL '
               'SELECT left(jsonb_typeof(n), 1) || (n #>> ''{}'') WHERE jsonb_typeof(n) '
               'NOT IN (''object'', ''array'')) AS f (key)'
             WHEN 'jsonb_path_ops' THEN  -- the first part of the path stands for all of it
               'SELECT DISTINCT (p || '':'' || n::text) COLLATE "C" AS key, 0 AS bytes '
               'FROM jsonb_each(CASE jsonb_typeof(x.v) WHEN ''object'' THEN x.v '
               'ELSE jsonb_build_object('''', x.v) END) AS o (p, w) '
               'CROSS JOIN LATERAL jsonb_path_query(w, ''strict $.**'') AS n '
               'WHERE jsonb_typeof(n) NOT IN (''object'', ''array'')'
             WHEN 'gin_hstore_ops' THEN
               format('SELECT DISTINCT f.key COLLATE "C" AS key, octet_length(f.key) - 1 AS bytes '
                      'FROM %I.each(x.v) AS p CROSS JOIN LATERAL (VALUES (''K'' || p.key), '
                      '(coalesce(''V'' || p.value, ''N''))) AS f (key)', n.nspname)
           END AS keys
    FROM names c
    JOIN pg_class r ON r.oid = c.oid
    JOIN pg_index i ON i.indrelid = c.oid AND i.indislive
    JOIN pg_class x ON x.oid = i.indexrelid
    JOIN pg_am am ON am.oid = x.relam AND am.amname = 'gin'
    CROSS JOIN LATERAL unnest(i.indclass::oid[]) WITH ORDINALITY AS k (opclass, place)
    JOIN pg_opclass o ON o.oid = k.opclass
    JOIN pg_namespace n ON n.oid = o.opcnamespace
    -- An opclass of an extension by that name, or PostgreSQL's own.
    LEFT JOIN pg_depend e ON e.classid = 'pg_opclass'::regclass AND e.objid = o.oid
      AND e.deptype = 'e'
    LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
      AND a.attnum = (i.indkey::int2[])[k.place - 1]
    -- What an array's keys are: an index's column over an array is of its elements' type.
    JOIN pg_attribute ia ON ia.attrelid = i.indexrelid AND ia.attnum = k.place
    JOIN pg_type t ON t.oid = ia.atttypid
    WHERE k.place <= i.indnkeyatts
      AND (n.nspname = 'pg_catalog' OR (e.objid IS NOT NULL AND o.opcname = 'gin_hstore_ops'))
      AND (o.opcname <> 'array_ops' OR t.typtype = 'e'
           OR (t.typtype = 'b' AND t.typnamespace = 'pg_catalog'::regnamespace))
      AND (a.attnum IS NOT NULL OR NOT EXISTS (
             SELECT FROM pg_depend d
             WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
               AND (d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass)
                    OR (d.refclassid = 'pg_type'::regclass
                        AND EXISTS (SELECT FROM pg_type w
                                    WHERE w.oid = d.refobjid AND w.typtype = 'd')))))
), chosen AS (
    SELECT *, row_number() OVER (PARTITION BY oid, value, keys, CASE attnum WHEN 0 THEN indexrelid END
                                 ORDER BY indexrelid, place) AS same
    FROM listed WHERE keys IS NOT NULL
)
SELECT format($statement$WITH x AS MATERIALIZED (
  SELECT row_number() OVER () AS r, v
  FROM (SELECT %1$s AS v FROM ONLY %2$I.%3$I AS t TABLESAMPLE SYSTEM (%4$s) REPEATABLE (%5$s)
        LIMIT %6$s) AS s
), e AS MATERIALIZED (
  SELECT x.r, k.key, k.bytes FROM x CROSS JOIN LATERAL (%7$s) AS k WHERE x.v IS NOT NULL
), c AS (
  SELECT count(*) AS n FROM e GROUP BY r
), g AS (
  SELECT count(*) AS n, sum(bytes) AS bytes FROM e GROUP BY key
)
SELECT jsonb_build_object('query', 'elements', 'pass', 'end', 'rows', jsonb_build_array(
  jsonb_build_object('oid', %8$s, 'index_oid', %9$s, 'place', %10$s, 'attnum', %11$s,
    'opclass', %12$L, 'typlen', %13$s)
  || (SELECT jsonb_build_object('rows', count(*), 'values', count(v)) FROM x)
  || (SELECT jsonb_build_object('keys', coalesce(sum(n), 0), 'squares', coalesce(sum(n * n), 0))
      FROM c)
  || (SELECT jsonb_build_object('distinct', count(*), 'once', count(*) FILTER (WHERE n = 1),
        'twice', count(*) FILTER (WHERE n = 2), 'pairs', coalesce(sum(n::float8 * (n - 1)), 0),
        'bytes', coalesce(sum(bytes), 0)) FROM g)))$statement$,
    c.value, c.nspname, c.relname,
    least(c.percent, greatest(round((100 * c.rows_max / greatest(c.tuples, 1))::numeric, 6),
                              round(500 / c.pages::numeric, 6))),
    :seed, 2 * c.rows_max, c.keys, c.oid::int8, c.indexrelid::int8, c.place, c.attnum,
    c.opcname, c.typlen) AS statement
FROM chosen c
WHERE c.same = 1
ORDER BY c.updated DESC, c.pages DESC, c.indexrelid, c.place
LIMIT :sample_tables
