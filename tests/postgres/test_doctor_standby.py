"""The doctor beside a real standby: who holds the horizon from there, and what a standby tells."""

from __future__ import annotations

import os
from functools import partial

import psycopg
import pytest
from doctor_scenarios import LOG
from doctor_sides import DAY_S, conninfo, examined, near, run
from test_doctor_rules import asked, burn, only, servers, until

from pgheadroom.doctor import Diagnosis, Examination, Finding, all_rules, rule_named
from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.sources.session import read_only_session

pytestmark = pytest.mark.usefixtures("run_parent")


def follow(primary: Cluster, standby: Cluster, slot: str, **more: str) -> None:
    env = primary.client_env()
    standby.start(
        {
            "primary_conninfo": f"host={env['PGHOST']} port={env['PGPORT']} user=postgres"
            " dbname=postgres",
            "primary_slot_name": slot,
            "hot_standby_feedback": "on",
            "wal_level": "logical",
            "wal_receiver_status_interval": "1s",
            **more,
        }
    )
    query = "SELECT count(*) = 1 FROM pg_stat_replication WHERE state = 'streaming'"
    until(lambda: bool(asked(primary, query)), "the standby streams")


def held(primary: Cluster, standby: Cluster) -> Diagnosis:
    """While a query of the standby holds a snapshot that the primary is told of."""
    with standby.connect(autocommit=False) as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        found = reader.execute("SELECT pg_snapshot_xmin(pg_current_snapshot())::text").fetchone()
        assert found is not None
        query = (
            f"SELECT EXISTS (SELECT FROM pg_stat_replication WHERE backend_xmin = '{found[0]}')"
            f" OR EXISTS (SELECT FROM pg_replication_slots WHERE xmin = '{found[0]}')"
        )
        until(lambda: bool(asked(primary, query)), "the primary knows of it")
        young = examined(primary, "postgres", "horizon-holder")
        assert young.findings == ()
        burn(primary, "postgres", 101_000)
        return examined(primary, "postgres", "horizon-holder")


def waited_for(primary: Cluster, names: str) -> tuple[Finding, ...]:
    """What is said of commits while one standby is connected."""
    run(
        primary,
        "postgres",
        "SET synchronous_commit = local;\n"
        f"ALTER SYSTEM SET synchronous_standby_names = '{names}';\nSELECT pg_reload_conf()",
    )
    state = "'sync', 'quorum'" if names else "'async'"
    query = f"SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state IN ({state})"
    until(lambda: bool(asked(primary, query)), "the standby counts so")
    found = examined(primary, "postgres", "synchronous-standby-missing").findings
    assert all(each.numbers["connected"] == 1 for each in found)
    return found


def replay(primary: Cluster, standby: Cluster) -> None:
    """Until the standby has replayed what the primary has written."""
    end = asked(primary, "SELECT pg_current_wal_lsn()::text")
    replayed = f"SELECT pg_last_wal_replay_lsn() >= '{end}'::pg_lsn"
    until(lambda: bool(asked(standby, replayed)), "the standby has replayed it")


def copied_slot(primary: Cluster, standby: Cluster) -> None:
    """One that is copied for a failover: the primary tells of it, for there it can be dropped."""
    create = "SELECT pg_create_logical_replication_slot('copied', 'pgoutput', failover => true)"
    run(primary, "postgres", create)

    def is_copied() -> bool:
        # The slot's horizon follows what the log says of running transactions, a round later.
        run(
            primary,
            "postgres",
            "SELECT pg_log_standby_snapshot();\n"
            "SELECT pg_replication_slot_advance('copied', pg_current_wal_lsn())",
        )
        # From 19 on it waits until it can; the primary's slot moves by the above alone.
        run(
            standby,
            "postgres",
            "SET statement_timeout = '2s';\n!SELECT pg_sync_replication_slots()",
        )
        there = "SELECT count(*) = 1 FROM pg_replication_slots WHERE synced AND NOT temporary"
        return bool(asked(standby, there))

    until(is_copied, "the standby has the slot")
    log = LOG.format(70)
    run(primary, "postgres", log)
    replay(primary, standby)
    there = examined(standby, "postgres", "slot-keeps-wal")
    kept = examined(primary, "postgres", "slot-keeps-wal")
    assert [found.object for found in kept.findings] == ["slot copied"]
    assert there.findings == ()
    run(primary, "postgres", "SELECT pg_drop_replication_slot('copied')")
    # Else the copy's own horizon is what the primary is told of.
    run(standby, "postgres", "SELECT pg_sync_replication_slots()")
    assert not asked(standby, "SELECT count(*) FROM pg_replication_slots")


def conflicted(primary: Cluster, standby: Cluster, slot: str) -> None:
    """A session there that is ended for a lock of the primary's is counted."""
    look = partial(examined, standby, "postgres", "standby-conflicts")
    assert look().findings == ()
    standby.stop()
    follow(primary, standby, slot, max_standby_streaming_delay="0")
    run(primary, "postgres", "CREATE TABLE w (v int)")
    replay(primary, standby)
    with standby.connect(autocommit=False) as reader:
        reader.execute("SELECT count(*) FROM w")
        run(primary, "postgres", "TRUNCATE w")
        replay(primary, standby)
        with pytest.raises(psycopg.OperationalError, match="conflict with recovery"):
            reader.execute("SELECT 1")
    until(lambda: bool(look().findings), "it is counted")
    (found,) = look().findings
    assert (found.numbers["ended"], found.numbers["by_locks"]) == (1, 1)
    assert examined(primary, "postgres", "standby-conflicts").findings == ()


def promoted(standby: Cluster) -> None:
    """What was read of its indexes counts from then on: before, the primary was asked."""
    run(standby, "postgres", "SELECT pg_promote()")
    until(lambda: not asked(standby, "SELECT pg_is_in_recovery()"), "it is a primary")
    long_ago = examined(standby, "postgres", "unused-index", ahead_s=31 * DAY_S)
    found = only(long_ago.findings, "unused-index", "t_v")
    assert found is not None
    assert "since the server is a primary" in found.text
    run(standby, "postgres", "CREATE ROLE plain LOGIN")
    (blind,) = by_role(standby, "plain").blind
    assert "only pg_monitor sees" in blind.why
    (history,) = (standby.data_dir / "pg_wal").glob("*.history")
    later_s = history.stat().st_mtime + 2 * DAY_S
    os.utime(history, (later_s, later_s))
    young = examined(standby, "postgres", "unused-index", ahead_s=31 * DAY_S)
    assert young.findings == ()
    assert "as a primary's" in young.blind[0].why


def by_role(cluster: Cluster, role: str) -> Diagnosis:
    with read_only_session(conninfo(cluster, "postgres", role), {}) as connection:
        rules = [rule_named("unused-index")]
        return Examination(connection, rules, ahead_s=31 * DAY_S).end()


@pytest.mark.parametrize("programs_of", servers())
def test_beside_a_standby(programs_of: ServerPrograms) -> None:
    """A snapshot there holds the primary's horizon, by its slot or by feedback alone."""
    with Host(programs_of) as host:
        primary = host.cluster("primary")
        standby = host.copy(primary, "standby")
        (standby.data_dir / "standby.signal").touch()
        primary.start({"autovacuum": "off", "wal_level": "logical", "max_wal_size": "32MB"})
        run(
            primary,
            "postgres",
            "CREATE TABLE t (v int8);\nCREATE INDEX t_v ON t (v);\n"
            "CREATE TABLE u (v int8);\nCREATE INDEX u_v ON u (v);\nCREATE INDEX u_w ON u (v);\n"
            "INSERT INTO t SELECT i FROM generate_series(1, 60000) i;\nVACUUM ANALYZE t;\n"
            "SELECT pg_create_physical_replication_slot('of_standby', true);\n",
        )
        follow(primary, standby, "of_standby")
        by_slot = only(held(primary, standby).findings, "horizon-holder", "slot of_standby")
        assert by_slot is not None
        assert by_slot.severity == "info"
        near(by_slot.numbers["age_xids"], 101_000)

        for wanted, fires in (("ANY 1 (*)", False), ("FIRST 2 (*)", True)):
            assert bool(waited_for(primary, wanted)) == fires
        waited_for(primary, "")

        unused = examined(primary, "postgres", "unused-index", ahead_s=31 * DAY_S)
        found = only(unused.findings, "unused-index", "t_v")
        assert found is not None
        assert (found.severity, found.remedy.sql) == ("info", ()), "the standby was not asked"

        with read_only_session(conninfo(standby, "postgres"), {}) as connection:
            there = Examination(connection, all_rules()).end()
        assert there.examined.in_recovery
        (again,) = (each for each in there.findings if each.rule == "duplicate-index")
        assert again.remedy.text.startswith("On the primary: ")
        assert again.numbers["wal_bytes_a_day"] is None, "a standby counts no writes"
        assert not there.cut_off, there.blind
        blind = {each.rule for each in there.blind if "ask the primary" in each.why}
        assert blind == {rule.id for rule in all_rules() if not rule.on_standby}

        if primary.version.major >= 17:
            copied_slot(primary, standby)

        conflicted(primary, standby, "of_standby")
        standby.stop()
        run(primary, "postgres", "SELECT pg_drop_replication_slot('of_standby')")
        follow(primary, standby, "")
        about = "standby feedback pgheadroom standby"
        by_feedback = only(held(primary, standby).findings, "horizon-holder", about)
        assert by_feedback is not None
        near(by_feedback.numbers["age_xids"], 101_000)
        primary.stop()
        promoted(standby)
        standby.stop()
