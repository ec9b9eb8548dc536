"""
Statistics of measurements: the median with an exact interval, paired ratios, verdicts.

Method in short (`docs/method/laboratory.md` has the reasons): counters are summarised by their
median with a distribution-free interval; two settings are compared by the ratio within each block
of interleaved runs; fewer than `PAIRS_MIN` blocks, or an A/A control that shows a difference where
none can be, gives "undecided". From `BOOTSTRAP_MIN` blocks on the interval is a bootstrap one,
which needs no normal distribution; with fewer it would be too narrow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Annotated

from pgheadroom.errors import InputError
from pgheadroom.forms import Stored
from pgheadroom.types import Interval
from pgheadroom.units import percent

PAIRS_MIN = 5
"""Interleaved pairs below which no verdict is given."""

BOOTSTRAP_MIN = 20
"""Pairs from which intervals are bootstrapped: there it covers what it claims, also for skewed
ratios and stalls, where Student's t covers less (`tests/unit/test_stats.py` measures both)."""

RESAMPLES = 4000
"""The ends of the interval then move by about a fiftieth of its width from seed to seed."""

LEVEL = 0.95
"""Coverage aimed at where nothing else is said."""


def median(samples: Sequence[float]) -> float:
    """Middle value; the mean of the two middle ones for an even count.

    Raises:
        InputError: No samples.
    """
    if not samples:
        raise InputError("a median needs at least one sample")
    ordered = sorted(samples)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return float(ordered[middle])
    return (ordered[middle - 1] + ordered[middle]) / 2


@lru_cache(maxsize=256)
def _median_ranks(count: int, level: float) -> tuple[int, float]:
    """Rank k (1-based) so that order statistics k and count + 1 - k cover the median; coverage."""
    # Whole numbers: ways in which fewer than `rank` of `count` samples lie below the median.
    best_rank, best_level = 1, 1 - 2 * 0.5**count
    ways = one_more = 1
    for rank in range(2, count // 2 + 1):
        one_more = one_more * (count - rank + 2) // (rank - 1)
        ways += one_more
        covered = 1 - 2 * (ways / 2**count)
        if covered < level:
            break
        best_rank, best_level = rank, covered
    return best_rank, best_level


def median_interval(samples: Sequence[float], *, level: float = LEVEL) -> Interval | None:
    """
    Median of independent repetitions with a distribution-free interval.

    Takes the narrowest symmetric pair of order statistics that covers at least `level`; with few
    samples even the extremes cover less (five: 93.75 %), and the interval then says so in its
    `level`.

    Args:
        samples: Repetitions of one measure, any unit.
        level: Coverage aimed at, in (0, 1).

    Returns:
        The interval, or None for a single sample, which says nothing about spread.

    Raises:
        InputError: No samples.

    Source: David and Nagaraja, Order Statistics (2003), section 7.1.
    """
    mid = median(samples)
    if len(samples) < 2:
        return None
    ordered = sorted(float(sample) for sample in samples)
    rank, covered = _median_ranks(len(ordered), level)
    return Interval(low=ordered[rank - 1], mid=mid, high=ordered[-rank], level=covered)


def paired_ratio(
    treated: Sequence[float], control: Sequence[float], *, level: float = LEVEL
) -> Interval | None:
    """
    Ratio treated over control from paired blocks, as a geometric mean.

    Student's t on the logarithms of the ratios: with the five to ten pairs that a run can afford,
    a percentile bootstrap covers only 80 to 90 % where it claims 95 (a test measures both). From
    `BOOTSTRAP_MIN` pairs on a studentised bootstrap of the mean logarithm, which also follows
    skewed ratios.

    Args:
        treated: One value a block, same unit as `control`, all above 0.
        control: The same blocks under the control setting, all above 0.
        level: Coverage, in (0, 1).

    Returns:
        Interval of a dimensionless ratio; None for fewer than two pairs, or when a value is not
        above 0, so that no ratio exists.

    Raises:
        InputError: The two have different lengths.
    """
    if len(treated) != len(control):
        raise InputError(f"{len(treated)} treated values cannot pair with {len(control)} controls")
    if len(treated) < 2 or any(value <= 0 for value in (*treated, *control)):
        return None
    logs = [math.log(top / bottom) for top, bottom in zip(treated, control, strict=True)]
    interval = _t_interval if len(logs) < BOOTSTRAP_MIN else bootstrap_mean
    low, mid, high = interval(logs, level)
    return Interval(low=math.exp(low), mid=math.exp(mid), high=math.exp(high), level=level)


def bootstrap_mean(
    values: Sequence[float], level: float = LEVEL, *, seed: int = 1
) -> tuple[float, float, float]:
    """
    Mean with a studentised bootstrap interval (bootstrap-t).

    Chosen over the percentile and the BCa bootstrap, which cover 92 to 93 % of a claimed 95 with
    20 to 30 normal values, where this covers 94 to 95.

    Args:
        values: Independent values, any unit; `BOOTSTRAP_MIN` or more for the stated coverage.
        level: Coverage aimed at, in (0, 1).
        seed: Seed of the resampling; the same seed gives the same interval.

    Returns:
        Low end, mean, high end; all three equal when all values are.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), section 12.5.
    """
    import numpy as np  # noqa: PLC0415 - only needed here

    data = np.asarray(values, dtype=np.float64)
    count, mean = len(data), float(data.mean())
    error = float(data.std(ddof=1)) / math.sqrt(count)
    if error == 0:
        return mean, mean, mean
    draws = data[np.random.default_rng(seed).integers(0, count, size=(RESAMPLES, count))]
    errors = draws.std(axis=1, ddof=1) / math.sqrt(count)
    varied = errors > 0
    scores = (draws.mean(axis=1)[varied] - mean) / errors[varied]
    low, high = np.quantile(scores, [(1 - level) / 2, (1 + level) / 2])
    return mean - float(high) * error, mean, mean - float(low) * error


def interval_method(pairs: int) -> str:
    """How the interval of that many pairs is made, for a result file."""
    return "Student's t on logarithms" if pairs < BOOTSTRAP_MIN else "studentised bootstrap"


@lru_cache(maxsize=256)
def t_quantile(level: float, freedom: float) -> float:
    """How many standard errors a two-sided interval of Student's t reaches; normal from 1e6 on."""
    # Not `scipy.stats`, which takes this from here too: a second of processor time to import.
    from scipy.special import stdtrit  # noqa: PLC0415 - only needed here

    return float(stdtrit(freedom, (1 + level) / 2))


def _t_interval(values: Sequence[float], level: float) -> tuple[float, float, float]:
    """Mean of at least two values with Student's t interval."""
    count = len(values)
    mean = math.fsum(values) / count
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    half = t_quantile(level, count - 1) * math.sqrt(variance / count)
    return mean - half, mean, mean + half


def mean_interval(values: Sequence[float], *, level: float = LEVEL) -> Interval | None:
    """Mean with Student's t interval; None for fewer than two values."""
    if len(values) < 2:
        return None
    low, mid, high = _t_interval(values, level)
    return Interval(low=low, mid=mid, high=high, level=level)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A straight line through measurements of one block: `intercept + slope * x`."""

    intercept: float
    slope: float


def fit_line(x: Sequence[float], y: Sequence[float]) -> Line:
    """
    Least-squares line.

    Raises:
        InputError: Lengths differ, or fewer than two distinct x.
    """
    if len(x) != len(y):
        raise InputError(f"{len(x)} x values cannot go with {len(y)} y values")
    if len(set(x)) < 2:
        raise InputError("a line needs at least two distinct x values")
    x_mean, y_mean = math.fsum(x) / len(x), math.fsum(y) / len(y)
    slope = math.fsum((a - x_mean) * (b - y_mean) for a, b in zip(x, y, strict=True)) / math.fsum(
        (a - x_mean) ** 2 for a in x
    )
    return Line(intercept=y_mean - slope * x_mean, slope=slope)


class ComparisonVerdict(StrEnum):
    """What a comparison allows to say."""

    HIGHER = "higher"
    LOWER = "lower"
    EQUAL = "equal"
    NOT_SHOWN = "no difference shown"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One measure under two settings: ratio, number of pairs, verdict and its reason."""

    ratio: Interval | None
    pairs: int
    method: str = field(init=False)
    verdict: Annotated[ComparisonVerdict, Stored(str, ComparisonVerdict, str)]
    reason: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "method", interval_method(self.pairs))


def compare(
    treated: Sequence[float],
    control: Sequence[float],
    *,
    aa: Comparison | None = None,
    level: float = LEVEL,
) -> Comparison:
    """
    Compare two settings by paired blocks and give a verdict.

    Args:
        treated: One value a block.
        control: The same blocks under the control setting.
        aa: The A/A control of the same measure: two arms with equal settings. If its interval
            excludes 1, the noise is larger than the intervals say, and nothing is decided; nor is
            it if the ratio lies inside that interval, for equal settings show as much.
        level: Coverage of the interval.

    Raises:
        InputError: The two have different lengths.
    """
    pairs = len(treated)
    ratio = paired_ratio(treated, control, level=level)
    verdict, reason = ComparisonVerdict.UNDECIDED, ""
    if all(a == b for a, b in zip(treated, control, strict=True)) and pairs >= 1:
        ratio = ratio or (Interval.exactly(1, level=level) if pairs >= PAIRS_MIN else None)
        verdict, reason = ComparisonVerdict.EQUAL, f"equal in all {pairs} pairs"
    if pairs < PAIRS_MIN:
        verdict = ComparisonVerdict.UNDECIDED
        counted = "1 interleaved pair" if pairs == 1 else f"{pairs} interleaved pairs"
        reason = f"{counted}; a verdict needs at least {PAIRS_MIN}"
    elif aa is not None and aa.ratio is not None and aa.ratio.excludes(1):
        verdict = ComparisonVerdict.UNDECIDED
        reason = (
            f"the A/A control shows {aa.ratio.low:.3f} to {aa.ratio.high:.3f} where 1 is the truth"
        )
    elif verdict is not ComparisonVerdict.EQUAL and ratio is None:
        reason = "no ratio: a value is not above 0"
    elif verdict is not ComparisonVerdict.EQUAL and ratio is not None:
        if not ratio.excludes(1):
            verdict, reason = ComparisonVerdict.NOT_SHOWN, "the interval contains 1"
        elif aa is not None and aa.ratio is not None and not aa.ratio.excludes(ratio.mid):
            reason = (
                f"{ratio.mid:.3f} is no more than the A/A control, {aa.ratio.low:.3f} to "
                f"{aa.ratio.high:.3f}"
            )
        else:
            verdict = ComparisonVerdict.HIGHER if ratio.mid > 1 else ComparisonVerdict.LOWER
            reason = f"the {percent(level)} interval lies {'above' if ratio.mid > 1 else 'below'} 1"
    return Comparison(ratio=ratio, pairs=pairs, verdict=verdict, reason=reason)


def unpaired_ratio(
    treated: Sequence[float], control: Sequence[float], *, level: float = LEVEL
) -> Interval | None:
    """
    Ratio treated over control of geometric means, from runs that were not interleaved.

    Welch's t on the logarithms: the two may have different spreads and counts.

    Returns:
        None for fewer than two values on either side, or a value that is not above 0.
    """
    if min(len(treated), len(control)) < 2 or any(value <= 0 for value in (*treated, *control)):
        return None
    sides = [[math.log(value) for value in values] for values in (treated, control)]
    means = [math.fsum(side) / len(side) for side in sides]
    errors = [_variance(side) / len(side) for side in sides]
    mid, error = means[0] - means[1], math.fsum(errors)
    if error == 0:
        return Interval.exactly(math.exp(mid), level=level)
    freedom = error**2 / math.fsum(
        each**2 / (len(side) - 1) for each, side in zip(errors, sides, strict=True)
    )
    half = t_quantile(level, freedom) * math.sqrt(error)
    ends = [math.exp(mid - half), math.exp(mid), math.exp(mid + half)]
    return Interval(low=ends[0], mid=ends[1], high=ends[2], level=level)


def compare_unpaired(
    treated: Sequence[float], control: Sequence[float], *, clock: bool
) -> Comparison:
    """
    Compare two settings that ran apart: a verdict on counters, none on times.

    Args:
        treated: Repetitions under one setting.
        control: Repetitions under the other.
        clock: Whether the values depend on how fast the machine was, which may have changed.
    """
    count = min(len(treated), len(control))
    ratio = unpaired_ratio(treated, control)
    verdict, reason = ComparisonVerdict.UNDECIDED, ""
    if clock:
        reason = "not interleaved: the machine may have been another one, or busier"
    elif len({*treated, *control}) == 1:
        verdict, reason = (
            ComparisonVerdict.EQUAL,
            f"equal in all {len(treated) + len(control)} runs",
        )
    elif count < PAIRS_MIN:
        reason = f"{count} repetitions of one side; a verdict needs at least {PAIRS_MIN} of each"
    elif ratio is None:
        reason = "no ratio: a value is not above 0"
    elif not ratio.excludes(1):
        verdict, reason = ComparisonVerdict.NOT_SHOWN, "the interval contains 1"
    else:
        verdict = ComparisonVerdict.HIGHER if ratio.mid > 1 else ComparisonVerdict.LOWER
        reason = f"the {percent(LEVEL)} interval lies {'above' if ratio.mid > 1 else 'below'} 1"
    return Comparison(ratio=ratio, pairs=count, verdict=verdict, reason=reason)


PRECISION_FRAC = 0.02
"""Half width of a ratio's interval at which a comparison counts as answered (arbitrary: the noise
between two starts of one server is of that size)."""

ANSWERED_SHARE = 4
"""Or a half width of at most one part in so many of the effect itself."""


def half_width(ratio: Interval) -> float:
    """Half width of a ratio's interval on the logarithmic scale: 0.02 is about 2 %."""
    return math.log(ratio.high / ratio.low) / 2


def is_answered(ratio: Interval, pairs: int) -> bool:
    """
    Whether more pairs would change nothing that matters.

    Looks at the precision that was reached, not at whether the interval excludes 1: stopping as
    soon as it does would find differences where there are none. Stopping at a quarter of the
    effect is no such stop, since an effect of four half widths is out of the reach of chance
    (`tests/unit/test_stats.py` measures what both rules cover).
    """
    if pairs < PAIRS_MIN:
        return False
    return half_width(ratio) <= max(PRECISION_FRAC, abs(math.log(ratio.mid)) / ANSWERED_SHARE)


def steady_from(values: Sequence[float], *, batches: int = 20) -> int | None:
    """
    Where a series becomes steady: the first value that belongs to the steady part.

    The truncation that minimises the standard error of the mean of what is left, over batch means
    (MSER), and then a check that the two halves of the rest agree: they may differ by 5 % or by
    three standard errors of their difference.

    Args:
        values: Equally spaced, such as transactions of each second.
        batches: Batches that the series is cut into; each is at least one value.

    Returns:
        The index, 0 when the series is steady from its beginning; None when it is not steady in
        its second half, or has fewer than 8 values, of which nothing can be said.

    Source: White, An effective truncation heuristic for bias reduction in simulation output,
    Simulation 69 (1997).
    """
    if len(values) < 8:
        return None
    size = max(len(values) // batches, 1)
    means = [
        math.fsum(values[start : start + size]) / size
        for start in range(0, len(values) - size + 1, size)
    ]
    candidates = [
        (_variance(means[start:]) / (len(means) - start), start)
        for start in range(len(means) * 3 // 4)
    ]
    start = min(candidates)[1]
    if start > len(means) // 2:
        return None
    rest = means[start:]
    first, second = rest[: len(rest) // 2], rest[len(rest) // 2 :]
    gap = abs(math.fsum(first) / len(first) - math.fsum(second) / len(second))
    error = math.sqrt(_variance(first) / len(first) + _variance(second) / len(second))
    level = abs(math.fsum(rest) / len(rest))
    return None if gap > max(0.05 * level, 3 * error) else start * size


def _variance(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / max(len(values) - 1, 1)
