"""
Which fillfactor the answer of a prediction names, over generated curves.

A setting is enough when no other has more HOT updates; of those that do the same the highest is
named, since a lower one only costs space.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pgheadroom.outcome import KEYS, Outcome, middle
from pgheadroom.predict import PredictedCell, answer
from pgheadroom.predict.values import answer_by, settings_of
from pgheadroom.types import Interval

Json = dict[str, Any]
Curve = list[PredictedCell]

shares = st.one_of(
    st.sampled_from([0.0, 0.5, 0.9167, 1.0]), st.floats(min_value=0.0, max_value=1.0)
)


@st.composite
def _exact(draw: st.DrawFn) -> Json:
    return {
        "hot_frac": draw(shares),
        "wal_bytes_per_update": draw(st.floats(min_value=50, max_value=10_000)),
        "heap_pages": draw(st.integers(min_value=1, max_value=100_000)),
    }


@st.composite
def _with_intervals(draw: st.DrawFn) -> Json:
    found = draw(_exact())
    width = draw(st.floats(min_value=0.0, max_value=0.2))
    mid = found["hot_frac"]
    low, high = max(0.0, mid - width), min(1.0, mid + width)
    return found | {"hot_frac": Interval(low=low, mid=mid, high=high, level=0.9)}


@st.composite
def curves(draw: st.DrawFn) -> Curve:
    """Cells at several fillfactors; some share their figures."""
    levels = draw(st.lists(st.integers(10, 100), min_size=2, max_size=8, unique=True))
    kinds = draw(st.lists(st.one_of(_exact(), _with_intervals()), min_size=1, max_size=3))
    return [_cell(level, draw(st.sampled_from(kinds))) for level in levels]


def _cell(fillfactor: int, figures: Json) -> PredictedCell:
    return PredictedCell(
        fillfactor=fillfactor, predicted=Outcome(**(dict.fromkeys(KEYS) | figures))
    )


@given(curve=curves())
def test_no_higher_setting_does_the_same(curve: Curve) -> None:
    """The named one is as good as the best, and the first from above that is."""
    found = sorted(settings_of(curve), key=lambda setting: -setting.fillfactor)
    named = answer.enough(found)
    assert named is not None
    best = max(found, key=lambda setting: middle(setting.hot) or 0.0)
    assert answer.same_hot(named.hot, best.hot)
    for setting in found:
        if setting.fillfactor > named.fillfactor:
            assert setting.hot != named.hot
            assert (middle(setting.hot) or 0.0) < (middle(best.hot) or 0.0)
            assert not answer.same_hot(setting.hot, best.hot)


@given(curve=curves())
def test_lower_only_costs_space_where_it_does(
    curve: Curve,
) -> None:
    """No lower setting saves WAL beyond noise, and one takes more room, where that is said."""
    found = sorted(settings_of(curve), key=lambda setting: -setting.fillfactor)
    named = answer.enough(found)
    assert named is not None
    lower = [setting for setting in found if setting.fillfactor < named.fillfactor]
    made = answer_by(curve)
    assert made is not None
    said = made.text
    assert (made.enough, made.against) == (named.fillfactor, found[0].fillfactor)
    assert ("; lower" in said or "has no more HOT" in said) == bool(lower)
    saving = [
        setting
        for setting in lower
        if (middle(setting.wal) or 0.0) < (middle(named.wal) or 0.0)
        and not answer.same_wal(setting.wal, named.wal)
    ]
    assert ("has no more HOT" in said) == bool(saving)
    larger = any((middle(s.heap) or 0.0) > (middle(named.heap) or 0.0) for s in lower)
    assert ("lower only costs space" in said) == (larger and not saving)


@given(curve=curves(), order=st.randoms(use_true_random=False))
def test_the_order_of_the_cells_is_none(curve: Curve, order: Any) -> None:
    """100,90,80 or 80..100: the same sentence."""
    cells = list(curve)
    order.shuffle(cells)
    assert answer_by(cells) == answer_by(curve)


def test_shares_within_an_interval_are_equal() -> None:
    """Either's middle inside the other's interval; shares apart are not."""
    wide = Interval(low=0.9, mid=0.95, high=1.0, level=0.9)
    assert answer.same_hot(wide, 0.91)
    assert answer.same_hot(0.99, wide)
    assert not answer.same_hot(wide, 0.89)
    assert not answer.same_hot(0.91, 0.92)
