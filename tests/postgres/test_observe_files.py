"""Other ways in and out: psql's script and its files, server logs, masked profiles."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import observed
import pytest

from pgheadroom.cli.app import run
from pgheadroom.errors import HeadroomError
from pgheadroom.observe import find_classes
from pgheadroom.profile import to_json
from pgheadroom.servers import Cluster, Host, ServerPrograms, find_client
from pgheadroom.sources.log_reading import read_log
from pgheadroom.sources.observing import ObservationRequest
from pgheadroom.sources.recording import read_files
from pgheadroom.sources.script import psql_script

pytestmark = pytest.mark.usefixtures("run_parent")


def psql(programs: ServerPrograms) -> Path:
    """A psql of this server's version or a newer one."""
    try:
        return find_client("psql", programs)[0]
    except HeadroomError:
        pytest.skip(f"no psql for {programs}")


def timeless(value: Any) -> Any:
    """A profile without what differs from one reading to the next of an idle database."""
    moving = {
        "observed_at",
        "interval_s",
        "passes",
        "per_s",
        "totals",
        "counters",
        "series",
        "state",
        "statements",
        "run",
        "ages",
        "since_xids",
        "access",
    }
    if isinstance(value, dict):
        return {name: timeless(inner) for name, inner in value.items() if name not in moving}
    if isinstance(value, list):
        return [timeless(item) for item in value]
    return value


@pytest.mark.contrib
def test_psqls_files_give_the_same_profile(programs: ServerPrograms, tmp_path: Path) -> None:
    """Where only psql may connect, the very statements give the very profile."""
    program = psql(programs)
    with Host(programs) as host:
        cluster = host.cluster("main")
        contrib = observed.start_with_contrib(cluster, {"autovacuum": "off"})
        observed.load(cluster)
        if contrib:
            observed.load(
                cluster,
                "CREATE EXTENSION pg_stat_statements; CREATE EXTENSION pg_freespacemap;"
                " CREATE EXTENSION pageinspect",
            )
        script = tmp_path / "script.sql"
        script.write_text(psql_script(ObservationRequest(duration_s=1.0, ticks=1)))
        done = subprocess.run(
            [program, "-X", "-v", "VERBOSITY=terse", "-f", script],
            cwd=tmp_path,
            env=cluster.client_env(),
            capture_output=True,
            text=True,
            check=True,
        )
        live = observed.profile_of(observed.watched(cluster))
    assert done.stderr == ""
    read = observed.profile_of(read_files(tmp_path))
    assert timeless(to_json(read)) == timeless(to_json(live))
    out = tmp_path / "from.json"
    assert run(["observe", "--from", str(tmp_path), "-o", str(out)]) == 0
    assert timeless(json.loads(out.read_text())) == timeless(to_json(read))


def test_update_classes_of_a_server_log(programs: ServerPrograms) -> None:
    """The server's own log, as it writes it to stderr, names columns where no module does."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off", "log_statement": "mod"})
        observed.load(cluster)
        recording = observed.watched(cluster, lambda: observed.change(cluster))
        log = read_log(cluster.log_path, "postgres")
    classes = find_classes(recording, [log], [])
    oid = next(r["oid"] for r in recording.rows("tables", "shape") if r["name"] == "jobs")
    found = [(c.attnums, c.calls, c.rows, c.source) for c in classes.by_table[oid]]
    assert found == [((3,), 120, None, "log"), ((2, 5), 30, None, "log")]
    profile = observed.observe(recording, classes, mask=False, sampled=True)
    made = [o for o in profile.workload.operations if (o.table, o.kind) == ("jobs", "update")]
    weights: Counter[tuple[str, ...]] = Counter()
    for operation in made:  # one for each range of ages
        weights[tuple(change.column for change in operation.sets)] += operation.weight
    assert list(weights.values()) == [120, 30]
    updates = observed.facts(profile, "jobs")["updates"]
    assert updates["unattributed_frac"] is None
    assert updates["unattributed_why"] == "the source counts statements, not rows"


SECRET = """
CREATE ROLE zebra_role LOGIN;
CREATE SCHEMA zebra_schema;
CREATE TYPE zebra_schema.zebra_mood AS ENUM ('zebra_good', 'zebra_bad');
CREATE TABLE zebra_schema.zebra_orders (zebra_id int8 PRIMARY KEY,
    zebra_state text DEFAULT 'zebra_new', zebra_n int4, mood zebra_schema.zebra_mood)
    WITH (autovacuum_enabled = off);
CREATE INDEX zebra_index ON zebra_schema.zebra_orders (lower(zebra_state))
    WHERE zebra_state <> 'zebra_done';
CREATE TABLE zebra_parts (zebra_key text) PARTITION BY LIST (zebra_key);
CREATE TABLE zebra_part_1 PARTITION OF zebra_parts FOR VALUES IN ('zebra_one');
INSERT INTO zebra_schema.zebra_orders
    SELECT i, 'zebra_value', i, 'zebra_good' FROM generate_series(1, 500) i;
SELECT pg_create_physical_replication_slot('zebra_slot', true);
ANALYZE
"""


def zebra_work(cluster: Cluster) -> None:
    with cluster.connect("zebra_db", application_name="zebra_app") as connection:
        connection.execute(
            "UPDATE zebra_schema.zebra_orders SET zebra_n = 7 WHERE zebra_state = 'zebra_value'"
        )


def walk(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield str(name)
            yield from walk(inner)
    elif isinstance(value, list):
        for item in value:
            yield from walk(item)
    else:
        yield str(value)


@pytest.mark.contrib
def test_a_masked_profile_tells_no_name_and_no_literal(programs: ServerPrograms) -> None:
    """Whatever a user named or wrote begins with zebra here; no zebra may come out."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        contrib = observed.start_with_contrib(
            cluster, {"autovacuum": "off", "wal_level": "logical"}
        )
        with cluster.connect() as connection:
            connection.execute("CREATE DATABASE zebra_db")
        with cluster.connect("zebra_db") as connection:
            for statement in SECRET.split(";"):
                connection.execute(statement.encode())
            if contrib:
                connection.execute("CREATE EXTENSION pg_stat_statements")
            identifier = connection.execute(
                "SELECT system_identifier::text FROM pg_control_system()"
            ).fetchone()
        with cluster.connect(
            "zebra_db", user="zebra_role", application_name="zebra_app", autocommit=False
        ) as holding:
            holding.execute("SELECT 'zebra_text', count(*) FROM pg_class")
            recording = observed.watched(cluster, lambda: zebra_work(cluster), dbname="zebra_db")
            again = observed.watched(cluster, dbname="zebra_db")
    masked = observed.profile_of(recording, mask=True)
    texts = list(walk(to_json(masked)))
    assert [text for text in texts if "zebra" in text.lower()] == []
    assert identifier is not None
    assert identifier[0] not in texts, "the key of the pseudonyms"
    clear = observed.profile_of(recording)
    assert "zebra" in json.dumps(to_json(clear)), "the test itself sees names"
    # The same shape and figures under other names, and the same names the next time.
    assert [t.rows for t in masked.tables] == [t.rows for t in clear.tables]
    assert [o.weight for o in masked.workload.operations] == [
        o.weight for o in clear.workload.operations
    ]
    later = observed.profile_of(again, mask=True)
    assert [t.name for t in later.tables] == [t.name for t in masked.tables]
    orders = next(t for t in masked.tables if t.rows == 500)
    (blocking,) = [i for i in orders.observed["indexes"] if not i["is_primary"]]
    assert len(blocking["ends_hot_by_columns"]) == 1
    assert blocking["expressions"] == blocking["predicate"] == "hidden"
    if contrib:
        (found,) = orders.observed["updates"]["classes"]
        assert found["rows"] == 500
        (update,) = [o for o in masked.workload.operations if o.kind == "update"]
        assert update.rows_per_statement == 500
        assert update.sets[0].column == found["columns"][0]
