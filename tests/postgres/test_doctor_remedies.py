"""Remedies of the doctor, done as printed and taken back as printed, all of a database together."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from doctor_scenarios import LOG
from doctor_sides import SETTINGS, database, examined, run
from test_doctor_rules import asked, burn

from pgheadroom.doctor import Finding
from pgheadroom.servers import Cluster, Host, ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")


@pytest.fixture(scope="module")
def server(newest: ServerPrograms) -> Iterator[Cluster]:
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start(SETTINGS)
        yield cluster


def done(cluster: Cluster, dbname: str, findings: tuple[Finding, ...]) -> None:
    """As printed."""
    for finding in findings:
        for statement in finding.remedy.sql:
            run(cluster, dbname, statement)


def undone(cluster: Cluster, dbname: str, findings: tuple[Finding, ...]) -> None:
    for finding in findings:
        run(cluster, dbname, (finding.remedy.undo or "").replace("; ", ";\n"))


def test_two_keys_of_one_name(server: Cluster) -> None:
    """Constraints have names of their tables, indexes those of their schema."""
    with database(server, "keys") as dbname:
        run(
            server,
            dbname,
            "CREATE TABLE parent (id int PRIMARY KEY);\nINSERT INTO parent VALUES (1);\n"
            "CREATE TABLE one (p int CONSTRAINT of_parent REFERENCES parent);\n"
            "CREATE TABLE two (p int CONSTRAINT of_parent REFERENCES parent);\n"
            "INSERT INTO one SELECT 1 FROM generate_series(1, 30000);\n"
            "INSERT INTO two SELECT 1 FROM generate_series(1, 30000);\nANALYZE;\n",
        )
        found = examined(server, dbname, "foreign-key-without-index").findings
        assert [each.object for each in found] == ["one.of_parent", "two.of_parent"]
        done(server, dbname, found)
        assert examined(server, dbname, "foreign-key-without-index").findings == ()
        undone(server, dbname, found)
        left = examined(server, dbname, "foreign-key-without-index").findings
        assert [each.object for each in left] == ["one.of_parent"], "it undoes its own alone"


def test_a_threshold_and_its_undo(server: Cluster) -> None:
    """The trigger is where it was wanted to be, and then where it was."""
    with database(server, "triggers") as dbname:
        run(
            server,
            dbname,
            "CREATE TABLE t (v int) WITH (autovacuum_vacuum_threshold = 90000000);\n"
            "INSERT INTO t VALUES (1), (2);\n"
            "UPDATE pg_class SET relpages = 13107200, reltuples = 400000000"
            " WHERE relname = 't';\nDELETE FROM t WHERE v = 1;\n",
        )
        found = examined(server, dbname, "large-table-trigger").findings
        done(server, dbname, found)
        assert examined(server, dbname, "large-table-trigger").findings == ()
        undone(server, dbname, found)
        assert examined(server, dbname, "large-table-trigger").findings == found


def test_an_invalid_slot_holds_nothing(server: Cluster) -> None:
    """Its position is still shown; rows that are younger are frozen all the same."""
    with database(server, "slots") as dbname:
        run(server, dbname, "SELECT pg_create_logical_replication_slot('log', 'pgoutput')")
        try:
            burn(server, dbname, 100_000)
            held = examined(server, dbname, "horizon-holder").findings
            assert [each.object for each in held] == ["slot log"]
            run(
                server,
                dbname,
                LOG.format(70) + ";\nALTER SYSTEM SET max_slot_wal_keep_size = '1MB';\n"
                "SELECT pg_reload_conf();\nCHECKPOINT",
            )
            slots = "pg_replication_slots WHERE wal_status = 'lost'"
            assert asked(server, f"SELECT age(catalog_xmin) FROM {slots}") >= 100_000
            assert examined(server, dbname, "horizon-holder").findings == ()
            (lost,) = examined(server, dbname, "slot-keeps-wal").findings
            assert (lost.severity, lost.price.amount) == ("error", 0)
            assert "conflict" not in lost.text
            run(server, dbname, "VACUUM (FREEZE) pg_am")
            frozen = "SELECT age(relfrozenxid) < 1000 FROM pg_class WHERE relname = 'pg_am'"
            with server.connect(dbname) as connection:
                assert connection.execute(frozen.encode()).fetchone() == (True,)
        finally:
            run(
                server,
                dbname,
                "SELECT pg_drop_replication_slot('log');\n"
                "ALTER SYSTEM RESET max_slot_wal_keep_size;\nSELECT pg_reload_conf()",
            )


def test_settings_that_are_kept_outside(newest: ServerPrograms) -> None:
    """ALTER SYSTEM would be refused: what to set is said in words."""
    wanted = {"log_autovacuum_min_duration": "-1", "allow_alter_system": "off"}
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({**SETTINGS, **wanted})
        (found,) = examined(cluster, "postgres", "autovacuum-log-off").findings
    assert (found.remedy.sql, found.remedy.undo) == ((), None)
    assert "is kept, log_autovacuum_min_duration = '1s'; then a reload." in found.remedy.text
