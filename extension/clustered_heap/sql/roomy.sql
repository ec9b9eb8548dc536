-- Which of a leaf's other pages takes a row: the highest that has room by the map, whether it is
-- looked for each time or remembered. Rows of several lengths, over pages with a few holes each.
CREATE EXTENSION IF NOT EXISTS clustered_heap;
SET client_min_messages = warning;

CREATE TABLE holes (k int, v text) USING clustered_heap WITH (autovacuum_enabled = off);
INSERT INTO holes SELECT 10 * g, repeat('x', 360) FROM generate_series(1, 6000) g;
CREATE INDEX holes_k ON holes (k);
ALTER TABLE holes CLUSTER ON holes_k;

CREATE PROCEDURE play_round(i int, deleted int, inserted int, shortest int, step int) LANGUAGE plpgsql AS
$$ BEGIN
    INSERT INTO holes SELECT g::bigint * (7919 + 2 * i) % 60000, repeat('y', shortest + g % 4 * step)
        FROM generate_series(1, inserted) g;
    DELETE FROM holes WHERE k::bigint * (104729 + 2 * i) % 100 < deleted;
END $$;
CREATE FUNCTION places() RETURNS text LANGUAGE sql AS
$$ SELECT md5(string_agg(k || ' ' || ctid, ',' ORDER BY k, ctid)) FROM holes $$;

CALL play_round(1, 3, 0, 360, 0);
VACUUM holes;
CALL play_round(2, 2, 300, 360, 0);
SELECT places();
VACUUM holes;
CALL play_round(3, 6, 500, 200, 100);
SELECT places();
VACUUM holes;
CALL play_round(4, 20, 900, 700, -150);
SELECT places();
VACUUM holes;
CALL play_round(5, 1, 900, 300, 77);
SELECT places();
VACUUM holes;
CALL play_round(6, 2, 900, 150, 260);
SELECT places();
SELECT count(*), pg_relation_size('holes') / 8192 AS pages FROM holes;

-- Pages far below that VACUUM has found empty become a leaf's own, one after the other.
DELETE FROM holes WHERE k < 12000;
VACUUM holes;
INSERT INTO holes SELECT 40000 + g * 37 % 1000, repeat('e', 500 + g % 3 * 40) FROM generate_series(1, 250) g;
SELECT places();
SELECT count(DISTINCT (ctid::text::point)[0]) AS pages FROM holes WHERE v LIKE 'e%';

-- Keys so long that there are more leaves than are remembered.
CREATE TABLE long (k text COLLATE "C", v text) USING clustered_heap WITH (autovacuum_enabled = off);
CREATE INDEX long_k ON long (k);
ALTER TABLE long CLUSTER ON long_k;
CREATE FUNCTION long_key(g int) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT to_char(g, '000000') || (SELECT string_agg(md5(g || ' ' || i), '') FROM generate_series(1, 6) i) $$;
INSERT INTO long SELECT long_key(10 * g), repeat('x', 1500) FROM generate_series(1, 40) g;
INSERT INTO long SELECT long_key(10 * g), repeat('x', 1500) FROM generate_series(41, 6000) g;
DELETE FROM long WHERE hashtext(k) % 12 = 0;
VACUUM long;
INSERT INTO long SELECT long_key(g * 7919 % 60001), repeat('y', 1500) FROM generate_series(1, 1500) g;
SELECT md5(string_agg(left(k, 7) || ' ' || ctid, ',' ORDER BY k, ctid)) AS places FROM long;

-- The map is told of more room where the table is looked over for how sparse it is.
CREATE TABLE told (g int, k float8, n int, v text) WITH (fillfactor = 70, autovacuum_enabled = off);
CREATE INDEX told_k ON told (g, k);
ALTER TABLE told CLUSTER ON told_k;
CREATE TRIGGER place BEFORE INSERT ON told FOR EACH ROW EXECUTE FUNCTION cluster_place();
INSERT INTO told SELECT g % 20, g * 10 / 3.0, g % 5, repeat('x', 900) FROM generate_series(1, 5000) g;
UPDATE told SET n = n + 1 WHERE hashtext(k::text) % 3 = 0;
SELECT count(*) FROM told;          -- and prunes
INSERT INTO told SELECT g * 7 % 20, (50455 + g * 3) / 3.0, g % 5, repeat('x', 900) FROM generate_series(1, 400) g;
SELECT md5(string_agg(k || ' ' || ctid, ',' ORDER BY k, ctid)) AS places FROM told;
-- A leaf whose rows UPDATE has moved is walked over anew, and its pages with room are looked for.
CREATE TABLE walked (g int, k text COLLATE "C", n int, v text) USING clustered_heap WITH (fillfactor = 70, autovacuum_enabled = off);
INSERT INTO walked SELECT g % 20, lpad((g * 10)::text, 8, '0'), g % 5, repeat('x', 900 + g % 7) FROM generate_series(1, 2000) g;
CREATE INDEX walked_k ON walked (g, k DESC);
ALTER TABLE walked CLUSTER ON walked_k;
CREATE INDEX walked_n ON walked (n);
INSERT INTO walked VALUES (0, '00020001', 1, repeat('x', 901));
INSERT INTO walked VALUES (0, '00020002', 1, repeat('x', 900));
DELETE FROM walked WHERE (g * 31 + n * 7 + hashtext(k)) % 20 = 0;
UPDATE walked SET n = n + 1 WHERE hashtext(k) % 3 = 0;
SELECT count(*) FROM walked;
VACUUM walked;
INSERT INTO walked VALUES (0, '00020003', 1, repeat('x', 900));
INSERT INTO walked SELECT g * 7 % 20, lpad((g::bigint * 98581 % 20003)::text, 8, '0'), g % 5, repeat('x', 900) FROM generate_series(1, 130) g;
COPY walked FROM PROGRAM 'printf "7 00020004 1 %0900d\n" 1' WITH (DELIMITER ' ');
REINDEX INDEX walked_k;
INSERT INTO walked SELECT g * 7 % 20, lpad((8971 + g)::text, 8, '0'), g % 5, repeat('x', 900) FROM generate_series(1, 130) g;
SELECT count(*) FROM walked;
UPDATE walked SET v = v || repeat('y', 19) WHERE hashtext(k) % 3 = 0;
SELECT count(*) FROM walked;
INSERT INTO walked SELECT g * 7 % 20, lpad((g::bigint * 1309215 % 20008)::text, 8, '0'), g % 5, repeat('x', 900 + g % 7) FROM generate_series(1, 130) g;
SELECT md5(string_agg(k || ' ' || ctid, ',' ORDER BY g, k, ctid)) AS places FROM walked;
DROP TABLE long, told, walked;
DROP FUNCTION long_key(int);

-- More leaves are remembered as the index grows.
CREATE TABLE grown (k int) USING clustered_heap WITH (autovacuum_enabled = off);
CREATE INDEX grown_k ON grown (k);
ALTER TABLE grown CLUSTER ON grown_k;
INSERT INTO grown SELECT g::bigint * 7919 % 100003 FROM generate_series(1, 1000) g;
INSERT INTO grown SELECT g::bigint * 7919 % 100003 FROM generate_series(1001, 2000) g;
SELECT total_bytes AS before FROM pg_backend_memory_contexts WHERE name = 'clustered_heap table'
    ORDER BY total_bytes DESC LIMIT 1 \gset
INSERT INTO grown SELECT g::bigint * 7919 % 100003 FROM generate_series(2001, 90000) g;
SELECT total_bytes > 1.5 * :before AS more FROM pg_backend_memory_contexts WHERE name = 'clustered_heap table'
    ORDER BY total_bytes DESC LIMIT 1;

-- Leaves are found again behind VACUUM: a row takes the two pages that its entry descends by, and
-- for its place one now and then, not two (those that are where they were remembered do not count).
CREATE TABLE leaves (k int) USING clustered_heap WITH (autovacuum_enabled = off);
INSERT INTO leaves SELECT 2 * g FROM generate_series(1, 100000) g;
CREATE INDEX leaves_k ON leaves (k);
ALTER TABLE leaves CLUSTER ON leaves_k;
INSERT INTO leaves SELECT g::bigint * 7919 % 200000 FROM generate_series(1, 1500) g;
VACUUM leaves;
SELECT pg_stat_force_next_flush() IS NOT NULL AS flushed;
SELECT pg_stat_get_blocks_fetched('leaves_k'::regclass) AS before \gset
INSERT INTO leaves SELECT g::bigint * 104729 % 200000 FROM generate_series(1, 1000) g;
SELECT pg_stat_force_next_flush() IS NOT NULL AS flushed;
SELECT (pg_stat_get_blocks_fetched('leaves_k'::regclass) - :before) / 1000.0 AS looks_a_row;

DROP TABLE holes, grown, leaves;
DROP PROCEDURE play_round(int, int, int, int, int);
DROP FUNCTION places();
