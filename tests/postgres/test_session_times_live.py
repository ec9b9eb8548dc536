"""What the sessions of a real server's clients spent their time on."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pgheadroom.play import play
from pgheadroom.profile import parse_profile
from pgheadroom.prove import prove
from pgheadroom.servers import ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

CLIENTS = 3
OPERATIONS = 3000


def _profile(*, in_transaction: bool, **run: Any) -> dict[str, Any]:
    key = {"name": "t_pkey", "columns": ["id"], "unique": True}
    columns = [{"name": "id", "type": "int4"}, {"name": "n", "type": "int4"}]
    pick = {"distribution": "uniform"}
    update: dict[str, Any] = {"table": "t", "kind": "update", "sets": ["n"], "pick": pick}
    if in_transaction:
        update["transaction"] = "one"
    return {
        "schema_version": 1,
        "table": [{"name": "t", "rows": 3000, "columns": columns, "indexes": [key]}],
        "operation": [update],
        "run": {"operations": OPERATIONS, "clients": CLIENTS} | run,
    }


@pytest.mark.parametrize("in_transaction", [False, True])
def test_times_are_those_of_the_clients(programs: ServerPrograms, *, in_transaction: bool) -> None:
    """No part is negative, all together are no longer than the clients were there."""
    profile = parse_profile(_profile(in_transaction=in_transaction))
    run = play(profile, server=str(programs.bin_dir))
    times = run.session_times
    assert times is not None
    assert times.at_work_s is not None
    assert times.between_s is not None
    # A session that has sent BEGIN is idle in a transaction until its statement comes.
    assert (times.in_transaction_s > 0) == in_transaction
    together = times.at_work_s + times.in_transaction_s + times.between_s
    assert together <= CLIENTS * run.duration_s


def test_a_scan_takes_as_long_as_the_twin_has_it(programs: ServerPrograms) -> None:
    """By a scan of 24,000 rows an UPDATE by key is as long as by itself, within a factor."""

    def statement_us(find: str, operations: int) -> float:
        profile = _profile(in_transaction=True, operations=operations, clients=2)
        profile["table"][0]["rows"] = 24_000
        profile["operation"][0]["find"] = find
        proof = prove(parse_profile(profile), server=str(programs.bin_dir))
        found = re.search(r"took ([\d.e+]+) us", str(proof.assumed["cells[0].machine"]))
        assert found is not None
        return float(found[1])

    by_scan, by_key = statement_us("seqscan", 400), statement_us("index", 4000)
    assert by_key / 8 < by_scan < by_key * 8


def test_a_session_beside_the_clients_leaves_nothing_to_tell(programs: ServerPrograms) -> None:
    """The server adds its times to theirs."""
    snapshot = {"start_frac": 0.2, "length_frac": 0.2}
    profile = parse_profile(_profile(in_transaction=True, snapshot=[snapshot]))
    assert play(profile, server=str(programs.bin_dir)).session_times is None


def test_a_proof_says_which_machine_it_had(programs: ServerPrograms) -> None:
    """Beside what it was told of the clients' course."""
    proof = prove(parse_profile(_profile(in_transaction=True)), server=str(programs.bin_dir))
    assert "within one" in str(proof.assumed["cells[0].machine"])
