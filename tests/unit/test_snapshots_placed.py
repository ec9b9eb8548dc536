"""Which part of a run a snapshot was held in, by what the server tells while it goes on."""

from __future__ import annotations

from typing import Any

import pytest

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

    def execute(self, _sql: str) -> Any:
        return self

    def fetchone(self) -> tuple[int, int]:
        return self.xid, 0

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
