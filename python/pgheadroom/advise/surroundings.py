"""
What a table has around it while it is played: checkpoints, and who holds the cleanup horizon.

Of all that other tables do, these two alone decide where row versions go; both are as observed.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

from pgheadroom.profile import Profile, ServerSettings, Snapshot
from pgheadroom.units import percent

_CHECKPOINT_COMPLETION = 0.9
_CHECKPOINT_S_MIN, _CHECKPOINT_S_MAX = 30.0, 86_400.0
SNAPSHOTS_MAX = 400
_MOMENTS_MIN = 5  # fewer looks at the horizon say nothing; arbitrary


def server_of(server: ServerSettings) -> tuple[ServerSettings, str]:
    """The server with checkpoints as far apart as they were, by time or by WAL, and which."""
    assert server.observed is not None, "an observed profile"
    found, by = _checkpoint_s(server)
    made = replace(
        server,
        checkpoint_interval_s=min(max(found, _CHECKPOINT_S_MIN), _CHECKPOINT_S_MAX),
        max_wal_size_bytes=None,
        observed=None,
    )
    return made, f"checkpoints every {found:.0f} s, {by}"


def _checkpoint_s(server: ServerSettings) -> tuple[float, str]:
    """Seconds between checkpoints: as counted where several were, else by time and WAL."""
    assert server.observed is not None, "an observed profile"
    counters = server.observed.counters
    interval_s = float(server.observed.interval_s)
    seen = counters.checkpoint
    number = 0 if seen is None else int(seen.num_timed or 0) + int(seen.num_requested or 0)
    timeout_s = server.checkpoint_interval_s or 300.0
    if number >= 3:
        return interval_s / number, "as counted in the interval"
    found = timeout_s
    wal_bytes_per_s = float(counters.wal_bytes_per_s or 0.0)
    if server.max_wal_size_bytes is not None and wal_bytes_per_s > 0:
        # CalculateCheckpointSegments, src/backend/access/transam/xlog.c
        by_wal = server.max_wal_size_bytes / (1 + _CHECKPOINT_COMPLETION) / wal_bytes_per_s
        found = min(found, by_wal)
    return found, "by checkpoint_timeout and max_wal_size"


def snapshots_of(
    profile: Profile, held_s: float | None, duration_s: float
) -> tuple[tuple[Snapshot, ...], tuple[str, ...]]:
    """Who holds the horizon for so long, in between free as observed; and that in a sentence."""
    part = 1.0
    if held_s is None:
        held_s, part = observed_hold_s(profile), observed_hold_frac(profile)
    if held_s <= 0 or part <= 0:
        return (), ()
    held_s = max(held_s, part * duration_s / SNAPSHOTS_MAX)
    said = f"the cleanup horizon is held for {held_s:.0f} s at a time, {percent(part)} of the time"
    every = held_s / part / duration_s
    starts = [n * every for n in range(math.ceil(1 / every))]
    held = tuple(
        Snapshot(
            start_frac=start,
            length_frac=max(0.0, min(held_s / duration_s, 1 - start) - 1e-9),
        )
        for start in starts
        if start < 1
    )
    return held, (said,)


def observed_hold_frac(profile: Profile) -> float:
    """In which part of the interval the horizon stood still, by the observation."""
    observed = profile.server.observed
    assert observed is not None, "an observed profile"
    found = math.fsum(part.length_frac for part in observed.horizon.stood_still)
    return min(1.0, found)


def may_be_held(profile: Profile, hold_s: float) -> bool:
    """
    Whether the horizon may have been held so long at a time, one holder after another.

    Each look would then find a holder, and most of them the one before found too. An interval of
    less than two holds has at least half of itself within one of them.
    """
    observed = profile.server.observed
    assert observed is not None, "an observed profile"
    looks = [
        (moment.at_s, moment.oldest_xid)
        for moment in observed.horizon.series or ()
        if moment.at_s is not None
    ]
    if len(looks) < _MOMENTS_MIN:
        return True
    if sum(oldest is not None for _, oldest in looks) < len(looks) / 2:
        return False
    apart_s = max(after - before for (before, _), (after, _) in pairwise(looks))
    longest_s, begin_s, held = 0.0, 0.0, None
    for at_s, oldest in looks:
        if oldest is None or oldest != held:
            begin_s, held = at_s, oldest
        longest_s = max(longest_s, at_s - begin_s)
    return longest_s >= min(hold_s, float(observed.interval_s) / 2) - 2 * apart_s


def observed_hold_s(profile: Profile) -> float:
    """For how long the horizon stood still at a time, by the observation; 0: it did not."""
    observed = profile.server.observed
    assert observed is not None, "an observed profile"
    still = observed.horizon.stood_still
    if not still:
        return 0.0
    interval_s = float(observed.interval_s)
    longest = max(part.length_frac for part in still) * interval_s
    ages = [
        holder.transaction_age_s
        for holder in observed.horizon.holders
        if holder.transaction_age_s is not None and holder.holds_data
    ]
    return max(longest, *ages) if ages else longest
