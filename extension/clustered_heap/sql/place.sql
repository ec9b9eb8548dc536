-- cluster_place(): where rows go, and when it keeps out of the way.
CREATE EXTENSION IF NOT EXISTS clustered_heap;
SET client_min_messages = warning;

CREATE FUNCTION page(tid) RETURNS bigint LANGUAGE sql IMMUTABLE AS
$$ SELECT ($1::text::point)[0]::bigint $$;
CREATE FUNCTION pages(relation regclass) RETURNS bigint LANGUAGE sql AS
$$ SELECT pg_relation_size(relation) / current_setting('block_size')::int $$;

-- 20 rows a page, keys 10, 20, ... 20000, in order; one leaf has 366 of them.
CREATE TABLE t (k int, v text) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT 10 * g, repeat('x', 360) FROM generate_series(1, 2000) g;
CREATE INDEX t_k ON t (k);
ALTER TABLE t CLUSTER ON t_k;
CREATE TRIGGER place BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION cluster_place();
SELECT pages('t'), max(page(ctid)) FROM t;

-- Full pages: latecomers of one leaf come together on one page, of two leaves on two.
INSERT INTO t VALUES (1005, repeat('x', 360)), (15005, repeat('x', 360)), (1015, repeat('x', 360)),
    (15015, repeat('x', 360)), (3005, repeat('x', 360));
SELECT k, page(ctid) FROM t WHERE k % 10 = 5 ORDER BY k;

-- Room on the neighbour's page is used first; VACUUM has made it here.
DELETE FROM t WHERE k BETWEEN 8050 AND 8090;
VACUUM t;
INSERT INTO t VALUES (8045, repeat('x', 360)) RETURNING page(ctid) = (SELECT page(ctid) FROM t WHERE k = 8040) AS beside;

-- And here the page is pruned for it, since nobody else needs its dead rows.
DELETE FROM t WHERE k BETWEEN 12050 AND 12090;
INSERT INTO t VALUES (12045, repeat('x', 360)) RETURNING page(ctid) = (SELECT page(ctid) FROM t WHERE k = 12040) AS beside;

-- Before the first row of a leaf, and of the table: beside the row after it.
INSERT INTO t VALUES (1, 'short') RETURNING page(ctid) = (SELECT page(ctid) FROM t WHERE k = 10) AS beside_first;

-- Behind the last row: where plain heap puts it.
INSERT INTO t SELECT g, repeat('x', 360) FROM generate_series(30000, 30040) g;
SELECT count(DISTINCT page(ctid)) FROM t WHERE k >= 30000;

-- A table that is emptied: nothing is remembered of its pages.
TRUNCATE t;
INSERT INTO t VALUES (5, 'a'), (3, 'b'), (4, 'c');
BEGIN;
TRUNCATE t;
INSERT INTO t SELECT g * 7919 % 10007, repeat('x', 360) FROM generate_series(1, 2000) g;
SELECT pages('t') < 150 AS no_page_for_each_row, pages_per_1000 < 2 * pages_per_1000_ideal AS together FROM cluster_quality('t');
ROLLBACK;
INSERT INTO t VALUES (6, 'd') RETURNING ctid;
SELECT * FROM t ORDER BY k;

-- Rows that do not come after all make one page at most.
TRUNCATE t;
INSERT INTO t SELECT 10 * g, repeat('x', 360) FROM generate_series(1, 2000) g;
CREATE UNIQUE INDEX t_key ON t (k);
ALTER TABLE t ADD CONSTRAINT short CHECK (length(v) < 1000);
INSERT INTO t SELECT 10 * g, repeat('y', 360) FROM generate_series(1, 2000) g ON CONFLICT DO NOTHING;
DO $$
BEGIN
    FOR g IN 1..300 LOOP
        BEGIN
            INSERT INTO t VALUES (10 * g + 5, repeat('y', 1001));
        EXCEPTION WHEN check_violation THEN NULL;
        END;
    END LOOP;
END $$;
SELECT pages('t') - 100 AS new_pages;
-- DO UPDATE, whose new versions go beside their neighbours too; MERGE.
INSERT INTO t SELECT 10 * g, repeat('y', 360) FROM generate_series(1, 2000, 7) g
    ON CONFLICT (k) DO UPDATE SET v = excluded.v;
SELECT count(*), count(*) FILTER (WHERE v LIKE 'y%') FROM t;
MERGE INTO t USING (SELECT g AS k FROM generate_series(5, 2000, 5) g) s ON t.k = s.k
    WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.k, 'merged');
SELECT count(*), count(*) FILTER (WHERE v = 'merged') FROM t;

-- What is inserted is what was given: RETURNING, other triggers before and after it.
CREATE FUNCTION doubled() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN NEW.k := 2 * NEW.k; RETURN NEW; END $$;
CREATE TRIGGER a_doubled BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION doubled();
INSERT INTO t VALUES (100001, 'doubled before') RETURNING k, v;
DROP TRIGGER a_doubled ON t;
CREATE TRIGGER z_doubled BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION doubled();
INSERT INTO t VALUES (100003, 'doubled after') RETURNING k, v;
DROP TRIGGER z_doubled ON t;
CREATE FUNCTION no_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE TRIGGER z_no_row BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION no_row();
INSERT INTO t VALUES (100005, 'not at all') RETURNING k, v;
DROP TRIGGER z_no_row ON t;

-- A trigger of the same table that inserts into it, between the two.
CREATE FUNCTION echo() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN
    IF NEW.v = 'loud' THEN INSERT INTO t VALUES (NEW.k - 7003, 'echo'); END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER z_echo BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION echo();
INSERT INTO t SELECT 15001 + g * 10, 'loud' FROM generate_series(1, 50) g;
SELECT count(*) FROM t WHERE v IN ('loud', 'echo');
DROP TRIGGER z_echo ON t;

-- Without a marked index, with another one, with one that is gone: plain heap.
PREPARE one (int) AS INSERT INTO t VALUES ($1, 'prepared');
EXECUTE one (777);
ALTER TABLE t SET WITHOUT CLUSTER;
EXECUTE one (778);
ALTER TABLE t CLUSTER ON t_key;
EXECUTE one (779);
DROP INDEX t_key;
EXECUTE one (780);
ALTER TABLE t CLUSTER ON t_k;
REINDEX INDEX t_k;
EXECUTE one (781);
REINDEX INDEX CONCURRENTLY t_k;
EXECUTE one (782);
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 't_k'::regclass;
EXECUTE one (783);
UPDATE pg_index SET indisvalid = true WHERE indexrelid = 't_k'::regclass;
DROP INDEX CONCURRENTLY t_k;
EXECUTE one (784);
SELECT count(*) FROM t WHERE v = 'prepared';

-- Keys of every kind: columns that run down, NULL, INCLUDE, text, numeric, arrays, rows, domains.
CREATE DOMAIN code AS text CHECK (value <> '');
CREATE TYPE pair AS (a int, b text);
CREATE TABLE kinds (id int, a text COLLATE "C", b numeric, c int[], d pair, e code, f uuid, pad text)
    WITH (autovacuum_enabled = off);
CREATE INDEX kinds_all ON kinds (a DESC NULLS LAST, b NULLS FIRST, c, d, e DESC, f) INCLUDE (id);
ALTER TABLE kinds CLUSTER ON kinds_all;
CREATE TRIGGER place BEFORE INSERT ON kinds FOR EACH ROW EXECUTE FUNCTION cluster_place();
INSERT INTO kinds
    SELECT g, CASE WHEN g % 11 > 0 THEN repeat(chr(97 + h % 26), h % 40) END,
        CASE WHEN g % 7 > 0 THEN h / 7.0 END, ARRAY[h, g], ROW(h, g)::pair, 'c' || h,
        md5(g::text)::uuid, repeat('x', 300)
    FROM (SELECT g, g * 7919 % 10007 AS h FROM generate_series(1, 3000) g) s;
SELECT pages_per_1000 < 2 * pages_per_1000_ideal AS together, row_count FROM cluster_quality('kinds');
-- Keys out of TOAST, of another table, and compressed.
CREATE TABLE source (a text, e text);
ALTER TABLE source ALTER a SET STORAGE EXTERNAL;
INSERT INTO source SELECT repeat('b', 2100 + g), repeat('long ', 900) FROM generate_series(1, 40) g;
INSERT INTO kinds (id, a, e) SELECT -1, a, e FROM source WHERE length(a) < 2110;
ALTER TABLE source ALTER a SET STORAGE EXTENDED;
SELECT count(*) FROM kinds WHERE id = -1;

-- Equal keys, which the index keeps in posting lists: each behind the last one.
CREATE TABLE same (k int, v text) WITH (autovacuum_enabled = off);
CREATE INDEX same_k ON same (k);
ALTER TABLE same CLUSTER ON same_k;
CREATE TRIGGER place BEFORE INSERT ON same FOR EACH ROW EXECUTE FUNCTION cluster_place();
INSERT INTO same SELECT g % 10, repeat('x', 100) FROM generate_series(1, 10000) g;
SELECT max(pages) < 80 AS together, (SELECT pages('same')) > 160 AS of_many FROM (SELECT count(DISTINCT page(ctid)) AS pages FROM same GROUP BY k) s;

-- An index over an expression, or over a column that is generated: plain heap.
CREATE TABLE computed (k int, g int GENERATED ALWAYS AS (k + 1) STORED) WITH (autovacuum_enabled = off);
CREATE INDEX computed_g ON computed (g);
CREATE INDEX computed_e ON computed ((-k));
CREATE TRIGGER place BEFORE INSERT ON computed FOR EACH ROW EXECUTE FUNCTION cluster_place();
ALTER TABLE computed CLUSTER ON computed_g;
INSERT INTO computed SELECT g FROM generate_series(1, 500) g;
ALTER TABLE computed CLUSTER ON computed_e;
INSERT INTO computed SELECT g FROM generate_series(1, 500) g;
SELECT count(*), pages('computed') FROM computed;

-- Wide rows, whose values TOAST moves out or compresses: pages are filled all the same.
CREATE TABLE wide (k int, v text) WITH (autovacuum_enabled = off);
ALTER TABLE wide ALTER v SET STORAGE EXTERNAL;
CREATE INDEX wide_k ON wide (k);
ALTER TABLE wide CLUSTER ON wide_k;
CREATE TRIGGER place BEFORE INSERT ON wide FOR EACH ROW EXECUTE FUNCTION cluster_place();
INSERT INTO wide SELECT g * 7919 % 10007, repeat('x', 3000) FROM generate_series(1, 1500) g;
SELECT heap_pages <= 2 * heap_pages_ideal AS filled FROM cluster_quality('wide');
-- A row that no page takes is refused as ever.
CREATE TABLE too_wide (k int, a char(3000), b char(3000), c char(3000));
ALTER TABLE too_wide ALTER a SET STORAGE PLAIN, ALTER b SET STORAGE PLAIN, ALTER c SET STORAGE PLAIN;
CREATE INDEX too_wide_k ON too_wide (k);
ALTER TABLE too_wide CLUSTER ON too_wide_k;
CREATE TRIGGER place BEFORE INSERT ON too_wide FOR EACH ROW EXECUTE FUNCTION cluster_place();
INSERT INTO too_wide VALUES (1, 'a'), (3, 'c');
INSERT INTO too_wide VALUES (2, 'x', 'y', 'z');
SELECT pages('too_wide');

-- The reserve of a fillfactor stays for updates.
CREATE TABLE half (k int, v text) WITH (autovacuum_enabled = off, fillfactor = 50);
CREATE INDEX half_k ON half (k);
ALTER TABLE half CLUSTER ON half_k;
CREATE TRIGGER place BEFORE INSERT ON half FOR EACH ROW EXECUTE FUNCTION cluster_place();
INSERT INTO half SELECT g * 7919 % 10007, repeat('x', 100) FROM generate_series(1, 3000) g;
SELECT max(n) <= 30 AS reserve_kept FROM (SELECT count(*) AS n FROM half GROUP BY page(ctid)) s;

-- Temporary and unlogged tables.
CREATE TEMP TABLE passing (k int, v text);
CREATE INDEX passing_k ON passing (k);
ALTER TABLE passing CLUSTER ON passing_k;
CREATE TRIGGER place BEFORE INSERT ON passing FOR EACH ROW EXECUTE FUNCTION cluster_place();
INSERT INTO passing SELECT g * 7919 % 10007, repeat('x', 300) FROM generate_series(1, 2000) g;
CREATE UNLOGGED TABLE unlogged (k int, v text);
CREATE INDEX unlogged_k ON unlogged (k);
ALTER TABLE unlogged CLUSTER ON unlogged_k;
CREATE TRIGGER place BEFORE INSERT ON unlogged FOR EACH ROW EXECUTE FUNCTION cluster_place();
INSERT INTO unlogged SELECT g * 7919 % 10007, repeat('x', 300) FROM generate_series(1, 2000) g;
SELECT p.pages_per_1000 < 2 * p.pages_per_1000_ideal AS temporary,
    u.pages_per_1000 < 2 * u.pages_per_1000_ideal AS unlogged
FROM cluster_quality('passing') p, cluster_quality('unlogged') u;

-- Partitions: the trigger is inherited, the mark is each partition's own.
CREATE TABLE parts (k int, v text) PARTITION BY RANGE (k);
CREATE TABLE part_1 PARTITION OF parts FOR VALUES FROM (0) TO (5000);
CREATE TABLE part_2 PARTITION OF parts FOR VALUES FROM (5000) TO (10007);
CREATE INDEX parts_k ON parts (k);
ALTER TABLE part_1 CLUSTER ON part_1_k_idx;
CREATE TRIGGER place BEFORE INSERT ON parts FOR EACH ROW EXECUTE FUNCTION cluster_place();
INSERT INTO parts SELECT g * 7919 % 10007, repeat('x', 100) FROM generate_series(1, 10006) g;
SELECT q1.pages_per_1000 < 2 * q1.pages_per_1000_ideal AS first_in_order,
    q2.pages_per_1000 > 3 * q2.pages_per_1000_ideal AS second_as_it_came
FROM cluster_quality('part_1') q1, cluster_quality('part_2', 'part_2_k_idx') q2;

-- COPY is not placed, and loses nothing.
CREATE TABLE copied (k int, v text) WITH (autovacuum_enabled = off);
CREATE INDEX copied_k ON copied (k);
ALTER TABLE copied CLUSTER ON copied_k;
CREATE TRIGGER place BEFORE INSERT ON copied FOR EACH ROW EXECUTE FUNCTION cluster_place();
COPY copied FROM stdin;
3	c
1	a
2	b
\.
SELECT count(*) FROM copied;

-- Wrong uses.
CREATE TRIGGER wrong BEFORE UPDATE ON copied FOR EACH ROW EXECUTE FUNCTION cluster_place();
UPDATE copied SET k = 4 WHERE k = 1;
DROP TRIGGER wrong ON copied;
CREATE TRIGGER wrong AFTER INSERT ON copied FOR EACH ROW EXECUTE FUNCTION cluster_place();
INSERT INTO copied VALUES (5, 'e');
DROP TRIGGER wrong ON copied;
CREATE TRIGGER wrong BEFORE INSERT ON copied FOR EACH STATEMENT EXECUTE FUNCTION cluster_place();
INSERT INTO copied VALUES (5, 'e');
DROP TRIGGER wrong ON copied;
SELECT cluster_place();

-- Whoever may insert needs no right on the function, and none to read the table.
CREATE ROLE regress_place_writer;
GRANT INSERT ON half TO regress_place_writer;
REVOKE EXECUTE ON FUNCTION cluster_place() FROM PUBLIC;
SET ROLE regress_place_writer;
INSERT INTO half VALUES (5, 'by another');
RESET ROLE;
DROP OWNED BY regress_place_writer;
DROP ROLE regress_place_writer;

-- By index and by table: the same rows.
CREATE FUNCTION whole(relation regclass, key text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    by_table text;
    by_index text;
    query text := format('SELECT count(*) || md5(string_agg(ctid::text, %L ORDER BY %s, ctid)) FROM %s', ',', key, relation);
BEGIN
    SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off; SET LOCAL enable_bitmapscan = off;
    EXECUTE query INTO by_table;
    SET LOCAL enable_indexscan = on; SET LOCAL enable_indexonlyscan = on; SET LOCAL enable_seqscan = off;
    EXECUTE query INTO by_index;
    RETURN by_table = by_index;
END $$;
CREATE INDEX t_k ON t (k);
SELECT relation, whole(relation, 'k') FROM unnest('{t,same,computed,wide,half,passing,unlogged,part_1,copied}'::regclass[]) relation;

-- The way back.
DROP TRIGGER place ON t;
INSERT INTO t VALUES (42, 'plain heap');
DROP EXTENSION clustered_heap;
DROP EXTENSION clustered_heap CASCADE;
INSERT INTO half VALUES (42, 'plain heap');
SELECT tgname FROM pg_trigger WHERE tgname = 'place';
