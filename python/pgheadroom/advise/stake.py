"""
The WAL at stake: what a table writes because updates of it were not HOT.

By it tables are played one after another: where most is to be won, first. What is only taken from
counters is an estimate; that decides about an order, and about nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pgheadroom.advise.cold_updates import Cause
from pgheadroom.advise.log_wal import log_wal
from pgheadroom.advise.row import prune_bytes, same_page_bytes, wal_level_of
from pgheadroom.advise.updates import Updates
from pgheadroom.outcome import mid
from pgheadroom.profile import TableProfile
from pgheadroom.profile.observed_server import ObservedServer

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stake:
    """
    WAL a day that HOT would save.

    Attributes:
        wal_bytes_per_day: Beyond what the same updates would write as HOT ones.
        evidence: `measured` where the statements' own WAL was counted, images included, of which
            this is the part by counters and layout; `estimated` by these alone.
    """

    wal_bytes_per_day: float
    evidence: Literal["measured", "estimated"]


NOTHING = Stake(wal_bytes_per_day=0.0, evidence="estimated")
"""Of a table without updates."""


def stake_of(
    table: TableProfile,
    updates: Updates | None,
    causes: Sequence[Cause],
    server: ObservedServer | None,
) -> Stake:
    """
    What a table writes beyond HOT.

    Args:
        table: As observed.
        updates: Of its interval; None without.
        causes: The same by cause, with the WAL of each.
        server: `[server.observed]`, for wal_level.
    """
    interval_s = interval_of(table)
    if updates is None or interval_s is None:
        return NOTHING
    each = hot_bytes(table, updates, wal_level_of(server))
    total = sum(mid(cause.wal_bytes) for cause in causes)
    beyond = sum(
        max(mid(cause.wal_bytes) - each * mid(cause.updates), 0.0)
        for cause in causes
        if cause.kind != "hot"
    )
    if total <= 0 or beyond <= 0:
        return NOTHING
    measured = measured_bytes(table, updates)
    found = beyond if measured is None else beyond / total * measured
    return Stake(
        wal_bytes_per_day=found * DAY_S / interval_s,
        evidence="estimated" if measured is None else "measured",
    )


def interval_of(table: TableProfile) -> float | None:
    """Seconds in which its updates were counted; None without updates."""
    if table.observed is None:
        return None
    count = table.observed.counters.n_tup_upd
    per_s = table.observed.per_s.n_tup_upd
    return float(count) / float(per_s) if count and per_s else None


def hot_bytes(table: TableProfile, updates: Updates, wal_level: str) -> float:
    """WAL of an update of this table if it is HOT, without images: the mean of the classes."""
    chosen = [(c.rows, c.columns) for c in updates.classes if c.rows > 0] or [(1.0, frozenset())]
    whole = sum(rows for rows, _ in chosen)
    heap = sum(
        rows / whole * same_page_bytes(table, columns, wal_level=wal_level).mid
        for rows, columns in chosen
    )
    return heap + prune_bytes().mid


def measured_bytes(table: TableProfile, updates: Updates) -> float | None:
    """
    WAL that statements which update the table wrote in the interval; None where nobody counted.

    By the log where it was read; else blown up to all updates where classes account for a part of
    them.
    """
    logged = log_wal(table)
    if logged is not None:
        return logged.with_images_bytes * updates.count / logged.updates
    listed = () if table.observed is None else table.observed.updates.classes
    known = [c for c in listed if c.wal_bytes is not None and c.rows]
    rows = sum(c.rows or 0 for c in known)
    if not rows or len(known) < len(listed) or any(c.kind != "update" for c in known):
        return None
    return sum(float(c.wal_bytes or 0) for c in known) * updates.count / rows
