"""
What was kept, as `observe` and the doctor would have read it then.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgheadroom.doctor import all_rules
from pgheadroom.doctor.examining import PastInterval
from pgheadroom.history import History, HistorySpan, KeptMoment, span_of
from pgheadroom.history.kept import refuse_other
from pgheadroom.sources.recording import RecordedAnswer
from pgheadroom.watch.keeping import OF_DOCTOR, origin_of, recorded

if TYPE_CHECKING:
    import psycopg

_TICKS = ("instant", "horizon", "activity")
_TICKS_MAX = 200


class Recalled:
    """
    An interval out of a history.

    Args:
        path: The history.
        begin: A time, as `span_of` takes it.
        end: Likewise.

    Attributes:
        moments: All of the history.
        span: The interval.

    Raises:
        InputError: The file is none, or the times.
    """

    def __init__(self, path: Path, begin: str | None, end: str | None) -> None:
        self._path = path
        with History.open(path) as history:
            self.moments: tuple[KeptMoment, ...] = history.moments()
            self.span: HistorySpan = span_of(self.moments, begin, end)
            self._origin = history.origin

    def for_observe(self, connection: psycopg.Connection[Any]) -> Sequence[RecordedAnswer]:
        """
        The counters of the interval, as `look_back` takes them.

        Raises:
            InputError: The history is another database's.
        """
        refuse_other(self._path, self._origin, origin_of(connection))
        first, *between, last = self.span.moments
        step = max(len(between) // _TICKS_MAX, 1)
        with History.open(self._path) as history:
            found = recorded(history.answers(first), "start")
            for number, moment in enumerate(between[::step], start=1):
                lines = recorded(history.answers(moment), f"tick {number}")
                found += [line for line in lines if line.query in _TICKS]
            # Who is there at the end is asked now, with what else belongs to the end.
            found += [
                line for line in recorded(history.answers(last), "end") if line.query != "activity"
            ]
        return found

    def for_doctor(self, connection: psycopg.Connection[Any]) -> PastInterval:
        """
        The counters of the interval, as the doctor's rules read them.

        Raises:
            InputError: The history is another database's.
        """
        refuse_other(self._path, self._origin, origin_of(connection))
        with History.open(self._path) as history:
            ends = [history.answers(one) for one in (self.span.first, self.span.last)]
        rows, missing = {}, {}
        for rule in all_rules():
            begin, end = (answers.get(f"{OF_DOCTOR}{rule.id}") for answers in ends)
            lacking = next((one for one in (begin, end) if one is None or one.failed), None)
            if begin is None or end is None:
                missing[rule.id] = "it was not asked then"
            elif lacking is not None:
                missing[rule.id] = str(lacking.failed)
            else:
                rows[rule.id] = (begin.rows, end.rows)
        return PastInterval(
            said=self.span.said(), interval_s=self.span.length_s, rows=rows, missing=missing
        )
