"""What servers do for `wal_truth.py`: settings, histories and a script of pgbench."""

from __future__ import annotations

SETTINGS = {
    "jit": "off",  # unpacked builds may lack LLVM
    "autovacuum": "off",
    "wal_log_hints": "on",
    "wal_compression": "pglz",
    "max_prepared_transactions": "8",
    "max_wal_size": "256MB",
    "wal_keep_size": "64GB",
    "synchronous_commit": "off",
    "shared_buffers": "256MB",
}

STATEMENT_ENDS = r";\s*(?:\n|$)"
"""Between statements; what follows COPY in a history is one statement: numbers of its rows."""

COUNTED = """
CREATE TABLE counted (id int PRIMARY KEY, n int, p text) WITH (fillfactor = 80);
INSERT INTO counted SELECT i, i, repeat('x', 60) FROM generate_series(1, 20000) i;
UPDATE counted SET n = n + 1 WHERE id % 3 = 0;
UPDATE counted SET p = repeat('y', 300) WHERE id % 4 = 0;
DELETE FROM counted WHERE id % 10 = 0;
BEGIN;
UPDATE counted SET n = 0 WHERE id < 5000;
ROLLBACK;
BEGIN;
SAVEPOINT a;
INSERT INTO counted SELECT i, 0, '' FROM generate_series(50001, 51000) i;
ROLLBACK TO a;
DELETE FROM counted WHERE id BETWEEN 900 AND 1950;
COMMIT;
BEGIN;
UPDATE counted SET n = 1 WHERE id = 2001;
PREPARE TRANSACTION 'counted 1';
COMMIT PREPARED 'counted 1';
BEGIN;
UPDATE counted SET n = 1 WHERE id = 2001;
PREPARE TRANSACTION 'counted 2';
ROLLBACK PREPARED 'counted 2';
VACUUM counted;
UPDATE counted SET n = n + 1 WHERE id % 2 = 0;
VACUUM (FREEZE) counted
"""

KINDS = """
CREATE TABLE t (a int, b text, c point, d int[], f int);
CREATE TABLE early (a int, b text, c point, d int[], f int);
CREATE INDEX ON early (a);
CREATE INDEX ON early USING hash (b);
CREATE INDEX ON early USING gin (d);
CREATE INDEX ON early USING gist (c);
CREATE INDEX ON early USING spgist (c);
CREATE INDEX ON early USING brin (f) WITH (pages_per_range = 4);
CREATE EXTENSION bloom;
CREATE INDEX ON early USING bloom (a, f);
CREATE SEQUENCE s;
COMMENT ON TABLE t IS 'filled in every round'
"""

ROUND = """
COPY t FROM STDIN
0 40000;
CREATE INDEX t_a ON t (a);
CREATE INDEX t_hash ON t USING hash (b);
CREATE INDEX t_gin ON t USING gin (d);
CREATE INDEX t_gist ON t USING gist (c);
CREATE INDEX t_spgist ON t USING spgist (c);
CREATE INDEX t_brin ON t USING brin (f) WITH (pages_per_range = 4);
CREATE INDEX t_bloom ON t USING bloom (a, f);
COPY t FROM STDIN
40000 50000;
COPY early FROM STDIN
0 6000;
INSERT INTO early SELECT a, b, c, d, f FROM t WHERE a < 3000;
CHECKPOINT;
UPDATE t SET b = md5(b) WHERE a % 7 = 0;
DELETE FROM t WHERE a % 5 = 0;
VACUUM t;
VACUUM (FREEZE) t;
SELECT count(*) FROM t;
ALTER TABLE t REPLICA IDENTITY FULL;
UPDATE t SET f = f WHERE a < 1000;
ALTER TABLE t REPLICA IDENTITY DEFAULT;
SELECT a FROM t WHERE a = 101 FOR UPDATE;
SELECT count(nextval('s')) FROM generate_series(1, 500);
SELECT pg_logical_emit_message(false, 'x', repeat('y', 200000));
SELECT pg_logical_emit_message(true, 'x', 'inside');
DELETE FROM early WHERE a % 3 = 0;
VACUUM early;
REINDEX TABLE early;
TRUNCATE early;
VACUUM FULL t;
CLUSTER t USING t_a;
DROP INDEX t_a, t_hash, t_gin, t_gist, t_spgist, t_brin;
DROP INDEX IF EXISTS t_bloom;
TRUNCATE t;
SELECT pg_switch_wal();
CREATE TABLE u AS SELECT i AS a FROM generate_series(1, 5000) i;
DROP TABLE u
"""

SCRIPT = """
\\set aid random(1, 100000 * 4)
\\set delta random(-5000, 5000)
\\set end random(1, 3)
BEGIN;
SAVEPOINT one;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SAVEPOINT two;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime)
    VALUES (1, 1, :aid, :delta, CURRENT_TIMESTAMP);
ROLLBACK TO two;
SELECT aid FROM pgbench_accounts WHERE aid = :aid FOR UPDATE;
\\if :end = 1
ROLLBACK;
\\else
COMMIT;
\\endif
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
PREPARE TRANSACTION 'client :client_id';
\\if :end = 2
ROLLBACK PREPARED 'client :client_id';
\\else
COMMIT PREPARED 'client :client_id';
\\endif
"""
