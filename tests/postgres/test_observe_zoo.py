"""`observe` on what databases really hold: odd types, keys, indexes and names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import observed
import pytest

from pgheadroom.cli.app import run
from pgheadroom.errors import ConnectionFailed
from pgheadroom.layout import of_profile
from pgheadroom.observe import find_classes
from pgheadroom.profile import read_profile, to_json
from pgheadroom.servers import Host, ServerPrograms
from pgheadroom.sources.log import read_statements
from pgheadroom.sources.observing import ObservationRequest, watch
from pgheadroom.sources.session import read_only_session

pytestmark = pytest.mark.usefixtures("run_parent")

ZOO = """
CREATE TYPE mood AS ENUM ('good', 'bad');
CREATE TYPE pair AS (a int, b text);
CREATE DOMAIN short AS varchar(20) CHECK (value <> '');
CREATE TABLE every_type (id uuid PRIMARY KEY, m mood, p pair, s short, j jsonb, x json,
    ts tsvector, arr int[], em mood[], r int4range, mon money, c "char", n name, o oid, ip inet,
    b bit(5), vb varbit, iv interval, tz timetz, t time, d date, bx box, poly polygon, by bytea,
    num numeric(12,3), f4 real, f8 float8, bp char(7), v varchar, l pg_lsn, mac macaddr, z xid8);
INSERT INTO every_type SELECT md5(i::text)::uuid, 'good', (i, 'x'::text)::pair, 's' || i,
    '{"a": 1}', '[1]', 'a b', array[1, 2], array['good']::mood[], '[1,5)', i, 'c', 'n', i,
    '10.0.0.1', b'10101', b'1', '1 day', '10:00+00', '10:00', '2020-01-01', '((0,0),(1,1))',
    '((0,0),(1,1))', 'by', i / 7.0, i, i, 'bp', 'v' || i, '0/1', '08:00:2b:01:02:03', '5'
    FROM generate_series(1, 3000) i;
CREATE TABLE text_key (k text PRIMARY KEY, v int);
INSERT INTO text_key SELECT 'customer number ' || i, i FROM generate_series(1, 3000) i;
CREATE TABLE small_first (a int2, b int8, v int, PRIMARY KEY (a, b));
INSERT INTO small_first SELECT i % 100, i, i FROM generate_series(1, 40000) i;
CREATE TABLE numeric_key (k numeric PRIMARY KEY, v int);
INSERT INTO numeric_key SELECT i, i FROM generate_series(1, 3000) i;
CREATE TABLE dropped (id int PRIMARY KEY, gone text, kept text, late int DEFAULT 5);
INSERT INTO dropped SELECT i, 'gone', 'kept' FROM generate_series(1, 3000) i;
ALTER TABLE dropped DROP COLUMN gone; ALTER TABLE dropped ADD COLUMN added int8 DEFAULT 7;
CREATE TABLE indexed (id int PRIMARY KEY, a int, b text, j jsonb, g int GENERATED ALWAYS AS (a * 2)
    STORED, EXCLUDE USING hash (a WITH =));
INSERT INTO indexed (id, a, b, j) SELECT i, i, 'b' || i, '{}' FROM generate_series(1, 2000) i;
CREATE INDEX i_hash ON indexed USING hash (b); CREATE INDEX i_gin ON indexed USING gin (j);
CREATE INDEX i_mixed ON indexed (a, lower(b)); CREATE INDEX i_row ON indexed ((indexed IS NULL));
CREATE UNIQUE INDEX i_partial ON indexed (b) WHERE a > 5;
CREATE TABLE toasted (id int PRIMARY KEY, big text, small int); ALTER TABLE toasted ALTER big SET
    STORAGE EXTERNAL;
INSERT INTO toasted SELECT i, repeat(md5(i::text), 200), i FROM generate_series(1, 300) i;
CREATE TABLE toasted_nulls (id int PRIMARY KEY, big text, c text, d text, e text, f text, g text,
    h text, i text, j text);
ALTER TABLE toasted_nulls ALTER big SET STORAGE EXTERNAL;
INSERT INTO toasted_nulls SELECT i, repeat('x', 4000) FROM generate_series(1, 50) i;
CREATE TABLE empty (id int PRIMARY KEY, v text); CREATE TABLE no_columns ();
CREATE UNLOGGED TABLE unlogged (id int PRIMARY KEY); CREATE TABLE no_key (v text);
INSERT INTO no_key VALUES ('x');
CREATE SCHEMA a; CREATE TABLE a.b (id int PRIMARY KEY); CREATE TABLE "a.b" (id int PRIMARY KEY);
CREATE TABLE "quote "" colon: back\\slash
line" ("select" int PRIMARY KEY, "Ünï ""c d" text);
CREATE INDEX "in""dex:" ON "quote "" colon: back\\slash
line" ("Ünï ""c d");
CREATE TABLE child () INHERITS (dropped); CREATE VIEW a_view AS SELECT * FROM no_key;
CREATE MATERIALIZED VIEW a_matview AS SELECT 1 AS one;
ANALYZE
"""
# Padding that a stand-in without its type's alignment gets wrong, on the two widest tables.
TOLERANCE_BYTES = {"every_type": 24}


def test_the_zoo(programs: ServerPrograms, tmp_path: Path) -> None:
    """Everything comes through, is valid, and a row in the profile is as long as the real one."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster, ZOO)
        many = ", ".join(f"c{i} text" for i in range(300))
        observed.load(cluster, f"CREATE TABLE many_columns (id int PRIMARY KEY, {many})")
        observed.load(cluster, "INSERT INTO many_columns SELECT i FROM generate_series(1, 9) i")
        recording = observed.watched(cluster)
        blind = observed.watched(cluster, samples=False)
        with cluster.connect() as connection:
            real: dict[str, float] = {}
            for name in ("every_type", "text_key", "small_first", "numeric_key", "indexed"):
                row: Any = connection.execute(
                    f"SELECT avg(pg_column_size(t.*))::float8 FROM {name} t".encode()
                ).fetchone()
                real[name] = row[0]
    assert recording.failures() == ()
    profile = observed.profile_of(recording)
    left = {item["name"]: item["why"] for item in profile.server.observed["left_out"]}
    assert left == {"no_columns": "it has no columns"}
    assert {"a_view", "a_matview"} & {table.name for table in profile.tables} == set()
    saved = tmp_path / "p.json"
    saved.write_text(json.dumps(to_json(profile)))
    assert read_profile(saved) == profile
    rows = {table.name: table.tuple_bytes for table in of_profile(profile, None).tables}
    far = {
        name: (rows[name], mean)
        for name, mean in real.items()
        if abs(rows[name] - mean) > TOLERANCE_BYTES.get(name, 4)
    }
    assert far == {}
    # Sampled or not, names and keys are the same.
    assert [t.name for t in observed.profile_of(blind, sampled=False).tables] == [
        t.name for t in profile.tables
    ]
    assert {"a.b"} < {table.name for table in profile.tables if "a.b" in table.name}
    _check_details(profile)


def _check_details(profile: Any) -> None:
    uuid = profile.table("every_type")
    assert uuid.key.type == "uuid"
    assert uuid.key_index.columns == ("id",)
    assert profile.table("numeric_key").key.type == "numeric"
    # "customer number " and a number: as long as that, whatever the characters are.
    key = profile.table("text_key").key
    assert (key.type, key.values.ordered, 20 <= key.width.max_bytes <= 21) == ("text", False, True)
    assert profile.table("small_first").key.name == "b", "40,000 rows do not fit an int2"
    indexes = {i["name"]: i for i in observed.facts(profile, "indexed")["indexes"]}
    assert indexes["i_mixed"]["ends_hot_by_columns"] == ["a", "b"]
    assert indexes["i_row"]["ends_hot_by_columns"] == ["id", "a", "b", "j", "g"]
    assert indexes["i_partial"]["ends_hot_by_columns"] == ["a", "b"]
    assert indexes["i_gin"]["ends_hot_by_columns"] == ["j"]
    assert indexes["indexed_a_excl"]["is_exclusion"] is True
    differs = observed.facts(profile, "indexed")["differs"]
    assert set(differs) >= {"i_row", "i_partial"}
    assert not {"i_hash", "i_gin"} & set(differs)
    toasted = observed.facts(profile, "toasted")
    assert toasted["toast"]["main_bytes"] > 300 * 6400
    big = next(column for column in toasted["columns"] if column["name"] == "big")
    assert big["stored_bytes"] == 6400, "what TOAST holds, not the pointer"
    assert toasted["sample"]["tuple_bytes"]["mean"] == pytest.approx(24 + 4 + 18 + 4, abs=4)
    assert "estimated" in toasted["sample"]["tuple_bytes"]["evidence"]
    # The header has a bitmap of NULLs, 2 bytes for 10 columns: 25, which is 32 where values begin.
    nulls = observed.facts(profile, "toasted_nulls")["sample"]["tuple_bytes"]
    assert (nulls["min"], nulls["max"]) == (32 + 4 + 18, 32 + 4 + 18)
    assert profile.table("empty").rows == 0


def test_samples_are_bounded_by_pages_and_time(newest: ServerPrograms) -> None:
    """At most 1,000 pages of a table, as the server counts them; nothing after the time cap."""
    reads = (
        "SELECT heap_blks_read + heap_blks_hit FROM pg_statio_user_tables WHERE relname = 'large'"
    )
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(
            cluster,
            "CREATE TABLE large (id int PRIMARY KEY, v text) WITH (fillfactor = 20);"
            "INSERT INTO large SELECT i, repeat('x', 100) FROM generate_series(1, 60000) i;"
            "VACUUM ANALYZE large",
        )
        with cluster.connect() as connection:
            size: Any = connection.execute("SELECT pg_relation_size('large') / 8192").fetchone()
            before: Any = connection.execute(reads).fetchone()
            recording = observed.watched(cluster)
            after: Any = connection.execute(reads).fetchone()
        with read_only_session(observed.conninfo(cluster), {}) as ours:
            capped = watch(
                ours,
                ObservationRequest(duration_s=0.1, ticks=1, sample_budget_s=0.0),
                lambda _: None,
            )
    (sample,) = recording.rows("sample")
    assert size[0] > 4000
    assert 600 < sample["pages"] <= 1000
    assert after[0] - before[0] <= 1000
    profile = observed.profile_of(recording)
    assert observed.facts(profile, "large")["rows_evidence"] == "sampled"
    assert profile.table("large").rows == pytest.approx(60_000, rel=0.15)
    missing = " ".join(observed.profile_of(capped).server.observed["access"]["missing"])
    assert "sample: no answer, time cap reached" in missing


def test_lengths_do_not_depend_on_the_plan(programs: ServerPrograms) -> None:
    """
    A row that went through a sort came out 3 bytes shorter: its header had been packed.

    121 bytes: header 24, three int4, a char(84) with one byte of header; the server's own
    heap_page_items says the same.
    """
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(
            cluster,
            "CREATE TABLE accounts (aid int PRIMARY KEY, bid int, abalance int, filler char(84));"
            "INSERT INTO accounts SELECT i, 1, 0, '' FROM generate_series(1, 5000) i; ANALYZE",
        )
        lengths = []
        for setting in ("enable_hashagg", "enable_sort"):
            observed.load(cluster, f"ALTER ROLE postgres SET {setting} = off")
            recording = observed.watched(cluster)
            observed.load(cluster, f"ALTER ROLE postgres RESET {setting}")
            sample = observed.facts(observed.profile_of(recording), "accounts")["sample"]
            lengths.append((sample["tuple_bytes"]["min"], sample["tuple_bytes"]["max"]))
        with cluster.connect() as connection:
            available = connection.execute(
                "SELECT count(*) FROM pg_available_extensions WHERE name = 'pageinspect'"
            ).fetchone()
            real = None
            if available is not None and available[0]:
                connection.execute("CREATE EXTENSION pageinspect")
                real = connection.execute(
                    "SELECT min(lp_len), max(lp_len)"
                    " FROM heap_page_items(get_raw_page('accounts', 0))"
                ).fetchone()
    assert lengths == [(121, 121), (121, 121)]
    assert real in (None, (121, 121))


HOT_SET = """
CREATE TABLE skewed (id int PRIMARY KEY, v int) WITH (fillfactor = 50, autovacuum_enabled = off);
INSERT INTO skewed SELECT i, 0 FROM generate_series(1, 20000) i;
CREATE TABLE even (id int PRIMARY KEY, v int) WITH (fillfactor = 50, autovacuum_enabled = off);
INSERT INTO even SELECT i, 0 FROM generate_series(1, 20000) i;
VACUUM ANALYZE
"""
TOUCH = """
DO $$ DECLARE hot int; any_row int; BEGIN
  PERFORM setseed(0.5);
  FOR i IN 1..5000 LOOP
    -- Drawn once: a volatile condition would scan the whole table.
    hot := CASE WHEN random() < 0.9 THEN 1 + floor(random() * 1000)::int
      ELSE 1 + floor(random() * 20000)::int END;
    any_row := 1 + floor(random() * 20000)::int;
    UPDATE skewed SET v = v + 1 WHERE id = hot;
    UPDATE even SET v = v + 1 WHERE id = any_row;
    COMMIT;
  END LOOP;
END $$
"""


def test_skew_is_found_in_real_rows(programs: ServerPrograms) -> None:
    """Nine of ten updates on a twentieth of the rows, beside a table that is updated evenly."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster, HOT_SET)

        def touch() -> None:
            with observed.session(cluster) as connection:
                connection.execute(TOUCH.encode())

        profile = observed.profile_of(observed.watched(cluster, touch))
    picks = {o.table: o.pick for o in profile.workload.operations if o.kind == "update"}
    skewed, even = picks["skewed"], picks["even"]
    assert skewed is not None
    assert even is not None
    assert skewed.distribution == "hot_set"
    assert skewed.rows_frac == pytest.approx(0.05, rel=0.55)
    assert skewed.weight == pytest.approx(0.9, abs=0.06)
    assert even.distribution == "uniform"


def test_a_server_that_stops_ends_with_the_reason(newest: ServerPrograms) -> None:
    """A crash inside the interval is a lost connection, not half a profile."""
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster)
        with pytest.raises(ConnectionFailed, match="the connection ended"):
            observed.watched(cluster, lambda: cluster.stop("immediate"))


def test_a_wrong_password_is_said_and_not_shown(
    newest: ServerPrograms, capfd: pytest.CaptureFixture[str]
) -> None:
    """Exit code 3 with the server's words; the password is in no output."""
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster, "CREATE ROLE guarded LOGIN PASSWORD 'right'")
        rules = cluster.data_dir / "pg_hba.conf"
        rules.write_text("local all guarded scram-sha-256\n" + rules.read_text())
        observed.reload(cluster)
        target = observed.conninfo(cluster, "guarded")
        assert run(["observe", f"{target} password=wr0ng", "--for", "1s"]) == 3
        assert run(["observe", f"{target} password=right", "--for", "1s"]) == 2
    shown = capfd.readouterr()
    assert "password authentication failed" in shown.err
    assert "wr0ng" not in shown.err + shown.out
    assert "the database has no table of its own" in shown.err


def test_the_command_with_its_options(newest: ServerPrograms, tmp_path: Path) -> None:
    """One table and its statements from a file; grants for a role that lacks them."""
    script = tmp_path / "work.sql"
    script.write_text("\\set id random(1, 9)\nUPDATE jobs SET touched = now() WHERE id = :id;\n")
    out = tmp_path / "p.json"
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster)
        observed.load(cluster, "CREATE ROLE plain LOGIN")
        target = observed.conninfo(cluster)
        options = ["--for", "200ms", "--table", "jobs", "--table", "parts", "-o", str(out)]
        assert run(["observe", target, *options, "--statements", f"{script}@5"]) == 0
        assert run(["observe", target, "--for", "200ms", "--table", "absent"]) == 2
        assert run(["observe", observed.conninfo(cluster, "plain"), "--print-grants"]) == 0
        recording = observed.watched(cluster)
    profile = read_profile(out)
    assert [table.name for table in profile.tables] == ["jobs", "parts_1", "parts_2"]
    updates = observed.facts(profile, "jobs")["updates"]
    assert [(c["columns"], c["calls"]) for c in updates["classes"]] == [(["touched"], 5)]
    assert updates["source"] == "statements"
    classes = find_classes(recording, [], [read_statements(script)])
    assert [report.source for report in classes.reports] == ["statements"]
