"""The command `layout`: a profile and a live table give the row that the server really stores."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import observed
import pytest

from pgheadroom.cli.app import run
from pgheadroom.layout import of_profile
from pgheadroom.profile import read_profile
from pgheadroom.servers import Host, ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

PROFILE = """
schema_version = 1
[[table]]
name = "t"
rows = 1000
fillfactor = 80
columns = [
  { name = "aid", type = "int4" },
  { name = "big", type = "int8" },
  { name = "filler", type = "bpchar(84)" },
  { name = "abalance", type = "int4" },
]
indexes = [ { name = "t_pkey", columns = ["aid"], unique = true } ]
[[operation]]
table = "t"
kind = "update"
sets = ["abalance"]
[run]
operations = 1
"""
DDL = """
CREATE TYPE mood AS ENUM ('good', 'bad');
CREATE DOMAIN short AS varchar(20);
CREATE TABLE t (aid int, big bigint, filler char(84), abalance int) WITH (fillfactor = 80);
CREATE UNIQUE INDEX t_pkey ON t (aid);
INSERT INTO t SELECT i, i, 'x', i FROM generate_series(1, 1000) i;
CREATE TABLE odd (m mood, s short, n text);
INSERT INTO odd SELECT 'good', 'abcd', repeat('x', 200) FROM generate_series(1, 10);
CREATE ROLE blind LOGIN;
VACUUM ANALYZE t; VACUUM ANALYZE odd
"""


def test_profile_and_live_table_agree_with_the_server(
    programs: ServerPrograms, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same table out of a profile and out of the catalog; its pages are the server's."""
    path = tmp_path / "p.toml"
    path.write_text(PROFILE)
    (expected,) = json.loads(json.dumps(of_profile(read_profile(path), None).to_json()))["tables"]
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({})
        with cluster.connect() as connection:
            for statement in DDL.split(";"):
                connection.execute(statement)
            row = connection.execute("SELECT pg_relation_size('t') / 8192").fetchone()
        assert row is not None
        socket = str(cluster.client_env()["PGHOST"])
        options = ["-h", socket, "-p", str(cluster.port), "-d", "postgres"]
        assert run(["layout", *options, "-U", "postgres", "-f", "json"]) == 0
        result = json.loads(capsys.readouterr().out)
        odd, found = result["tables"]
        assert result["access"]["level"] == "pg_read_all_data"
        # The server's spelling of types, and what was measured, stand in the live one alone.
        assert [c.pop("type") for c in found["columns"]] == [
            "integer",
            "bigint",
            "character(84)",
            "integer",
        ]
        for column in expected["columns"]:
            column.pop("type")
        measured = found.pop("measured")
        expected.pop("measured")
        assert found == expected
        assert measured["tuple_bytes"]["mean"] == found["tuple_bytes"]
        at_80 = next(room for room in found["fillfactors"] if room["fillfactor"] == 80)
        assert at_80["heap_pages"] == row[0]
        # An enum is 4 bytes; a domain is its base type; a text of 200 bytes has a long header.
        assert [column["payload_bytes"] for column in odd["columns"]] == [4, 4, 200]
        assert odd["tuple_bytes"] == 24 + 4 + 5 + 3 + 4 + 200
        assert run(["layout", *options, "-U", "blind", "--table", "public.odd"]) == 0
        shown = capsys.readouterr().out
        assert "not seen: pg_stats and rows" in shown
        assert "32 bytes: its average width cannot be seen" in shown
        assert run(["layout", *options, "-U", "postgres", "--table", "absent"]) == 2
        assert run(["layout", *options, "-U", "nobody-knows"]) == 3


LIVE = """
CREATE TYPE mood AS ENUM ('good', 'bad');
CREATE TYPE pair AS (a int, b text);
CREATE DOMAIN short AS varchar(20);
CREATE DOMAIN shorter AS short CHECK (value <> '');
CREATE DOMAIN feeling AS mood;
CREATE TABLE live (id bigint PRIMARY KEY, m feeling NOT NULL, s shorter, tags text[], addr inet,
    doc jsonb, seldom text, sometimes text, never timestamptz, net cidr, p pair, moods mood[]);
INSERT INTO live SELECT i, 'good', 's' || i % 100, ARRAY['a', 'b' || i % 10], '10.0.0.1',
    '{"a": 1}', CASE WHEN i % 20 = 0 THEN repeat('x', 80) END,
    CASE WHEN i % 3 > 0 THEN repeat('y', 30 + (i % 11)::int) END, NULL, '10.0.0.0/8',
    (1, 'b'::text)::pair, ARRAY['good']::mood[] FROM generate_series(1, 6000) i;
CREATE TABLE blank (id int NOT NULL, a text, b text, c text, d text, e text, f text, g text,
    h text);
INSERT INTO blank SELECT i, CASE i % 2 WHEN 0 THEN 'word' END FROM generate_series(1, 3000) i;
VACUUM FULL ANALYZE live;
VACUUM FULL ANALYZE blank
"""
TYPES = {
    "id": ("bigint", None),
    "m": ("feeling", "mood, as int4"),
    "s": ("shorter", "character varying(20)"),
    "tags": ("text[]", None),
    "addr": ("inet", None),
    "doc": ("jsonb", None),
    "seldom": ("text", None),
    "sometimes": ("text", None),
    "never": ("timestamp with time zone", None),
    "net": ("cidr", None),
    "p": ("pair", "path"),
    "moods": ("mood[]", "bytea"),
}


def test_rows_with_nulls_are_as_long_as_the_servers(
    programs: ServerPrograms, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    NULL columns counted as values: 280 bytes and 28 rows a page were said for 200 and 40.

    The header lacked its bitmap, and inet and jsonb were called bytea and text. The measured
    length, the computed one and the rows of a page are the server's own, live and in a profile.
    """
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster, LIVE)
        real: dict[str, Any] = {}
        with cluster.connect() as connection:
            # A row whose values were moved to TOAST would be counted with them: there are none.
            for name in ("live", "blank"):
                sizes = f"SELECT avg(pg_column_size(t.*))::float8, count(*) FROM {name} t"
                pages = f"SELECT pg_relation_size('{name}') / 8192"
                mean, rows = connection.execute(sizes.encode()).fetchone() or (0, 0)
                (count,) = connection.execute(pages.encode()).fetchone() or (0,)
                real[name] = (mean, rows, count)
            header = headers(connection)
        target = observed.conninfo(cluster)
        assert run(["layout", target, "-f", "json"]) == 0
        live = {t["name"]: t for t in json.loads(capsys.readouterr().out)["tables"]}
        assert run(["layout", target, "--no-sample", "-f", "json"]) == 0
        unsampled = {t["name"]: t for t in json.loads(capsys.readouterr().out)["tables"]}
        assert run(["layout", target, "-t", "live"]) == 0
        shown = capsys.readouterr().out
        profile = observed.profile_of(observed.watched(cluster))
    again = {t["name"]: t for t in of_profile(profile, None).to_json()["tables"]}
    for name, (mean, rows, pages) in real.items():
        for found in (live[name], again[name]):
            assert found["measured"]["tuple_bytes"]["mean"] == pytest.approx(mean, abs=0.01)
            assert found["measured"]["rows_per_page"] == pytest.approx(rows / pages, rel=0.01)
            assert found["computed"]["tuple_bytes"] == pytest.approx(mean, abs=2)
            room = found["fillfactors"][0]
            assert room["heap_pages"] == pytest.approx(pages, rel=0.02, abs=1)
            assert room["rows_per_page"] == pytest.approx(rows / pages, rel=0.06)
        blind = unsampled[name]["fillfactors"][0]
        assert blind["heap_pages"] == pytest.approx(pages, rel=0.03, abs=1)
        assert unsampled[name]["measured"]["tuple_bytes"] is None
        assert header in ({}, header | {name: live[name]["hoff_bytes"]})
    for found in (live["live"], again["live"]):
        types = {c["name"]: (c["type"], c["stored_like"]) for c in found["columns"]}
        assert types == TYPES
        nulls = {c["name"]: c["null_frac"] for c in found["columns"] if c["null_frac"]}
        assert nulls == pytest.approx({"seldom": 0.95, "sometimes": 1 / 3, "never": 1}, abs=0.01)
    assert "NULL in it, as in most rows: seldom, never" in shown
    assert "half " in shown
    assert (
        live["live"]["measured"]["tuple_bytes"]["p05"]
        < live["live"]["measured"]["tuple_bytes"]["p95"]
    )


def headers(connection: Any) -> dict[str, int]:
    """The most frequent t_hoff of each table; empty without pageinspect."""
    available = connection.execute(
        "SELECT count(*) FROM pg_available_extensions WHERE name = 'pageinspect'"
    ).fetchone()
    if not available or not available[0]:
        return {}
    connection.execute("CREATE EXTENSION pageinspect")
    return {
        name: connection.execute(
            "SELECT mode() WITHIN GROUP (ORDER BY t_hoff)"
            " FROM heap_page_items(get_raw_page(%s, 0))",
            (name,),
        ).fetchone()[0]
        for name in ("live", "blank")
    }


def test_a_table_without_columns_is_one_that_is_there(
    newest: ServerPrograms, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of one that is there it was said that the database has none."""
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster, "CREATE TABLE bare (); CREATE TABLE t (a int)")
        assert run(["layout", observed.conninfo(cluster), "--table", "bare"]) == 2
        assert "table 'bare' has no columns" in capsys.readouterr().err
        assert run(["layout", observed.conninfo(cluster)]) == 0


def test_forms_and_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """CSV has a row a column, Markdown its tables; what is wrong ends with exit code 2."""
    path = tmp_path / "p.toml"
    path.write_text(PROFILE)
    assert run(["layout", str(path), "-f", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["name"], row["offset_bytes"], row["padding_bytes"]) for row in rows] == [
        ("aid", "24", "0"),
        ("big", "32", "4"),
        ("filler", "40", "0"),
        ("abalance", "128", "3"),
    ]
    assert run(["layout", str(path), "-f", "markdown", "-o", str(tmp_path / "out.md")]) == 0
    assert "| aid " in (tmp_path / "out.md").read_text()
    assert run(["layout", str(path), "--table", "u"]) == 2
    assert run(["layout", str(tmp_path / "absent.toml")]) == 2
    assert run(["layout", "what is this"]) == 2
