"""Rows at the head of a queue: with one client every figure of the twin is the server's."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from pgheadroom.errors import MeasurementInvalid
from pgheadroom.profile import parse_profile
from pgheadroom.prove import prove
from pgheadroom.servers import ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

JOBS = Path(__file__).parents[2] / "examples" / "jobs.toml"


def _jobs() -> dict[str, Any]:
    data = tomllib.loads(JOBS.read_text(encoding="utf-8"))
    data["run"] |= {"operations": 1500}
    return data


def test_jobs_that_come_and_go(programs: ServerPrograms) -> None:
    """The example: two queues of one table, one by a partial index, one by its key."""
    proof = prove(parse_profile(_jobs()), server=str(programs.bin_dir))
    assert [(f.table, f.key, f.predicted, f.measured) for _, f in proof.beyond] == []


def test_another_plan_is_refused(programs: ServerPrograms) -> None:
    """While all rows are ready the key's index is as good and smaller: the planner takes that."""
    data = _jobs()
    data["table"][0]["indexes"][1] = {"name": "jobs_state", "columns": ["state", "id"]}
    # An index makes random values of the column's by default.
    data["table"][0]["columns"][1]["values"] = {"kind": "constant"}
    data["operation"][1]["pick"]["using"] = "jobs_state"
    with pytest.raises(MeasurementInvalid, match=r"expected Index Scan using .*jobs_state"):
        prove(parse_profile(data), server=str(programs.bin_dir))
