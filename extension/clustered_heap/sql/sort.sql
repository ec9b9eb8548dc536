-- clustered_heap.sort_insert_select: which sources are sorted, and which are left alone.
CREATE EXTENSION IF NOT EXISTS clustered_heap;
SET client_min_messages = warning;
LOAD 'clustered_heap';
SHOW clustered_heap.sort_insert_select;

CREATE TABLE t (a int, b bigint, c text, d int) WITH (autovacuum_enabled = off);
CREATE INDEX t_ba ON t (b DESC NULLS LAST, a) INCLUDE (d);
CREATE INDEX t_c ON t (c);
ALTER TABLE t CLUSTER ON t_ba;
CREATE TABLE s (a int, b int, c text);
INSERT INTO s SELECT g, g * 7919 % 10007, 'c' || g FROM generate_series(1, 3000) g;
ANALYZE s;

-- The sort key of a statement's plan, or none.
CREATE FUNCTION sorted_by(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (VERBOSE, COSTS OFF) ' || statement LOOP
        IF line ~ 'Sort Key:' THEN RETURN regexp_replace(line, '^ *Sort Key: ', ''); END IF;
    END LOOP;
    RETURN 'as it comes';
END $$;

SELECT sorted_by('INSERT INTO t SELECT a, b, c FROM s') AS while_off;
SET clustered_heap.sort_insert_select = on;
-- Through the cast that INSERT puts in, with the index's direction and place of NULLs.
SELECT sorted_by('INSERT INTO t SELECT a, b, c FROM s');
-- Other orders of columns, a column that all rows share, one without a value.
SELECT sorted_by('INSERT INTO t (c, b, a) SELECT c, a, b FROM s');
SELECT sorted_by('INSERT INTO t (a, b) SELECT a, 5 FROM s');
SELECT sorted_by('INSERT INTO t (b) SELECT b FROM s');
-- Computed columns, which are computed before they are sorted; a key that does not come from there.
SELECT sorted_by('INSERT INTO t (b, a) SELECT b, a * 2 FROM s');
SELECT sorted_by('INSERT INTO t (c) SELECT c FROM s');
-- Groups, unions, common tables, rows of functions, views.
SELECT sorted_by('INSERT INTO t (b, a) SELECT b, count(*) FROM s GROUP BY b');
SELECT sorted_by('INSERT INTO t (b, a) SELECT b, a FROM s UNION ALL SELECT a, b FROM s');
SELECT sorted_by('WITH w AS MATERIALIZED (SELECT * FROM s) INSERT INTO t (b, a) SELECT b, a FROM w');
SELECT sorted_by('INSERT INTO t (b, a) SELECT g, 5 FROM generate_series(1, 10) g');
CREATE VIEW over_t AS SELECT b AS bb, a AS aa FROM t;
SELECT sorted_by('INSERT INTO over_t (aa, bb) SELECT a, b FROM s');

-- Left alone: an order, a choice or a lock of its own, rows that come back, rows that may be there.
SELECT sorted_by('INSERT INTO t SELECT a, b, c FROM s ORDER BY a');
SELECT sorted_by('INSERT INTO t SELECT a, b, c FROM s LIMIT 10');
SELECT sorted_by('INSERT INTO t SELECT a, b, c FROM s OFFSET 10');
SELECT sorted_by('INSERT INTO t SELECT DISTINCT ON (c) a, b, c FROM s') <> 's.b DESC NULLS LAST, s.a' AS distinct_on;
SELECT sorted_by('INSERT INTO t SELECT a, b, c FROM s FOR UPDATE');
SELECT sorted_by('INSERT INTO t SELECT a, b, c FROM s RETURNING a');
SELECT sorted_by('INSERT INTO t SELECT a, b, c FROM s ON CONFLICT DO NOTHING');
SELECT sorted_by('INSERT INTO t VALUES (1, 2), (0, 1)');
-- So is an order further down, and values that depend on the order in which they are computed.
SELECT sorted_by('INSERT INTO t (b, a) SELECT b, a FROM (SELECT b, a FROM s ORDER BY c) o');
SELECT sorted_by('WITH o AS (SELECT b, a FROM s ORDER BY c) INSERT INTO t (b, a) SELECT b, a FROM o');
SELECT sorted_by('INSERT INTO t (b, a) WITH o AS (SELECT b, a FROM s ORDER BY c) SELECT b, a FROM o');
SELECT sorted_by('INSERT INTO t (b, a) SELECT b, a FROM (SELECT * FROM (SELECT * FROM s ORDER BY c) o WHERE a > 5) j');
CREATE VIEW in_order AS SELECT b, a FROM s ORDER BY c;
SELECT sorted_by('INSERT INTO t (b, a) SELECT b, a FROM in_order');
SELECT sorted_by('INSERT INTO t (b, a) SELECT unnest(ARRAY[3, 1, 2]), 5');
CREATE SEQUENCE numbers;
SELECT sorted_by('INSERT INTO t (b, a) SELECT b, nextval(''numbers'') FROM s');
SELECT sorted_by('INSERT INTO t (b, a) SELECT b, a * random()::int FROM s');
SELECT sorted_by('UPDATE t SET a = 1');
SELECT sorted_by('MERGE INTO t USING s ON t.a = s.a WHEN NOT MATCHED THEN INSERT VALUES (s.a, s.b)');

-- Without a marked index, with one by another collation, of an expression, of partitions.
ALTER TABLE t SET WITHOUT CLUSTER;
SELECT sorted_by('INSERT INTO t SELECT a, b, c FROM s');
ALTER TABLE t CLUSTER ON t_c;
SELECT sorted_by('INSERT INTO t SELECT a, b, c FROM s');
DROP INDEX t_c;
CREATE INDEX t_c ON t (c COLLATE "C");
ALTER TABLE t CLUSTER ON t_c;
SELECT sorted_by('INSERT INTO t SELECT a, b, c FROM s');
SELECT sorted_by('INSERT INTO t (c, a) SELECT c COLLATE "C", a FROM s');
CREATE INDEX t_e ON t ((a + b));
ALTER TABLE t CLUSTER ON t_e;
SELECT sorted_by('INSERT INTO t SELECT a, b, c FROM s');
CREATE TABLE parts (a int) PARTITION BY RANGE (a);
CREATE TABLE part PARTITION OF parts DEFAULT;
CREATE INDEX part_a ON part (a);
ALTER TABLE part CLUSTER ON part_a;
SELECT sorted_by('INSERT INTO parts SELECT a FROM s');
SELECT sorted_by('INSERT INTO part SELECT a FROM s');

-- The same rows come, in order; prepared too, before and after another index is marked.
ALTER TABLE t CLUSTER ON t_ba;
PREPARE fill AS INSERT INTO t (a, b, c) SELECT a, b, c FROM s;
EXECUTE fill;
SELECT count(*), correlation > 0.99 AS in_index_order FROM t, cluster_quality('t', 't_ba') GROUP BY 2;
SELECT (SELECT array_agg(b ORDER BY ctid) FROM t) = (SELECT array_agg(b::bigint ORDER BY b DESC, a) FROM s) AS in_order;
SELECT count(*) FROM (SELECT a, b, c FROM t EXCEPT SELECT a, b, c FROM s) x;
EXECUTE fill; EXECUTE fill; EXECUTE fill; EXECUTE fill; EXECUTE fill; EXECUTE fill;
ALTER TABLE t SET WITHOUT CLUSTER;
EXECUTE fill;
DROP INDEX t_ba;
EXECUTE fill;
SELECT count(*) FROM t;

-- In functions, and into a table that the source reads.
CREATE INDEX t_a ON t (a);
ALTER TABLE t CLUSTER ON t_a;
DO $$ BEGIN FOR i IN 1..8 LOOP INSERT INTO t (a, d) SELECT a + i, i FROM s WHERE a <= 100; END LOOP; END $$;
INSERT INTO t (a, d) SELECT a, -1 FROM t WHERE d = 8;
SELECT count(*) FILTER (WHERE d = -1), count(*) FROM t WHERE d IS NOT NULL;

-- Whoever may not do it, may not do it.
CREATE ROLE regress_sort_none;
SET ROLE regress_sort_none;
INSERT INTO t SELECT 1;
RESET ROLE;
DROP ROLE regress_sort_none;

SET clustered_heap.sort_insert_selects = on;
