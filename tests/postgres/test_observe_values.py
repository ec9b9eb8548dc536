"""Which assigned columns change: rows that are read before the interval and after it."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import observed
import psycopg
import pytest

from pgheadroom.errors import HeadroomError
from pgheadroom.migration import check_migration, read_migration
from pgheadroom.observe import find_classes, observe
from pgheadroom.observe.values import read_values
from pgheadroom.profile import Profile
from pgheadroom.servers import Cluster, Host, ServerPrograms, find_client
from pgheadroom.sources.log import StatementCounts
from pgheadroom.sources.observing import ObservationRequest
from pgheadroom.sources.recording import Recording, read_files
from pgheadroom.sources.script import psql_script

pytestmark = pytest.mark.usefixtures("run_parent")

ROWS = 800
PLANTED = "zebrapelt"
DDL = f"""
CREATE TABLE things (id int4 PRIMARY KEY, name text NOT NULL, state int4, note text, on_off bool,
        price numeric, "odd ""name" char(12), wide text, tags text[], seen timestamptz,
        made int4 GENERATED ALWAYS AS (state * 2) STORED)
    WITH (fillfactor = 60, autovacuum_enabled = off);
INSERT INTO things SELECT i, '{PLANTED}' || i, i % 3, NULL, false, i + 0.5, 'o', repeat('w', 60),
        ARRAY['a', NULL, 'b'], now()
    FROM generate_series(1, {ROWS}) i;
CREATE TABLE keyless (id int4, name text);
INSERT INTO keyless SELECT i, 'k' FROM generate_series(1, 50) i;
VACUUM ANALYZE
"""
# As a framework saves an object: every column, most of them as they were. The state changes in one
# row of a hundred, the flag each time and so comes back, the price in its scale alone.
SAVE = (
    "UPDATE things SET name = %(name)s, state = %(state)s, note = NULL, on_off = %(on_off)s,"
    " price = %(price)s, \"odd \"\"name\" = 'o', wide = repeat('w', 60),"
    " tags = ARRAY['a', NULL, 'b'], seen = clock_timestamp() WHERE id = %(id)s"
)
STATEMENT = SAVE.replace("%(id)s", "1").replace("%(state)s", "1").replace("%(price)s", "1.5")
KEPT = ["name", "note", 'odd "name', "wide", "tags"]


def save(cluster: Cluster) -> None:
    """Two saves of each row: the flag is then as it was."""
    with observed.session(cluster) as connection:
        for turn in range(2):
            for row in range(1, ROWS + 1):
                values = {
                    "id": row,
                    "name": f"{PLANTED}{row}",
                    "state": row % 3 + (row % 100 == 7),
                    "on_off": turn == 0 if row % 5 else turn == 1,
                    "price": f"{row}.5" + "0" * (row % 2),
                }
                connection.execute(SAVE.encode(), values)
            connection.execute("UPDATE keyless SET name = 'l' WHERE id < 10")


def profile_of(recording: Recording) -> Profile:
    """With the statement known, as pg_stat_statements would have it."""
    text = STATEMENT.replace("%(name)s", "'n'").replace("%(on_off)s", "true")
    counts = Counter({text: 2 * ROWS})
    files = [StatementCounts(source="file", counts=counts, seen=3, cut=0)]
    return observe(recording, find_classes(recording, [], files), mask=False, sampled=True)


def check_kept(profile: Profile) -> None:
    """What was saved as it was is known to be, and what was not is not."""
    updates: dict[str, Any] = observed.facts(profile, "things")["updates"]
    values = updates["read_twice"]
    assert (values["rows"], values["written"]) == (ROWS, ROWS)
    assert {name: count for name, count in values["changed"].items() if count} == {
        "state": ROWS // 100,
        "made": ROWS // 100,
        "on_off": ROWS // 5,
        "price": ROWS // 2,
        "seen": ROWS,
    }
    (found,) = updates["classes"]
    assert found["unchanged"] == KEPT
    (operation,) = (o for o in profile.workload.operations if o.table == "things")
    kept = {change.column for change in operation.sets if change.changed_frac == 0}
    assert kept == {*KEPT}
    assert "read_twice" not in observed.facts(profile, "keyless")["updates"]


def test_kept_columns_are_played_as_kept(programs: ServerPrograms) -> None:
    """HOT is decided by others: an index over a kept column is not passed, for it may come back."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster, DDL)
        profile = profile_of(observed.watched(cluster, lambda: save(cluster)))
    check_kept(profile)
    for column in ("name", "state", "on_off"):
        migration = read_migration(f"CREATE INDEX new ON things ({column})")
        (table,) = check_migration(profile, migration).tables
        assert table.verdict == "loses HOT", column


def test_a_lock_that_is_given_back_is_not_kept(programs: ServerPrograms) -> None:
    """
    A column that comes back to its value is the same before and after, and has ended HOT twice.

    So no column of an index is ever kept by that, and no other index is passed.
    """
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(
            cluster,
            f"""CREATE TABLE jobs (id int4 PRIMARY KEY, locked_by text, holder text, n int4)
                    WITH (fillfactor = 50, autovacuum_enabled = off);
                INSERT INTO jobs SELECT i, NULL, NULL, 0 FROM generate_series(1, {ROWS}) i;
                CREATE INDEX jobs_locked ON jobs (locked_by);
                VACUUM ANALYZE""",
        )
        taken = "UPDATE jobs SET locked_by = 'w', holder = 'w' WHERE id = %s"
        given = "UPDATE jobs SET locked_by = NULL, holder = NULL, n = n + 1 WHERE id = %s"

        def work() -> None:
            with observed.session(cluster) as connection:
                for row in range(1, ROWS + 1):
                    connection.execute(taken.encode(), (row,))
                    connection.execute(given.encode(), (row,))

        recording = observed.watched(cluster, work)
    counts = Counter({taken.replace("%s", "1"): ROWS, given.replace("%s", "1"): ROWS})
    files = [StatementCounts(source="file", counts=counts, seen=2 * ROWS, cut=0)]
    profile = observe(recording, find_classes(recording, [], files), mask=False, sampled=True)
    updates = observed.facts(profile, "jobs")["updates"]
    assert updates["read_twice"]["changed"]["locked_by"] == 0  # nothing shows in the two readings
    assert all("locked_by" not in found.get("unchanged", ()) for found in updates["classes"])
    for migration, verdict in (
        ("CREATE INDEX new ON jobs (holder, locked_by)", "as before"),  # every update is cold
        ("DROP INDEX jobs_locked; CREATE INDEX new ON jobs (holder)", "as before"),
        ("DROP INDEX jobs_locked", "gains HOT"),
    ):
        (table,) = check_migration(profile, read_migration(migration)).tables
        assert table.verdict == verdict, (migration, table.text)


def test_nobodys_cast_is_run(programs: ServerPrograms) -> None:
    """Values are written by their types, not by a cast that the table's owner has made."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(
            cluster,
            """CREATE TYPE mood AS ENUM ('good', 'bad');
               CREATE FUNCTION told(mood) RETURNS text LANGUAGE sql AS $$SELECT (1 / 0)::text$$;
               CREATE CAST (mood AS text) WITH FUNCTION told(mood);
               CREATE TABLE felt (id int4 PRIMARY KEY, v mood);
               INSERT INTO felt SELECT i, 'good' FROM generate_series(1, 50) i;
               VACUUM ANALYZE""",
        )
        change = "UPDATE felt SET v = 'bad' WHERE id = 7"
        recording = observed.watched(cluster, lambda: observed.load(cluster, change))
    assert not [line for line in recording.failures() if line.query == "row_values"]
    (before,), (after,) = (recording.rows("row_values", moment) for moment in ("start", "end"))
    found = read_values(before, after)
    assert found is not None
    assert (found.rows, found.written, found.changed[2]) == (50, 1, 1)


def test_psql_reads_the_same_rows_twice(programs: ServerPrograms, tmp_path: Path) -> None:
    """The script finds what a session finds, and none of its files has a value in it."""
    try:
        program, _ = find_client("psql", programs)
    except HeadroomError:
        pytest.skip(f"no psql for {programs}")
    mark = "\\echo the interval has begun"
    first, rest = psql_script(ObservationRequest(duration_s=1.0, ticks=1)).split(mark)
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster, DDL)
        with subprocess.Popen(
            [program, "-X", "-q"],
            cwd=tmp_path,
            env=os.environ | cluster.client_env(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{first}{mark}\n")
            process.stdin.flush()
            said = [process.stdout.readline()]
            save(cluster)
            process.stdin.write(rest)
            process.stdin.close()
            said += process.stdout.readlines()
    assert [line.strip() for line in said] == ["the interval has begun", "done"]
    check_kept(profile_of(read_files(tmp_path)))
    for file in tmp_path.iterdir():
        assert PLANTED not in file.read_text(encoding="utf-8")


def test_a_role_that_may_not_read_rows_reads_none(programs: ServerPrograms) -> None:
    """Without SELECT, and where row security hides rows, no values are read and nothing fails."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster, DDL)
        observed.load(cluster, "CREATE ROLE watcher LOGIN; GRANT SELECT ON keyless TO watcher")
        recording = observed.watched(cluster, lambda: save(cluster), user="watcher")
        with (
            cluster.connect(user="watcher") as connection,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            connection.execute("SELECT FROM things")
    assert recording.rows("row_values") == ()
    assert not [line for line in recording.failures() if line.query == "row_values"]
