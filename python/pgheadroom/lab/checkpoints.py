"""
Checkpoints: forced before a window, counted inside it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pgheadroom.errors import MeasurementInvalid
from pgheadroom.types import PgVersion

if TYPE_CHECKING:
    import psycopg

COUNTED_WITHIN_S = 30.0
_POLL_S = 0.002


def checkpoints_begun(connection: psycopg.Connection[Any], version: PgVersion) -> int:
    """Checkpoints that the server has begun so far, whatever asked for them."""
    # They moved to a view of their own in 17.
    query = (
        "SELECT num_timed + num_requested FROM pg_stat_checkpointer"
        if version.major >= 17
        else "SELECT checkpoints_timed + checkpoints_req FROM pg_stat_bgwriter"
    )
    row = connection.execute(query.encode()).fetchone()
    assert row is not None, "the view has one row"
    return int(row[0])


def checkpoint(connection: psycopg.Connection[Any], version: PgVersion) -> None:
    """
    Force a checkpoint, and wait until the server's counters have it.

    The checkpointer wakes who asked before it reports (`CheckpointerMain`, checkpointer.c,
    REL_18_STABLE): a window that begins at once would be charged with it.

    Args:
        connection: In autocommit mode, of a role that may force checkpoints.
        version: The server's.

    Raises:
        MeasurementInvalid: It is not counted within `COUNTED_WITHIN_S`.
    """
    before = checkpoints_begun(connection, version)
    connection.execute("CHECKPOINT")
    deadline = time.monotonic() + COUNTED_WITHIN_S
    while checkpoints_begun(connection, version) == before:
        if time.monotonic() > deadline:
            raise MeasurementInvalid(
                f"{COUNTED_WITHIN_S:.0f} s after a CHECKPOINT the server's counter of checkpoints "
                f"still says {before}: look into the server's log for what holds its checkpointer"
            )
        time.sleep(_POLL_S)
