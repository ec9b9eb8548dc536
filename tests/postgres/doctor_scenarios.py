"""
Two databases for each rule of the doctor: one in which it finds something, and its counterpart.

The counterpart differs in one fact alone. Nothing sleeps: what has to be old is old by a clock that
is ahead, and an interval is as long as that clock says.
"""

from __future__ import annotations

from doctor_bloat import BLOAT
from doctor_more import LOG, MORE
from doctor_order import ORDER
from doctor_plain import PLAIN
from doctor_sides import (
    DAY_S,
    Scenario,
    dead_right,
    duplicate_right,
    ended_life_right,
    ends_hot_right,
    equal,
    foreign_key_right,
    invalid_right,
    large_right,
    never_right,
    no_room_right,
    overlapping_right,
    padding_right,
    parent_right,
    partitioned_right,
    scans_right,
    slot_right,
    temp_right,
    unused_right,
    writes_right,
)
from doctor_yet_more import YET_MORE

WIDE = "repeat('x', 100)"
SCENARIOS = (
    *BLOAT,
    *ORDER,
    *MORE,
    *YET_MORE,
    *PLAIN,
    Scenario(
        rule="invalid-index",
        about="t_a",
        severity="warning",
        name="unfinished",
        common="CREATE TABLE t (a int);\nINSERT INTO t SELECT generate_series(1, 1002);\n"
        "CREATE INDEX CONCURRENTLY t_a ON t (a);\n",
        # As a build that was cancelled in its last phase leaves it.
        fires="UPDATE pg_index SET indisvalid = false WHERE indexrelid = 't_a'::regclass;\n",
        ahead_s=(7200, 7200),
        check=invalid_right,
    ),
    Scenario(
        rule="invalid-index",
        name="failed",
        about="t_a",
        severity="info",
        common="CREATE TABLE t (a int);\nINSERT INTO t VALUES (1);\n",
        fires="INSERT INTO t VALUES (1);\n!CREATE UNIQUE INDEX CONCURRENTLY t_a ON t (a);\n"
        "INSERT INTO t SELECT i FROM generate_series(2, 1001) i;\n",
        silent="INSERT INTO t VALUES (-1);\nCREATE UNIQUE INDEX CONCURRENTLY t_a ON t (a);\n"
        "INSERT INTO t SELECT i FROM generate_series(2, 1001) i;\n",
        ahead_s=(7200, 7200),
        check=lambda finding, _: equal(finding.numbers["wal_bytes_a_day"], None),
    ),
    Scenario(
        # A leftover is what is there besides, however it is called.
        rule="invalid-index",
        name="left-by-reindex",
        about="t_other",
        severity="warning",
        common="CREATE TABLE t (a int, b int);\n"
        "CREATE INDEX t_a ON t (lower(a::text)) WHERE b > 0;\n"
        "CREATE INDEX t_other ON t (lower(a::text)) WHERE b > 0;\n",
        fires="UPDATE pg_index SET indisvalid = false WHERE indexrelid = 't_other'::regclass;\n",
        check=lambda finding, _: equal(
            (finding.remedy.sql, finding.numbers["valid_one"]),
            (('DROP INDEX CONCURRENTLY "public"."t_other"',), "public.t_a"),
        ),
    ),
    Scenario(
        # Nothing is there besides, though it is called so: dropped it would be missed.
        rule="invalid-index",
        name="called-as-a-leftover",
        about="t_a_ccnew",
        severity="warning",
        common="CREATE TABLE t (a int, b int);\nCREATE INDEX t_a ON t (a);\n"
        "CREATE INDEX t_a_ccnew ON t (b);\n",
        fires="UPDATE pg_index SET indisvalid = false WHERE indexrelid = 't_a_ccnew'::regclass;\n",
        check=lambda finding, _: equal(
            (finding.remedy.sql, finding.numbers["valid_one"]),
            (('REINDEX INDEX CONCURRENTLY "public"."t_a_ccnew"',), None),
        ),
    ),
    Scenario(
        rule="unused-index",
        about="t_v",
        severity="info",
        common="CREATE TABLE t (id int8 PRIMARY KEY, v int8, w int) WITH (fillfactor = 50);\n"
        "CREATE INDEX t_v ON t (v);\n"
        "INSERT INTO t SELECT i, i, 0 FROM generate_series(1, 60000) i;\nVACUUM ANALYZE t;\n"
        "UPDATE t SET w = 1 WHERE id <= 500;\nUPDATE t SET v = -v WHERE id > 500 AND id <= 1000;\n",
        silent="SET enable_seqscan = off;\nSELECT count(w) FROM t WHERE v = 7000;\n",
        ahead_s=(31 * DAY_S, 31 * DAY_S),
        check=unused_right,
    ),
    Scenario(
        rule="unused-index",
        name="young-statistics",
        about="t_v",
        severity="info",
        common="CREATE TABLE t (v int8);\nCREATE INDEX t_v ON t (v);\n"
        "INSERT INTO t SELECT i FROM generate_series(1, 60000) i;\nVACUUM ANALYZE t;\n",
        ahead_s=(31 * DAY_S, 15 * DAY_S),
    ),
    Scenario(
        rule="unused-index",
        name="of-a-foreign-key",
        about="t_v",
        severity="info",
        common="CREATE TABLE parent (id int8 PRIMARY KEY);\nINSERT INTO parent VALUES (1);\n"
        "CREATE TABLE t (v int8, w int);\nCREATE INDEX t_v ON t (v, w);\n"
        "INSERT INTO t SELECT 1, i FROM generate_series(1, 60000) i;\nVACUUM ANALYZE t;\n",
        silent="ALTER TABLE t ADD FOREIGN KEY (v) REFERENCES parent NOT VALID;\n",
        ahead_s=(31 * DAY_S, 31 * DAY_S),
    ),
    Scenario(
        rule="duplicate-index",
        about="t_v_again",
        severity="info",
        common="CREATE TABLE t (v int);\nCREATE INDEX t_v ON t (v);\n",
        fires="CREATE INDEX t_v_again ON t (v);\n"
        "INSERT INTO t SELECT i FROM generate_series(1, 1000) i;\n",
        silent="CREATE INDEX t_v_again ON t (v DESC);\n"
        "INSERT INTO t SELECT i FROM generate_series(1, 1000) i;\n",
        ahead_s=(7200, 7200),
        check=duplicate_right,
    ),
    Scenario(
        rule="duplicate-index",
        name="of-a-constraint",
        about="t_other",
        severity="info",
        common="CREATE TABLE t (v int PRIMARY KEY);\n",
        fires="CREATE UNIQUE INDEX t_other ON t (v);\n",
        silent="ALTER TABLE t ADD CONSTRAINT t_other UNIQUE (v);\n",
    ),
    Scenario(
        rule="duplicate-index",
        name="of-an-expression",
        about="t_second",
        severity="info",
        common="CREATE TABLE t (v text);\n"
        "CREATE INDEX t_first ON t (lower(v)) WHERE v <> 'none';\n",
        fires="CREATE INDEX t_second   ON  t   (lower(v)) WHERE   v <> 'none';\n",
        silent="CREATE INDEX t_second   ON  t   (lower(v)) WHERE   v <> 'some';\n",
    ),
    Scenario(
        rule="duplicate-index",
        name="that-is-read",
        about="t_first",
        severity="info",
        common="CREATE TABLE t (v int);\nCREATE INDEX t_first ON t (v);\n"
        "INSERT INTO t SELECT i FROM generate_series(1, 1000) i;\nANALYZE t;\n",
        # Of two that are equally cheap the younger is taken, which then is the one that is read.
        fires="CREATE INDEX t_second ON t (v);\nSET enable_seqscan = off;\n"
        "SELECT * FROM t WHERE v = 7;\n",
        silent="CREATE INDEX t_second ON t (v) WHERE v > 0;\n",
        check=lambda finding, _: equal(finding.numbers["kept"], "t_second"),
    ),
    Scenario(
        rule="duplicate-index",
        name="of-a-partition",
        about="p_one_again",
        severity="info",
        common="CREATE TABLE p (v int) PARTITION BY LIST (v);\n"
        "CREATE TABLE p_one PARTITION OF p FOR VALUES IN (1);\nCREATE INDEX p_v ON p (v);\n",
        fires="CREATE INDEX p_one_again ON p_one (v);\n",
        silent="CREATE INDEX p_one_again ON p_one (v DESC);\n",
        check=lambda finding, _: equal(finding.numbers["kept"], "p_one_v_idx"),
    ),
    Scenario(
        rule="duplicate-index",
        name="of-a-partitioned-table",
        about="p_again",
        severity="info",
        common="CREATE TABLE p (v int8) PARTITION BY LIST (v);\n"
        "CREATE TABLE p_one PARTITION OF p FOR VALUES IN (1);\n"
        "CREATE TABLE p_two PARTITION OF p FOR VALUES IN (2);\nCREATE INDEX p_v ON p (v);\n",
        fires="CREATE INDEX p_again ON p (v);\n"
        "INSERT INTO p SELECT 1 + i % 2 FROM generate_series(1, 40000) i;\nVACUUM ANALYZE p;\n",
        silent="CREATE INDEX p_again ON p (v DESC);\n",
        ahead_s=(7200, 7200),
        check=partitioned_right,
    ),
    Scenario(
        rule="duplicate-index",
        name="deferrable",
        about="t_at_once",
        severity="info",
        common="CREATE TABLE t (v int NOT NULL);\nCREATE UNIQUE INDEX t_at_once ON t (v);\n",
        fires="ALTER TABLE t ADD CONSTRAINT t_key UNIQUE (v);\n",
        # A foreign key and ON CONFLICT need one that is checked at once.
        silent="ALTER TABLE t ADD CONSTRAINT t_key UNIQUE (v) DEFERRABLE;\n",
    ),
    Scenario(
        rule="overlapping-index",
        name="with-included",
        about="t_v",
        severity="info",
        common="CREATE TABLE t (v int, w int);\nCREATE INDEX t_v ON t (v);\n",
        fires="CREATE INDEX t_with ON t (v) INCLUDE (w);\n",
        silent="CREATE INDEX t_with ON t (w) INCLUDE (v);\n",
        check=lambda finding, _: equal(finding.numbers["kept"], "t_with"),
    ),
    Scenario(
        rule="overlapping-index",
        about="t_v",
        severity="info",
        common="CREATE TABLE t (v int, w int);\nCREATE INDEX t_v ON t (v);\n",
        fires="CREATE INDEX t_vw ON t (v, w);\n",
        silent="CREATE INDEX t_vw ON t (w, v);\n",
        check=overlapping_right,
    ),
    Scenario(
        rule="overlapping-index",
        name="unique",
        about="t_v",
        severity="info",
        common="CREATE TABLE t (v int, w int);\nCREATE INDEX t_vw ON t (v, w);\n",
        fires="CREATE INDEX t_v ON t (v);\n",
        silent="CREATE UNIQUE INDEX t_v ON t (v);\n",
    ),
    Scenario(
        rule="foreign-key-without-index",
        about="child.child_parent_fkey",
        severity="info",
        common="CREATE TABLE parent (id int PRIMARY KEY);\n"
        "INSERT INTO parent SELECT i FROM generate_series(1, 10) i;\n"
        "CREATE TABLE child (id int, parent int REFERENCES parent);\n"
        "INSERT INTO child SELECT i, 1 FROM generate_series(1, 30000) i;\nANALYZE child;\n"
        "DELETE FROM parent WHERE id > 7;\n",
        silent="CREATE INDEX ON child (parent) WHERE parent IS NOT NULL;\n",
        ahead_s=(7200, 7200),
        check=foreign_key_right,
    ),
    Scenario(
        rule="foreign-key-without-index",
        name="other-order",
        about="child.child_a_b_fkey",
        severity="info",
        common="CREATE TABLE parent (a int, b int, PRIMARY KEY (a, b));\n"
        "INSERT INTO parent VALUES (1, 1);\n"
        "CREATE TABLE child (a int, b int, c int, FOREIGN KEY (a, b) REFERENCES parent);\n"
        "INSERT INTO child SELECT 1, 1, i FROM generate_series(1, 30000) i;\nANALYZE child;\n",
        fires="CREATE INDEX ON child (b, c, a);\n",
        silent="CREATE INDEX ON child (b, a, c);\n",
    ),
    Scenario(
        rule="never-analyzed",
        about="t",
        severity="info",
        common="CREATE TABLE t (v int);\nINSERT INTO t SELECT i FROM generate_series(1, 100) i;\n",
        silent="ANALYZE t;\n",
        check=never_right,
    ),
    Scenario(
        rule="never-analyzed",
        name="autovacuum-off",
        about="t",
        severity="warning",
        common="CREATE TABLE t (v int) WITH (autovacuum_enabled = off);\n"
        "INSERT INTO t SELECT i FROM generate_series(1, 100) i;\nVACUUM t;\n",
        silent="ANALYZE t;\n",
        check=never_right,
    ),
    Scenario(
        rule="parent-never-analyzed",
        about="p",
        severity="info",
        common="CREATE TABLE p (v int) PARTITION BY LIST (v);\n"
        "CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);\n"
        "CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2);\n"
        "INSERT INTO p SELECT 1 + i % 2 FROM generate_series(1, 100) i;\n",
        fires="ANALYZE p1;\nANALYZE p2;\n",
        silent="ANALYZE p;\n",
        check=parent_right,
    ),
    Scenario(
        rule="column-padding",
        about="t",
        severity="info",
        fires="CREATE TABLE t (a bool, b int8, c bool, d int8, e bool, f int8);\n"
        "INSERT INTO t SELECT true, i, true, i, true, i FROM generate_series(1, 110000) i;\n"
        "ANALYZE t;\n",
        silent="CREATE TABLE t (b int8, d int8, f int8, a bool, c bool, e bool, pad int8);\n"
        "INSERT INTO t SELECT i, i, i, true, true, true, i FROM generate_series(1, 150000) i;\n"
        "ANALYZE t;\n",
        check=padding_right,
    ),
    Scenario(
        rule="index-ends-hot",
        about="t",
        severity="info",
        common="CREATE TABLE t (id int PRIMARY KEY, v int) WITH (fillfactor = 40);\n"
        "INSERT INTO t SELECT i, i FROM generate_series(1, 1000) i;\n",
        fires="CREATE INDEX t_v ON t (v);\n",
        silent="CREATE INDEX t_v ON t USING brin (v);\n",
        work="UPDATE t SET v = v + 1;\n",
        check=ends_hot_right,
        since=16,
    ),
    Scenario(
        rule="no-room-on-page",
        about="t",
        severity="info",
        fires="CREATE TABLE t (id int PRIMARY KEY, v text);\n"
        f"INSERT INTO t SELECT i, {WIDE} FROM generate_series(1, 1000) i;\n",
        silent="CREATE TABLE t (id int PRIMARY KEY, v text) WITH (fillfactor = 40);\n"
        f"INSERT INTO t SELECT i, {WIDE} FROM generate_series(1, 1000) i;\n",
        work="UPDATE t SET v = v || '!';\n",
        check=no_room_right,
        since=16,
    ),
    Scenario(
        rule="temp-files",
        about="database fires",
        severity="info",
        fires="ALTER DATABASE fires SET work_mem = '64kB';\n",
        silent="ALTER DATABASE silent SET work_mem = '256MB';\n",
        work="SELECT count(*) FROM (SELECT i FROM generate_series(1, 200000) i ORDER BY -i) s;\n",
        check=temp_right,
    ),
    Scenario(
        rule="sequential-scans",
        about="t",
        severity="info",
        common="CREATE TABLE t (id int8, v text);\nINSERT INTO t SELECT i, repeat('x', 1000)"
        " FROM generate_series(1, 8000) i;\nVACUUM ANALYZE t;\n",
        silent="CREATE INDEX ON t (id);\nALTER DATABASE silent SET enable_seqscan = off;\n",
        work="SELECT count(*) FROM t WHERE id = 5;\n" * 20,
        check=scans_right,
    ),
    Scenario(
        rule="autovacuum-late",
        about="t",
        severity="info",
        common="CREATE TABLE t (id int, v text);\nINSERT INTO t SELECT i, repeat('x', 400)"
        " FROM generate_series(1, 40000) i;\nVACUUM ANALYZE t;\n"
        "DELETE FROM t WHERE id % 10 > 0;\n",
        silent="ALTER TABLE t SET (autovacuum_vacuum_scale_factor = 0.9);\n",
        ahead_s=(30 * DAY_S, 30 * DAY_S),  # beyond this server's naptime
        check=dead_right,
    ),
    Scenario(
        rule="autovacuum-late",
        name="vacuumed",
        about="t",
        severity="info",
        common="CREATE TABLE t (id int, v text);\nINSERT INTO t SELECT i, repeat('x', 400)"
        " FROM generate_series(1, 40000) i;\nVACUUM ANALYZE t;\n"
        "DELETE FROM t WHERE id % 10 > 0;\n",
        # Within a naptime of the VACUUM nobody can be late.
        ahead_s=(30 * DAY_S, 0.0),
        check=dead_right,
    ),
    Scenario(
        rule="autovacuum-off",
        about="t",
        severity="warning",
        common="CREATE TABLE t (id int, v text);\nINSERT INTO t SELECT i, repeat('x', 400)"
        " FROM generate_series(1, 40000) i;\nVACUUM ANALYZE t;\n"
        "DELETE FROM t WHERE id % 10 > 0;\n",
        fires="ALTER TABLE t SET (autovacuum_enabled = off);\n",
        check=dead_right,
    ),
    Scenario(
        rule="large-table-trigger",
        about="t",
        severity="info",
        # As ANALYZE would find a table of 100 GiB.
        common="CREATE TABLE t (v int);\nINSERT INTO t VALUES (1), (2);\n"
        "UPDATE pg_class SET relpages = 13107200, reltuples = 400000000 WHERE relname = 't';\n"
        "DELETE FROM t WHERE v = 1;\n",
        silent="ALTER TABLE t SET (autovacuum_vacuum_scale_factor = 0.05);\n",
        check=large_right,
    ),
    Scenario(
        rule="large-table-trigger",
        name="never-changed",
        about="t",
        severity="info",
        common="CREATE TABLE t (v int);\nINSERT INTO t VALUES (1), (2);\n"
        "UPDATE pg_class SET relpages = 13107200, reltuples = 400000000 WHERE relname = 't';\n",
        fires="DELETE FROM t WHERE v = 1;\n",
    ),
    Scenario(
        rule="slot-keeps-wal",
        about="slot kept",
        severity="warning",
        fires="SELECT pg_create_physical_replication_slot('kept', true);\n"
        + LOG.format(70)
        + ";\n",
        silent="SELECT pg_create_physical_replication_slot('kept');\n" + LOG.format(70) + ";\n",
        check=slot_right,
        undo="SELECT pg_drop_replication_slot('kept');\n",
    ),
    Scenario(
        rule="backend-writes",
        about="shared_buffers",
        severity="warning",
        common="CREATE TABLE t (v text);\n",
        fires="CREATE FUNCTION fill() RETURNS void LANGUAGE sql"
        f" AS $$ INSERT INTO t SELECT {WIDE} FROM generate_series(1, 200000) $$;\n",
        silent="CREATE FUNCTION fill() RETURNS void LANGUAGE plpgsql AS $$ BEGIN CREATE TABLE u"
        f" AS SELECT {WIDE} FROM generate_series(1, 200000); END $$;\n",
        work="SELECT fill();\n",
        interval_s=600.0,
        check=writes_right,
        since=16,
    ),
    Scenario(
        rule="end-of-life",
        until=18,
        about="PostgreSQL {major}",
        severity="warning",
        ahead_s=(10 * 365 * DAY_S, 0.0),
        check=ended_life_right,
    ),
    Scenario(
        rule="fsync-off",
        about="fsync",
        severity="error",
        fires="ALTER SYSTEM SET fsync = off;\nSELECT pg_reload_conf();\n",
        undo="ALTER SYSTEM RESET fsync;\nSELECT pg_reload_conf();\n",
    ),
    Scenario(
        rule="full-page-writes-off",
        about="full_page_writes",
        severity="error",
        fires="ALTER SYSTEM SET full_page_writes = off;\nSELECT pg_reload_conf();\n",
        undo="ALTER SYSTEM RESET full_page_writes;\nSELECT pg_reload_conf();\n",
    ),
    Scenario(
        rule="damage-ignored",
        about="zero_damaged_pages",
        severity="error",
        fires="ALTER DATABASE fires SET zero_damaged_pages = on;\n",
        silent="ALTER DATABASE silent SET zero_damaged_pages = off;\n",
    ),
    Scenario(
        rule="autovacuum-switched-off",
        about="autovacuum",
        severity="warning",
        fires="ALTER SYSTEM SET autovacuum = off;\nSELECT pg_reload_conf();\n",
        undo="ALTER SYSTEM RESET autovacuum;\nSELECT pg_reload_conf();\n",
    ),
    Scenario(
        rule="planner-switches",
        about="enable_seqscan",
        severity="warning",
        fires="ALTER DATABASE fires SET enable_seqscan = off;\n",
        silent="ALTER DATABASE silent SET enable_seqscan = on;\n",
        check=lambda finding, _: equal(
            (finding.remedy.sql, finding.remedy.undo),
            (
                ("ALTER DATABASE fires RESET enable_seqscan",),
                "ALTER DATABASE fires SET enable_seqscan = 'off'",
            ),
        ),
    ),
    Scenario(
        rule="pending-restart",
        about="max_connections",
        severity="info",
        fires="ALTER SYSTEM SET max_connections = 101;\nSELECT pg_reload_conf();\n",
        undo="ALTER SYSTEM RESET max_connections;\nSELECT pg_reload_conf();\n",
    ),
    Scenario(
        rule="extension-outdated",
        about="plpgsql",
        severity="info",
        name="without-a-script",
        fires="UPDATE pg_extension SET extversion = '0.9' WHERE extname = 'plpgsql';\n",
        check=lambda finding, _: equal(
            (finding.remedy.sql, finding.numbers["has_path"]), ((), False)
        ),
    ),
    Scenario(
        rule="autovacuum-log-off",
        about="log_autovacuum_min_duration",
        severity="info",
        fires="ALTER SYSTEM SET log_autovacuum_min_duration = -1;\nSELECT pg_reload_conf();\n",
        undo="ALTER SYSTEM RESET log_autovacuum_min_duration;\nSELECT pg_reload_conf();\n",
    ),
    Scenario(
        rule="freeze-at-once",
        about="vacuum_freeze_min_age",
        severity="info",
        fires="ALTER DATABASE fires SET vacuum_freeze_min_age = 0;\n",
        silent="ALTER DATABASE silent SET vacuum_freeze_min_age = 1;\n",
    ),
    Scenario(
        rule="replica-identity-full",
        about="t",
        severity="info",
        common="CREATE TABLE t (id int PRIMARY KEY);\n",
        fires="ALTER TABLE t REPLICA IDENTITY FULL;\n",
    ),
    Scenario(
        rule="partitioned-index",
        about="p_v",
        severity="warning",
        common="CREATE TABLE p (v int) PARTITION BY LIST (v);\n"
        "CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);\n"
        "CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2);\n",
        fires="CREATE INDEX p_v ON ONLY p (v);\nCREATE INDEX p1_v ON p1 (v);\n"
        "ALTER INDEX p_v ATTACH PARTITION p1_v;\n",
        silent="CREATE INDEX p_v ON p (v);\n",
        check=lambda finding, _: equal(finding.numbers["lacking"], 1),
    ),
    Scenario(
        rule="default-partition",
        about="p_rest",
        severity="info",
        common="CREATE TABLE p (v int) PARTITION BY RANGE (v);\n"
        "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);\n"
        "CREATE TABLE p_rest PARTITION OF p DEFAULT;\n",
        fires="INSERT INTO p VALUES (11);\n",
        silent="INSERT INTO p VALUES (9);\n",
        check=lambda finding, _: equal(finding.numbers["row_count"], 1),
    ),
    Scenario(
        rule="completion-target",
        about="checkpoint_completion_target",
        severity="info",
        fires="ALTER SYSTEM SET checkpoint_completion_target = 0.5;\nSELECT pg_reload_conf();\n",
        undo="ALTER SYSTEM RESET checkpoint_completion_target;\nSELECT pg_reload_conf();\n",
    ),
    Scenario(
        rule="constraint-not-valid",
        about="t.positive",
        severity="info",
        common="CREATE TABLE t (v int);\n",
        fires="ALTER TABLE t ADD CONSTRAINT positive CHECK (v > 0) NOT VALID;\n",
        silent="ALTER TABLE t ADD CONSTRAINT positive CHECK (v > 0);\n",
    ),
    Scenario(
        rule="subscription-stopped",
        about="s",
        severity="warning",
        common="CREATE SUBSCRIPTION s CONNECTION 'host=/nowhere' PUBLICATION p"
        " WITH (connect = false);\n",
        silent="ALTER SUBSCRIPTION s SET (slot_name = 'x');\nALTER SUBSCRIPTION s ENABLE;\n",
        leave="ALTER SUBSCRIPTION s DISABLE;\nALTER SUBSCRIPTION s SET (slot_name = NONE);\n"
        "DROP SUBSCRIPTION s;\n",
    ),
)


APART = frozenset(
    {
        "archiver-failing",
        "backend-syncs",
        "checkpoint-overdue",
        "checkpoints-by-wal",
        "checksum-failures",
        "configuration-errors",
        "connections-near-limit",
        "dear-statement",
        "horizon-holder",
        "log-sync-slow",
        "multixact-ids",
        "old-snapshot-threshold",
        "standby-conflicts",
        "transaction-ids",
        "wal-minimal",
        "vacuum-passes",
        "wraparound-vacuum",
    }
)
"""Rules whose two sides need more than statements: other sessions, files, waiting for a process."""
