"""
More of the doctor's two sides: sequences, publications, keys, slots and what waits for standbys.
"""

from __future__ import annotations

from doctor_sides import (
    Scenario,
    equal,
    images_right,
    limit_right,
    narrow_right,
    read_right,
    unowned_right,
)

LOG = (
    "SELECT count(pg_logical_emit_message(false, 'doctor', repeat('x', 1048576)))"
    " FROM generate_series(1, {}) i"
)
CHILD = (
    "CREATE TABLE parent (id int PRIMARY KEY);\nINSERT INTO parent VALUES (1);\n"
    "CREATE TABLE child (id int, parent int REFERENCES parent);\n"
    "INSERT INTO child SELECT i, 1 FROM generate_series(1, 30000) i;\nANALYZE child;\n"
)


MORE = (
    Scenario(
        rule="foreign-key-without-index",
        name="other-predicate",
        about="child.child_parent_fkey",
        severity="info",
        common=CHILD,
        fires="CREATE INDEX ON child (parent) WHERE id IS NOT NULL;\n",
        silent="CREATE INDEX ON child (parent) WHERE parent IS NOT NULL;\n",
    ),
    Scenario(
        rule="foreign-key-without-index",
        name="partitioned",
        about="child.child_parent_fkey",
        severity="info",
        common="CREATE TABLE parent (id int PRIMARY KEY) PARTITION BY LIST (id);\n"
        "CREATE TABLE parent1 PARTITION OF parent FOR VALUES IN (1, 2);\n"
        "INSERT INTO parent VALUES (1), (2);\n"
        "CREATE TABLE child (id int, parent int REFERENCES parent) PARTITION BY LIST (parent);\n"
        "CREATE TABLE child1 PARTITION OF child FOR VALUES IN (1);\n"
        "INSERT INTO child SELECT i, 1 FROM generate_series(1, 30000) i;\nANALYZE child;\n"
        "DELETE FROM parent WHERE id = 2;\n",
        silent="CREATE INDEX ON child (parent);\n",
        check=lambda finding, _: equal(
            (finding.numbers["relpages"], finding.numbers["deletes"]), (133, 1)
        ),
    ),
    Scenario(
        rule="foreign-key-without-index",
        name="not-enforced",
        about="child.child_parent_fkey",
        severity="info",
        common=CHILD,
        silent="ALTER TABLE child ALTER CONSTRAINT child_parent_fkey NOT ENFORCED;\n",
        since=18,
    ),
    Scenario(
        rule="never-analyzed",
        name="fifty",
        about="t",
        severity="info",
        common="CREATE TABLE t (v int);\nINSERT INTO t SELECT i FROM generate_series(1, 50) i;\n",
        fires="INSERT INTO t VALUES (51);\n",
    ),
    Scenario(
        rule="column-padding",
        name="virtual",
        about="t",
        severity="info",
        fires="CREATE TABLE t (a int8, b bool, c int8, d bool, e int8, f bool);\n"
        "INSERT INTO t SELECT i, true, i, true, i, true FROM generate_series(1, 110000) i;\n"
        "ANALYZE t;\n",
        silent="CREATE TABLE t (a int8, b bool GENERATED ALWAYS AS (true) VIRTUAL, c int8,"
        " d bool GENERATED ALWAYS AS (true) VIRTUAL, e int8,"
        " f bool GENERATED ALWAYS AS (true) VIRTUAL);\n"
        "INSERT INTO t (a, c, e) SELECT i, i, i FROM generate_series(1, 170000) i;\nANALYZE t;\n",
        since=18,
    ),
    Scenario(
        rule="autovacuum-off",
        name="toast",
        about="t (TOAST)",
        severity="warning",
        # Few rows with much in them: the table itself has too little of it.
        common="CREATE TABLE t (id int, v text);\nALTER TABLE t ALTER v SET STORAGE EXTERNAL;\n"
        "INSERT INTO t SELECT i, repeat('x', 20000) FROM generate_series(1, 200) i;\n"
        "VACUUM ANALYZE t;\nDELETE FROM t;\n"
        "ALTER TABLE t SET (autovacuum_enabled = off);\n",
        silent="ALTER TABLE t SET (toast.autovacuum_enabled = on);\n",
        check=lambda finding, _: equal(
            finding.remedy.sql, ('ALTER TABLE "public"."t" RESET (autovacuum_enabled)',)
        ),
    ),
    Scenario(
        rule="slot-keeps-wal",
        name="invalid",
        about="slot kept",
        severity="error",
        fires="SELECT pg_create_physical_replication_slot('kept', true);\n"
        + LOG.format(70)
        + ";\nALTER SYSTEM SET max_slot_wal_keep_size = '1MB';\nSELECT pg_reload_conf();\n"
        "CHECKPOINT;\n",
        silent="SELECT pg_create_physical_replication_slot('kept');\n",
        check=lambda finding, _: equal(finding.numbers["wal_status"], "lost"),
        undo="SELECT pg_drop_replication_slot('kept');\n"
        "ALTER SYSTEM RESET max_slot_wal_keep_size;\nSELECT pg_reload_conf();\n",
    ),
    Scenario(
        rule="replica-identity-full",
        name="deferrable",
        about="t",
        severity="info",
        fires="CREATE TABLE t (id int PRIMARY KEY);\nALTER TABLE t REPLICA IDENTITY FULL;\n",
        silent="CREATE TABLE t (id int PRIMARY KEY DEFERRABLE);\n"
        "ALTER TABLE t REPLICA IDENTITY FULL;\n",
    ),
    Scenario(
        rule="published-without-identity",
        about="t",
        severity="error",
        fires="CREATE TABLE t (id int NOT NULL);\nINSERT INTO t VALUES (1);\n"
        "UPDATE t SET id = 2;\nCREATE PUBLICATION p FOR TABLE t;\n",
        silent="CREATE TABLE t (id int PRIMARY KEY);\nINSERT INTO t VALUES (1);\n"
        "UPDATE t SET id = 2;\nCREATE PUBLICATION p FOR TABLE t;\nUPDATE t SET id = 3;\n",
        check=lambda finding, _: equal(finding.numbers["changes"], 1),
    ),
    Scenario(
        rule="published-without-identity",
        name="deferrable",
        about="t",
        severity="info",
        common="CREATE PUBLICATION p FOR ALL TABLES WITH (publish = 'insert, delete');\n",
        fires="CREATE TABLE t (id int PRIMARY KEY DEFERRABLE);\n",
        silent="CREATE TABLE t (id int PRIMARY KEY);\n",
    ),
    Scenario(
        rule="published-without-identity",
        name="index-is-gone",
        about="t",
        severity="info",
        common="CREATE TABLE t (id int NOT NULL);\nCREATE UNIQUE INDEX t_id ON t (id);\n"
        "ALTER TABLE t REPLICA IDENTITY USING INDEX t_id;\n"
        "CREATE PUBLICATION p FOR TABLES IN SCHEMA public;\n",
        fires="DROP INDEX t_id;\n",
    ),
    Scenario(
        rule="published-without-identity",
        name="of-a-partition",
        about="p",
        severity="info",
        common="CREATE TABLE p (v int) PARTITION BY LIST (v);\n"
        "CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);\n"
        "CREATE PUBLICATION pub FOR TABLE p WITH (publish_via_partition_root);\n",
        fires="ALTER TABLE p REPLICA IDENTITY FULL;\n",
        silent="ALTER TABLE p1 REPLICA IDENTITY FULL;\nINSERT INTO p VALUES (1);\nDELETE FROM p;\n",
        check=lambda finding, _: equal(
            finding.remedy.sql, ('ALTER TABLE "public"."p1" REPLICA IDENTITY FULL',)
        ),
    ),
    Scenario(
        rule="published-without-identity",
        name="filter",
        about="t",
        severity="error",
        common="CREATE TABLE t (id int PRIMARY KEY, v int);\nINSERT INTO t VALUES (1, 1);\n"
        "UPDATE t SET v = 2;\n",
        fires="CREATE PUBLICATION p FOR TABLE t WHERE (v > 0);\n",
        silent="CREATE PUBLICATION p FOR TABLE t WHERE (id > 0);\n",
        check=lambda finding, _: equal(
            finding.remedy.sql, ('ALTER TABLE "public"."t" REPLICA IDENTITY FULL',)
        ),
    ),
    Scenario(
        rule="published-without-identity",
        name="list",
        about="t",
        severity="error",
        common="CREATE TABLE t (id int PRIMARY KEY, v int);\nINSERT INTO t VALUES (1, 1);\n"
        "UPDATE t SET v = 2;\n",
        fires="CREATE PUBLICATION p FOR TABLE t (v);\n",
        silent="CREATE PUBLICATION p FOR TABLE t (id);\n",
        check=lambda finding, _: equal(finding.remedy.sql, ()),
    ),
    Scenario(
        rule="sequence-nearly-used",
        about="s",
        severity="warning",
        common="CREATE SEQUENCE s AS int;\n",
        fires="SELECT setval('s', 1900000000);\n",
        silent="SELECT setval('s', 1700000000);\n",
        check=unowned_right,
    ),
    Scenario(
        rule="sequence-nearly-used",
        name="of-a-narrow-column",
        about="t_id_seq",
        severity="warning",
        common="CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY);\n",
        fires="SELECT setval('t_id_seq', 1900000000);\n",
        silent="ALTER TABLE t ALTER id TYPE int8;\nSELECT setval('t_id_seq', 1900000000);\n",
        check=narrow_right,
    ),
    Scenario(
        rule="sequence-nearly-used",
        name="wider-than-its-column",
        about="t_id_seq",
        severity="warning",
        common="CREATE TABLE t (id serial);\nALTER SEQUENCE t_id_seq AS int8;\n"
        "SELECT setval('t_id_seq', 1900000000);\n",
        silent="ALTER TABLE t ALTER id TYPE int8;\n",
        check=narrow_right,
    ),
    Scenario(
        rule="sequence-nearly-used",
        name="of-a-wide-column",
        about="t_id_seq",
        severity="warning",
        common="CREATE TABLE t (id serial);\nALTER TABLE t ALTER id TYPE int8;\n"
        "SELECT setval('t_id_seq', 1900000000);\n",
        silent="ALTER SEQUENCE t_id_seq AS int8;\n",
        check=lambda finding, _: equal(
            finding.remedy.sql, ('ALTER SEQUENCE "public"."t_id_seq" AS bigint',)
        ),
    ),
    Scenario(
        rule="sequence-nearly-used",
        name="of-a-domain",
        about="numbers",
        severity="warning",
        common="CREATE DOMAIN narrow AS int;\nCREATE DOMAIN number AS narrow CHECK (VALUE > 0);\n"
        "CREATE SEQUENCE numbers;\n"
        "CREATE TABLE t (id number DEFAULT nextval('numbers'));\n"
        "ALTER SEQUENCE numbers OWNED BY t.id;\nSELECT setval('numbers', 1900000000);\n",
        silent="ALTER TABLE t ALTER id TYPE int8;\n",
        check=narrow_right,
    ),
    Scenario(
        rule="sequence-nearly-used",
        name="all-of-bigint",
        about="s",
        severity="warning",
        common="CREATE SEQUENCE s MINVALUE -9223372036854775808 MAXVALUE 9223372036854775806;\n",
        fires="SELECT setval('s', 9000000000000000000);\n",
        silent="SELECT setval('s', 0);\n",
        check=unowned_right,
    ),
    Scenario(
        rule="constraint-not-valid",
        name="not-enforced",
        about="t.positive",
        severity="info",
        common="CREATE TABLE t (v int);\n",
        fires="ALTER TABLE t ADD CONSTRAINT positive CHECK (v > 0) NOT VALID;\n",
        silent="ALTER TABLE t ADD CONSTRAINT positive CHECK (v > 0) NOT ENFORCED;\n",
        since=18,
    ),
    Scenario(
        rule="synchronous-standby-missing",
        about="synchronous_standby_names",
        severity="error",
        # Who changes it must not wait for its own commit.
        common="SET synchronous_commit = local;\n",
        fires="ALTER DATABASE fires SET synchronous_commit = on;\n"
        "ALTER SYSTEM SET synchronous_standby_names = 'nobody';\nSELECT pg_reload_conf();\n",
        undo="SET synchronous_commit = local;\n"
        "ALTER SYSTEM RESET synchronous_standby_names;\nSELECT pg_reload_conf();\n",
    ),
    Scenario(
        rule="synchronous-standby-missing",
        name="nobody-waits",
        about="synchronous_standby_names",
        severity="error",
        common="SET synchronous_commit = local;\n"
        "ALTER SYSTEM SET synchronous_standby_names = 'ANY 2 (nobody, none)';\n"
        "SELECT pg_reload_conf();\n",
        fires="ALTER DATABASE fires SET synchronous_commit = on;\n",
        silent="ALTER DATABASE silent SET synchronous_commit = local;\n",
        check=lambda finding, _: equal(finding.numbers["wanted"], 2),
        undo="SET synchronous_commit = local;\n"
        "ALTER SYSTEM RESET synchronous_standby_names;\nSELECT pg_reload_conf();\n",
        leave="SET synchronous_commit = local;\n"
        "ALTER SYSTEM RESET synchronous_standby_names;\nSELECT pg_reload_conf();\n",
    ),
    Scenario(
        rule="autovacuum-limit",
        about="autovacuum_vacuum_cost_limit",
        severity="info",
        common="ALTER SYSTEM SET autovacuum_vacuum_cost_limit = 1;\n"
        "ALTER SYSTEM SET autovacuum_vacuum_cost_delay = '20ms';\nSELECT pg_reload_conf();\n"
        "CREATE TABLE t (id int8 PRIMARY KEY, v int8) WITH (fillfactor = 40);\n"
        "INSERT INTO t SELECT i, i FROM generate_series(1, 20000) i;\nVACUUM ANALYZE t;\n",
        fires="CREATE INDEX t_v ON t (v);\nANALYZE t;\n",
        # Versions of HOT updates go by pruning.
        silent="ANALYZE t;\n",
        work="UPDATE t SET v = v + 1 WHERE id <= 6000;\n",
        check=limit_right,
        leave="ALTER SYSTEM RESET autovacuum_vacuum_cost_limit;\n"
        "ALTER SYSTEM RESET autovacuum_vacuum_cost_delay;\nSELECT pg_reload_conf();\n",
    ),
    Scenario(
        rule="autovacuum-limit",
        name="pace-of-its-own",
        about="autovacuum_vacuum_cost_limit",
        severity="info",
        common="ALTER SYSTEM SET autovacuum_vacuum_cost_limit = 1;\n"
        "ALTER SYSTEM SET autovacuum_vacuum_cost_delay = '20ms';\nSELECT pg_reload_conf();\n"
        "CREATE TABLE t (id int8 PRIMARY KEY);\n"
        "INSERT INTO t SELECT i FROM generate_series(1, 20000) i;\nVACUUM ANALYZE t;\n",
        silent="ALTER TABLE t SET (autovacuum_vacuum_cost_limit = 2000);\n",
        work="DELETE FROM t WHERE id <= 6000;\n",
        leave="ALTER SYSTEM RESET autovacuum_vacuum_cost_limit;\n"
        "ALTER SYSTEM RESET autovacuum_vacuum_cost_delay;\nSELECT pg_reload_conf();\n",
    ),
    Scenario(
        rule="checkpoint-images",
        about="checkpoint_timeout",
        severity="info",
        common="CREATE TABLE t (id int8, v int8) WITH (fillfactor = 50);\n"
        "INSERT INTO t SELECT i, 0 FROM generate_series(1, 40000) i;\nVACUUM t;\n",
        fires="ALTER SYSTEM SET checkpoint_timeout = '5min';\nSELECT pg_reload_conf();\n",
        silent="ALTER SYSTEM SET checkpoint_timeout = '15min';\nSELECT pg_reload_conf();\n",
        work="CHECKPOINT;\nUPDATE t SET v = 1 WHERE id % 50 = 0;\n",
        check=images_right,
        leave="ALTER SYSTEM RESET checkpoint_timeout;\nSELECT pg_reload_conf();\n",
    ),
    Scenario(
        rule="checkpoint-images",
        name="few-images",
        about="checkpoint_timeout",
        severity="info",
        common="ALTER SYSTEM SET checkpoint_timeout = '5min';\nSELECT pg_reload_conf();\n"
        "CREATE TABLE t (id int8, v int8) WITH (fillfactor = 50);\n"
        "INSERT INTO t SELECT i, 0 FROM generate_series(1, 40000) i;\nVACUUM t;\n"
        "UPDATE t SET v = 1 WHERE id % 50 = 0;\n",
        fires="CHECKPOINT;\n",
        # The pages have had their images since the last one.
        work="UPDATE t SET v = 1 WHERE id % 50 = 0;\n",
        leave="ALTER SYSTEM RESET checkpoint_timeout;\nSELECT pg_reload_conf();\n",
    ),
    Scenario(
        rule="shared-buffers-default",
        about="shared_buffers",
        severity="info",
        common="CREATE TABLE t (id int8 PRIMARY KEY, w text);\n"
        "INSERT INTO t SELECT i, repeat('x', 500) FROM generate_series(1, 16000) i;\n"
        "VACUUM ANALYZE t;\n",
        fires="ALTER DATABASE fires SET enable_indexscan = off;\n"
        "ALTER DATABASE fires SET enable_bitmapscan = off;\n",
        work="".join(f"SELECT count(w) FROM t WHERE id = {i};\n" for i in range(1, 21)),
        check=read_right,
    ),
    Scenario(
        rule="shared-buffers-default",
        name="small-database",
        about="shared_buffers",
        severity="info",
        common="CREATE TABLE t (w text);\n",
        fires="INSERT INTO t SELECT repeat('x', 500) FROM generate_series(1, 16000) i;\n"
        "VACUUM ANALYZE t;\n",
        # Read as often, and it fits.
        silent="INSERT INTO t SELECT repeat('x', 500) FROM generate_series(1, 10) i;\n"
        "VACUUM ANALYZE t;\n",
        work="SELECT count(w) FROM t;\n" * 20,
    ),
)
