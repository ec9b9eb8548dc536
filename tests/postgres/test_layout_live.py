"""The command `layout`: a profile and a live table give the row that the server really stores."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from pgheadroom import layout
from pgheadroom.cli.app import run
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
    (expected,) = layout.of_profile(read_profile(path), None)["tables"]
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
        assert found == expected
        at_80 = next(room for room in found["fillfactors"] if room["fillfactor"] == 80)
        assert at_80["heap_pages"] == row[0]
        # An enum is 4 bytes; a domain is its base type; a text of 200 bytes has a long header.
        assert [column["payload_bytes"] for column in odd["columns"]] == [4, 4, 200]
        assert odd["tuple_bytes"] == 24 + 4 + 5 + 3 + 4 + 200
        assert run(["layout", *options, "-U", "blind", "--table", "public.odd"]) == 0
        shown = capsys.readouterr().out
        assert "not seen: pg_stats" in shown
        assert "32 bytes: its average width cannot be seen" in shown
        assert run(["layout", *options, "-U", "postgres", "--table", "absent"]) == 2
        assert run(["layout", *options, "-U", "nobody-knows"]) == 3


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
