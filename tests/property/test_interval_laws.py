"""What holds of every interval's arithmetic, and of every value's: tests/property."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pgheadroom.outcome import as_interval, ends, middle, scaled, shifted
from pgheadroom.types import Interval

_NUMBERS = st.floats(-1e12, 1e12)


@st.composite
def _intervals(draw: st.DrawFn) -> Interval:
    low, mid, high = sorted(draw(st.tuples(_NUMBERS, _NUMBERS, _NUMBERS)))
    return Interval(low=low, mid=mid, high=high, level=draw(st.floats(0.01, 1)))


@given(_intervals(), st.floats(0, 1e6))
def test_a_scaled_interval_holds_the_scaled_numbers(found: Interval, factor: float) -> None:
    """End by end, in the same order, and as sure as before."""
    assert found.scaled(factor).ends == tuple(end * factor for end in found.ends)
    assert found.scaled(factor).level == found.level


@given(_intervals(), _NUMBERS)
def test_a_shifted_interval_is_moved_as_a_whole(found: Interval, by: float) -> None:
    """A certain number adds nothing to what is uncertain."""
    assert found.shifted(by).ends == tuple(end + by for end in found.ends)
    assert found.shifted(by).level == found.level


@given(_intervals(), _NUMBERS, _NUMBERS)
def test_a_clipped_interval_lies_within_its_bounds(
    found: Interval, one: float, other: float
) -> None:
    """What was within stays, what was beyond is at the bound."""
    low, high = sorted((one, other))
    for before, after in zip(found.ends, found.clipped(low, high).ends, strict=True):
        assert low <= after <= high
        assert after == before or not low <= before <= high


@given(st.lists(_NUMBERS, max_size=5), _NUMBERS)
def test_an_interval_reaches_all_its_values(values: list[float], mid: float) -> None:
    """Also where a mean of equal numbers is off in its last digit, and lies beside them."""
    found = Interval.reaching(values, mid=mid, level=0.9)
    assert not any(found.excludes(value) for value in (*values, mid))
    assert {found.low, found.high} <= {*values, mid}


@given(_NUMBERS, _NUMBERS, _NUMBERS)
def test_a_middle_lies_between_its_ends(one: float, other: float, likely: float) -> None:
    """It is what is likely, or the end that is nearest to that."""
    low, high = sorted((one, other))
    found = Interval.within(low, high, mid=likely, level=0.9)
    assert (found.low, found.high) == (low, high)
    assert found.mid == likely or not low <= likely <= high
    assert abs(found.mid - likely) == min(abs(n - likely) for n in (found.mid, low, high))


@given(st.lists(_intervals(), min_size=1, max_size=5), st.floats(0, 1e12))
def test_a_sum_is_as_unsure_as_its_parts_and_a_doubt(parts: list[Interval], doubt: float) -> None:
    """Either side at least as the least sure of them, at most as all of them; in any order."""
    found = Interval.summed(parts, doubt=doubt, level=0.9)
    near = 1e-9 * (sum(abs(end) for part in parts for end in part.ends) + doubt)
    assert abs(found.mid - sum(part.mid for part in parts)) <= near
    for reach, each in (
        (found.mid - found.low, [part.mid - part.low for part in parts]),
        (found.high - found.mid, [part.high - part.mid for part in parts]),
    ):
        assert max(*each, doubt) - near <= reach <= sum(each) + doubt + near
    turned = Interval.summed(parts[::-1], doubt=doubt, level=0.9)
    for end, other in zip(found.ends, turned.ends, strict=True):
        assert abs(end - other) <= near


@given(_intervals(), _intervals(), st.floats(0, 4e12))
def test_two_intervals_overlap_or_lie_apart(one: Interval, other: Interval, slack: float) -> None:
    """They share a number, or one is beyond the other by what lies between."""
    shared = max(one.low, other.low) <= min(one.high, other.high)
    assert one.overlaps(other) is other.overlaps(one) is shared
    apart, near = abs(one.beyond(other)), 1e-9 * sum(map(abs, (*one.ends, *other.ends)))
    for near_enough in (one.overlaps(other, slack), other.overlaps(one, slack)):
        assert near_enough or apart > slack - near
        assert not near_enough or apart <= slack + near
    assert (one.beyond(other) == 0) is shared
    assert one.beyond(other) == -other.beyond(one)
    assert one.beyond(other) >= 0 or one.mid < other.mid
    assert one.width == one.high - one.low >= 0


@given(st.one_of(st.none(), _NUMBERS, _intervals()), st.floats(0, 1e6), _NUMBERS)
def test_a_value_is_reckoned_with_as_its_interval(
    value: float | Interval | None, factor: float, by: float
) -> None:
    """A number is an interval without width; of nothing nothing comes."""
    wide = as_interval(value)
    if value is None or wide is None:
        assert (wide, middle(value), scaled(value, factor), shifted(value, by)) == (None,) * 4
        return
    assert ends(value) == wide.ends
    assert middle(value) == wide.mid
    assert as_interval(scaled(value, factor)) == wide.scaled(factor)
    assert as_interval(shifted(value, by)) == wide.shifted(by)
