"""
The doctor's two sides of what loads leave behind, of settings, and of what stands in the catalogs.
"""

from __future__ import annotations

from doctor_sides import DAY_S, Scenario, equal

_RELOAD = "SELECT pg_reload_conf();\n"
_PAIR = (
    "CREATE TABLE parent (id int PRIMARY KEY);\nINSERT INTO parent VALUES (1);\n"
    "CREATE TABLE child (id int, parent int REFERENCES parent);\n"
    "CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';\n"
    "CREATE TRIGGER noted BEFORE INSERT ON child FOR EACH ROW EXECUTE FUNCTION noted();\n"
)
_CHANGED = (
    "CREATE TABLE t (id int, v text);\n"
    "INSERT INTO t SELECT i, '' FROM generate_series(1, 10000) i;\nANALYZE t;\n"
)

PLAIN = (
    Scenario(
        rule="synchronous-commit-off",
        about="synchronous_commit",
        severity="info",
        # The server that scenarios share has it off for all.
        fires="ALTER DATABASE fires SET synchronous_commit = off;\n",
        silent="ALTER DATABASE silent SET synchronous_commit = on;\n",
        check=lambda finding, _: equal(
            (finding.numbers["lost_ms"], finding.remedy.sql, finding.remedy.undo),
            (
                600,
                ("ALTER DATABASE fires RESET synchronous_commit",),
                "ALTER DATABASE fires SET synchronous_commit = 'off'",
            ),
        ),
    ),
    Scenario(
        rule="replication-role",
        about="session_replication_role",
        severity="error",
        fires="ALTER DATABASE fires SET session_replication_role = replica;\n",
        silent="ALTER DATABASE silent SET session_replication_role = origin;\n",
        check=lambda finding, _: equal(
            finding.remedy.sql, ("ALTER DATABASE fires RESET session_replication_role",)
        ),
    ),
    Scenario(
        rule="foreign-key-switched-off",
        about="child.child_parent_fkey",
        severity="warning",
        common=_PAIR,
        fires="ALTER TABLE child DISABLE TRIGGER ALL;\nINSERT INTO child VALUES (1, 7);\n",
        # Its own triggers alone.
        silent="ALTER TABLE child DISABLE TRIGGER USER;\n!INSERT INTO child VALUES (1, 7);\n",
        check=lambda finding, _: equal(
            (finding.numbers["triggers"], finding.numbers["table_name"]), (2, "child")
        ),
    ),
    Scenario(
        rule="trigger-switched-off",
        about="child.noted",
        severity="info",
        common=_PAIR,
        fires="ALTER TABLE child DISABLE TRIGGER noted;\n",
        silent="ALTER TABLE child ENABLE ALWAYS TRIGGER noted;\n",
        check=lambda finding, _: equal(
            finding.remedy.sql, ("ALTER TABLE public.child ENABLE TRIGGER noted",)
        ),
    ),
    Scenario(
        rule="unlogged-table",
        about="t",
        severity="info",
        common="CREATE UNLOGGED TABLE t (v int);\nINSERT INTO t SELECT generate_series(1, 70);\n",
        silent="ALTER TABLE t SET LOGGED;\n",
        check=lambda finding, _: equal(finding.numbers["row_count"], 70),
    ),
    Scenario(
        rule="unlogged-table",
        name="empty",
        about="t",
        severity="info",
        common="CREATE UNLOGGED TABLE t (v int);\n",
        fires="INSERT INTO t VALUES (1);\n",
    ),
    Scenario(
        rule="checkpoint-log-off",
        about="log_checkpoints",
        severity="info",
        fires=f"ALTER SYSTEM SET log_checkpoints = off;\n{_RELOAD}",
        check=lambda finding, _: equal(
            finding.remedy.sql,
            ("ALTER SYSTEM SET log_checkpoints = on", "SELECT pg_reload_conf()"),
        ),
        undo=f"ALTER SYSTEM RESET log_checkpoints;\n{_RELOAD}",
    ),
    Scenario(
        rule="effective-cache-size",
        about="effective_cache_size",
        severity="info",
        fires="ALTER DATABASE fires SET effective_cache_size = '4088kB';\n",
        # As much as shared_buffers, 4 MB.
        silent="ALTER DATABASE silent SET effective_cache_size = '4096kB';\n",
        check=lambda finding, _: equal(
            (finding.numbers["said"], finding.numbers["buffers"]), ("4088kB", "4MB")
        ),
    ),
    Scenario(
        rule="commit-delay",
        about="commit_delay",
        severity="info",
        fires="ALTER DATABASE fires SET commit_delay = 10;\n",
        silent="ALTER DATABASE silent SET commit_delay = 0;\n",
        check=lambda finding, _: equal(
            finding.remedy.sql, ("ALTER DATABASE fires RESET commit_delay",)
        ),
    ),
    Scenario(
        rule="archive-timeout-short",
        about="archive_timeout",
        severity="info",
        fires=f"ALTER SYSTEM SET archive_timeout = '20s';\n{_RELOAD}",
        silent=f"ALTER SYSTEM SET archive_timeout = '60s';\n{_RELOAD}",
        # 4,320 segments of 16 MiB.
        check=lambda finding, _: equal(finding.numbers["a_day"], "68 GB"),
        undo=f"ALTER SYSTEM RESET archive_timeout;\n{_RELOAD}",
    ),
    Scenario(
        rule="slot-without-bound",
        about="max_slot_wal_keep_size",
        severity="info",
        common="SELECT pg_create_physical_replication_slot('away');\n",
        silent=f"ALTER SYSTEM SET max_slot_wal_keep_size = '1GB';\n{_RELOAD}",
        check=lambda finding, _: equal(
            (finding.numbers["slots"], finding.numbers["names"]), (1, "away")
        ),
        undo="SELECT pg_drop_replication_slot('away');\n"
        f"ALTER SYSTEM RESET max_slot_wal_keep_size;\n{_RELOAD}",
    ),
    Scenario(
        rule="statistics-behind",
        about="t",
        severity="info",
        common=_CHANGED,
        # 50 and a tenth of 10,000 rows: five times that.
        fires="UPDATE t SET v = 'x' WHERE id <= 5250;\n",
        silent="UPDATE t SET v = 'x' WHERE id < 5250;\n",
        check=lambda finding, _: equal(
            (finding.numbers["changed"], finding.numbers["trigger_rows"], finding.remedy.sql),
            (5250, 1050, ('ANALYZE "public"."t"',)),
        ),
        ahead_s=(60 * DAY_S, 60 * DAY_S),  # beyond two naptimes of this server
    ),
    Scenario(
        rule="statistics-behind",
        name="by-its-own-factor",
        about="t",
        severity="info",
        common=_CHANGED + "UPDATE t SET v = 'x' WHERE id <= 5250;\n",
        silent="ALTER TABLE t SET (autovacuum_analyze_scale_factor = 0.2);\n",
        ahead_s=(60 * DAY_S, 60 * DAY_S),
    ),
    Scenario(
        rule="statistics-behind",
        name="just-analyzed",
        about="t",
        severity="info",
        common=_CHANGED + "UPDATE t SET v = 'x' WHERE id <= 5250;\n",
        # Within two naptimes of the ANALYZE autovacuum need not have come.
        ahead_s=(60 * DAY_S, 0.0),
    ),
    Scenario(
        rule="statistics-target-zero",
        about="t.v",
        severity="info",
        common="CREATE TABLE t (id int, v int);\nALTER TABLE t ALTER COLUMN v SET STATISTICS 0;\n",
        fires="CREATE INDEX ON t (id, v);\n",
        silent="CREATE INDEX ON t (id);\n",
        check=lambda finding, _: equal(finding.numbers["indexes"], 1),
    ),
    Scenario(
        rule="database-half-dropped",
        about="gone",
        severity="info",
        common="CREATE DATABASE gone TEMPLATE template0;\n",
        # As DROP DATABASE leaves it that is stopped.
        fires="UPDATE pg_database SET datconnlimit = -2 WHERE datname = 'gone';\n",
        silent="UPDATE pg_database SET datconnlimit = 0 WHERE datname = 'gone';\n",
        check=lambda finding, _: equal(finding.remedy.sql, ("DROP DATABASE gone",)),
        undo="DROP DATABASE IF EXISTS gone;\n",
    ),
    Scenario(
        rule="view-not-populated",
        about="v",
        severity="info",
        common="CREATE MATERIALIZED VIEW v AS SELECT 1 AS one WITH NO DATA;\n",
        fires="!SELECT * FROM v;\n",
        silent="REFRESH MATERIALIZED VIEW v;\nSELECT * FROM v;\n",
    ),
)
"""Beside them: what needs a server of its own (test_doctor_apart.py, test_doctor_standby.py)."""
