"""
The answer of a prediction over several fillfactors, in one sentence: which one is enough.

Settings that do the same are one: the highest of them is named, since a lower one takes more room.
The trade stands beside it, against the highest fillfactor that was asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pgheadroom.forms import in_file
from pgheadroom.outcome import Value, middle
from pgheadroom.types import Interval

HOT_SAME = 0.0005
"""Shares of HOT updates that differ by less, in absolute terms, are one: half of what is shown."""
WAL_SAME_FRAC = 0.005
"""WAL per update that differs by less, relatively, is one: less than another seed makes of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveAnswer:
    """
    Which of several fillfactors is enough, as a prediction keeps it.

    Attributes:
        enough: The highest fillfactor with as many HOT updates as any, in percent; None where there
            are no updates that room would serve.
        against: The highest that was asked for, in percent: what it is compared with.
        text: The same in a sentence, with the trade and what lower ones do.
    """

    enough: int | None = field(metadata=in_file(unless_none=True), default=None)
    against: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A fillfactor and what it does: HOT share, WAL bytes per update, heap pages."""

    fillfactor: int
    hot: Value
    wal: Value
    heap: Value


def enough(found: Sequence[Setting]) -> Setting | None:
    """
    The highest fillfactor with as many HOT updates as any.

    Args:
        found: The highest first.

    Returns:
        None where no setting has a share of HOT updates.
    """
    known = [setting for setting in found if middle(setting.hot) is not None]
    if not known:
        return None
    best = max(known, key=lambda setting: middle(setting.hot) or 0.0)
    return next(setting for setting in known if same_hot(setting.hot, best.hot))


def same_hot(one: Value, other: Value) -> bool:
    """Whether two shares are equal, as far as is shown or within an interval."""
    return _same(one, other, HOT_SAME)


def same_wal(one: Value, other: Value) -> bool:
    """Whether two amounts of WAL are equal, relatively or within an interval."""
    return _same(one, other, WAL_SAME_FRAC * abs(middle(other) or 0.0))


def answer_of(settings: Sequence[Setting]) -> CurveAnswer | None:
    """
    Which fillfactor is enough, what it brings against the highest one, and what lower ones do.

    Args:
        settings: Of a prediction without variants, in any order.

    Returns:
        None with less than two fillfactors, or where nothing is known of them.
    """
    if len(settings) < 2:
        return None
    found = sorted(settings, key=lambda setting: -setting.fillfactor)
    named, highest = enough(found), found[0]
    text = _without_updates(found) if named is None else _sentence(named, found)
    if text is None:
        return None
    return CurveAnswer(
        enough=None if named is None else named.fillfactor, against=highest.fillfactor, text=text
    )


def _sentence(named: Setting, found: Sequence[Setting]) -> str:
    """The answer where one of the settings is enough; the highest comes first."""
    highest = found[0]
    lower = [setting for setting in found if setting.fillfactor < named.fillfactor]
    share = _share(named.hot)
    if named is highest:
        text = (
            f"No lower fillfactor than {named.fillfactor} gives more HOT updates than its {share} %"
        )
    else:
        text = (
            f"Fillfactor {named.fillfactor} is enough: HOT {_share(highest.hot)} -> {share} %, "
            f"{_trade(named, highest)} against {highest.fillfactor}"
        )
    middles = [middle(setting.hot) or 0.0 for setting in lower]
    if max(middles, default=0.0) > (middle(named.hot) or 0.0) + HOT_SAME:
        text += ", lower ones being no better beyond their intervals"
    return f"{text}{_lower(named, lower)}."


def _lower(named: Setting, lower: Sequence[Setting]) -> str:
    """What settings below the one that is enough do besides."""
    if not lower:
        return ""
    known = [setting for setting in lower if middle(setting.wal) is not None]
    if known:
        least = min(known, key=lambda setting: middle(setting.wal) or 0.0)
        saves = (middle(least.wal) or 0.0) < (middle(named.wal) or 0.0)
        if saves and not same_wal(least.wal, named.wal):
            first = next(setting for setting in known if same_wal(setting.wal, least.wal))
            trade = _trade(first, named)
            return f"; {first.fillfactor} has no more HOT, but {trade} against {named.fillfactor}"
    more = max(middle(setting.heap) or 0.0 for setting in lower)
    if more > (middle(named.heap) or 0.0):
        return "; lower only costs space"
    return "; lower changes nothing"


def _without_updates(found: Sequence[Setting]) -> str | None:
    highest, lowest = found[0], found[-1]
    sizes = middle(highest.heap), middle(lowest.heap)
    if None in sizes or sizes[0] == sizes[1]:
        return None
    return (
        "There are no updates that room would serve: lower only costs space, at "
        f"{lowest.fillfactor} heap {_change(lowest.heap, highest.heap)} against "
        f"{highest.fillfactor}."
    )


def _trade(one: Setting, other: Setting) -> str:
    """WAL and heap of a setting against another's."""
    parts = [
        f"{name} {_change(new, old)}"
        for name, new, old in (
            ("all WAL per update", one.wal, other.wal),
            ("heap", one.heap, other.heap),
        )
        if middle(new) is not None and middle(old)
    ]
    return ", ".join(parts)


def _change(new: Value, old: Value) -> str:
    """In per cent with two digits: `-12 %`, `+3.5 %`."""
    before, after = middle(old), middle(new)
    if before is None or after is None or not before:
        return "-"
    percent = 100 * (after / before - 1)
    if abs(percent) < 0.05:
        return "±0 %"
    return f"{percent:+.0f} %" if abs(percent) >= 9.95 else f"{percent:+.1f} %"


def _share(found: Value) -> str:
    """In per cent: one digit, more where all but 100 would look like it, none for 0 and 100."""
    percent = 100 * (middle(found) or 0.0)
    if percent in (0.0, 100.0):
        return f"{percent:.0f}"
    for digits in (1, 2, 3):
        shown = f"{percent:.{digits}f}"
        if float(shown) not in (0.0, 100.0):
            return shown
    return f"{percent:.6g}"


def _same(one: Value, other: Value, noise: float) -> bool:
    first, second = middle(one), middle(other)
    if first is None or second is None:
        return first is second
    return abs(first - second) <= noise or _holds(one, second) or _holds(other, first)


def _holds(found: Value, number: float) -> bool:
    return isinstance(found, Interval) and found.low <= number <= found.high
