"""
How many checkpoints there were, and the WAL of the same time: one query, by version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_RESETS_APART_S = 60.0  # two views that are reset together differ by moments; arbitrary

_WAL = """
       (SELECT wal_bytes::float8 FROM pg_stat_wal) AS wal_bytes,
       (SELECT wal_fpi FROM pg_stat_wal) AS wal_fpi,
       (SELECT wal_buffers_full FROM pg_stat_wal) AS wal_buffers_full,
       (SELECT extract(epoch FROM stats_reset)::float8 FROM pg_stat_wal) AS wal_since_epoch_s"""
SQL = {
    15: f"""
SELECT 1 AS id, checkpoints_req AS requested, checkpoints_timed + checkpoints_req AS done,
       buffers_checkpoint AS buffers,
       extract(epoch FROM stats_reset)::float8 AS since_epoch_s,{_WAL}
FROM pg_stat_bgwriter
""",
    17: f"""
SELECT 1 AS id, num_requested AS requested, num_timed + num_requested AS done,
       buffers_written AS buffers,
       extract(epoch FROM stats_reset)::float8 AS since_epoch_s,{_WAL}
FROM pg_stat_checkpointer
""",
    # From 18 on those that had nothing to do are told apart.
    18: f"""
SELECT 1 AS id, num_requested AS requested, num_done AS done, buffers_written AS buffers,
       extract(epoch FROM stats_reset)::float8 AS since_epoch_s,{_WAL}
FROM pg_stat_checkpointer
""",
}
"""Columns requested, done, buffers (of checkpoints), wal_bytes, wal_fpi, wal_buffers_full, and
since when each view counts."""


def are_of_one_time(row: Mapping[str, Any]) -> bool:
    """Whether checkpoints and WAL have been counted since the same moment."""
    since, wal_since = row["since_epoch_s"], row["wal_since_epoch_s"]
    return since is None or wal_since is None or abs(since - wal_since) <= _RESETS_APART_S
