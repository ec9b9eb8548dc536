"""
Foreign keys on real servers: with one client every figure of the twin is the server's.

What each rule does is in `golden/scenarios/fk-*.toml`; these are whole profiles.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from pgheadroom.errors import MeasurementInvalid
from pgheadroom.profile import parse_profile
from pgheadroom.prove import Proof, prove
from pgheadroom.servers import ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

ORDERS = Path(__file__).parents[2] / "examples" / "orders.toml"


def _orders(**run: Any) -> dict[str, Any]:
    data = tomllib.loads(ORDERS.read_text(encoding="utf-8"))
    data["run"] |= {"operations": 1500} | run
    return data


def _differing(proof: Proof) -> list[tuple[Any, ...]]:
    return [(f.table, f.key, f.predicted, f.measured) for _, f in proof.beyond]


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read"])
def test_orders_and_their_lines(programs: ServerPrograms, isolation: str) -> None:
    """The example: an order, its lines and the user's count in one transaction."""
    profile = parse_profile(_orders(isolation=isolation))
    proof = prove(profile, server=str(programs.bin_dir))
    assert _differing(proof) == []


def test_a_check_by_another_index_is_refused(programs: ServerPrograms) -> None:
    """The row would be found another way, which nobody has foreseen."""
    data = _orders()
    # Of two indexes that serve alike the planner takes the last.
    data["table"][0]["indexes"].append({"name": "users_other", "columns": ["id"]})
    with pytest.raises(MeasurementInvalid, match="users_pkey"):
        prove(parse_profile(data), server=str(programs.bin_dir))
