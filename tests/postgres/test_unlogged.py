"""Unlogged tables: no WAL of theirs, and everything else as in others, to the unit."""

from __future__ import annotations

import tomllib

import observed
import pytest

from pgheadroom.errors import InputError
from pgheadroom.profile import parse_profile
from pgheadroom.prove import prove
from pgheadroom.servers import Host, ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

PROFILE = """
schema_version = 1
[server]
data_checksums = true
[[table]]
name = "t"
rows = 4000
unlogged = true
fillfactor = 90
columns = [
  { name = "id", type = "int4" },
  { name = "n", type = "int4", values = { kind = "random", ndistinct = 300 } },
  { name = "s", type = "text", width = { min_bytes = 10, max_bytes = 60 } },
  { name = "big", type = "text", width = { min_bytes = 1500, max_bytes = 3000 }, null_frac = 0.9 },
]
indexes = [
  { name = "t_pkey", columns = ["id"], unique = true },
  { name = "t_n", columns = ["n"] },
]
[[table]]
name = "l"
rows = 1000
columns = [
  { name = "id", type = "int4" },
  { name = "v", type = "int8" },
]
indexes = [ { name = "l_pkey", columns = ["id"], unique = true } ]
[[operation]]
table = "t"
kind = "update"
sets = ["n"]
weight = 3
[[operation]]
table = "t"
kind = "update"
sets = { s = { grows_bytes = { min = 1, max = 4 } } }
weight = 3
abort_frac = 0.1
pick = { distribution = "zipfian", theta = 1.2 }
[[operation]]
table = "t"
kind = "insert"
[[operation]]
table = "t"
kind = "delete"
pick = { distribution = "oldest" }
[[operation]]
table = "t"
kind = "select"
rows_per_statement = 20
[[operation]]
table = "l"
kind = "update"
sets = ["v"]
[run]
operations = 8000
"""
LIVE = """
CREATE UNLOGGED TABLE light (id int PRIMARY KEY, v int);
INSERT INTO light SELECT i, i FROM generate_series(1, 500) i;
CREATE TABLE heavy (LIKE light);
VACUUM ANALYZE
"""


def test_an_unlogged_table_beside_another(programs: ServerPrograms) -> None:
    """Updates, growth, TOAST, rollbacks and dead entries of one client, with checksums on."""
    proof = prove(parse_profile(tomllib.loads(PROFILE)), server=str(programs.bin_dir))
    assert [(f.table, f.key, f.predicted, f.measured) for _, f in proof.beyond] == []
    (cell,) = proof.cells
    light, heavy = cell.measured.by_table["t"], cell.measured.by_table["l"]
    assert light.n_tup_hot_upd
    assert light.wal_records == light.wal_fpi == light.pages_modified == 0
    assert heavy.wal_records


def test_observed_as_such(programs: ServerPrograms) -> None:
    """The profile of a live table says it."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster, LIVE)
        profile = observed.profile_of(observed.watched(cluster))
    assert {table.name: table.unlogged for table in profile.tables} == {
        "light": True,
        "heavy": False,
    }


def test_another_table_cannot_refer_to_it() -> None:
    """As PostgreSQL has it."""
    data = tomllib.loads(PROFILE)
    data["table"][1]["columns"].append({"name": "t", "type": "int4"})
    data["table"][1]["foreign_keys"] = [{"columns": ["t"], "references": "t"}]
    with pytest.raises(InputError, match="not unlogged"):
        parse_profile(data)
