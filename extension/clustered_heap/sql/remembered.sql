-- What a session remembers of a table, and that it notices what changes it.
CREATE EXTENSION IF NOT EXISTS clustered_heap;
SET client_min_messages = warning;

CREATE FUNCTION pages_of(relation regclass, keys text) RETURNS bigint LANGUAGE plpgsql AS
$$ DECLARE n bigint; BEGIN
    EXECUTE format('SELECT count(DISTINCT (ctid::text::point)[0]) FROM %s WHERE %s', relation, keys) INTO n;
    RETURN n;
END $$;

-- Rows that go on behind all others, and one that then comes between them.
CREATE TABLE r (k int, v text) USING clustered_heap WITH (autovacuum_enabled = off);
CREATE UNIQUE INDEX r_k ON r (k);
ALTER TABLE r CLUSTER ON r_k;
INSERT INTO r SELECT 10 * g, repeat('x', 360) FROM generate_series(1, 2000) g;
SELECT round(pages_per_1000::numeric, 1) AS pages, round(pages_per_1000_ideal::numeric, 1) AS ideal FROM cluster_quality('r');
INSERT INTO r SELECT 10000 + g, repeat('y', 360) FROM generate_series(1, 9) g;
SELECT pages_of('r', 'k BETWEEN 9990 AND 10020') AS pages;

-- A version whose key goes behind all others, and one row before it: not behind all, but beside it.
UPDATE r SET k = 500000 WHERE k = 10;
INSERT INTO r VALUES (400000, repeat('z', 360))
    RETURNING ctid = (SELECT ctid FROM r WHERE k = 20000) AS moved, (ctid::text::point)[0] AS page;
-- So too behind rows of COPY, of FREEZE, and behind rows that went away again.
TRUNCATE r;
BEGIN;
TRUNCATE r;
COPY r FROM stdin WITH (FREEZE, DELIMITER ' ');
1 frozen
5000 frozen
\.
INSERT INTO r SELECT g, repeat('x', 360) FROM generate_series(2, 400) g;
SELECT pages_of('r', 'k IN (1, 2, 3)') AS pages;
ROLLBACK;
SELECT count(*) FROM r;
INSERT INTO r SELECT g, repeat('x', 360) FROM generate_series(1, 400) g;
DELETE FROM r WHERE k > 100;
VACUUM r;
INSERT INTO r SELECT g, repeat('x', 360) FROM generate_series(101, 300) g;
SELECT count(*), min(k), max(k) FROM r;
SELECT pages_per_1000_max FROM cluster_quality('r');

-- Rows that all but fill their pages (11 a page); four pages have room for one of them.
CREATE FUNCTION page(tid) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT ($1::text::point)[0]::bigint $$;
CREATE PROCEDURE fill(relation regclass) LANGUAGE plpgsql AS
$$ BEGIN
    EXECUTE format('INSERT INTO %s SELECT 10 * g, repeat(''x'', 700) FROM generate_series(1, 1001) g', relation);
    EXECUTE format('CREATE INDEX ON %s (k)', relation);
    EXECUTE format('ALTER TABLE %s CLUSTER ON %I', relation, relation || '_k_idx');
    EXECUTE format('DELETE FROM %s WHERE k IN (20, 510, 910, 1310)', relation);
END $$;

-- A version that stays on its page and goes behind all others: the next row does not.
CREATE TABLE moved (k int, v text) USING clustered_heap WITH (autovacuum_enabled = off);
CALL fill('moved');
VACUUM moved;
INSERT INTO moved SELECT 20000 + g, repeat('y', 760) FROM generate_series(1, 10) g;
UPDATE moved SET k = 500000 WHERE k = 10;
INSERT INTO moved VALUES (400000, repeat('x', 700)) RETURNING page(ctid);
SELECT page(ctid) FROM moved WHERE k IN (500000, 20010) ORDER BY k;

-- Nor does one between two rows of a COPY that both did, the higher one first.
CREATE TABLE copied (k int, v text) USING clustered_heap WITH (autovacuum_enabled = off);
CALL fill('copied');
VACUUM copied;
INSERT INTO copied SELECT 20000 + g, repeat('y', 760) FROM generate_series(1, 10) g;
COPY copied FROM PROGRAM 'printf "500000 %0700d\n30000 %0700d\n" 1 1' WITH (DELIMITER ' ');
INSERT INTO copied VALUES (400000, repeat('x', 700)) RETURNING page(ctid);
SELECT page(ctid) FROM copied WHERE k IN (500000, 30000) ORDER BY k;

-- What the trigger does not see is noticed after 64 rows: no more of these go where heap has room.
CREATE TABLE unseen (k int, v text) WITH (autovacuum_enabled = off);
CALL fill('unseen');
DELETE FROM unseen WHERE k BETWEEN 1000 AND 4000 AND k % 20 = 0;
CREATE TRIGGER place BEFORE INSERT ON unseen FOR EACH ROW EXECUTE FUNCTION cluster_place();
VACUUM unseen;
INSERT INTO unseen SELECT 20000 + g, repeat('y', 760) FROM generate_series(1, 10) g;
UPDATE unseen SET k = 500000 WHERE k = 10;
INSERT INTO unseen SELECT 30000 + g, repeat('x', 700) FROM generate_series(1, 140) g;
SELECT count(*) FILTER (WHERE page(ctid) < 91) BETWEEN 1 AND 64 AS till_noticed FROM unseen WHERE k BETWEEN 30001 AND 30140;

-- COPY's rows beside the trigger lie elsewhere than they were told; the next row finds them.
CREATE TABLE told (k int, v text) WITH (autovacuum_enabled = off);
INSERT INTO told SELECT 10 * g, repeat('x', 360) FROM generate_series(1, 2000) g;
CREATE INDEX told_k ON told (k);
ALTER TABLE told CLUSTER ON told_k;
CREATE TRIGGER place BEFORE INSERT ON told FOR EACH ROW EXECUTE FUNCTION cluster_place();
INSERT INTO told SELECT 5001 + g * 10, repeat('y', 360) FROM generate_series(1, 17) g;
COPY told FROM PROGRAM 'printf "1005 %0360d\n15005 %0360d\n" 1 1' WITH (DELIMITER ' ');
INSERT INTO told VALUES (15105, repeat('y', 360)) RETURNING page(ctid);
SELECT k, page(ctid) FROM told WHERE k IN (1005, 15005) ORDER BY k;

-- NULLs behind all others, and a row that is before them.
CREATE TABLE nulls (k int, v text) USING clustered_heap WITH (autovacuum_enabled = off);
CALL fill('nulls');
VACUUM nulls;
INSERT INTO nulls SELECT NULL, repeat('y', 760) FROM generate_series(1, 3) g;
INSERT INTO nulls VALUES (911, repeat('x', 700)) RETURNING page(ctid) = (SELECT page(ctid) FROM nulls WHERE k = 900) AS beside;

DROP TABLE moved, copied, unseen, told, nulls;
DROP PROCEDURE fill(regclass);
DROP FUNCTION page(tid);

-- Savepoints: what is rolled back was the last row.
TRUNCATE r;
BEGIN;
SAVEPOINT one;
INSERT INTO r SELECT g, repeat('x', 360) FROM generate_series(1, 200) g;
ROLLBACK TO one;
INSERT INTO r SELECT g, repeat('x', 360) FROM generate_series(1, 200) g;
TRUNCATE r;
SAVEPOINT two;
INSERT INTO r SELECT g, repeat('x', 360) FROM generate_series(1, 200) g;
ROLLBACK TO two;
INSERT INTO r SELECT g, repeat('x', 360) FROM generate_series(50, 150) g;
COMMIT;
SELECT count(*), min(k), max(k) FROM r;

-- A temporary table whose pages go at the end of each transaction.
CREATE TEMP TABLE brief (k int, v text) USING clustered_heap ON COMMIT DELETE ROWS;
CREATE INDEX brief_k ON brief (k);
ALTER TABLE brief CLUSTER ON brief_k;
DO $$ BEGIN
    FOR i IN 1..3 LOOP
        INSERT INTO brief SELECT g, repeat('x', 360) FROM generate_series(1, 1500) g;
        INSERT INTO brief SELECT g * 7919 % 1501, repeat('y', 360) FROM generate_series(1, 1500) g;
        COMMIT;
    END LOOP;
END $$;
SELECT count(*) FROM brief;

-- Another index is marked between two rows; its columns are of other types.
CREATE TABLE turns (a int, b text, c numeric, pad text) USING clustered_heap;
CREATE INDEX turns_a ON turns (a);
CREATE INDEX turns_b ON turns (b DESC, c NULLS FIRST);
ALTER TABLE turns CLUSTER ON turns_a;
PREPARE turn (int) AS INSERT INTO turns
    VALUES ($1, CASE WHEN $1 % 5 > 0 THEN repeat(chr(97 + $1 % 26), $1 % 300) END, CASE WHEN $1 % 3 > 0 THEN $1 / 7.0 END, repeat('x', 200));
DO $$ BEGIN
    FOR i IN 1..20 LOOP
        FOR j IN 1..40 LOOP
            EXECUTE format('EXECUTE turn(%s)', i * 40 + j);
        END LOOP;
        EXECUTE format('ALTER TABLE turns CLUSTER ON %I', CASE i % 2 WHEN 0 THEN 'turns_a' ELSE 'turns_b' END);
        IF i % 4 = 0 THEN EXECUTE 'REINDEX TABLE turns'; END IF;
        IF i % 7 = 0 THEN ALTER TABLE turns ALTER a TYPE bigint; END IF;
    END LOOP;
END $$;
SELECT count(*), count(DISTINCT a), sum(a) FROM turns;

-- Keys that ascend, of types with and without functions that sort them fast, long ones too; each
-- leaf has a page of its own for its latecomers, and of long keys a leaf has few.
CREATE TABLE up (id int, a timestamptz, b text COLLATE "C", c numeric, d uuid, e float8, f text COLLATE "C") USING clustered_heap;
INSERT INTO up SELECT g, '2026-01-01Z'::timestamptz + g * interval '1 s', to_char(g, '000000000'), g * 1.1,
    lpad(to_hex(g), 32, '0')::uuid, g / 3.0, repeat('long ', 80) || to_char(g, '000000000') FROM generate_series(1, 1500) g;
DO $$
DECLARE what text; found boolean;
BEGIN
    FOREACH what IN ARRAY ARRAY['a', 'b', 'c', 'd', 'e', 'f', 'c, a', 'b DESC', 'd, e'] LOOP
        CREATE TABLE filled (LIKE up) USING clustered_heap;
        EXECUTE format('CREATE INDEX filled_key ON filled (%s)', what);
        ALTER TABLE filled CLUSTER ON filled_key;
        EXECUTE format('INSERT INTO filled SELECT * FROM up ORDER BY %s', what);
        INSERT INTO filled SELECT * FROM up WHERE id % 100 = 50;
        SELECT row_count = 1515 AND pages_per_1000_max <= pages_per_1000_ideal + 16 INTO found FROM cluster_quality('filled');
        IF NOT found THEN RAISE EXCEPTION '% is out of order', what; END IF;
        DROP TABLE filled;
    END LOOP;
END $$;

-- More tables than are remembered at a time, by turns.
DO $$
BEGIN
    FOR i IN 1..70 LOOP
        EXECUTE format('CREATE TABLE many%s (k int, v text) USING clustered_heap', i);
        EXECUTE format('CREATE INDEX ON many%s (k)', i);
        EXECUTE format('ALTER TABLE many%s CLUSTER ON many%s_k_idx', i, i);
    END LOOP;
    FOR j IN 1..40 LOOP
        FOR i IN 1..70 LOOP
            EXECUTE format('INSERT INTO many%s VALUES (%s, repeat(''x'', 360))', i, j * 7 % 41);
        END LOOP;
    END LOOP;
    FOR i IN 1..70 LOOP
        IF (SELECT pages_per_1000 > 3 OR row_count <> 40 FROM cluster_quality(format('many%s', i)::regclass)) THEN
            RAISE EXCEPTION 'many% is out of order', i;
        END IF;
        EXECUTE format('DROP TABLE many%s', i);
    END LOOP;
END $$;

DROP TABLE r, turns, up;
DROP FUNCTION pages_of(regclass, text);
