"""
Two moments of a history, by times as people write them.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pgheadroom.errors import InputError, ParameterError
from pgheadroom.history.kept import KeptMoment
from pgheadroom.units import show_duration

_OF_A_DAY = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class HistorySpan:
    """
    A part of a history.

    Attributes:
        moments: Those in it, at least two; counters count from one beginning in all of them.
    """

    moments: tuple[KeptMoment, ...]

    @property
    def first(self) -> KeptMoment:
        """Its beginning."""
        return self.moments[0]

    @property
    def last(self) -> KeptMoment:
        """Its end."""
        return self.moments[-1]

    @property
    def length_s(self) -> float:
        """How long it is, by the server's clock."""
        return self.last.at_s - self.first.at_s

    def said(self) -> str:
        """When it is, in words."""
        return (
            f"{shown(self.first.at_s)} to {shown(self.last.at_s)} UTC "
            f"({show_duration(self.length_s)}, {len(self.moments)} moments)"
        )


def span_of(moments: Sequence[KeptMoment], begin: str | None, end: str | None) -> HistorySpan:
    """
    The part of a history from one time to another.

    The moments nearest to the times are taken, never one outside them.

    Args:
        moments: All of the history.
        begin: `2026-11-27 09:00` or with `T` and a zone, UTC unless said; `09:00` of the last day
            that has it. None: the first since the last restart of the counting.
        end: Likewise; None: the last.

    Raises:
        InputError: A time that is none; not two moments between them; statistics were reset there.
    """
    if len(moments) < 2:
        raise InputError(
            f"the history has {len(moments)} moments: expected two at least, for counts between "
            "them"
        )
    last_s = max(moment.at_s for moment in moments)
    end_s = last_s if end is None else _time(end, last_s, "to")
    if begin is None:
        until = [moment for moment in moments if moment.at_s <= end_s]
        life = until[-1].life if until else ""
        chosen = _tail(until, life)
    else:
        begin_s = _time(begin, min(end_s, last_s) if end is not None else last_s, "from")
        if begin_s >= end_s:
            raise ParameterError(
                "from", f"{begin} ({shown(begin_s)} UTC) is not before {shown(end_s)} UTC"
            )
        chosen = [moment for moment in moments if begin_s <= moment.at_s <= end_s]
    if len(chosen) < 2:
        raise InputError(
            f"the history has {len(chosen)} moments between these times: expected two at least; "
            f"it reaches from {shown(moments[0].at_s)} to {shown(last_s)} UTC"
        )
    for before, after in itertools.pairwise(chosen):
        if before.life != after.life:
            raise InputError(
                f"statistics were reset between {shown(before.at_s)} and {shown(after.at_s)} UTC, "
                "by somebody or by a crash: expected times on one side of that"
            )
    return HistorySpan(tuple(chosen))


def _tail(moments: Sequence[KeptMoment], life: str) -> list[KeptMoment]:
    """The last ones that count from the same beginning."""
    found: list[KeptMoment] = []
    for moment in reversed(moments):
        if moment.life != life:
            break
        found.append(moment)
    return found[::-1]


def _time(text: str, last_s: float, parameter: str) -> float:
    """Seconds since 1970; a time of day is the last one that is not after `last_s`."""
    match = _OF_A_DAY.fullmatch(text.strip())
    if match is not None:
        of_day_s = 3600 * int(match[1]) + 60 * int(match[2])
        found_s = last_s - last_s % _DAY_S + of_day_s
        return found_s if found_s <= last_s else found_s - _DAY_S
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ParameterError(
            parameter,
            f"{text!r}: expected a time such as '2026-11-27 09:00', or 09:00 for the last day that "
            "has it (UTC)",
        ) from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def shown(at_s: float) -> str:
    """A moment, in UTC."""
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(at_s))
