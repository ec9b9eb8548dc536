"""`observe` on real servers: what changed is counted exactly, and nothing of ours is left."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import observed
import pytest

from pgheadroom.cli.app import run
from pgheadroom.observe.room import profile_bytes
from pgheadroom.profile import read_profile, to_json
from pgheadroom.servers import Cluster, Host, ServerPrograms

pytestmark = [pytest.mark.contrib, pytest.mark.usefixtures("run_parent")]


@pytest.mark.each
@pytest.mark.minors
def test_rates_shape_and_operations(programs: ServerPrograms, tmp_path: Path) -> None:
    """A known number of changes comes out as counted by the server, by the version's own views."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster)
        recording = observed.watched(cluster, lambda: observed.change(cluster))
    assert recording.failures() == ()
    profile = observed.profile_of(recording)
    jobs = observed.facts(profile, "jobs")
    counters = jobs["counters"]
    assert [counters[f"n_tup_{kind}"] for kind in ("ins", "upd", "del", "hot_upd")] == [
        40,
        150,
        10,
        120,
    ]
    if programs.version.major >= 16:
        assert counters["n_tup_newpage_upd"] == 0, "a page filled to 80 % has room"
    else:
        assert "n_tup_newpage_upd" not in counters, "15 does not know: absent, never 0"
    # The interval is written to the millisecond.
    length_s = profile.server.observed["interval_s"]
    assert 150 / (length_s + 0.0006) < jobs["per_s"]["n_tup_upd"] < 150 / (length_s - 0.0006)
    table = profile.table("jobs")
    assert (table.fillfactor, table.reloptions) == (80, {"autovacuum_enabled": "off"})
    assert table.rows == 5030
    assert jobs["rows_evidence"] == "measured"
    indexes = {index["name"]: index for index in jobs["indexes"]}
    assert indexes["jobs_owner"]["ends_hot_by_columns"] == ["owner", "state", "touched"]
    assert indexes["jobs_lower"]["ends_hot_by_columns"] == ["payload"]
    assert indexes["jobs_lower"]["expressions"] == ["lower(payload)"]
    assert indexes["jobs_brin"]["ends_hot"] is (programs.version.major < 16)
    partial = next(index for index in table.indexes if index.name == "jobs_owner")
    assert partial.include == ("state",)
    assert "2001-02-03" in str(partial.where)
    weights: Counter[str] = Counter()
    for operation in profile.workload.operations:
        if operation.table == "jobs":
            weights[operation.kind] += operation.weight
    assert weights == {"insert": 40, "update": 150, "delete": 10}
    assert profile.server.observed["broken"] == []
    assert str(programs.version) == profile.server.version
    # What is written can be read again, and is the same.
    saved = tmp_path / "profile.json"
    saved.write_text(json.dumps(to_json(profile)))
    assert read_profile(saved) == profile
    # What was said to be needed before the interval is enough, and not far too much.
    written_bytes = saved.stat().st_size
    assert written_bytes < profile_bytes(recording) < 5 * written_bytes + 100_000
    assert run(["layout", str(saved), "-f", "json", "-o", str(tmp_path / "layout.json")]) == 0


def test_samples_measure_lengths_ages_and_room(programs: ServerPrograms) -> None:
    """Row lengths are the stored ones, young rows are those that changed, full pages have none."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster)
        recording = observed.watched(cluster, lambda: observed.change(cluster))
        with cluster.connect() as connection:
            row: Any = connection.execute(
                "SELECT avg(pg_column_size(j.*))::float8, avg(pg_column_size(payload))::float8,"
                " pg_relation_size('jobs') / 8192 FROM jobs j"
            ).fetchone()
    jobs = observed.facts(observed.profile_of(recording), "jobs")
    sample = jobs["sample"]
    assert sample["tuple_bytes"]["mean"] == pytest.approx(row[0], abs=0.01)
    assert sample["tuple_bytes"]["evidence"] == "sampled"
    payload = next(column for column in jobs["columns"] if column["name"] == "payload")
    assert payload["stored_bytes"] == pytest.approx(row[1], abs=0.01)
    assert sample["pages"] == row[2]
    assert sample["rows"] == 5030
    # 120 rows were updated, 30 of them twice, and 40 inserted; each was a transaction.
    assert sample["recent_rows"] == 160
    assert sum(rows for _, rows, _ in sample["ages"]) == 5030
    (room,) = [found for found in jobs["free_space"] if found["source"] == "rows"]
    assert sum(pages for _, pages in room["classes"]) == row[2]
    assert max(pages for _, pages in room["classes"]) > row[2] / 2, "all but the last alike"


def test_partitions_are_tables_with_their_parents_classes(programs: ServerPrograms) -> None:
    """Statements name the parent, counters the partitions, whose columns stand in another order."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        has_statements = observed.start_with_contrib(cluster, {"autovacuum": "off"})
        observed.load(cluster)
        if has_statements:
            observed.load(cluster, "CREATE EXTENSION pg_stat_statements")
        recording = observed.watched(cluster, lambda: observed.change(cluster))
    profile = observed.profile_of(recording)
    (parent,) = profile.server.observed["partitioned"]
    assert (parent["name"], parent["strategy"]) == ("parts", "list")
    touched = observed.facts(profile, "parts_2")
    assert touched["parent"] == "parts"
    assert touched["counters"]["n_tup_upd"] == 60
    assert observed.facts(profile, "parts_1")["counters"]["n_tup_upd"] == 0
    if has_statements:
        assert touched["updates"]["source"] == "pg_stat_statements"
        assert [found["columns"] for found in touched["updates"]["classes"]] == [["v"]]


def test_update_classes_of_pg_stat_statements(programs: ServerPrograms) -> None:
    """Each class with its rows, also none; what it assigned to itself; all attributed."""

    def work(cluster: Cluster) -> None:
        observed.change(cluster)
        with observed.session(cluster) as connection:
            for row in range(300):
                connection.execute("UPDATE jobs SET owner = 1 WHERE id = %s", (-1 - row,))

    with Host(programs) as host:
        cluster = host.cluster("main")
        if not observed.start_with_contrib(cluster, {"autovacuum": "off"}):
            pytest.skip(f"{programs} has no pg_stat_statements")
        observed.load(cluster)
        observed.load(
            cluster,
            'CREATE SCHEMA "odd ""one"; CREATE EXTENSION pg_stat_statements SCHEMA "odd ""one"',
        )
        recording = observed.watched(cluster, lambda: work(cluster))
    assert recording.failures() == ()
    profile = observed.profile_of(recording)
    updates = observed.facts(profile, "jobs")["updates"]
    assert updates["source"] == "pg_stat_statements"
    assert [(c["columns"], c["calls"], c["rows"], c.get("same")) for c in updates["classes"]] == [
        (["owner"], 300, 0, None),
        (["state"], 120, 120, ["state"]),
        (["owner", "touched"], 30, 30, None),
    ]
    assert [c["frac"] for c in updates["classes"]] == [0, 0.8, 0.2]
    assert "the UPDATE of owner found no row in 300 calls and is left out" in updates["assumed"]
    assert updates["unattributed_frac"] == 0
    made = [o for o in profile.workload.operations if (o.table, o.kind) == ("jobs", "update")]
    weights: Counter[tuple[str, ...]] = Counter()
    for operation in made:  # one for each range of ages
        weights[tuple(c.column for c in operation.sets)] += operation.weight
    assert weights == {("state",): 120, ("owner", "touched"): 30}
    assert made[0].sets[0].changed_frac == 0
    # One statement over 60 rows stays one statement.
    (whole,) = [o for o in profile.workload.operations if o.table == "parts_2"]
    assert whole.kind == "update"


def test_rows_of_an_update_in_a_with(programs: ServerPrograms) -> None:
    """The server counts the query's rows; the table's own counter says how many it updates."""

    def work(cluster: Cluster) -> None:
        with observed.session(cluster) as connection:
            for place in range(25):
                connection.execute(
                    "WITH moved AS (UPDATE quiet SET note = 'm' WHERE id > %s AND id <= %s"
                    " RETURNING id) SELECT count(*) FROM moved",
                    (place * 8, place * 8 + 8),
                )

    with Host(programs) as host:
        cluster = host.cluster("main")
        if not observed.start_with_contrib(cluster, {"autovacuum": "off"}):
            pytest.skip(f"{programs} has no pg_stat_statements")
        observed.load(cluster)
        observed.load(cluster, "CREATE EXTENSION pg_stat_statements")
        recording = observed.watched(cluster, lambda: work(cluster))
    profile = observed.profile_of(recording)
    updates = observed.facts(profile, "quiet")["updates"]
    (found,) = updates["classes"]
    assert (found["calls"], found["rows"], found["rows_per_statement"]) == (25, None, 8)
    assert "stands in a WITH" in updates["unattributed_why"]
    (made,) = [o for o in profile.workload.operations if o.table == "quiet"]
    assert (made.weight, made.rows_per_statement) == (25, 8)


def test_observing_writes_nothing(programs: ServerPrograms) -> None:
    """No transaction id, no row, no WAL: of a database that is vacuumed and checkpointed."""
    watch_state = (
        "SELECT pg_snapshot_xmax(pg_current_snapshot())::text, pg_current_wal_insert_lsn()::text,"
        " tup_inserted, tup_updated, tup_deleted, temp_files"
        " FROM pg_stat_database WHERE datname = 'postgres'"
    )
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off", "wal_level": "minimal", "max_wal_senders": "0"})
        observed.load(cluster)
        observed.watched(cluster)  # the first reading sets what hint bits are left
        with cluster.connect() as connection:
            connection.execute("CHECKPOINT")
            before = connection.execute(watch_state).fetchone()
            recording = observed.watched(cluster)
            after = connection.execute(watch_state).fetchone()
    assert recording.rows("sample") != ()
    assert after == before


def test_an_interval_without_writes_says_so(programs: ServerPrograms) -> None:
    """Nothing happened: the profile is valid, marked idle, and its operation changes nothing."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster)
        profile = observed.profile_of(observed.watched(cluster))
    assert profile.server.observed["is_idle"] is True
    assert [operation.kind for operation in profile.workload.operations] == ["select"]
    assert any("nothing was written" in line for line in profile.server.observed["assumed"])


def test_what_breaks_an_interval_is_named(newest: ServerPrograms) -> None:
    """A reset, a dropped and a rewritten table inside the interval are said, not subtracted."""
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster)
        observed.change(cluster)

        def disturb() -> None:
            observed.load(
                cluster,
                "SELECT pg_stat_reset(); DROP TABLE quiet; VACUUM FULL jobs;"
                " CREATE TABLE late (i int PRIMARY KEY)",
            )

        profile = observed.profile_of(observed.watched(cluster, disturb))
    seen = profile.server.observed
    assert "the database's statistics were reset inside the interval" in seen["broken"]
    assert seen["changed"] == [
        "jobs was rewritten inside the interval",
        "quiet was dropped inside the interval",
    ]
    assert seen["left_out"][0]["why"] == "dropped inside the interval"
    assert observed.facts(profile, "jobs")["counters"]["n_tup_upd"] is None
