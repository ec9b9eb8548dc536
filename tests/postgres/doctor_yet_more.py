"""
More of the doctor's two sides: what is not logged, remedies that reach what they are for.
"""

from __future__ import annotations

from doctor_sides import Scenario, equal

from pgheadroom.doctor.values import Diagnosis, Finding

_WIDE = "repeat('x', 100)"
_LARGE = (
    "INSERT INTO t VALUES (1), (2);\n"
    "UPDATE pg_class SET relpages = 13107200, reltuples = 400000000 WHERE relname = 't';\n"
    "DELETE FROM t WHERE v = 1;\n"
)


def _unlogged(finding: Finding, _diagnosis: Diagnosis) -> None:
    assert finding.price.amount is None
    assert "unlogged" in finding.price.text
    assert "of WAL" not in finding.text


def _only_pages(finding: Finding, _diagnosis: Diagnosis) -> None:
    equal((finding.numbers["wal_bytes_a_day"], finding.price.unit), (None, "bytes"))
    assert finding.numbers["entries_a_day"] is not None


def _of_partitions(finding: Finding, _diagnosis: Diagnosis) -> None:
    # 50,000 rows of 16 bytes and more; the index of the whole has no pages of its own.
    size = finding.numbers["kept_size_bytes"]
    assert isinstance(size, int)
    assert size > 50_000 * 16


def _not_visible(finding: Finding, _diagnosis: Diagnosis) -> None:
    equal(finding.numbers["n_ins_since_vacuum"], 150_000)
    # 150,001 rows of 28 + 101 bytes, on a multiple of 8, and a line pointer: 58 a page.
    pages = -(-150_001 // 58)
    trigger = finding.numbers["trigger_rows"]
    assert isinstance(trigger, int)
    assert 0 <= 1000 + 0.2 * 150_001 - trigger <= 20  # from 18 on by pages that are not frozen
    equal(finding.price.amount, pages * 8192)


YET_MORE = (
    Scenario(
        rule="insert-vacuum-late",
        about="t",
        severity="info",
        common="CREATE TABLE t (v int, w text);\nINSERT INTO t VALUES (1, '');\nVACUUM t;\n"
        f"INSERT INTO t SELECT i, {_WIDE} FROM generate_series(1, 150000) i;\nANALYZE t;\n",
        silent="VACUUM t;\n",
        check=_not_visible,
    ),
    Scenario(
        rule="insert-vacuum-late",
        name="by-its-own-threshold",
        about="t",
        severity="info",
        common="CREATE TABLE t (v int, w text);\nINSERT INTO t VALUES (1, '');\nVACUUM t;\n"
        f"INSERT INTO t SELECT i, {_WIDE} FROM generate_series(1, 150000) i;\nANALYZE t;\n",
        silent="ALTER TABLE t SET (autovacuum_vacuum_insert_threshold = 100000);\n",
    ),
    Scenario(
        rule="vacuum-truncate-off",
        about="vacuum_truncate",
        severity="info",
        fires="ALTER DATABASE fires SET vacuum_truncate = off;\n",
        silent="ALTER DATABASE silent SET vacuum_truncate = on;\n",
        since=18,
    ),
    Scenario(
        rule="table-never-truncated",
        about="t",
        severity="info",
        common="CREATE TABLE t (v text) WITH (vacuum_truncate = off);\n"
        f"INSERT INTO t SELECT {_WIDE} FROM generate_series(1, 20000);\nVACUUM t;\n",
        fires="DELETE FROM t WHERE ctid = '(0,1)';\n",
        check=lambda finding, _: equal(
            finding.remedy.sql, ("ALTER TABLE public.t RESET (vacuum_truncate)",)
        ),
    ),
    Scenario(
        rule="table-never-truncated",
        name="toast",
        about="t (TOAST)",
        severity="info",
        common="CREATE TABLE t (id int, v text) WITH (toast.vacuum_truncate = off);\n"
        "ALTER TABLE t ALTER v SET STORAGE EXTERNAL;\n"
        "INSERT INTO t SELECT i, repeat('x', 4000) FROM generate_series(1, 400) i;\nVACUUM t;\n"
        "DELETE FROM t WHERE id = 1;\n",
        silent="ALTER TABLE t SET (toast.vacuum_truncate = on);\n",
        check=lambda finding, _: equal(
            finding.remedy.sql, ("ALTER TABLE public.t RESET (toast.vacuum_truncate)",)
        ),
    ),
    Scenario(
        rule="very-large-table",
        about="t",
        severity="info",
        common="CREATE TABLE t (v int PRIMARY KEY);\n",
        fires="UPDATE pg_class SET relpages = 1310720, reltuples = 100000000"
        " WHERE relname = 't';\n",
        silent="UPDATE pg_class SET relpages = 1310720, reltuples = 99000000"
        " WHERE relname = 't';\n",
        check=lambda finding, _: equal(
            (finding.numbers["row_count"], finding.numbers["indexes"]), ("100,000,000", 1)
        ),
    ),
    Scenario(
        rule="index-packed-full",
        about="t_v",
        severity="info",
        common="CREATE TABLE t (v int);\n"
        "INSERT INTO t SELECT generate_series(1, 20000);\nANALYZE t;\n",
        fires="CREATE INDEX t_v ON t (v) WITH (fillfactor = 100);\n"
        "UPDATE t SET v = -v WHERE v <= 2000;\n",
        silent="CREATE INDEX t_v ON t (v) WITH (fillfactor = 90);\n"
        "UPDATE t SET v = -v WHERE v <= 2000;\n",
        check=lambda finding, _: equal(
            (finding.numbers["moved"], finding.numbers["fillfactor"]), (2000, "100")
        ),
    ),
    Scenario(
        rule="duplicate-index",
        name="unlogged",
        about="t_again",
        severity="info",
        common="CREATE UNLOGGED TABLE t (v int);\nCREATE INDEX t_v ON t (v);\n"
        "INSERT INTO t SELECT i FROM generate_series(1, 1000) i;\n",
        fires="CREATE INDEX t_again ON t (v);\n",
        silent="CREATE INDEX t_again ON t (v DESC);\n",
        ahead_s=(7200, 7200),
        check=_only_pages,
    ),
    Scenario(
        rule="duplicate-index",
        name="of-other-parameters",
        about="t_again",
        severity="info",
        common="CREATE TABLE t (v int);\n"
        "CREATE INDEX t_v ON t USING brin (v) WITH (pages_per_range = 4);\n",
        fires="CREATE INDEX t_again ON t USING brin (v) WITH (pages_per_range = 4);\n",
        silent="CREATE INDEX t_again ON t USING brin (v) WITH (pages_per_range = 8);\n",
    ),
    Scenario(
        rule="duplicate-index",
        name="of-classes-options",
        about="t_again",
        severity="info",
        common="CREATE TABLE t (v tsvector);\n"
        "CREATE INDEX t_v ON t USING gist (v tsvector_ops (siglen = 100));\n",
        fires="CREATE INDEX t_again ON t USING gist (v tsvector_ops (siglen = 100));\n",
        silent="CREATE INDEX t_again ON t USING gist (v tsvector_ops (siglen = 200));\n",
    ),
    Scenario(
        rule="overlapping-index",
        name="of-a-partitioned-table",
        about="p_v",
        severity="info",
        common="CREATE TABLE p (v int8, w int8) PARTITION BY LIST (v);\n"
        "CREATE TABLE p_one PARTITION OF p FOR VALUES IN (1);\nCREATE INDEX p_v ON p (v);\n"
        "INSERT INTO p SELECT 1, i FROM generate_series(1, 50000) i;\n",
        fires="CREATE INDEX p_vw ON p (v, w);\nVACUUM ANALYZE p;\n",
        silent="CREATE INDEX p_wv ON p (w, v);\nVACUUM ANALYZE p;\n",
        check=_of_partitions,
    ),
    Scenario(
        rule="foreign-key-without-index",
        name="of-periods",
        about="child.child_id_valid_fkey",
        severity="info",
        common="CREATE TABLE parent (id int4range, valid daterange,"
        " PRIMARY KEY (id, valid WITHOUT OVERLAPS));\n"
        "CREATE TABLE child (id int4range, valid daterange,"
        " FOREIGN KEY (id, PERIOD valid) REFERENCES parent (id, PERIOD valid));\n"
        "INSERT INTO child SELECT NULL, daterange('2001-01-01', '2002-01-01')"
        " FROM generate_series(1, 40000);\nANALYZE child;\n",
        fires="CREATE INDEX ON child USING gist (valid);\n",
        silent="CREATE INDEX ON child USING gist (id, valid);\n",
        since=18,
    ),
    Scenario(
        rule="large-table-trigger",
        name="with-its-own-factor",
        about="t",
        severity="info",
        fires="CREATE TABLE t (v int) WITH (autovacuum_vacuum_scale_factor = 0.2);\n" + _LARGE,
        silent="CREATE TABLE t (v int) WITH (autovacuum_vacuum_scale_factor = 0.02);\n" + _LARGE,
        check=lambda finding, _: equal(
            (finding.remedy.sql, finding.remedy.undo),
            (
                ('ALTER TABLE "public"."t" SET (autovacuum_vacuum_scale_factor = 0.01)',),
                'ALTER TABLE "public"."t" SET (autovacuum_vacuum_scale_factor = \'0.2\')',
            ),
        ),
    ),
    Scenario(
        rule="large-table-trigger",
        name="with-its-own-threshold",
        about="t",
        severity="info",
        common="CREATE TABLE t (v int) WITH (autovacuum_vacuum_scale_factor = 0);\n" + _LARGE,
        fires="ALTER TABLE t SET (autovacuum_vacuum_threshold = 90000000);\n",
        silent="ALTER TABLE t SET (autovacuum_vacuum_threshold = 9000000);\n",
        # The factor alone would leave the threshold, which is most of it.
        check=lambda finding, _: equal(
            (finding.remedy.sql, finding.remedy.undo),
            (
                (
                    'ALTER TABLE "public"."t" SET (autovacuum_vacuum_scale_factor = 0.01, '
                    "autovacuum_vacuum_threshold = 50)",
                ),
                'ALTER TABLE "public"."t" SET (autovacuum_vacuum_scale_factor = \'0\', '
                "autovacuum_vacuum_threshold = '90000000')",
            ),
        ),
    ),
    Scenario(
        rule="index-ends-hot",
        name="unlogged",
        about="t",
        severity="info",
        common="CREATE UNLOGGED TABLE t (id int PRIMARY KEY, v int) WITH (fillfactor = 40);\n"
        "INSERT INTO t SELECT i, i FROM generate_series(1, 1000) i;\n",
        fires="CREATE INDEX t_v ON t (v);\n",
        work="UPDATE t SET v = v + 1;\n",
        check=_unlogged,
        since=16,
    ),
    Scenario(
        rule="no-room-on-page",
        name="unlogged",
        about="t",
        severity="info",
        fires="CREATE UNLOGGED TABLE t (id int PRIMARY KEY, v text);\n"
        f"INSERT INTO t SELECT i, {_WIDE} FROM generate_series(1, 1000) i;\n",
        silent="CREATE UNLOGGED TABLE t (id int PRIMARY KEY, v text) WITH (fillfactor = 40);\n"
        f"INSERT INTO t SELECT i, {_WIDE} FROM generate_series(1, 1000) i;\n",
        work="UPDATE t SET v = v || '!';\n",
        check=_unlogged,
        since=16,
    ),
    Scenario(
        rule="autovacuum-off",
        name="for-all",
        about="t",
        severity="warning",
        common="CREATE TABLE t (id int, v text);\nINSERT INTO t SELECT i, repeat('x', 400)"
        " FROM generate_series(1, 40000) i;\nVACUUM ANALYZE t;\n"
        "DELETE FROM t WHERE id % 10 > 0;\n",
        fires="ALTER SYSTEM SET autovacuum = off;\nSELECT pg_reload_conf();\n",
        # Where it is set is the other rule's to say: ALTER SYSTEM may not reach it.
        check=lambda finding, _: equal((finding.remedy.sql, finding.remedy.undo), ((), None)),
        undo="ALTER SYSTEM RESET autovacuum;\nSELECT pg_reload_conf();\n",
    ),
    Scenario(
        rule="replica-identity-full",
        name="with-a-filter",
        about="t",
        severity="info",
        common="CREATE TABLE t (id int PRIMARY KEY, v int);\n"
        "ALTER TABLE t REPLICA IDENTITY FULL;\nINSERT INTO t VALUES (1, 1);\n",
        fires="CREATE PUBLICATION p FOR TABLE t;\nUPDATE t SET v = 2;\n",
        # By its key alone updates fail: the filter needs the column.
        silent="CREATE PUBLICATION p FOR TABLE t WHERE (v > 0);\nUPDATE t SET v = 2;\n",
    ),
    Scenario(
        rule="published-without-identity",
        name="excepted",
        about="t",
        severity="info",
        common="CREATE TABLE t (v int) PARTITION BY LIST (v);\n"
        "CREATE TABLE t_one PARTITION OF t FOR VALUES IN (1);\n",
        fires="CREATE PUBLICATION p FOR ALL TABLES;\n",
        silent="CREATE PUBLICATION p FOR ALL TABLES EXCEPT (TABLE t);\nUPDATE t SET v = 1;\n",
        since=19,
    ),
    Scenario(
        rule="partitioned-index",
        name="of-an-invalid-part",
        about="p_v",
        severity="warning",
        common="CREATE TABLE p (v int) PARTITION BY LIST (v);\n"
        "CREATE TABLE p_one PARTITION OF p FOR VALUES IN (1);\n"
        "CREATE INDEX p_v ON ONLY p (v);\nCREATE INDEX p_one_v ON p_one (v);\n",
        fires="UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'p_one_v'::regclass;\n"
        "ALTER INDEX p_v ATTACH PARTITION p_one_v;\n",
        silent="UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'p_one_v'::regclass;\n"
        "ALTER INDEX p_v ATTACH PARTITION p_one_v;\nREINDEX INDEX CONCURRENTLY p_one_v;\n"
        "ALTER INDEX p_v ATTACH PARTITION p_one_v;\n",
        check=lambda finding, _: equal(finding.numbers["lacking"], 1),
    ),
    Scenario(
        rule="constraint-not-valid",
        name="inherited",
        about="p.positive",
        severity="info",
        common="CREATE TABLE p (v int) PARTITION BY LIST (v);\n"
        "CREATE TABLE p_one PARTITION OF p FOR VALUES IN (1);\n"
        "ALTER TABLE p ADD CONSTRAINT positive CHECK (v > 0) NOT VALID;\n",
        silent="ALTER TABLE p VALIDATE CONSTRAINT positive;\n",
    ),
    Scenario(
        rule="constraint-not-valid",
        name="not-null",
        about="t.there",
        severity="info",
        common="CREATE TABLE t (v int);\n"
        "ALTER TABLE t ADD CONSTRAINT there NOT NULL v NOT VALID;\n",
        silent="ALTER TABLE t VALIDATE CONSTRAINT there;\n",
        since=18,
    ),
    Scenario(
        rule="planner-switches",
        name="for-all-roles",
        about="enable_seqscan",
        severity="warning",
        fires="ALTER ROLE ALL SET enable_seqscan = off;\n",
        check=lambda finding, _: equal(
            (finding.remedy.sql, finding.remedy.undo),
            (
                ("ALTER ROLE ALL RESET enable_seqscan",),
                "ALTER ROLE ALL SET enable_seqscan = 'off'",
            ),
        ),
        undo="ALTER ROLE ALL RESET enable_seqscan;\n",
    ),
    Scenario(
        rule="foreign-key-without-index",
        name="two-not-null",
        about="child.child_a_b_fkey",
        severity="info",
        common="CREATE TABLE parent (a int, b int, PRIMARY KEY (a, b));\n"
        "INSERT INTO parent VALUES (1, 1);\n"
        "CREATE TABLE child (a int, b int, c int, FOREIGN KEY (a, b) REFERENCES parent);\n"
        "INSERT INTO child SELECT 1, 1, i FROM generate_series(1, 30000) i;\nANALYZE child;\n",
        fires="CREATE INDEX ON child (a, b) WHERE a IS NOT NULL AND c IS NOT NULL;\n"
        "CREATE INDEX ON child (a, b) WHERE a IS NOT NULL OR b IS NOT NULL AND c > 0;\n"
        "CREATE INDEX ON child (a, b) WHERE a IS NOT NULL AND b IS NULL;\n",
        silent="CREATE INDEX ON child (a, b) WHERE a IS NOT NULL AND b IS NOT NULL;\n",
    ),
)
