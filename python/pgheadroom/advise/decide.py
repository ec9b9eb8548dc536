"""
From a curve to a verdict: CHANGE, KEEP or ABSTAIN, with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pgheadroom.advise.curve import Costed
from pgheadroom.advise.duration import HORIZON_S
from pgheadroom.advise.foreseen import Calibration
from pgheadroom.advise.gain import drawn, gain_of, grows_frac, moves, not_more_than_missed
from pgheadroom.advise.policy import Policy
from pgheadroom.advise.reasons import (
    shown_ends,
    why_change,
    why_keep,
    why_not_lost,
    why_not_repeated,
    why_not_rewritten,
)
from pgheadroom.advise.row import rows_per_page
from pgheadroom.advise.table_advice import AdviceVerdict
from pgheadroom.advise.updates import updates_per_s
from pgheadroom.advise.worth import mean, pays_for_rewrite, wanted_frac, weighed
from pgheadroom.outcome import Value
from pgheadroom.profile.tables import TableProfile
from pgheadroom.types import Interval
from pgheadroom.units import PAGE_BYTES, show_duration

_OFF_MAX = 0.10  # a twin that misses the observed HOT share by more is no ground for advice


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """
    A verdict, its reason, the advised setting and what it saves of the cost.

    `compared` is the setting that was held against the one in force, None where none was; `is_near`
    says that the verdict hangs on what chance did in the runs: more of them may give another.
    """

    verdict: AdviceVerdict
    reason: str
    fillfactor: int | None
    gain_frac: Value = None
    compared: int | None = None
    is_near: bool = False


def keep(table: TableProfile, reason: str, gain: Value = None) -> Decision:
    """Leave it."""
    return Decision(verdict="KEEP", reason=reason, fillfactor=table.fillfactor, gain_frac=gain)


def abstain(found: str, *, settled_by: str) -> Decision:
    """Say nothing: why, and what would settle it."""
    return Decision(verdict="ABSTAIN", reason=f"{found}: {settled_by}", fillfactor=None)


def decide(
    table: TableProfile,
    calibration: Calibration,
    off: float,
    curve: Sequence[Costed],
    policy: Policy,
    *,
    growth_bytes: float = 0.0,
    width: float = 0.0,
) -> Decision:
    """
    Pick a point of the curve by the policy.

    Args:
        table: As observed.
        calibration: How well the twin repeats it.
        off: By how much it misses the observed HOT share.
        curve: Points with their costs; the setting in force is among them.
        policy: In force.
        growth_bytes: By which its rows grow at each update.
        width: By how much less sure HOT is, for what the twin does not play.
    """
    unsure = math.hypot(off, width)
    off_too_far = not_repeated(table, calibration, off)
    if off_too_far is not None:
        return off_too_far
    now = next(found for found in curve if found.point.fillfactor == table.fillfactor)
    allowed = [found for found in curve if _is_allowed(found, now, policy)]
    lasting = [found for found in allowed if found is now or _lasts(table, found, growth_bytes)]
    if len(lasting) < len(allowed):
        least = min(allowed, key=lambda found: weighed(found, now, policy))
        if least not in lasting:
            return keep(table, _why_growth(table, least, growth_bytes))
    allowed = lasting
    least = min(allowed, key=lambda found: weighed(found, now, policy))
    # Of points that cost the same within half of what a change must save, the nearest to now.
    slack = weighed(least, now, policy) + 0.5 * policy.min_gain_frac
    near = [found for found in allowed if weighed(found, now, policy) <= slack]
    best = min(near, key=lambda found: abs(found.point.fillfactor - table.fillfactor))
    if best is now:
        gain = gain_of(now, least, math.hypot(unsure, moves(now), moves(least)))
        return keep(table, why_keep(now, least, gain, policy), gain)
    # A table loaded at 100 first pays for the way to its steady state: rows give pages up.
    roomy = [found for found in near if found.point.fillfactor < 100]
    best = max(roomy or near, key=lambda found: found.point.fillfactor)
    doubt = math.hypot(unsure, moves(now), moves(best))
    found = _against(table, calibration, now, best, policy, doubt)
    is_near = _is_near(calibration, now, best, policy, doubt)
    if is_near and found.verdict == "CHANGE":
        saved = found.gain_frac
        assert isinstance(saved, Interval), "a change has a gain"
        found = replace(found, reason=f"{found.reason}, near its error ({shown_ends(saved)})")
    elif is_near:
        said = f"{found.reason}; near the threshold: a longer interval tells"
        found = replace(found, reason=said)
    return replace(found, compared=best.point.fillfactor, is_near=is_near)


def _against(
    table: TableProfile,
    calibration: Calibration,
    now: Costed,
    best: Costed,
    policy: Policy,
    doubt: float,
) -> Decision:
    """The best other setting against the one in force."""
    foreseen = gain_of(now, best, doubt)
    gain = not_more_than_missed(foreseen, calibration, now, best, doubt)
    wanted = wanted_frac(now, best, policy)
    if gain.low <= 0 < foreseen.low and foreseen.mid >= wanted:
        return keep(table, why_not_lost(calibration, now, best, gain), gain)
    if gain.mid < wanted or gain.low <= 0:
        return keep(table, why_keep(now, best, gain, policy), gain)
    if not pays_for_rewrite(now, best, gain, policy):
        return keep(table, why_not_rewritten(now, best, gain), gain)
    return Decision(
        verdict="CHANGE",
        reason=why_change(now, best, gain),
        fillfactor=best.point.fillfactor,
        gain_frac=gain,
    )


def against(
    table: TableProfile,
    calibration: Calibration,
    off: float,
    curve: Sequence[Costed],
    policy: Policy,
    fillfactor: int,
    *,
    width: float = 0.0,
) -> Decision:
    """
    One fillfactor of a curve against the one in force: CHANGE to it, or KEEP.

    The rest as for `decide`.
    """
    points = {found.point.fillfactor: found for found in curve}
    now, then = points[table.fillfactor], points.get(fillfactor)
    if then is None or then is now:
        return keep(table, f"{fillfactor} was not tried")
    doubt = math.hypot(off, width, moves(now), moves(then))
    found = _against(table, calibration, now, then, policy, doubt)
    return replace(found, compared=fillfactor)


def _is_near(
    calibration: Calibration, now: Costed, best: Costed, policy: Policy, doubt: float
) -> bool:
    """Whether runs that differ by nothing, or by twice as much, would have another verdict."""
    wanted = wanted_frac(now, best, policy)

    def changes(chance: float) -> bool:
        foreseen = gain_of(now, best, doubt, chance=chance)
        gain = not_more_than_missed(foreseen, calibration, now, best, doubt, chance=chance)
        return gain.mid >= wanted and gain.low > 0

    middle = 1 - mean(best.costs) / mean(now.costs) if mean(now.costs) else 0.0
    return changes(0.0) != changes(2.0) or abs(middle - wanted) < drawn(now, best)


def not_repeated(table: TableProfile, calibration: Calibration, off: float) -> Decision | None:
    """No answer by a twin that misses what was measured by too much; None where it does not."""
    if off <= _OFF_MAX:
        return None
    return abstain(
        why_not_repeated(table, calibration),
        settled_by="a longer interval, statements (pg_stat_statements, the server's log) and "
        "samples of rows tell more of what it does",
    )


def _is_allowed(found: Costed, now: Costed, policy: Policy) -> bool:
    if found is now or policy.max_growth_frac is None:
        return True
    grows = grows_frac(now.point.heap_bytes, found.point.heap_bytes)
    return grows is not None and grows <= policy.max_growth_frac


def _lasts(table: TableProfile, found: Costed, growth_bytes: float) -> bool:
    """Whether growing rows leave the room of a fillfactor for a month."""
    return _lasts_s(table, found.point.fillfactor, growth_bytes) >= HORIZON_S


def _lasts_s(table: TableProfile, fillfactor: int, growth_bytes: float) -> float:
    """Seconds until growing rows have filled what a fillfactor leaves free."""
    updates_per_row_s = updates_per_s(table) / table.rows
    if growth_bytes <= 0 or updates_per_row_s <= 0 or fillfactor == 100:
        return math.inf
    free_bytes = (100 - fillfactor) / 100 * PAGE_BYTES
    rows = rows_per_page(table, fillfactor)
    return free_bytes / rows / growth_bytes / updates_per_row_s


def _why_growth(table: TableProfile, found: Costed, growth_bytes: float) -> str:
    lasts_s = _lasts_s(table, found.point.fillfactor, growth_bytes)
    return (
        f"its rows grow by about {growth_bytes:.2g} bytes an update: what fillfactor "
        f"{found.point.fillfactor} leaves free is used up within {show_duration(lasts_s)}"
    )
