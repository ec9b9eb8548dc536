"""Which part of a run a snapshot was held in, by what the server tells while it goes on."""

from __future__ import annotations

from typing import Any

import pytest

from pgheadroom.play.scripts import scripts, transactions_each
from pgheadroom.play.snapshots import RunProgress, SnapshotHolder
from pgheadroom.profile import Profile, parse_profile


def _profile(**run: Any) -> Profile:
    return parse_profile(
        {
            "schema_version": 1,
            "table": [{"name": "t", "rows": 10, "columns": [{"name": "a", "type": "int4"}]}],
            "operation": [{"table": "t", "kind": "insert"}],
            "run": {"snapshot": [{"start_frac": 0.2, "length_frac": 0.3}], **run},
        }
    )


class _Server:
    """It gives out transaction ids; nobody knows yet how many transactions have ended."""

    def __init__(self) -> None:
        self.xid = 1000
        self.ended = 0

    def execute(self, _sql: str) -> Any:
        return self

    def fetchone(self) -> tuple[int, int]:
        return self.xid, self.ended

    def close(self) -> None:
        """It ends."""


@pytest.mark.parametrize(
    ("run", "xids", "is_told"),
    [
        ({"operations": 1000}, 1000, True),
        ({"operations": 1000}, 1004, True),
        ({"operations": 1000}, 540, False),
        ({"duration_s": 5}, 540, False),
    ],
)
def test_ids_tell_of_a_run_in_which_every_transaction_takes_one(
    run: dict[str, Any], xids: int, is_told: bool
) -> None:
    """
    Of 8,000 transactions half took none, as they found no row.

    So a snapshot that began at 0.75 of the run was told to the twin as from 0.42 on.
    """
    server: Any = _Server()
    progress = RunProgress(_profile(**run), server)
    progress.start()
    server.xid += xids
    assert progress.is_told_by_xids() is is_told


def test_moments_are_kept_beside_shares() -> None:
    """One that is held to the end has no end; its share is 1."""
    server: Any = _Server()
    profile = _profile(operations=100)
    progress = RunProgress(profile, server)
    with SnapshotHolder(profile, lambda: server, progress) as holder:
        progress.start()
        for xid in (1010, 1021, 1040, 1052):
            server.xid = xid
            holder.step()
    assert holder.held == ((0.21, 0.52),)
    ((began_s, ended_s),) = holder.held_s
    assert began_s <= ended_s < float("inf")
    with SnapshotHolder(profile, lambda: server, progress) as endless:
        server.xid = 1030
        endless.step()
    assert endless.held == ((0.3, 1.0),)
    assert endless.held_s[0][1] == float("inf")


def _mixed() -> Profile:
    """Rows are found in two ways, inside blocks and outside."""
    key = {"name": "t_pkey", "columns": ["a"], "unique": True}
    columns = [{"name": name, "type": "int4"} for name in "ab"]
    read = {"table": "t", "kind": "select", "pick": {"distribution": "uniform"}}
    update = read | {"kind": "update", "sets": ["b"]}
    return parse_profile(
        {
            "schema_version": 1,
            "table": [{"name": "t", "rows": 10, "columns": columns, "indexes": [key]}],
            "operation": [
                read | {"weight": 2},
                update | {"find": "bitmap", "weight": 3},
                update | {"find": "seqscan", "transaction": "block"},
                read | {"transaction": "block"},
                read | {"find": "bitmap", "abort_frac": 0.5},
            ],
            "run": {"operations": 700, "snapshot": [{"start_frac": 0.2, "length_frac": 0.3}]},
        }
    )


def _ended_by(script: str) -> int:
    """Transactions of a script: its block, if it is one, or each statement."""
    sql = [line for line in script.splitlines() if not line.startswith("\\")]
    return 1 if "BEGIN;" in sql else len(sql)


def test_statements_outside_of_blocks_are_transactions() -> None:
    """
    A server counts each SET that switches how the next statement finds its rows.

    1201001-149 of make fuzz: a snapshot that was due at 0.79 of the run was taken at 0.31 of it,
    and by the same count held to 0.82, which the twin was told.
    """
    profile = _mixed()
    of_scripts = scripts(profile)
    weights = sum(script.weight for script in of_scripts)
    ended = sum(script.weight * _ended_by(script.text) for script in of_scripts)
    assert ended / weights == transactions_each(profile) > 1
    server: Any = _Server()
    progress = RunProgress(profile, server)
    progress.start()
    server.ended = round(350 * transactions_each(profile))
    assert progress.now() == pytest.approx(0.5, abs=0.001)
