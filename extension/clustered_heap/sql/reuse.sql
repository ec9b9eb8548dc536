-- Room that deleted rows have left is used again, and together by rows that belong together.
CREATE EXTENSION IF NOT EXISTS clustered_heap;
SET client_min_messages = warning;

CREATE FUNCTION page(tid) RETURNS bigint LANGUAGE sql IMMUTABLE AS
$$ SELECT ($1::text::point)[0]::bigint $$;
CREATE FUNCTION pages(relation regclass) RETURNS bigint LANGUAGE sql AS
$$ SELECT pg_relation_size(relation) / current_setting('block_size')::int $$;
-- 20 rows a page, keys 10, 20, ...; one leaf has 366 of them.
CREATE FUNCTION made(name text, method text, row_count int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TABLE %I (k int, v text) USING %I WITH (autovacuum_enabled = off)', name, method);
    EXECUTE format('INSERT INTO %I SELECT 10 * g, repeat(%L, 360) FROM generate_series(1, %s) g', name, 'x', row_count);
    EXECUTE format('CREATE INDEX %I ON %I (k)', name || '_k', name);
    EXECUTE format('ALTER TABLE %I CLUSTER ON %I', name, name || '_k');
END $$;

-- Latecomers of 22 leaves, where the map knows 100 empty pages at the table's beginning.
SELECT made('early', 'heap', 10000);
CREATE TRIGGER place BEFORE INSERT ON early FOR EACH ROW EXECUTE FUNCTION cluster_place();
DELETE FROM early WHERE k <= 20000;
VACUUM early;
INSERT INTO early SELECT 20005 + g * 7919 % 8000 * 10, repeat('y', 360) FROM generate_series(1, 400) g;
SELECT pages('early'), count(*), count(DISTINCT page(ctid)) <= 44 AS together, max(page(ctid)) < 100 AS on_empty_ones
FROM early WHERE v LIKE 'y%';

-- All rows updated again and again: heap needs twice its pages for that, and so does this.
SELECT made('updated', 'clustered_heap', 4000);
CREATE TABLE rounds (n int, heap_pages bigint, pages_per_1000 float8);
UPDATE updated SET k = k;
VACUUM updated;
INSERT INTO rounds SELECT 1, heap_pages, pages_per_1000 FROM cluster_quality('updated');
UPDATE updated SET k = k;
VACUUM updated;
UPDATE updated SET k = k;
VACUUM updated;
UPDATE updated SET k = k;
VACUUM updated;
UPDATE updated SET k = k;
VACUUM updated;
UPDATE updated SET k = k;
VACUUM updated;
UPDATE updated SET k = k;
VACUUM updated;
UPDATE updated SET k = k;
VACUUM updated;
INSERT INTO rounds SELECT 8, heap_pages, pages_per_1000 FROM cluster_quality('updated');
SELECT n, heap_pages <= 2.3 * 200 AS pages_bounded, pages_per_1000 < 2.5 * 51 AS together FROM rounds;

-- A range is deleted, and as many rows come everywhere: pages of the range are used by others.
SELECT made('rolling', 'clustered_heap', 10000);
DELETE FROM rolling WHERE k BETWEEN 60000 AND 69999;
VACUUM rolling;
INSERT INTO rolling SELECT g * 7919 % 100000, repeat('y', 360) FROM generate_series(1, 1000) g;
DELETE FROM rolling WHERE k BETWEEN 10000 AND 19999;
VACUUM rolling;
INSERT INTO rolling SELECT g * 6151 % 100000, repeat('y', 360) FROM generate_series(1, 1000) g;
DELETE FROM rolling WHERE k BETWEEN 40000 AND 49999;
VACUUM rolling;
INSERT INTO rolling SELECT g * 4447 % 100000, repeat('y', 360) FROM generate_series(1, 1000) g;
SELECT heap_pages < 1.1 * heap_pages_ideal AS reused, pages_per_1000 < 1.3 * pages_per_1000_ideal AS together
FROM cluster_quality('rolling');

-- Equal keys over many leaves, whose entries stand in the order of their pages.
SELECT made('runs', 'clustered_heap', 20000);
UPDATE runs SET k = k / 40001;
VACUUM FULL runs;
DELETE FROM runs WHERE k = 0;
VACUUM runs;
INSERT INTO runs SELECT 3, repeat('y', 360) FROM generate_series(1, 200);
SELECT count(*), count(DISTINCT page(ctid)) FROM runs WHERE v LIKE 'y%';
-- Rows of such keys that do not come after all make one page at most.
ALTER TABLE runs ADD id int GENERATED ALWAYS AS IDENTITY;
ALTER TABLE runs SET ACCESS METHOD heap;
CREATE TRIGGER place BEFORE INSERT ON runs FOR EACH ROW EXECUTE FUNCTION cluster_place();
CREATE UNIQUE INDEX runs_id ON runs (id);
DELETE FROM runs WHERE k = 1;
VACUUM runs;
CREATE TEMP TABLE pages_before AS SELECT pages('runs') AS n;
ALTER TABLE runs ALTER v SET STORAGE PLAIN;
INSERT INTO runs (k, v, id) OVERRIDING SYSTEM VALUE
    SELECT 3, repeat('z', 7000), max(id) FROM runs, generate_series(1, 100) g WHERE k = 4 GROUP BY g
    ON CONFLICT DO NOTHING;
SELECT pages('runs') - n <= 1 AS one_at_most, (SELECT count(*) FROM runs WHERE v LIKE 'z%') AS came FROM pages_before;

-- More than half of the table is free, on pages with a row each: those are used before it grows.
SELECT made('sparse', 'clustered_heap', 10000);
DELETE FROM sparse WHERE k > 20000 AND k % 200 <> 0;
VACUUM sparse;
INSERT INTO sparse SELECT 5 + g * 7919 % 2000 * 10, repeat('y', 360) FROM generate_series(1, 1000) g;
SELECT pages('sparse') FROM sparse LIMIT 1;
-- And with a third of it free it grows, for the order's sake.
SELECT made('dense', 'clustered_heap', 10000);
DELETE FROM dense WHERE k > 20000 AND k % 200 > 120;
VACUUM dense;
INSERT INTO dense SELECT 5 + g * 7919 % 2000 * 10, repeat('y', 360) FROM generate_series(1, 1000) g;
SELECT pages('dense') BETWEEN 550 AND 570 AS grown FROM dense LIMIT 1;

-- Two tables that are appended to by turns use what deleted rows have left, like heap.
SELECT made('one', 'clustered_heap', 2000);
SELECT made('other', 'clustered_heap', 2000);
DELETE FROM one WHERE k % 20 = 0 AND k < 19900;
DELETE FROM other WHERE k % 20 = 0 AND k < 19900;
VACUUM one, other;
DO $$
BEGIN
    FOR g IN 1..900 LOOP
        INSERT INTO one VALUES (20000 + g, repeat('y', 360));
        INSERT INTO other VALUES (20000 + g, repeat('y', 360));
    END LOOP;
END $$;
SELECT pages('one') <= 105 AS one, pages('other') <= 105 AS other;

-- By index and by table: the same rows.
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT (SELECT count(*) FROM updated WHERE k > 0), (SELECT count(*) FROM rolling WHERE k >= 0), (SELECT count(*) FROM runs WHERE k >= 0);
RESET enable_seqscan;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SELECT (SELECT count(*) FROM updated WHERE k > 0), (SELECT count(*) FROM rolling WHERE k >= 0), (SELECT count(*) FROM runs WHERE k >= 0);
