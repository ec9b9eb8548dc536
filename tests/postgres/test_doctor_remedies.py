"""Remedies of the doctor, done as printed and taken back as printed, all of a database together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from doctor_scenarios import LOG
from doctor_sides import DAY_S, SETTINGS, conninfo, database, examined, run
from psycopg.rows import dict_row
from test_doctor_rules import asked, burn, only, until

from pgheadroom.doctor import Diagnosis, Examination, Finding, rule_named
from pgheadroom.doctor.examining import PastInterval
from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.sources.session import read_only_session

pytestmark = pytest.mark.usefixtures("run_parent")


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


def test_keys_that_one_index_serves(server: Cluster) -> None:
    """One index for all keys that begin with the same columns; one whose build failed is built."""
    with database(server, "keys") as dbname:
        run(
            server,
            dbname,
            "CREATE TABLE parent (a int UNIQUE, b int UNIQUE, PRIMARY KEY (a, b));\n"
            "INSERT INTO parent SELECT i, i FROM generate_series(1, 9) i;\n"
            "CREATE TABLE child (a int CONSTRAINT one REFERENCES parent (a),"
            " b int CONSTRAINT two REFERENCES parent (b), c int CONSTRAINT three"
            " REFERENCES parent (a), CONSTRAINT wide FOREIGN KEY (b, a) REFERENCES parent (b, a),"
            " CONSTRAINT turned FOREIGN KEY (a, b) REFERENCES parent);\n"
            "INSERT INTO child SELECT 1, 1, 1 FROM generate_series(1, 30000);\n"
            "CREATE INDEX unfinished ON child (c);\nANALYZE;\n"
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'unfinished'::regclass;\n",
        )
        found = {
            each.object.removeprefix("child."): each.remedy
            for each in examined(server, dbname, "foreign-key-without-index").findings
        }
        assert {name for name, remedy in found.items() if remedy.sql} == {"one", "wide"}
        assert found["two"].text == found["turned"].text == "The index for wide serves it too."
        assert found["three"].text.startswith("unfinished begins with these columns")
        for rule in ("foreign-key-without-index", "invalid-index"):
            done(server, dbname, examined(server, dbname, rule).findings)
        for rule in ("foreign-key-without-index", "duplicate-index", "overlapping-index"):
            assert examined(server, dbname, rule).findings == (), rule


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


INDEX = (
    "CREATE TABLE t (v int8, w int8);\n"
    "INSERT INTO t SELECT i, i FROM generate_series(1, 60000) i;\nCREATE INDEX t_v ON t (v);\n"
    "VACUUM ANALYZE t;\n"
)


def test_statistics_reset_in_the_interval(server: Cluster) -> None:
    """An index that was read before has no reads then, and no other counter went back."""
    with database(server, "fires") as dbname:
        # The table is not written any more: its counters are at nothing before and after.
        run(server, dbname, INDEX + "SELECT pg_stat_reset();\n")

        def look(work: str) -> Diagnosis:
            return examined(
                server,
                dbname,
                "unused-index",
                ahead_s=31 * DAY_S,
                work=lambda: run(server, dbname, work),
            )

        assert only(look("SELECT 1").findings, "unused-index", "t_v") is not None
        run(server, dbname, "SET enable_seqscan = off;\nSELECT count(w) FROM t WHERE v = 7")
        read = look("SELECT 1")
        assert (read.findings, read.blind) == ((), ())
        reset = look("SELECT pg_stat_reset()")
        assert reset.findings == ()
        assert "reset inside the interval" in " ".join(item.why for item in reset.blind)


def test_statistics_of_one_table_reset(server: Cluster) -> None:
    """The database has the time of that reset, and counters that are older: no rate is told."""
    with database(server, "reset") as dbname:
        run(server, dbname, INDEX + "CREATE INDEX t_w ON t (v);\nCREATE TABLE u (v int);\n")
        before = examined(server, dbname, "duplicate-index", ahead_s=7200)
        run(server, dbname, "SELECT pg_stat_reset_single_table_counters('u'::regclass)")
        after = examined(server, dbname, "duplicate-index", ahead_s=7200)
        run(server, dbname, "SELECT pg_stat_reset()")
        whole = examined(server, dbname, "duplicate-index", ahead_s=7200)
    units = [each.findings[0].price.unit for each in (before, after, whole)]
    assert units == ["bytes a day", "bytes", "bytes a day"]
    assert after.examined.statistics_since is None
    assert whole.findings[0].price.amount == 0


@contextmanager
def sender(cluster: Cluster, dbname: str, name: str, command: str) -> Iterator[None]:
    """A process that sends the log to somebody of that name."""
    kind = "database" if "LOGICAL" in command else "true"
    named = f"{conninfo(cluster, dbname)} replication={kind} application_name={name}"
    connection = psycopg.connect(named, autocommit=True)
    try:
        connection.pgconn.exec_(command.encode())
        sending = f"SELECT count(*) = 1 FROM pg_stat_replication WHERE application_name = '{name}'"
        until(lambda: bool(asked(cluster, sending)), "it is sent to")
        yield
    finally:
        connection.close()
    until(lambda: not asked(cluster, sending), "it is sent to no more")


def test_who_is_a_standby(server: Cluster) -> None:
    """Who takes the log alone reads no index, and who subscribes has a database of his own."""
    with database(server, "sends") as dbname:
        run(
            server,
            dbname,
            INDEX + "CREATE PUBLICATION p;\n"
            "SELECT pg_create_logical_replication_slot('sends', 'pgoutput')",
        )
        from_here = "START_REPLICATION " + asked(server, "SELECT pg_current_wal_lsn()::text")
        changes = (
            "START_REPLICATION SLOT sends LOGICAL 0/0 (proto_version '1', publication_names 'p')"
        )
        try:
            for name, command, is_standby in (
                ("replica", from_here, True),
                ("pg_receivewal", from_here, False),
                ("subscriber", changes, False),
            ):
                with sender(server, dbname, name, command):
                    found = examined(server, dbname, "unused-index", ahead_s=31 * DAY_S).findings
                assert [each.object for each in found] == ["t_v"]
                assert (found[0].remedy.sql == ()) == is_standby, name
        finally:
            run(server, dbname, "SELECT pg_drop_replication_slot('sends')")


def test_an_index_that_was_read_since(server: Cluster) -> None:
    """Counters may be of an interval that is over; what is to go is so by now."""
    rule = rule_named("unused-index")
    query = rule.text_for(server.version.major)
    assert query is not None
    with database(server, "past") as dbname:
        run(server, dbname, INDEX)
        with server.connect(dbname, row_factory=dict_row) as connection:
            rows = connection.execute(query.encode()).fetchall()
        past = PastInterval(
            said="an hour", interval_s=3600, rows={rule.id: (rows, rows)}, missing={}
        )

        def look() -> Diagnosis:
            with read_only_session(conninfo(server, dbname), {}) as session:
                examination = Examination(session, [rule], ahead_s=31 * DAY_S)
                examination.recall(past)
                return examination.end()

        found = only(look().findings, "unused-index", "t_v")
        assert found is not None
        assert found.numbers["wal_bytes_a_day"] == 0, "nothing was written in that hour"
        run(server, dbname, "SET enable_seqscan = off;\nSELECT count(w) FROM t WHERE v = 7")
        assert look().findings == ()
        run(server, dbname, "SELECT pg_stat_reset();\nDROP INDEX t_v")
        assert look().findings == ()
