-- cluster_quality(): figures against the same ones by window functions, and what it refuses.
CREATE EXTENSION IF NOT EXISTS clustered_heap;
SET client_min_messages = warning;

-- What the function says, in plain SQL: pages of 1,000 rows that follow each other.
CREATE FUNCTION by_sql(relation text, ordering text,
    OUT row_count bigint, OUT pages_per_1000 float8, OUT pages_per_1000_max bigint,
    OUT correlation float8)
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format($q$
        WITH placed AS (
            SELECT row_number() OVER (ORDER BY %s) - 1 AS place,
                (ctid::text::point)[0]::bigint AS block FROM %s),
        ranges AS (
            SELECT count(DISTINCT block) AS pages, count(*) AS n FROM placed GROUP BY place / 1000),
        whole AS (SELECT * FROM ranges WHERE n = 1000 OR (SELECT count(*) FROM placed) < 1000)
        SELECT (SELECT count(*) FROM placed), avg(pages)::float8, max(pages),
            (SELECT corr(place, block) FROM placed) FROM whole$q$, ordering, relation)
    INTO row_count, pages_per_1000, pages_per_1000_max, correlation;
END $$;

CREATE FUNCTION agree(relation text, ordering text) RETURNS boolean
LANGUAGE sql AS $$
    SELECT (q.row_count, q.pages_per_1000_max) = (s.row_count, s.pages_per_1000_max)
        AND abs(q.pages_per_1000 - s.pages_per_1000) < 1e-6
        AND abs(q.correlation - s.correlation) < 1e-9
    FROM cluster_quality(relation::regclass) q, by_sql(relation, ordering) s
$$;

-- In order, as CLUSTER writes it: the ideal is what it is.
CREATE TABLE t (k int, v text) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT g, repeat('x', 100) FROM generate_series(1, 10000) g;
CREATE INDEX t_k ON t (k);
SELECT * FROM cluster_quality('t');
ALTER TABLE t CLUSTER ON t_k;
SELECT agree('t', 'k');
SELECT row_count, heap_pages = heap_pages_ideal AS packed, correlation > 0.9999 AS in_order,
    abs(pages_per_1000 - pages_per_1000_ideal) < 0.5 AS ranges_ideal,
    abs(pages_per_leaf - pages_per_leaf_ideal) < 0.5 AS leaves_ideal FROM cluster_quality('t');

-- At random, by a fixed rule: k is not in the order of the rows.
TRUNCATE t;
INSERT INTO t SELECT g * 7919 % 10007, repeat('x', 100) FROM generate_series(1, 10006) g;
SELECT agree('t', 'k');
SELECT pages_per_1000 > 5 * pages_per_1000_ideal AS scattered, abs(correlation) < 0.1 AS near_zero
FROM cluster_quality('t');

-- Deleted rows do not count, wherever the visibility map stands; NULL keys do.
DELETE FROM t WHERE k % 3 = 0;
SELECT agree('t', 'k');
VACUUM t;
SELECT agree('t', 'k');
UPDATE t SET k = NULL WHERE k % 97 = 1;
SELECT agree('t', 'k NULLS LAST, ctid');
CLUSTER t;
SELECT agree('t', 'k NULLS LAST, ctid');
SELECT heap_pages = heap_pages_ideal AS packed FROM cluster_quality('t');

-- A fillfactor is part of the ideal, and so are line pointers and alignment.
ALTER TABLE t SET (fillfactor = 70);
CLUSTER t;
SELECT heap_pages = heap_pages_ideal AS packed, agree('t', 'k NULLS LAST, ctid') FROM cluster_quality('t');

-- Another index, by name; columns of it that run down; equal keys.
CREATE INDEX t_down ON t (v DESC, k DESC NULLS LAST) INCLUDE (v);
SELECT index, correlation < -0.9 AS down FROM cluster_quality('t', 't_down');
CREATE TABLE same (k int) WITH (autovacuum_enabled = off);
CREATE INDEX same_k ON same (k);
ALTER TABLE same CLUSTER ON same_k;
INSERT INTO same SELECT 1 FROM generate_series(1, 5000);
SELECT agree('same', 'k, ctid');

-- One row, one page, none.
TRUNCATE same;
SELECT * FROM cluster_quality('same');
INSERT INTO same VALUES (1);
SELECT * FROM cluster_quality('same');
SELECT cluster_quality(NULL) IS NULL AS null_of_null;

-- Its own transaction's rows are seen, others' of a subtransaction that ended are not.
BEGIN;
INSERT INTO same SELECT generate_series(2, 1500);
SAVEPOINT s;
INSERT INTO same SELECT generate_series(2, 1500);
ROLLBACK TO s;
SELECT agree('same', 'k');
COMMIT;

-- What is refused.
SELECT cluster_quality('t', 'same_k');
SELECT cluster_quality('t_k');
SELECT cluster_quality('t', 't');
CREATE INDEX t_hash ON t USING hash (k);
SELECT cluster_quality('t', 't_hash');
CREATE INDEX t_some ON t (k) WHERE k > 5;
SELECT cluster_quality('t', 't_some');
CREATE TABLE parts (k int) PARTITION BY RANGE (k);
CREATE TABLE part PARTITION OF parts FOR VALUES FROM (0) TO (100);
CREATE INDEX ON parts (k);
SELECT cluster_quality('parts');
SELECT row_count FROM cluster_quality('part', 'part_k_idx');
CREATE VIEW of_t AS SELECT * FROM t;
SELECT cluster_quality('of_t');
SELECT cluster_quality(1::oid);
CREATE MATERIALIZED VIEW stored AS SELECT k FROM same;
CREATE INDEX stored_k ON stored (k);
SELECT row_count FROM cluster_quality('stored', 'stored_k');

-- Who may: whoever may read the table, and members of pg_stat_scan_tables.
CREATE ROLE regress_quality_none;
SET ROLE regress_quality_none;
SELECT row_count FROM cluster_quality('same');
RESET ROLE;
GRANT SELECT ON same TO regress_quality_none;
SET ROLE regress_quality_none;
SELECT row_count FROM cluster_quality('same');
RESET ROLE;
REVOKE SELECT ON same FROM regress_quality_none;
GRANT pg_stat_scan_tables TO regress_quality_none;
SET ROLE regress_quality_none;
SELECT row_count FROM cluster_quality('same');
RESET ROLE;
DROP OWNED BY regress_quality_none;
DROP ROLE regress_quality_none;
