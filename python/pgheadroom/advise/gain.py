"""
What another fillfactor saves of the cost, with its error: the model's, chance's, the twin's misses.
"""

from __future__ import annotations

import math
from dataclasses import replace

from pgheadroom.advise.curve import Costed
from pgheadroom.advise.foreseen import Calibration
from pgheadroom.advise.worth import IMAGES_UNSURE, images_frac, mean
from pgheadroom.outcome import Value, mid, middle
from pgheadroom.predict.chance import LEVEL, students_t
from pgheadroom.types import Interval

_MISSED_WITHIN = 0.005  # shares of updates that miss HOT and differ by less are the same
_MODEL_GAIN = 0.01  # of the cost: the model's own error where two fillfactors are compared


def moves(found: Costed) -> float:
    """By how much its HOT share still moves where its run was ended."""
    seen = found.point.hot_frac_seen
    return seen.high - seen.low if isinstance(seen, Interval) else 0.0


def _gains(now: Costed, then: Costed) -> list[float]:
    """The parts of the cost that are saved, from runs with the same seeds."""
    # One of the two may have been played oftener.
    return [
        1 - after / before if before else 0.0
        for before, after in zip(now.costs, then.costs, strict=False)
    ]


def drawn(now: Costed, then: Costed) -> float:
    """By how much chance in the runs may be off, to either side."""
    gains = _gains(now, then)
    if len(gains) < 2:
        return 0.0
    middle = mean(gains)
    variance = math.fsum((gain - middle) ** 2 for gain in gains) / (len(gains) - 1)
    return students_t(len(gains) - 1) * math.sqrt(variance / len(gains))


def gain_of(
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
        part * chance * drawn(now, then),
        _MODEL_GAIN,
        off,
        part * IMAGES_UNSURE * images_frac(now, then),
    )
    return Interval(low=middle - half, mid=middle, high=middle + half, level=LEVEL)


def not_more_than_missed(
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
    least = gain_of(now, then, off, part=missed / taken, chance=chance)
    return replace(gain, low=min(gain.low, least.low))


def grows_frac(now: Value, then: Value) -> float | None:
    """By which part of it a value grows; None where one of them is not known."""
    before, after = middle(now), middle(then)
    return after / before - 1 if before and after is not None else None
