"""Values of any of our forms, made from its declaration."""

from __future__ import annotations

import re
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from pgheadroom.advise.inputs import FittedInput, inputs_of
from pgheadroom.forms import Limits, Stored
from pgheadroom.outcome import KEYS, Outcome, Value
from pgheadroom.predict.series import Series
from pgheadroom.profile import read_profile
from pgheadroom.profile.spelling import predicate
from pgheadroom.profile.within import ProfileWithin
from pgheadroom.types import Interval, PgVersion

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=9)
NUMBERS = st.floats(-1e15, 1e15)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**62), 2**62) | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
EXAMPLES = Path(__file__).parents[2] / "examples"
PROFILES = [EXAMPLES / f"{name}.toml" for name in ("jobs", "orders", "pgbench", "every-field")]
PLAIN: Mapping[Any, st.SearchStrategy[Any]] = {
    Any: ANYTHING,
    str: TEXTS,
    bool: st.booleans(),
    int: st.integers(-(2**62), 2**62),
    float: NUMBERS,
    types.NoneType: st.none(),
}


@cache
def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Values that the annotation allows."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint in OWN:
        return OWN[hint]()
    if hint in PLAIN:
        return PLAIN[hint]
    if origin is Annotated:
        if inner[0] is float and any(isinstance(mark, Stored) for mark in hint.__metadata__):
            return st.integers(0, 10**9).map(lambda thousandths: thousandths / 1000)
        if any(isinstance(mark, Stored) and mark.load is predicate for mark in hint.__metadata__):
            return st.sampled_from(["state = 0", "note <> 'é'"])
        limits = [mark for mark in hint.__metadata__ if isinstance(mark, Limits)]
        ends = dict(limits[0].of) if limits else {}
        if "ge" in ends:
            return (st.integers if inner[0] is int else st.floats)(ends["ge"], ends["le"])
        if "pattern" in ends:
            return TEXTS.filter(re.compile(ends["pattern"]).search)
        return values_of(inner[0])
    if origin in (Union, types.UnionType):
        return st.one_of(*map(values_of, inner))
    if origin is Literal:
        return st.sampled_from(inner)
    if origin is tuple:
        if inner[1:] == (Ellipsis,):
            return st.lists(values_of(inner[0]), max_size=2).map(tuple)
        return st.tuples(*map(values_of, inner))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return st.dictionaries(TEXTS, values_of(inner[1]), max_size=2)
    assert is_dataclass(hint), f"no values of {hint}"
    hints = get_type_hints(hint, include_extras=True)
    return st.builds(hint, **{item.name: values_of(hints[item.name]) for item in fields(hint)})


@st.composite
def _intervals(draw: st.DrawFn) -> Interval:
    low, mid, high = sorted(draw(st.tuples(NUMBERS, NUMBERS, NUMBERS)))
    return Interval(low=low, mid=mid, high=high, level=draw(st.floats(0.01, 1)))


@st.composite
def _parts(draw: st.DrawFn) -> Outcome:
    """The figures of a table."""
    return Outcome(**{key: draw(values_of(Value)) for key in KEYS})


@st.composite
def _outcomes(draw: st.DrawFn) -> Outcome:
    """A whole with some tables, which hold no others."""
    return replace(draw(_parts()), by_table=draw(st.dictionaries(TEXTS, _parts(), max_size=2)))


@st.composite
def _series(draw: st.DrawFn) -> Series:
    """Windows of the same tables: of none, or of two; files name no single one."""
    names = draw(st.sampled_from([(), ("a", "b")]))
    t_s = tuple(n / 1000 for n in draw(st.lists(st.integers(0, 9999), min_size=1, max_size=2)))
    windows = (
        replace(draw(_parts()), by_table={name: draw(_parts()) for name in names}) for _ in t_s
    )
    return Series(t_s=t_s, windows=tuple(windows))


INPUTS_IN_FILE = st.dictionaries(
    st.one_of(
        TEXTS,
        TEXTS.map("changed_frac of {}".format),
        TEXTS.map("changed_frac of t.v, which {}".format),
        TEXTS.map("grows_bytes of {}".format),
        TEXTS.map("rows of {} that are updated".format),
        TEXTS.map("rows of {} that one statement updates".format),
        st.sampled_from(
            [
                "seconds that a horizon is held",
                "updates a row that the table has lived through",
            ]
        ),
    ),
    NUMBERS | TEXTS | st.integers(0, 10**9).map("1 to {}".format),
    max_size=3,
)
"""What an advice's file may have of the inputs that were set."""

OWN = {
    tuple[FittedInput, ...]: lambda: INPUTS_IN_FILE.map(inputs_of),
    Interval: _intervals,
    Outcome: _outcomes,
    Series: _series,
    ProfileWithin: lambda: st.sampled_from([ProfileWithin.of(read_profile(p)) for p in PROFILES]),
    PgVersion: lambda: st.builds(PgVersion, st.integers(10, 99), st.integers(0, 99)),
}
"""What a declaration alone does not say: ends in their order, no table within a table,
each input once."""
