"""What holds of every ratio of paired blocks, whatever was measured."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengths import examples
from pgheadroom.errors import InputError
from pgheadroom.stats import BOOTSTRAP_MIN, paired_ratio
from pgheadroom.types import Interval

VALUES = st.floats(1e-3, 1e6)
PAIRS = st.lists(st.tuples(VALUES, VALUES), min_size=2, max_size=BOOTSTRAP_MIN - 1)
bounded = settings(max_examples=examples(60), deadline=None, derandomize=True)


def _ratio(pairs: list[tuple[float, float]], level: float = 0.95) -> Interval:
    treated, control = zip(*pairs, strict=True)
    found = paired_ratio(treated, control, level=level)
    assert found is not None
    return found


def _alike(found: tuple[float, ...], expected: tuple[float, ...]) -> bool:
    """Equal as logarithms, in which the ratio is computed: ends may lie beyond 10^100."""
    return all(
        math.isclose(math.log(one), math.log(other), rel_tol=1e-9, abs_tol=1e-9)
        for one, other in zip(found, expected, strict=True)
    )


# Two wild pairs have an interval that no float holds: laws are of ratios that are near each other.
STEADY = st.builds(
    lambda scale, pairs: [(scale * one, other) for one, other in pairs],
    st.floats(0.01, 100),
    st.lists(st.tuples(st.floats(0.5, 2), st.floats(0.5, 2)), min_size=2, max_size=12),
)


@bounded
@given(STEADY, st.randoms(use_true_random=False))
def test_the_order_of_blocks_means_nothing(
    pairs: list[tuple[float, float]], random: Random
) -> None:
    """Blocks are pairs; which came first is not in the ratio."""
    mixed = list(pairs)
    random.shuffle(mixed)
    assert _ratio(mixed) == _ratio(pairs)


@bounded
@given(STEADY)
def test_the_other_way_round_is_the_reciprocal(pairs: list[tuple[float, float]]) -> None:
    """Control over treated says the same: ends change places."""
    found = _ratio(pairs)
    swapped = _ratio([(control, treated) for treated, control in pairs])
    assert _alike(swapped.ends, (1 / found.high, 1 / found.mid, 1 / found.low))


@bounded
@given(STEADY, st.floats(0.01, 100))
def test_a_unit_is_a_factor(pairs: list[tuple[float, float]], unit: float) -> None:
    """A common unit cancels out; one of the treated alone is a factor of all ends."""
    found = _ratio(pairs)
    assert _alike(_ratio([(one * unit, other * unit) for one, other in pairs]).ends, found.ends)
    scaled = _ratio([(one * unit, other) for one, other in pairs])
    assert _alike(scaled.ends, tuple(end * unit for end in found.ends))


@bounded
@given(STEADY)
def test_the_middle_is_the_geometric_mean(pairs: list[tuple[float, float]]) -> None:
    """It lies among the blocks' ratios, and within its interval."""
    found = _ratio(pairs)
    ratios = [one / other for one, other in pairs]
    assert math.isclose(found.mid ** len(pairs), math.prod(ratios), rel_tol=1e-6)
    assert min(ratios) * (1 - 1e-9) <= found.mid <= max(ratios) * (1 + 1e-9)
    assert found.low <= found.mid <= found.high


@bounded
@given(STEADY, st.floats(0.5, 0.98), st.floats(0.001, 0.015))
def test_to_be_surer_is_to_say_less(
    pairs: list[tuple[float, float]], level: float, more: float
) -> None:
    """A higher level's interval holds the lower one's."""
    found, surer = _ratio(pairs, level), _ratio(pairs, level + more)
    assert surer.low <= found.low
    assert found.high <= surer.high
    assert surer.mid == found.mid


@bounded
@given(st.lists(VALUES, min_size=2, max_size=BOOTSTRAP_MIN + 5))
def test_equal_blocks_have_the_ratio_one(values: list[float]) -> None:
    """No difference in any block is none at all, by either way of computing."""
    assert _ratio([(value, value) for value in values]).ends == (1, 1, 1)


@bounded
@given(PAIRS, st.floats(-1e6, 0), st.integers(0, 100), st.booleans())
def test_where_there_is_no_ratio(
    pairs: list[tuple[float, float]], bad: float, place: int, of_control: bool
) -> None:
    """One value that is not above 0 leaves no ratio, one pair no interval, an odd one no pairs."""
    treated, control = (list(side) for side in zip(*pairs, strict=True))
    assert paired_ratio(treated[:1], control[:1]) is None
    with pytest.raises(InputError, match="cannot pair"):
        paired_ratio(treated[1:], control)
    (control if of_control else treated)[place % len(pairs)] = bad
    assert paired_ratio(treated, control) is None
