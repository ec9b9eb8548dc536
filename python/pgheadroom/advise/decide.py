"""
From a curve to a verdict: CHANGE, KEEP or ABSTAIN, with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pgheadroom import _core
from pgheadroom.advise.advice import Calibration, Verdict, mid
from pgheadroom.advise.curve import Costed
from pgheadroom.advise.policy import Policy
from pgheadroom.advise.row import rows_per_page
from pgheadroom.advise.scenario import HORIZON_S
from pgheadroom.advise.worth import (
    IMAGES_UNSURE,
    growth_frac,
    images_frac,
    is_by_images,
    mean,
    pays_for_rewrite,
    wanted_frac,
    weighed,
)
from pgheadroom.outcome import Value, middle
from pgheadroom.predict.spread import LEVEL, students_t
from pgheadroom.profile.observed_server import ObservedServer
from pgheadroom.profile.tables import TableProfile
from pgheadroom.types import Interval
from pgheadroom.units import PAGE_BYTES, show_bytes, show_duration, show_share, show_shares

UPDATES_MIN = 100
"""Fewer updates in an interval say too little about a table."""

_OFF_MAX = 0.10  # a twin that misses the observed HOT share by more is no ground for advice
_MISSED_WITHIN = 0.005  # shares of updates that miss HOT and differ by less are the same
_MODEL_GAIN = 0.01  # of the cost: the model's own error where two fillfactors are compared
_TRIVIAL_GB_DAYS = 0.02  # what cannot save this much a day is not worth a change
_PRUNE_WAL_BYTES = 60.0  # pages without room are pruned at every update, others seldom
_CHECKPOINT_S = 30.0  # the shortest distance that a server keeps by time
_PAGES_MIN = 100  # of fewer pages the last one and new ones are a part; arbitrary
_DENSER_FRAC, _DENSER_ROWS = 0.1, 0.5  # rows are an estimate, and of varying length; arbitrary
_NOT_HOT_WAL_BYTES = 2000.0  # an update that is not HOT, with its index entries: an upper bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """
    A verdict, its reason, the advised setting and what it saves of the cost.

    `compared` is the setting that was held against the one in force, None where none was; `is_near`
    says that the verdict hangs on what chance did in the runs: more of them may give another.
    """

    verdict: Verdict
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
            f"{_rate(table):.3g} updates a second, {hot / updates:.0%} of them HOT: nothing that "
            "a fillfactor does would matter",
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
    schema, name = table.observed.schema, table.observed.name
    return str(name) if schema == "public" else f"{schema}.{name}"


def _rate(table: TableProfile) -> float:
    assert table.observed is not None, "an observed profile"
    return float(table.observed.per_s.n_tup_upd or 0.0)


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
    updates_a_day = _rate(table) * 86_400
    not_hot_a_day = updates_a_day * max(0.0, 1 - hot / updates)
    per_update = prices.wal_gb * _NOT_HOT_WAL_BYTES / 1e9 + prices.written_mpages * 4 / 1e6
    heap_bytes = float(table.observed.main_bytes or 0)
    # Each page at most once a checkpoint distance, and not oftener than there are updates.
    dirtied_a_day = min(_rate(table), heap_bytes / PAGE_BYTES / _CHECKPOINT_S) * 86_400
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
        gain = _gain(now, least, math.hypot(unsure, _moves(now), _moves(least)))
        return keep(table, _why_keep(now, least, gain, policy), gain)
    # A table loaded at 100 first pays for the way to its steady state: rows give pages up.
    roomy = [found for found in near if found.point.fillfactor < 100]
    best = max(roomy or near, key=lambda found: found.point.fillfactor)
    doubt = math.hypot(unsure, _moves(now), _moves(best))
    found = _against(table, calibration, now, best, policy, doubt)
    is_near = _is_near(calibration, now, best, policy, doubt)
    if is_near and found.verdict == "CHANGE":
        saved = found.gain_frac
        assert isinstance(saved, Interval), "a change has a gain"
        found = replace(found, reason=f"{found.reason}, near its error ({_ends(saved)})")
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
    foreseen = _gain(now, best, doubt)
    gain = _not_more_than_missed(foreseen, calibration, now, best, doubt)
    wanted = wanted_frac(now, best, policy)
    if gain.low <= 0 < foreseen.low and foreseen.mid >= wanted:
        return keep(table, _why_not_lost(calibration, now, best, gain), gain)
    if gain.mid < wanted or gain.low <= 0:
        return keep(table, _why_keep(now, best, gain, policy), gain)
    if not pays_for_rewrite(now, best, gain, policy):
        return keep(table, _why_not_rewritten(now, best, gain), gain)
    return Decision(
        verdict="CHANGE",
        reason=_why_change(now, best, gain),
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
    doubt = math.hypot(off, width, _moves(now), _moves(then))
    found = _against(table, calibration, now, then, policy, doubt)
    return replace(found, compared=fillfactor)


def _is_near(
    calibration: Calibration, now: Costed, best: Costed, policy: Policy, doubt: float
) -> bool:
    """Whether runs that differ by nothing, or by twice as much, would have another verdict."""
    wanted = wanted_frac(now, best, policy)

    def changes(chance: float) -> bool:
        foreseen = _gain(now, best, doubt, chance=chance)
        gain = _not_more_than_missed(foreseen, calibration, now, best, doubt, chance=chance)
        return gain.mid >= wanted and gain.low > 0

    middle = 1 - mean(best.costs) / mean(now.costs) if mean(now.costs) else 0.0
    return changes(0.0) != changes(2.0) or abs(middle - wanted) < _drawn(now, best)


def not_repeated(table: TableProfile, calibration: Calibration, off: float) -> Decision | None:
    """No answer by a twin that misses what was measured by too much; None where it does not."""
    if off <= _OFF_MAX:
        return None
    return abstain(
        _why_not_repeated(table, calibration),
        settled_by="a longer interval, statements (pg_stat_statements, --log) and samples of "
        "rows tell more of what it does",
    )


def _why_not_repeated(table: TableProfile, calibration: Calibration) -> str:
    observed, foreseen = calibration.observed_hot_frac, mid(calibration.predicted_hot_frac)
    assert observed is not None, "a table with updates"
    off = 100 * abs(foreseen - observed)
    text = f"the twin does not repeat what was measured, {observed:.0%} HOT"
    if calibration.observed_newpage_frac is not None:
        moved = mid(calibration.predicted_newpage_frac)
        text += f" and {calibration.observed_newpage_frac:.0%} on new pages"
        off = max(off, 100 * abs(moved - calibration.observed_newpage_frac))
    return f"{text} at fillfactor {table.fillfactor}: it is off by {off:.0f} points"


def _is_allowed(found: Costed, now: Costed, policy: Policy) -> bool:
    if found is now or policy.max_growth_frac is None:
        return True
    grows = _more(now.point.heap_bytes, found.point.heap_bytes)
    return grows is not None and grows <= policy.max_growth_frac


def _lasts(table: TableProfile, found: Costed, growth_bytes: float) -> bool:
    """Whether growing rows leave the room of a fillfactor for a month."""
    return _lasts_s(table, found.point.fillfactor, growth_bytes) >= HORIZON_S


def _lasts_s(table: TableProfile, fillfactor: int, growth_bytes: float) -> float:
    """Seconds until growing rows have filled what a fillfactor leaves free."""
    updates_per_row_s = _rate(table) / table.rows
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


def _moves(found: Costed) -> float:
    """By how much its HOT share still moves where its run was ended."""
    seen = found.point.hot_frac_seen
    return seen.high - seen.low if isinstance(seen, Interval) else 0.0


def _long_run(found: Costed, *beside: float) -> str:
    """Its HOT share in the long run, or that nobody has seen that."""
    share, seen = mid(found.point.hot_frac), found.point.hot_frac_seen
    ends = (seen.low, seen.high) if isinstance(seen, Interval) else ()
    shown, *_ = show_shares(share, *beside)
    if ends:
        low, high = show_shares(*ends, share, *beside)[:2]
        said = f" ({low} to {high} seen)" if low != high else ""
        return f"{shown} HOT, not settled{said}"
    return f"{shown} HOT in the long run"


def _gains(now: Costed, then: Costed) -> list[float]:
    """The parts of the cost that are saved, from runs with the same seeds."""
    # One of the two may have been played oftener.
    return [
        1 - after / before if before else 0.0
        for before, after in zip(now.costs, then.costs, strict=False)
    ]


def _drawn(now: Costed, then: Costed) -> float:
    """By how much chance in the runs may be off, to either side."""
    gains = _gains(now, then)
    if len(gains) < 2:
        return 0.0
    middle = mean(gains)
    variance = math.fsum((gain - middle) ** 2 for gain in gains) / (len(gains) - 1)
    return students_t(len(gains) - 1) * math.sqrt(variance / len(gains))


def _gain(
    now: Costed, then: Costed, off: float, *, part: float = 1.0, chance: float = 1.0
) -> Interval:
    """
    The part of the cost that is saved; or some of that.

    Args:
        now: The setting in force.
        then: Another one.
        off: By how much a HOT share may be off.
        part: So much of the saving, and of its error.
        chance: So much of what chance does.
    """
    middle = part * mean(_gains(now, then))
    # An update that is not HOT costs about twice as much as one that is, so a share that is off
    # moves the cost by as much.
    half = math.hypot(
        part * chance * _drawn(now, then),
        _MODEL_GAIN,
        off,
        part * IMAGES_UNSURE * images_frac(now, then),
    )
    return Interval(low=middle - half, mid=middle, high=middle + half, level=LEVEL)


def _not_more_than_missed(
    gain: Interval,
    calibration: Calibration,
    now: Costed,
    then: Costed,
    off: float,
    *,
    chance: float = 1.0,
) -> Interval:
    """
    The gain, with a lower end that fits the updates that really missed HOT.

    What a change saves by HOT comes from updates that are not HOT now. Where the twin has more of
    them at the setting in force than were observed, at the moment that it compares or in the long
    run, it may save in proportion less: a table whose pages have had their one update that is not
    HOT may lose a few more rows when line pointers have grown, which is over after that.
    """
    observed, foreseen = calibration.observed_hot_frac, mid(calibration.predicted_hot_frac)
    if observed is None or mid(then.point.hot_frac) <= mid(now.point.hot_frac):
        return gain
    missed, taken = 1 - observed, 1 - min(foreseen, mid(now.point.hot_frac))
    if taken - missed <= _MISSED_WITHIN:
        return gain
    least = _gain(now, then, off, part=missed / taken, chance=chance)
    return replace(gain, low=min(gain.low, least.low))


def _why_not_lost(calibration: Calibration, now: Costed, then: Costed, gain: Interval) -> str:
    assert calibration.observed_hot_frac is not None, "a table with updates"
    foreseen, measured = show_shares(mid(now.point.hot_frac), calibration.observed_hot_frac)
    return (
        f"{then.point.fillfactor} would save {gain.mid:.1%} of the cost by HOT updates that "
        f"{now.point.fillfactor} is foreseen to lose ({foreseen} "
        f"{'in the long run' if now.point.is_settled else 'so far, not settled'}), but so many are "
        f"not lost: {measured} measured"
    )


def _why_keep(now: Costed, then: Costed, gain: Interval, policy: Policy) -> str:
    if then is now:
        if middle(now.point.hot_frac) is None:
            return "nothing tried costs less"
        return f"nothing tried costs less: {_long_run(now)} at {now.point.fillfactor}"
    trade = _instead(now, then)
    size = mid(then.point.heap_bytes) - mid(now.point.heap_bytes)
    if size and middle(now.point.heap_bytes) is not None:
        trade += f", {show_bytes(abs(size))} {'more' if size > 0 else 'less'}"
    wanted = wanted_frac(now, then, policy)
    if gain.mid < wanted:
        best = f"the best other setting, {then.point.fillfactor}, would save {gain.mid:.1%} of the"
        if gain.mid < policy.min_gain_frac:
            return f"{best} cost ({trade}): less than {policy.min_gain_frac:.0%}"
        if is_by_images(now, then, policy):
            return (
                f"{best} cost by full-page images alone ({trade}): less than {wanted:.0%}, and "
                "checkpoints that are farther apart save the same"
            )
        grows = growth_frac(now, then)
        return f"{best} cost ({trade}): less than {wanted:.1%} for a heap {grows:.0%} larger"
    return (
        f"{then.point.fillfactor} may save {gain.mid:.1%} of the cost, but that lies within the "
        f"error ({_ends(gain)})"
    )


def _ends(gain: Interval) -> str:
    return f"{gain.low:.1%} to {gain.high:.1%}"


def _why_not_rewritten(now: Costed, then: Costed, gain: Interval) -> str:
    return (
        f"{then.point.fillfactor} would save {gain.mid:.1%} of the cost ({_instead(now, then)}), "
        "but what a rewrite writes is more than that of 30 days"
    )


def _why_change(now: Costed, then: Costed, gain: Interval) -> str:
    said = ", ".join([_instead(now, then), *_sizes(now, then)])
    return f"{said}: saves {gain.mid:.0%} of the cost"


def why_pages(now: Costed, then: Costed, gain: Value) -> str:
    """Why a setting is advised that gives no HOT: fewer updates that need a page, and their WAL."""
    setting, share = then.point.fillfactor, show_share(mid(then.point.hot_frac))
    stays = f"{setting} is for pages and WAL, not for HOT, which stays at {share}"
    moved, before = middle(then.point.newpage_frac), middle(now.point.newpage_frac)
    said = []
    if moved is not None and before is not None and f"{moved:.0%}" != f"{before:.0%}":
        said.append(f"{moved:.0%} of the updates go to another page instead of {before:.0%}")
    return f"{stays}: {', '.join([*said, *_sizes(now, then)])}; saves {mid(gain):.0%} of the cost"


def _sizes(now: Costed, then: Costed) -> list[str]:
    """WAL of an update and size of the heap, by which part they change."""
    said = []
    wal = _more(now.point.wal_bytes_per_update, then.point.wal_bytes_per_update)
    images = _more(now.point.all_wal_bytes_per_update, then.point.all_wal_bytes_per_update)
    if wal is not None and images is not None:
        said.append(f"WAL per update {_change(wal, 0)} ({_change(images, 0)} with images)")
    size = _more(now.point.heap_bytes, then.point.heap_bytes)
    if size is not None:
        said.append(f"heap {_change(size, 1)}")
    return said


def _instead(now: Costed, then: Costed) -> str:
    """Both shares where they are two as shown; "100.0% instead of 100.0%" takes two readings."""
    shares = mid(now.point.hot_frac), mid(then.point.hot_frac)
    before, _ = show_shares(*shares)
    if not now.point.is_settled:
        before = _long_run(now, *shares)
    after, setting = _long_run(then, *shares), now.point.fillfactor
    if after == _long_run(now, *shares):
        return f"{after}, as at {setting}"
    return f"{after} instead of {before} at {setting}"


def _change(part: float, digits: int) -> str:
    """By which part something grows; never -0%."""
    shown = f"{part:+.{digits}%}"
    return "as before" if float(shown.rstrip("%")) == 0 else shown


def _more(now: Value, then: Value) -> float | None:
    """By which part of it a value grows; None where one of them is not known."""
    before, after = middle(now), middle(then)
    return after / before - 1 if before and after is not None else None
