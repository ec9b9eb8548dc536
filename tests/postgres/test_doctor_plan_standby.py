"""Indexes that nobody reads here are dropped where every standby has said so too."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from doctor_sides import conninfo, run
from test_doctor_plan import planned, states, written
from test_doctor_rules import asked, servers, until
from test_doctor_standby import follow

from pgheadroom.cli.app import run as command
from pgheadroom.errors import InputError
from pgheadroom.plan import Plan
from pgheadroom.plan.execution import ApplyCall
from pgheadroom.plan.record import new_record
from pgheadroom.plan.remedy_apply import applier_of
from pgheadroom.plan.session import writing_session
from pgheadroom.servers import Cluster, Host, ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

RULES = ("unused-index", "duplicate-index")
MAKE = (
    "CREATE TABLE t (v int8);\nCREATE INDEX t_v ON t (v);\n"
    "INSERT INTO t SELECT i FROM generate_series(1, 60000) i;\n"
    "CREATE TABLE u (v int8);\nCREATE INDEX u_v ON u (v);\nCREATE INDEX u_w ON u (v);\n"
    "VACUUM ANALYZE t;\nSELECT pg_create_physical_replication_slot('of_standby', true);\n"
)


def refused(primary: Cluster, path: Path, standby: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A plan at the standby, and at the primary while somebody is there who was not asked."""
    assert command(["apply", str(path), standby, "--yes"]) == 2
    assert "the server is a standby" in capsys.readouterr().err
    run(primary, "postgres", "SELECT pg_create_physical_replication_slot('late', true)")
    assert command(["apply", str(path), conninfo(primary, "postgres"), "--yes"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "t_v: a standby is there that was not asked whether it reads it" in said
    assert "found slot late, the plan has slot of_standby" in said
    assert "u_w" not in said, "its twin serves there as well"
    run(primary, "postgres", "SELECT pg_drop_replication_slot('late')")


@pytest.mark.parametrize("programs_of", servers())
def test_every_standby_is_asked(
    programs_of: ServerPrograms, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that was not asked, has read it, or is none at all: each keeps the index."""
    with Host(programs_of) as host:
        primary = host.cluster("primary")
        standby = host.copy(primary, "standby")
        (standby.data_dir / "standby.signal").touch()
        primary.start({"autovacuum": "off", "wal_level": "logical"})
        run(primary, "postgres", MAKE)
        follow(primary, standby, "of_standby")
        replayed(primary, standby)
        there = conninfo(standby, "postgres")

        def look(*standbys: str) -> Plan:
            return planned(primary, rules=RULES, standbys=standbys)

        alone = look()
        assert [step.about for step in alone.work] == ["u_w"], "its twin serves on standbys too"
        assert "standbys were not asked: slot of_standby; name each by --standby" in alone.notes[0]

        with pytest.raises(InputError, match="is no standby: expected one of this server"):
            look(conninfo(primary, "postgres"))
        with pytest.raises(InputError, match="follows by slot of_standby, which neither"):
            look(there, there)
        with pytest.raises(InputError, match="found database template1, expected postgres"):
            look(conninfo(standby, "template1"))
        plan = look(there)
        (step,) = (step for step in plan.remedies or () if step.about == "t_v")
        assert "Not read on any standby as long as they have counted" in step.evidence
        assert "See first that it is no new one" in step.evidence
        run(primary, "postgres", "SELECT pg_create_physical_replication_slot('idle', true)")
        assert "standbys were not asked: slot idle" in look(there).notes[0]
        run(primary, "postgres", "SELECT pg_drop_replication_slot('idle')")

        path = written(plan, tmp_path)
        refused(primary, path, there, capsys)
        assert [one.standbys for one in plan.remedies or ()] == [None, ("slot of_standby",)]
        assert command(["apply", str(path), conninfo(primary, "postgres"), "--yes"]) == 0
        assert states(path) == ["done", "done"]
        assert command(["apply", str(path), conninfo(primary, "postgres"), "--yes", "--undo"]) == 0
        standby.stop()
        run(primary, "postgres", "SELECT pg_drop_replication_slot('of_standby')")
        assert {step.about for step in look().work} == {"t_v", "u_w"}, "nobody is there"
        follow(primary, standby, "")  # by its name alone
        assert "standbys were not asked: name pgheadroom standby" in look().notes[0]
        assert {step.about for step in look(there).work} == {"t_v", "u_w"}
        read_there(standby)
        until(lambda: "has read it 1 times" in " ".join(look(there).notes), "its read is counted")
        standby.stop()
        primary.stop()


@pytest.mark.parametrize("programs_of", servers())
def test_who_came_since(
    programs_of: ServerPrograms, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that follows by its name alone, since nobody was there, and one while `apply` asks."""
    with Host(programs_of) as host:
        primary = host.cluster("primary")
        standby = host.copy(primary, "standby")
        (standby.data_dir / "standby.signal").touch()
        primary.start({"autovacuum": "off", "wal_level": "logical"})
        run(primary, "postgres", MAKE + "SELECT pg_drop_replication_slot('of_standby');\n")
        plan = planned(primary, rules=RULES)
        path, there = written(plan, tmp_path), conninfo(primary, "postgres")
        (number,) = (step.number for step in plan.work if step.about == "t_v")
        follow(primary, standby, "")
        until(lambda: asked(primary, "SELECT count(*) FROM pg_stat_replication") == 1, "it follows")
        assert command(["apply", str(path), there, "--yes"]) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert "found name pgheadroom standby, the plan has none" in said
        standby.stop()
        until(lambda: asked(primary, "SELECT count(*) FROM pg_stat_replication") == 0, "it is gone")
        with writing_session(there, {}) as connection:
            applier = applier_of(
                ApplyCall(
                    plan=plan,
                    record=new_record(plan),
                    connection=connection,
                    keep=lambda _: None,
                    say=lambda _: None,
                )
            )
            todo = applier.prepare(undo=False)
            run(primary, "postgres", "SELECT pg_create_physical_replication_slot('late', true)")
            outcome = applier.run(todo, undo=False)
        assert outcome.stopped is not None
        assert outcome.stopped.startswith(f"step {number}: t_v has changed meanwhile: a standby")
        assert number in outcome.left
        assert asked(primary, "SELECT count(*) FROM pg_class WHERE relname = 't_v'") == 1
        primary.stop()


@pytest.mark.parametrize("programs_of", servers())
def test_what_a_standby_replays(programs_of: ServerPrograms) -> None:
    """An index that goes, and pages that are given back, end a transaction there; a build none."""
    works = {
        "CREATE INDEX CONCURRENTLY t_w ON t (v)": False,
        "DROP INDEX CONCURRENTLY t_w": True,
        "REINDEX INDEX CONCURRENTLY t_v": True,
        "DELETE FROM t WHERE v > 100;\nVACUUM t": True,
    }
    with Host(programs_of) as host:
        primary = host.cluster("primary")
        standby = host.copy(primary, "standby")
        (standby.data_dir / "standby.signal").touch()
        primary.start({"autovacuum": "off", "wal_level": "logical"})
        run(primary, "postgres", MAKE)
        # Without feedback, which would keep the rows for a second.
        quick = {"max_standby_streaming_delay": "0", "hot_standby_feedback": "off"}
        follow(primary, standby, "of_standby", **quick)
        for work, is_ended in works.items():
            replayed(primary, standby)
            with standby.connect(autocommit=False) as reader:
                reader.execute("SELECT count(*) FROM t WHERE v = 1")
                run(primary, "postgres", work)
                replayed(primary, standby)
                if is_ended:
                    with pytest.raises(psycopg.OperationalError, match="conflict with recovery"):
                        reader.execute("SELECT 1")
                else:
                    reader.execute("SELECT 1")
        standby.stop()
        primary.stop()


def replayed(primary: Cluster, standby: Cluster) -> None:
    """Replay may end whoever asks, too, as soon as a session has a snapshot to connect by."""
    end = asked(primary, "SELECT pg_current_wal_lsn()::text")

    def is_replayed() -> bool:
        try:
            return bool(asked(standby, f"SELECT pg_last_wal_replay_lsn() >= '{end}'::pg_lsn"))
        except psycopg.OperationalError as error:
            if "conflict with recovery" not in str(error):
                raise
            return False

    until(is_replayed, "the standby has replayed it")


def read_there(standby: Cluster) -> None:
    until(lambda: asked(standby, "SELECT count(*) FROM pg_class WHERE relname = 't_v'") == 1, "it")
    run(standby, "postgres", "SET enable_seqscan = off;\nSELECT count(*) FROM t WHERE v = 7")
