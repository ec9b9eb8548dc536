"""The levels of access, each with a role made for it; what a role cannot see is named."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import observed
import pytest
from pooler import pooled

from pgheadroom.cli.app import run
from pgheadroom.profile import Profile
from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.sources.recording import Recording

pytestmark = [pytest.mark.contrib, pytest.mark.usefixtures("run_parent")]

ROLES = """
CREATE ROLE nobody_much LOGIN;
CREATE ROLE monitor LOGIN; GRANT pg_monitor TO monitor;
CREATE ROLE reader LOGIN; GRANT pg_monitor, pg_read_all_data TO reader;
CREATE ROLE part_reader LOGIN; GRANT pg_monitor TO part_reader;
GRANT SELECT ON jobs TO part_reader;
CREATE TABLE guarded (id int PRIMARY KEY, v int);
INSERT INTO guarded VALUES (1, 1);
ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC
"""


def widths(profile: Profile, table: str) -> dict[str, str]:
    """Evidence of the width of each column of variable length."""
    columns = observed.facts(profile, table)["columns"]
    return {
        column["name"]: column["stored_bytes_evidence"]
        for column in columns
        if "stored_bytes_evidence" in column
    }


def access(profile: Profile) -> Any:
    return profile.server.observed["access"]


def test_the_levels(programs: ServerPrograms) -> None:
    """Each level sees what it should, names the rest, and says what would help."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        contrib = observed.start_with_contrib(cluster, {"autovacuum": "off"})
        observed.load(cluster)
        observed.load(cluster, ROLES)
        if contrib:
            observed.load(
                cluster,
                "CREATE EXTENSION pg_stat_statements; CREATE EXTENSION pg_freespacemap;"
                " CREATE EXTENSION pageinspect",
            )

        def work(user: str) -> None:
            if user == "postgres":
                observed.change(cluster)
            elif user == "nobody_much":
                observed.load(cluster, "UPDATE quiet SET note = note")

        def seen(user: str) -> Profile:
            recording = observed.watched(cluster, lambda: work(user), user=user)
            # The free space map is for pg_stat_scan_tables, which pg_monitor contains.
            expected = {"cluster"} if user != "postgres" else set()
            expected |= {"free_space"} if contrib and user == "nobody_much" else set()
            assert {line.query for line in recording.failures()} == expected
            return observed.profile_of(recording)

        nobody, monitor, reader = seen("nobody_much"), seen("monitor"), seen("reader")
        part, full = seen("part_reader"), seen("postgres")

    _check_nobody(nobody, contrib=contrib)

    # pg_monitor: counters, sizes, definitions; widths out of types and pages.
    assert access(monitor)["levels"][0] == "pg_monitor"
    assert any("tables without SELECT" in missing for missing in access(monitor)["missing"])
    assert 'GRANT pg_read_all_data TO "monitor";' in access(monitor)["would_help"]
    assert widths(monitor, "jobs") == {"payload": "estimated"}
    jobs = observed.facts(monitor, "jobs")
    assert jobs["sample"] is None
    assert jobs["main_bytes"] == observed.facts(reader, "jobs")["main_bytes"]
    guessed, measured = monitor.table("jobs"), reader.table("jobs")
    assert guessed.column("payload").width.max_bytes == pytest.approx(
        measured.column("payload").width.max_bytes, rel=0.6
    )

    # SELECT: samples, pg_stats; but not tables that row security guards.
    assert access(reader)["levels"][:2] == ["pg_monitor", "pg_read_all_data"]
    assert widths(reader, "jobs") == {"payload": "sampled"}
    assert observed.facts(reader, "quiet")["columns"][1]["null_frac"] == 0.25
    assert observed.facts(reader, "guarded")["sample"] is None
    assert any("row security" in missing for missing in access(reader)["missing"])
    assert widths(part, "jobs") == {"payload": "sampled"}
    assert widths(part, "quiet") == {"note": "estimated"}

    # contrib: what the pages have free, who updates what.
    sources = {found["source"] for found in observed.facts(full, "jobs")["free_space"]}
    assert sources == ({"page_headers", "free_space_map", "rows"} if contrib else {"rows"})
    if contrib:
        assert access(full)["missing"] == []
        assert any("contrib" in level for level in access(full)["levels"])
        assert {f["source"] for f in observed.facts(monitor, "jobs")["free_space"]} == {
            "free_space_map"
        }
    else:
        missing = " ".join(access(full)["missing"])
        assert "pg_stat_statements is not installed" in missing
        assert "CREATE EXTENSION pg_stat_statements;" in access(full)["would_help"]
    assert observed.facts(full, "guarded")["sample"] is not None


def _check_nobody(nobody: Profile, *, contrib: bool) -> None:
    """A role without any of the three levels: what everyone sees, the rest by name."""
    assert not any("pg_monitor" in level for level in access(nobody)["levels"])
    assert 'GRANT pg_monitor TO "nobody_much";' in access(nobody)["would_help"]
    assert any("without pg_monitor" in missing for missing in access(nobody)["missing"])

    assert any("cluster: no answer, 42501" in missing for missing in access(nobody)["missing"])
    assert nobody.server.observed["system_identifier"] is None
    if contrib:
        (hidden,) = [
            report["not_understood"]
            for report in nobody.server.observed["statements"]
            if report["source"] == "pg_stat_statements"
        ]
        assert hidden["its text is hidden from this role"] >= 1
        assert observed.facts(nobody, "quiet")["updates"]["unattributed_frac"] == 1.0


def test_no_sample_reads_no_row(newest: ServerPrograms) -> None:
    """`--no-sample` leaves the tables' own counters as they were, and says what it cost."""
    reads = "SELECT coalesce(sum(seq_scan + coalesce(idx_scan, 0)), 0) FROM pg_stat_user_tables"
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster)
        with cluster.connect() as connection:
            before = connection.execute(reads).fetchone()
            recording = observed.watched(cluster, samples=False)
            assert connection.execute(reads).fetchone() == before
    profile = observed.profile_of(recording, sampled=False)
    assert any("switched off" in missing for missing in access(profile)["missing"])
    assert widths(profile, "jobs") == {"payload": "estimated by ANALYZE"}


HOLDERS = """
SELECT pg_create_logical_replication_slot('my slot', 'pgoutput')
"""


def hold(cluster: Cluster, work: Callable[[Any], Recording]) -> Recording:
    """Do the work while a session, a prepared transaction and a slot hold the horizon."""
    with cluster.connect() as preparing:
        preparing.execute("BEGIN")
        preparing.execute("UPDATE quiet SET note = note WHERE id = 1")
        preparing.execute("PREPARE TRANSACTION 'my gid'")
    with cluster.connect(autocommit=False, application_name="nightly report") as holding:
        holding.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        holding.execute("SELECT count(*) FROM jobs")
        found = work(holding)
        holding.rollback()
    with cluster.connect() as connection:
        connection.execute("ROLLBACK PREPARED 'my gid'")
    return found


def test_who_holds_the_horizon(programs: ServerPrograms) -> None:
    """No fillfactor helps while the horizon stands: each kind of holder has to be found."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start(
            {"autovacuum": "off", "max_prepared_transactions": "5", "wal_level": "logical"}
        )
        observed.load(cluster)
        observed.load(cluster, "SELECT pg_create_logical_replication_slot('my_slot', 'pgoutput')")
        recording = hold(
            cluster,
            lambda _: observed.watched(cluster, lambda: observed.change(cluster)),
        )
        # Others' snapshots are shown to pg_monitor only.
        observed.load(cluster, "CREATE ROLE nobody_much LOGIN")
        blind = hold(cluster, lambda _: observed.watched(cluster, user="nobody_much"))
    profile = observed.profile_of(recording)
    horizon = profile.server.observed["horizon"]
    holders = {holder["kind"]: holder for holder in horizon["holders"]}
    assert holders["session"]["application_name"] == "nightly report"
    assert holders["session"]["age_xids_max"] >= 190
    assert holders["prepared"]["name"] == "my gid"
    assert holders["prepared"]["holds_data"] is True
    assert holders["slot"]["name"] == "my_slot"
    assert holders["slot"]["holds_data"] is False, "a logical slot holds catalogs only"
    # It stood still from the first pass to the last: a snapshot over the whole run.
    (snapshot,) = profile.workload.run.snapshots
    assert snapshot.start_frac == 0
    assert snapshot.length_frac > 0.9
    kinds = {h["kind"] for h in observed.profile_of(blind).server.observed["horizon"]["holders"]}
    assert "session" not in kinds


def standby_of(host: Host, primary: Cluster) -> Cluster:
    """A streaming standby of a stopped primary, which is started again."""
    primary.stop()
    standby = host.copy(primary, "standby")
    (standby.data_dir / "standby.signal").touch()
    (standby.data_dir / "standby.signal").chmod(0o644)
    primary.start({"autovacuum": "off"})
    env = primary.client_env()
    standby.start(
        {
            "primary_conninfo": f"host={env['PGHOST']} port={env['PGPORT']} user=postgres",
            "hot_standby_feedback": "on",
            "wal_receiver_status_interval": "1s",
        }
    )
    del host
    return standby


def _replayed(primary: Cluster, standby: Cluster) -> None:
    """Changes of the primary that the standby has replayed."""
    observed.change(primary)
    with primary.connect() as connection:
        (end,) = connection.execute("SELECT pg_current_wal_lsn()::text").fetchall()[0]
    query = f"SELECT pg_last_wal_replay_lsn() >= '{end}'"
    observed.wait_until(standby, query, "the standby has replayed the changes")


def test_a_standby_is_observed_and_its_feedback_seen(programs: ServerPrograms) -> None:
    """A standby counts no writes: shape and samples come, rates are said to be unknown."""
    with Host(programs) as host:
        primary = host.cluster("main")
        primary.start({"autovacuum": "off"})
        observed.load(primary)
        standby = standby_of(host, primary)
        recording = observed.watched(standby, lambda: _replayed(primary, standby))
        with standby.connect(autocommit=False) as holding:
            holding.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            holding.execute("SELECT count(*) FROM jobs")
            feedback = "SELECT count(backend_xmin) > 0 FROM pg_stat_replication"
            observed.wait_until(primary, feedback, "the standby's feedback")
            at_primary = observed.watched(primary)
        standby.stop()
    assert recording.failures() == ()
    profile = observed.profile_of(recording)
    seen = profile.server.observed
    assert seen["in_recovery"] is True
    assert any("standby counts no writes" in line for line in seen["assumed"])
    assert seen["is_idle"] is True
    assert profile.table("jobs").rows >= 5000
    assert observed.facts(profile, "jobs")["sample"]["tuple_bytes"]["mean"] > 80
    assert seen["counters"]["wal_position_bytes"] > 0, "the primary's WAL was replayed"
    holders = observed.profile_of(at_primary).server.observed["horizon"]["holders"]
    assert any(holder["kind"] == "standby" for holder in holders)


def test_behind_a_pooler_in_session_mode(newest: ServerPrograms, tmp_path: Path) -> None:
    """Pgbouncer refuses start-up parameters it does not know, and shares server connections."""
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster)
        path = tmp_path / "profile.json"
        with pooled(host, cluster, "session") as target:
            assert run(["observe", target, "--for", "200ms", "-o", str(path)]) == 0
    assert re.search(r'"name": "jobs"', path.read_text())
