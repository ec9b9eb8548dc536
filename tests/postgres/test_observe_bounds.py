"""What `--table` leaves alone, and names that are no text: the rest is observed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import observed
import pytest

from pgheadroom.cli.app import run
from pgheadroom.errors import InputError
from pgheadroom.profile import to_json
from pgheadroom.servers import Cluster, Host, ServerPrograms, find_client
from pgheadroom.sources.observing import ObservationRequest, watch
from pgheadroom.sources.recording import read_files
from pgheadroom.sources.script import psql_script
from pgheadroom.sources.session import read_only_session

pytestmark = pytest.mark.usefixtures("run_parent")

READS = """
SELECT relname, coalesce(heap_blks_read, 0) + coalesce(heap_blks_hit, 0)
       + coalesce(toast_blks_read, 0) + coalesce(toast_blks_hit, 0)
FROM pg_statio_user_tables
"""


def reads(cluster: Cluster) -> dict[str, int]:
    """
    Blocks of each table that ended sessions have read.

    A session reports what it has read when its process ends, for which a closed connection does
    not wait; on its way out it reports before pg_stat_activity forgets it.
    """
    gone = "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'client backend'"
    observed.wait_until(cluster, gone, "the sessions before have ended")
    with cluster.connect() as connection:
        return dict(connection.execute(READS).fetchall())


def watched_tables(cluster: Cluster, *tables: str) -> Any:
    with read_only_session(observed.conninfo(cluster), {}) as connection:
        return watch(
            connection, ObservationRequest(duration_s=0.2, ticks=1, tables=tables), lambda _: None
        )


@pytest.mark.contrib
def test_other_tables_are_not_read(programs: ServerPrograms) -> None:
    """`--table` sampled up to 200 other tables first, and left them out at the end."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        contrib = observed.start_with_contrib(cluster, {"autovacuum": "off"})
        observed.load(cluster)
        if contrib:
            observed.load(cluster, "CREATE EXTENSION pg_freespacemap; CREATE EXTENSION pageinspect")
        before = reads(cluster)
        recording = watched_tables(cluster, "jobs", "public.parts")
        after = reads(cluster)
        with pytest.raises(InputError, match=r"^table 'absent' is not in the database"):
            watched_tables(cluster, "jobs", "absent")
    assert recording.failures() == ()
    grown = {name for name, number in after.items() if number > before[name]}
    assert grown == {"jobs", "parts_1", "parts_2"}
    names = {row["oid"]: row["name"] for row in recording.rows("tables", "shape")}
    for query in ("sample", "free_space", "page_headers"):
        assert {names[row["oid"]] for row in recording.rows(query)} <= grown, query
    # Expressions of an index have statistics under its name.
    known = {*grown, "parts", "jobs_lower"}
    assert {row["table"] for row in recording.rows("column_statistics")} <= known
    sized = {names.get(row["oid"]) for row in recording.rows("sizes", "end")} - {None}
    assert sized == grown
    profile = observed.profile_of(recording, only=("jobs", "public.parts"))
    assert [table.name for table in profile.tables] == ["jobs", "parts_1", "parts_2"]


def test_psqls_script_is_bounded_too(newest: ServerPrograms, tmp_path: Path) -> None:
    """Where only psql may connect, the same query looks up the same names, however odd."""
    program = find_client("psql", newest)[0]
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster)
        observed.load(cluster, 'CREATE TABLE "it\'s a \\ ""name" AS SELECT 1 AS id')
        request = ObservationRequest(duration_s=1.0, ticks=1, tables=("it's a \\ \"name", "parts"))
        (tmp_path / "script.sql").write_text(psql_script(request))
        before = reads(cluster)
        done = subprocess.run(
            [program, "-X", "-f", tmp_path / "script.sql"],
            cwd=tmp_path,
            env=cluster.client_env(),
            capture_output=True,
            text=True,
            check=True,
        )
        after = reads(cluster)
    assert done.stderr == ""
    grown = {name for name, number in after.items() if number > before[name]}
    assert grown == {"it's a \\ \"name", "parts_1", "parts_2"}
    samples = read_files(tmp_path).rows("sample")
    assert len(samples) == 3


def make_database(cluster: Cluster, encoding: str) -> None:
    with cluster.connect() as connection:
        connection.execute(
            f"CREATE DATABASE odd TEMPLATE template0 ENCODING '{encoding}'"
            " LC_COLLATE 'C' LC_CTYPE 'C'".encode()
        )


def load_raw(cluster: Cluster, encoding: str, ddl: bytes) -> None:
    with cluster.connect("odd", client_encoding=encoding) as connection:
        for statement in filter(None, map(bytes.strip, ddl.split(b";"))):
            connection.execute(statement)


ODD = b"""
CREATE TABLE good (id int PRIMARY KEY, v int, caf\xe9 text);
INSERT INTO good SELECT i, i, 'x' FROM generate_series(1, 500) i;
CREATE INDEX good_\xe9 ON good (v);
CREATE TABLE stra\xdfe (id int PRIMARY KEY, v int);
INSERT INTO stra\xdfe SELECT i, i FROM generate_series(1, 500) i;
CREATE SCHEMA s\x81; CREATE TABLE s\x81.inner_table (id int PRIMARY KEY);
ANALYZE
"""


@pytest.mark.parametrize(
    ("encoding", "client", "left_out"),
    [
        ("SQL_ASCII", "SQL_ASCII", {"stra\\xdfe", "inner_table"}),
        ("WIN1252", "WIN1252", {"inner_table"}),
        ("LATIN1", "LATIN1", set()),
    ],
)
def test_a_name_that_is_no_text_hides_nothing_else(
    newest: ServerPrograms, encoding: str, client: str, left_out: set[str], tmp_path: Path
) -> None:
    """
    One name that is not UTF-8, or that the server could not translate, hid the whole database.

    Tables of such names are left out, by their escaped names; columns and indexes are kept.
    """
    out = tmp_path / "p.json"
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        make_database(cluster, encoding)
        load_raw(cluster, client, ODD)
        recording = observed.watched(
            cluster,
            lambda: load_raw(cluster, client, b"UPDATE good SET v = v + 1 WHERE id < 100"),
            dbname="odd",
        )
        target = observed.conninfo(cluster, dbname="odd")
        assert run(["observe", target, "--for", "200ms", "-o", str(out)]) == 0
        assert run(["layout", target, "-f", "json", "-o", str(tmp_path / "l.json")]) == 0
    assert recording.failures() == ()
    profile = observed.profile_of(recording)
    seen = profile.server.observed
    assert {item["name"] for item in seen["left_out"]} == left_out
    assert all("no text" in item["why"] for item in seen["left_out"])
    good = observed.facts(profile, "good")
    assert good["counters"]["n_tup_upd"] == 99
    assert good["sample"]["rows"] == 599 - 99
    names = [column["name"] for column in good["columns"]]
    assert names[2] == (
        "caf\\xe9" if encoding == "SQL_ASCII" else "caf\N{LATIN SMALL LETTER E WITH ACUTE}"
    )
    assert len(good["indexes"]) == 2
    json.dumps(to_json(profile)).encode()
    shown = [table["name"] for table in json.loads((tmp_path / "l.json").read_text())["tables"]]
    assert "good" in shown
    if encoding == "LATIN1":
        assert "stra\N{LATIN SMALL LETTER SHARP S}e" in shown
