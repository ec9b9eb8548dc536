"""
What the counters of an interval and the layout decide of a table, before anything is played.
"""

from __future__ import annotations

from pgheadroom import _core
from pgheadroom.advise.decide import Decision, abstain, keep
from pgheadroom.advise.policy import Policy
from pgheadroom.advise.row import rows_per_page
from pgheadroom.advise.updates import updates_per_s
from pgheadroom.profile.observed_server import ObservedServer
from pgheadroom.profile.tables import TableProfile
from pgheadroom.quoting import called
from pgheadroom.units import PAGE_BYTES, percent, show_duration

UPDATES_MIN = 100
"""Fewer updates in an interval say too little about a table."""
_TRIVIAL_GB_DAYS = 0.02  # what cannot save this much a day is not worth a change
_PRUNE_WAL_BYTES = 60.0  # pages without room are pruned at every update, others seldom
_CHECKPOINT_S = 30.0  # the shortest distance that a server keeps by time
_PAGES_MIN = 100  # of fewer pages the last one and new ones are a part; arbitrary
_DENSER_FRAC, _DENSER_ROWS = 0.1, 0.5  # rows are an estimate, and of varying length; arbitrary
_NOT_HOT_WAL_BYTES = 2000.0  # an update that is not HOT, with its index entries: an upper bound


def without_curve(table: TableProfile, server: ObservedServer, policy: Policy) -> Decision | None:
    """
    What can be said of a table without playing it; None if it has to be played.

    Args:
        table: As observed.
        server: What was observed of the server.
        policy: In force.
    """
    assert table.observed is not None, "an observed profile"
    if server.in_recovery:
        return abstain("a standby counts no writes", settled_by="observe the primary")
    if server.broken:
        return abstain(f"the interval is broken, {server.broken[0]}", settled_by="observe again")
    if server.is_idle:
        return abstain(
            "nothing was written inside the interval", settled_by="observe while the work goes on"
        )
    rewritten = [text for text in server.changed if text.startswith(f"{_shown(table)} was")]
    if rewritten:
        return abstain(rewritten[0], settled_by="observe again")
    counters = table.observed.counters
    updates, hot = counters.n_tup_upd, counters.n_tup_hot_upd
    if updates is None or hot is None:
        return abstain(
            "its counters were reset inside the interval, or cannot be seen",
            settled_by="observe again, without a reset meanwhile",
        )
    if updates == 0:
        return keep(table, "nothing updated it inside the interval")
    bound = most(table, policy)
    if bound < _TRIVIAL_GB_DAYS:
        return keep(
            table,
            f"{updates_per_s(table):.3g} updates a second, {percent(hot / updates)} of them HOT: "
            "nothing that a fillfactor does would matter",
        )
    denser = _filled_before(table)
    if denser is not None:
        return abstain(
            denser,
            settled_by="rewrite it, or observe again once pages filled since are updated; verify "
            "follows a plan's setting until then",
        )
    if updates < UPDATES_MIN:
        return abstain(
            f"{updates} updates inside the interval, expected at least {UPDATES_MIN}",
            settled_by=f"observe for {_longer(server, updates)}",
        )
    return None


def _shown(table: TableProfile) -> str:
    assert table.observed is not None, "an observed profile"
    return called(table.observed.schema, table.observed.name)


def most(table: TableProfile, policy: Policy) -> float:
    """
    The most that any fillfactor could save a day, in the policy's unit.

    That is all WAL of updates that are not HOT, a pruning for each update, all room that is kept
    free, and the part of pages dirtied and their images that this room makes; 0 where nothing is
    known.
    """
    assert table.observed is not None, "an observed profile"
    counters = table.observed.counters
    updates, hot = counters.n_tup_upd, counters.n_tup_hot_upd
    if not updates or hot is None:
        return 0.0
    prices = policy.prices
    updates_a_day = updates_per_s(table) * 86_400
    not_hot_a_day = updates_a_day * max(0.0, 1 - hot / updates)
    per_update = prices.wal_gb * _NOT_HOT_WAL_BYTES / 1e9 + prices.written_mpages * 4 / 1e6
    heap_bytes = float(table.observed.main_bytes or 0)
    # Each page at most once a checkpoint distance, and not oftener than there are updates.
    dirtied_a_day = min(updates_per_s(table), heap_bytes / PAGE_BYTES / _CHECKPOINT_S) * 86_400
    per_page = prices.wal_gb * PAGE_BYTES / 1e9 + prices.written_mpages / 1e6
    reserved = (1 - table.fillfactor / 100) * (
        prices.kept_gb * heap_bytes / 1e9 + dirtied_a_day * per_page
    )
    pruned = updates_a_day * prices.wal_gb * _PRUNE_WAL_BYTES / 1e9
    return float(not_hot_a_day * per_update + reserved + pruned)


def _filled_before(table: TableProfile) -> str | None:
    """
    Whether pages hold more rows than the setting in force lets them have; None: they do not.

    Then it was set not long ago, and what was measured is of pages that were filled before: played
    at the setting, it would be told that much more room is needed.
    """
    assert table.observed is not None, "an observed profile"
    pages = float(table.observed.main_bytes or 0) / PAGE_BYTES
    if table.fillfactor == 100 or pages < _PAGES_MIN:
        return None
    most = max(rows_per_page(table, table.fillfactor), _inserted_per_page(table))
    found = table.rows / pages
    if found <= most + max(_DENSER_FRAC * most, _DENSER_ROWS):
        return None
    return (
        f"its pages hold {found:.3g} rows, and {most} is what they are filled with at fillfactor "
        f"{table.fillfactor}: they were filled before that was set, so what was measured is not "
        "what it gives"
    )


def _inserted_per_page(table: TableProfile) -> int:
    """Rows of the length at which they are inserted, where updates make them longer; 0: unknown."""
    fills = None if table.observed is None else table.observed.updates.fills
    if not fills or fills[0].aligned_bytes is None:
        return 0
    return _core.rows_per_page(round(fills[0].aligned_bytes[0]), table.fillfactor)


def _longer(server: ObservedServer, updates: float) -> str:
    return show_duration(float(server.interval_s) * UPDATES_MIN / updates * 1.5)
