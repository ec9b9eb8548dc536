-- The access method clustered_heap: heap's own in all but where rows go.
CREATE EXTENSION IF NOT EXISTS clustered_heap;
SET client_min_messages = warning;

CREATE FUNCTION page(tid) RETURNS bigint LANGUAGE sql IMMUTABLE AS
$$ SELECT ($1::text::point)[0]::bigint $$;
CREATE FUNCTION pages(relation regclass) RETURNS bigint LANGUAGE sql AS
$$ SELECT pg_relation_size(relation) / current_setting('block_size')::int $$;
CREATE FUNCTION near_ideal(relation regclass) RETURNS boolean LANGUAGE sql AS
$$ SELECT pages_per_1000 < 2 * pages_per_1000_ideal AND heap_pages < 1.5 * heap_pages_ideal + 5 FROM cluster_quality(relation) $$;

-- Rows in the middle go beside their neighbours; one leaf's latecomers together.
CREATE TABLE t (k int, v text) USING clustered_heap WITH (autovacuum_enabled = off);
INSERT INTO t SELECT 10 * g, repeat('x', 360) FROM generate_series(1, 2000) g;
CREATE INDEX t_k ON t (k);
ALTER TABLE t CLUSTER ON t_k;
SELECT pages('t');
INSERT INTO t VALUES (1005, repeat('x', 360)), (15005, repeat('x', 360)), (1015, repeat('x', 360)),
    (15015, repeat('x', 360)), (3005, repeat('x', 360));
SELECT k, page(ctid) FROM t WHERE k % 10 = 5 ORDER BY k;
-- So do versions that do not fit on their page, and others stay on it.
UPDATE t SET v = repeat('y', 400) WHERE k IN (2000, 2500, 15000);
SELECT k, page(ctid) FROM t WHERE k IN (2000, 2500, 15000) ORDER BY k;
UPDATE t SET v = 'short' WHERE k = 5000;
SELECT page(ctid) = (SELECT page(ctid) FROM t WHERE k = 4990) AS stayed FROM t WHERE k = 5000;

-- COPY is placed.
CREATE TABLE copied (k int, v text) USING clustered_heap WITH (autovacuum_enabled = off);
CREATE INDEX copied_k ON copied (k);
ALTER TABLE copied CLUSTER ON copied_k;
INSERT INTO copied SELECT 10 * g, repeat('x', 360) FROM generate_series(1, 2000) g;
COPY copied FROM stdin;
5	a
19995	b
4005	c
25000	e
\.
SELECT count(*), pages('copied') FROM copied;
SELECT page(ctid) = (SELECT page(ctid) FROM copied WHERE k = 4000) AS beside FROM copied WHERE k = 4005;
-- Into an empty table; ascending; frozen.
TRUNCATE copied;
COPY copied FROM stdin;
3	c
1	a
2	b
\.
BEGIN;
TRUNCATE copied;
COPY copied FROM stdin WITH (FREEZE);
3	c
1	a
\.
COMMIT;
SELECT * FROM copied ORDER BY k;

-- Growth from nothing, in a random order; ON CONFLICT, MERGE, RETURNING, rows that do not come.
TRUNCATE t;
INSERT INTO t SELECT g * 7919 % 10007, repeat('x', 360) FROM generate_series(1, 3000) g;
SELECT near_ideal('t');
CREATE UNIQUE INDEX t_key ON t (k);
INSERT INTO t SELECT g, 'new' FROM generate_series(1, 500) g ON CONFLICT DO NOTHING;
INSERT INTO t SELECT g, 'newer' FROM generate_series(1, 500) g ON CONFLICT (k) DO UPDATE SET v = 'newer';
SELECT count(*), count(*) FILTER (WHERE v = 'newer') FROM t;
MERGE INTO t USING (SELECT g AS k FROM generate_series(400, 600) g) s ON t.k = s.k
    WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.k, 'merged');
SELECT count(*), count(*) FILTER (WHERE v = 'merged') FROM t;
INSERT INTO t VALUES (100001, 'a'), (-5, 'b') RETURNING k, v;
BEGIN;
SAVEPOINT s;
INSERT INTO t SELECT 200000 + g, 'gone' FROM generate_series(1, 100) g;
ROLLBACK TO s;
INSERT INTO t VALUES (200000, 'kept');
COMMIT;
SELECT v FROM t WHERE k >= 200000;

-- Everything that builds or reads indexes reads the table as heap.
CREATE INDEX CONCURRENTLY t_concurrently ON t (v);
REINDEX INDEX CONCURRENTLY t_k;
REINDEX TABLE t;
CREATE INDEX t_brin ON t USING brin (k) WITH (pages_per_range = 4);
INSERT INTO t SELECT 300000 + g, repeat('x', 360) FROM generate_series(1, 500) g;
SELECT brin_summarize_new_values('t_brin') > 0 AS summarized;
CREATE INDEX t_hash ON t USING hash (k);
CREATE INDEX t_expr ON t ((k + 1)) WHERE k > 5;
SET max_parallel_maintenance_workers = 2;
SET min_parallel_table_scan_size = 0;
ALTER TABLE t SET (parallel_workers = 2);
CREATE INDEX t_parallel ON t (k, v);
RESET min_parallel_table_scan_size;
DROP INDEX t_hash, t_expr, t_parallel, t_brin;
-- An error in the middle of a build leaves a table that works.
CREATE FUNCTION fails(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS
$$ BEGIN IF $1 = 100001 THEN RAISE EXCEPTION 'not this one'; END IF; RETURN $1; END $$;
CREATE INDEX t_fails ON t (fails(k));
INSERT INTO t VALUES (7, 'after it') ON CONFLICT DO NOTHING;

-- Reading, maintenance, constraints, TOAST, samples, other kinds of tables.
VACUUM (FREEZE, ANALYZE) t;
SELECT count(*) > 0 AS sampled FROM t TABLESAMPLE SYSTEM (100);
SELECT count(*) FROM t WHERE ctid >= '(1,1)' AND ctid < '(2,1)';
DELETE FROM t WHERE k % 5 = 0;
VACUUM t;
VACUUM FULL t;
SELECT heap_pages = heap_pages_ideal AS packed FROM cluster_quality('t');
CLUSTER t;
SELECT correlation > 0.99 AS in_order FROM cluster_quality('t');
ALTER TABLE t ALTER k TYPE bigint;
ALTER TABLE t ADD COLUMN w int DEFAULT 5, ADD CONSTRAINT above CHECK (k > -100);
ALTER TABLE t ADD CONSTRAINT t_pk PRIMARY KEY USING INDEX t_key;
SELECT amname FROM pg_class JOIN pg_am ON pg_am.oid = relam WHERE pg_class.oid = 't'::regclass;
DROP INDEX t_concurrently;
ALTER TABLE t ALTER v SET STORAGE EXTERNAL;
INSERT INTO t SELECT 400000 + g, repeat('long', 1000) FROM generate_series(1, 100) g;
SELECT count(*) FROM t WHERE length(v) = 4000;
SELECT amname FROM pg_class c JOIN pg_class o ON o.reltoastrelid = c.oid JOIN pg_am ON pg_am.oid = c.relam WHERE o.oid = 't'::regclass;
CREATE TABLE as_selected USING clustered_heap AS SELECT * FROM t;
CREATE MATERIALIZED VIEW stored USING clustered_heap AS SELECT k FROM t;
CREATE UNIQUE INDEX stored_k ON stored (k);
ALTER MATERIALIZED VIEW stored CLUSTER ON stored_k;
REFRESH MATERIALIZED VIEW stored;
REFRESH MATERIALIZED VIEW CONCURRENTLY stored;
SELECT (SELECT count(*) FROM stored) = (SELECT count(*) FROM t) AS whole;
CREATE TEMP TABLE passing (k text, v text) USING clustered_heap;
CREATE INDEX passing_k ON passing (k);
ALTER TABLE passing CLUSTER ON passing_k;
INSERT INTO passing SELECT md5(g::text), repeat('x', 300) FROM generate_series(1, 2000) g;
CREATE UNLOGGED TABLE unlogged (k numeric, v text) USING clustered_heap;
CREATE INDEX unlogged_k ON unlogged (k);
ALTER TABLE unlogged CLUSTER ON unlogged_k;
INSERT INTO unlogged SELECT g * 7919 % 10007, repeat('x', 300) FROM generate_series(1, 2000) g;
SELECT near_ideal('passing') AS temporary, near_ideal('unlogged') AS unlogged;
CREATE TABLE parts (k int, v text) PARTITION BY HASH (k);
CREATE TABLE part_0 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 0) USING clustered_heap;
CREATE TABLE part_1 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE INDEX parts_k ON parts (k);
ALTER TABLE part_0 CLUSTER ON part_0_k_idx;
INSERT INTO parts SELECT g * 7919 % 10007, repeat('x', 100) FROM generate_series(1, 10006) g;
SELECT near_ideal('part_0');
UPDATE parts SET k = k + 1 WHERE k % 10 = 0;
SELECT count(*), sum(k) FROM parts;
CREATE TABLE child (k bigint REFERENCES t (k)) USING clustered_heap;
INSERT INTO child SELECT k FROM t;
DELETE FROM t WHERE k = 100001;

-- There and back: nothing but where rows go is another thing.
CREATE FUNCTION content(relation text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE found text;
BEGIN
    EXECUTE format('SELECT count(*) || md5(string_agg(x::text, %L ORDER BY x::text)) FROM %s x', ',', relation) INTO found;
    RETURN found;
END $$;
SELECT content('t') AS before \gset
ALTER TABLE t SET ACCESS METHOD heap;
SELECT content('t') = :'before' AS as_heap, pg_relation_filenode('t') > 0 AS stored;
INSERT INTO t VALUES (500001, 'heap');
ALTER TABLE t SET ACCESS METHOD clustered_heap;
DELETE FROM t WHERE k = 500001;
SELECT content('t') = :'before' AS and_back;
SET default_table_access_method = clustered_heap;
CREATE TABLE by_default (k int PRIMARY KEY);
RESET default_table_access_method;
INSERT INTO by_default VALUES (1);
-- The trigger leaves such a table to its access method.
CREATE TRIGGER place BEFORE INSERT ON by_default FOR EACH ROW EXECUTE FUNCTION cluster_place();
INSERT INTO by_default VALUES (2);
DROP TRIGGER place ON by_default;
DROP EXTENSION clustered_heap;
DROP TABLE child, parts, unlogged, passing, copied, as_selected, by_default;
DROP MATERIALIZED VIEW stored;
ALTER TABLE t SET ACCESS METHOD heap;
DROP EXTENSION clustered_heap;
SELECT content('t') = :'before' AS still_there;
