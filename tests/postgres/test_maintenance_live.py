"""Commands of maintenance in the middle of a run: both players do the same, to the unit."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from pgheadroom.accuracy import figures
from pgheadroom.errors import MeasurementInvalid
from pgheadroom.play import play
from pgheadroom.profile import parse_profile
from pgheadroom.prove import prove
from pgheadroom.servers import ServerPrograms
from pgheadroom.types import Interval

pytestmark = pytest.mark.usefixtures("run_parent")

PROFILE = """
schema_version = 1
[server]
wal_log_hints = true
[[table]]
name = "t"
rows = 3000
fillfactor = 90
columns = [
  { name = "id", type = "int8" },
  { name = "v", type = "int4", values = { kind = "random", ndistinct = 90 } },
  { name = "note", type = "text", width = { min_bytes = 10, max_bytes = 60 } },
  { name = "big", type = "text", width = { min_bytes = 1500, max_bytes = 4000 }, null_frac = 0.95 },
]
indexes = [
  { name = "t_pkey", columns = ["id"], unique = true },
  { name = "t_v", columns = ["v"] },
]
[[table]]
name = "other"
rows = 500
columns = [{ name = "id", type = "int4" }, { name = "n", type = "int4" }]
indexes = [{ name = "other_pkey", columns = ["id"], unique = true }]
[[operation]]
table = "t"
kind = "update"
sets = ["v"]
weight = 2
[[operation]]
table = "t"
kind = "update"
sets = ["note"]
abort_frac = 0.1
[[operation]]
table = "t"
kind = "insert"
[[operation]]
table = "t"
kind = "delete"
[[operation]]
table = "other"
kind = "insert"
[run]
operations = 3000
maintenance = [
  { do = "vacuum", table = "t", after = 400 },
  { do = "vacuum", table = "t", after = 400 },
  { do = "vacuum", table = "other", after = 500 },
  { do = "reindex", table = "t", index = "t_v", after = 800 },
  { do = "reindex", table = "t", after = 1100 },
  { do = "analyze", table = "t", after = 1300 },
  { do = "cluster", table = "t", index = "t_pkey", after = 1500 },
  { do = "vacuum", freeze = true, parallel = 2, table = "t", after = 1700 },
  { do = "vacuum full", table = "t", at_frac = 0.7 },
  { do = "truncate", table = "t", at_frac = 0.9 },
  { do = "vacuum", table = "t", at_frac = 1.0 },
]
"""
PGBENCH = """
schema_version = 1
[pgbench]
builtin = "tpcb-like"
scale = 1
[run]
operations = 900
maintenance = [
  { do = "vacuum", table = "pgbench_tellers", after = 300 },
  { do = "cluster", table = "pgbench_branches", index = "pgbench_branches_pkey", after = 300 },
  { do = "truncate", table = "pgbench_history", after = 600 },
]
"""


def _data() -> dict[str, Any]:
    return tomllib.loads(PROFILE)


@pytest.mark.parametrize("text", [PROFILE, PGBENCH], ids=["tables", "pgbench"])
def test_every_command_is_equal(programs: ServerPrograms, text: str) -> None:
    """One client: pgbench waits behind the very transaction, and no figure is off by one."""
    proof = prove(parse_profile(tomllib.loads(text)), server=str(programs.bin_dir))
    (cell,) = proof.cells
    found = figures(cell.predicted, cell.measured)
    assert [
        (figure.table, figure.key, figure.predicted, figure.measured)
        for figure in found
        if figure.measured is not None and figure.predicted != figure.measured
    ] == []
    assert not any(isinstance(figure.predicted, Interval) for figure in found)


def test_beside_several_clients_times_are_measured(programs: ServerPrograms) -> None:
    """Commands wait for locks, clients go on; the twin is told when they ran."""
    data = _data()
    data["run"] |= {
        "clients": 2,
        "operations": 6000,
        "maintenance": [
            {"do": "vacuum", "table": "t", "at_frac": 0.3},
            {"do": "truncate", "table": "other", "at_frac": 0.6},
        ],
    }
    played = play(parse_profile(data), server=str(programs.bin_dir))
    vacuum, truncate = played.maintained
    # A command is sent when so many transactions have begun; of those two clients have at most one
    # each that pgbench has not seen end, and 1 % is 60.
    assert 0.3 - 0.01 <= vacuum[1] <= truncate[1] <= 1
    assert truncate[1] >= 0.6 - 0.01
    assert vacuum[0] <= vacuum[1]
    assert truncate[0] <= truncate[1]
    for hold in played.holds:  # TRUNCATE has a snapshot while it waits; VACUUM holds nobody up
        assert vacuum[0] <= hold.began[0] <= hold.ended[1] <= 1
    inserted = played.measured.by_table["other"]
    assert inserted.n_tup_ins is not None


SKIPS = """
schema_version = 1
[server]
shared_buffers = "128MB"
[[table]]
name = "t"
rows = 5000
columns = [
  { name = "k", type = "int4" },
  { name = "a", type = "text", width = 30 },
  { name = "b", type = "float8", values = { kind = "random" }, null_frac = 0.5 },
  { name = "e", type = "float4", values = { kind = "constant" } },
]
indexes = [
  { name = "t_pkey", columns = ["k"], unique = true },
  { name = "t_b", columns = ["b"] },
  { name = "t_e_k", columns = ["e", "k"] },
]
[[operation]]
table = "t"
kind = "update"
rows_per_statement = 30
sets = ["b"]
[run]
operations = 250
seed = 727649
maintenance = [{ do = "analyze", table = "t", after = 200 }]
"""


@pytest.mark.pg(">= 18")
def test_a_plan_that_changes_is_said(programs: ServerPrograms) -> None:
    """From 18 on a scan skips a column of one value: ANALYZE finds that index the smaller one."""
    with pytest.raises(MeasurementInvalid, match=r'after maintenance operation.*"t_e_k"'):
        play(parse_profile(tomllib.loads(SKIPS)), server=str(programs.bin_dir))
