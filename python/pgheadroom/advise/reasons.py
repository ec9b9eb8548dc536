"""
Why a verdict is what it is, in words: by the settings that were compared.
"""

from __future__ import annotations

from pgheadroom.advise.curve import Costed
from pgheadroom.advise.foreseen import Calibration
from pgheadroom.advise.gain import grows_frac
from pgheadroom.advise.policy import Policy
from pgheadroom.advise.worth import growth_frac, is_by_images, wanted_frac
from pgheadroom.outcome import Value, mid, middle
from pgheadroom.profile.tables import TableProfile
from pgheadroom.types import Interval
from pgheadroom.units import percent, show_bytes, show_share, show_shares


def why_not_repeated(table: TableProfile, calibration: Calibration) -> str:
    """What was measured, and by how much the twin misses it."""
    observed, foreseen = calibration.observed_hot_frac, mid(calibration.predicted_hot_frac)
    assert observed is not None, "a table with updates"
    off = 100 * abs(foreseen - observed)
    text = f"the twin does not repeat what was measured, {percent(observed)} HOT"
    if calibration.observed_newpage_frac is not None:
        moved = mid(calibration.predicted_newpage_frac)
        text += f" and {percent(calibration.observed_newpage_frac)} on new pages"
        off = max(off, 100 * abs(moved - calibration.observed_newpage_frac))
    return f"{text} at fillfactor {table.fillfactor}: it is off by {off:.0f} points"


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


def why_not_lost(calibration: Calibration, now: Costed, then: Costed, gain: Interval) -> str:
    """Why a saving by HOT is none: the updates that it comes from did not miss HOT."""
    assert calibration.observed_hot_frac is not None, "a table with updates"
    foreseen, measured = show_shares(mid(now.point.hot_frac), calibration.observed_hot_frac)
    return (
        f"{then.point.fillfactor} would save {percent(gain.mid, 1)} of the cost by HOT updates "
        f"that {now.point.fillfactor} is foreseen to lose ({foreseen} "
        f"{'in the long run' if now.point.is_settled else 'so far, not settled'}), but so many are "
        f"not lost: {measured} measured"
    )


def why_keep(now: Costed, then: Costed, gain: Interval, policy: Policy) -> str:
    """Why the setting in force stays: nothing costs less, or not by enough, or within the error."""
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
        saved = percent(gain.mid, 1)
        best = f"the best other setting, {then.point.fillfactor}, would save {saved} of the"
        if gain.mid < policy.min_gain_frac:
            return f"{best} cost ({trade}): less than {percent(policy.min_gain_frac)}"
        if is_by_images(now, then, policy):
            return (
                f"{best} cost by full-page images alone ({trade}): less than {percent(wanted)}, "
                "and checkpoints that are farther apart save the same"
            )
        grows = growth_frac(now, then)
        least = percent(wanted, 1)
        return f"{best} cost ({trade}): less than {least} for a heap {percent(grows)} larger"
    return (
        f"{then.point.fillfactor} may save {percent(gain.mid, 1)} of the cost, but that lies "
        f"within the error ({shown_ends(gain)})"
    )


def shown_ends(gain: Interval) -> str:
    """From where to where a saving may lie."""
    return f"{percent(gain.low, 1)} to {percent(gain.high, 1)}"


def why_not_rewritten(now: Costed, then: Costed, gain: Interval) -> str:
    """Why a saving is not worth the rewrite."""
    return (
        f"{then.point.fillfactor} would save {percent(gain.mid, 1)} of the cost "
        f"({_instead(now, then)}), "
        "but what a rewrite writes is more than that of 30 days"
    )


def why_change(now: Costed, then: Costed, gain: Interval) -> str:
    """What another setting gives, and what that saves."""
    said = ", ".join([_instead(now, then), *_sizes(now, then)])
    return f"{said}: saves {percent(gain.mid)} of the cost"


def why_pages(now: Costed, then: Costed, gain: Value) -> str:
    """Why a setting is advised that gives no HOT: fewer updates that need a page, and their WAL."""
    setting, share = then.point.fillfactor, show_share(mid(then.point.hot_frac))
    stays = f"{setting} is for pages and WAL, not for HOT, which stays at {share}"
    moved, before = middle(then.point.newpage_frac), middle(now.point.newpage_frac)
    said = []
    if moved is not None and before is not None and percent(moved) != percent(before):
        said.append(
            f"{percent(moved)} of the updates go to another page instead of {percent(before)}"
        )
    return (
        f"{stays}: {', '.join([*said, *_sizes(now, then)])}; saves {percent(mid(gain))} of the cost"
    )


def _sizes(now: Costed, then: Costed) -> list[str]:
    """WAL of an update and size of the heap, by which part they change."""
    said = []
    wal = grows_frac(now.point.wal_bytes_per_update, then.point.wal_bytes_per_update)
    images = grows_frac(now.point.all_wal_bytes_per_update, then.point.all_wal_bytes_per_update)
    if wal is not None and images is not None:
        said.append(f"WAL per update {_change(wal, 0)} ({_change(images, 0)} with images)")
    size = grows_frac(now.point.heap_bytes, then.point.heap_bytes)
    if size is not None:
        said.append(f"heap {_change(size, 1)}")
    return said


def _instead(now: Costed, then: Costed) -> str:
    """Both shares where they are two as shown; "100.0 % instead of 100.0 %" takes two readings."""
    shares = mid(now.point.hot_frac), mid(then.point.hot_frac)
    before, _ = show_shares(*shares)
    if not now.point.is_settled:
        before = _long_run(now, *shares)
    after, setting = _long_run(then, *shares), now.point.fillfactor
    if after == _long_run(now, *shares):
        return f"{after}, as at {setting}"
    return f"{after} instead of {before} at {setting}"


def _change(part: float, digits: int) -> str:
    """By which part something grows; never -0 %."""
    shown = percent(part, digits, sign=True)
    return "as before" if float(shown.rstrip("%")) == 0 else shown
