-- What the maps say of pages, which saves reading them.
CREATE EXTENSION IF NOT EXISTS clustered_heap;
SET client_min_messages = warning;

-- Full pages of 21 rows, which leave fewer bytes than the free space map counts.
CREATE TABLE crowded (k int, v text) USING clustered_heap WITH (autovacuum_enabled = off);
INSERT INTO crowded SELECT 10 * g, repeat('x', 350) FROM generate_series(1, 21000) g;
CREATE INDEX crowded_k ON crowded (k);
ALTER TABLE crowded CLUSTER ON crowded_k;
VACUUM crowded;
CREATE PROCEDURE fill(step int) LANGUAGE sql AS
$$ INSERT INTO crowded SELECT g::bigint * step % 210000, repeat('y', 350) FROM generate_series(1, 500) g $$;

CALL fill(7919);
CALL fill(7907);
-- Where the map speaks of some pages, those of which it says nothing are full: 2.1 pages of table
-- and maps are asked for a row. With the neighbour's it is one more, as from 19 on.
DELETE FROM crowded WHERE k BETWEEN 1000 AND 1100;
VACUUM crowded;
CALL fill(7901);
VACUUM crowded;
SELECT pg_stat_force_next_flush() IS NOT NULL AS flushed;
SELECT pg_stat_get_blocks_fetched('crowded'::regclass) AS before \gset
CALL fill(7883);
SELECT pg_stat_force_next_flush() IS NOT NULL AS flushed;
SELECT pg_stat_get_blocks_fetched('crowded'::regclass) - :before < 2.6 * 500 OR current_setting('server_version_num')::int >= 190000 AS neighbours_are_not_read;

-- COPY FREEZE makes pages all-visible and tells the free space map nothing. Where the map, which the
-- full page before has made, says nothing of any page, their room is used.
BEGIN;
CREATE TABLE frozen (k int, v text DEFAULT repeat('x', 350)) USING clustered_heap WITH (autovacuum_enabled = off);
CREATE INDEX frozen_k ON frozen (k);
ALTER TABLE frozen CLUSTER ON frozen_k;
INSERT INTO frozen (k) SELECT -10 * g FROM generate_series(30, 1, -1) g;
COPY frozen (k) FROM stdin (FREEZE);
10
20
30
40
50
60
70
80
90
100
110
120
130
140
150
160
170
180
190
200
210
220
230
240
250
260
270
280
290
300
\.
COMMIT;
SELECT pg_relation_size('frozen', 'fsm') > 0 AS has_map;
INSERT INTO frozen (k) VALUES (295);
INSERT INTO frozen (k) VALUES (285);
SELECT k, ctid FROM frozen WHERE k IN (285, 290, 295) ORDER BY k;

DROP TABLE crowded, frozen;
DROP PROCEDURE fill;
