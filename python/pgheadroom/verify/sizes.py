"""
A table's size beside its forecast: what it has grown by, and what no look at it sees.
"""

from __future__ import annotations

import math

from pgheadroom.advise.worth import GROWTH_FREE_BYTES
from pgheadroom.plan.measured import MeasuredInterval
from pgheadroom.types import Interval
from pgheadroom.units import show_bytes
from pgheadroom.verify.comparing import GROWN_TOLERANCE_BYTES, ForecastVerdict, judge_heap
from pgheadroom.verify.foreseeing import Again
from pgheadroom.verify.room import is_claimed
from pgheadroom.verify.since import Since
from pgheadroom.verify.values import MeasureOutcome

UNSEEN_S = 10.0
"""For so long a horizon stands still now and then (an ANALYZE, a slow report); arbitrary."""

REPORT_S = 1.0
"""
So long a busy session keeps its counters to itself: `PGSTAT_MIN_INTERVAL`,
src/backend/utils/activity/pgstat.c (15 to 18).
"""

NAPTIME_S = 60.0
"""So long autovacuum leaves a table alone that needs it all the time: `autovacuum_naptime`."""

_TURNS_MIN = 10  # times that a queue's rows were replaced in the interval; arbitrary
_ALIGN_BYTES, _ITEM_BYTES = 8, 4  # MAXALIGN, sizeof(ItemIdData)


def unseen_bytes(now: MeasuredInterval) -> float:
    """
    What a horizon has added to a heap that stood still for a while, unseen.

    No page can be pruned meanwhile, and a table of a few rows takes all versions of that time
    beside them. Its size is the most that it ever was, also between the plan and now, when nobody
    looked.

    Args:
        now: Of the table.

    Returns:
        Bytes, 1 MiB at most; 0 where updates or lengths of rows are not known.
    """
    if now.updates is None:
        return 0.0
    return min(now.updates / now.interval_s * UNSEEN_S * _version_bytes(now), GROWTH_FREE_BYTES)


def cut_bytes(now: MeasuredInterval) -> float:
    """
    By how much the heap of a queue comes and goes: what is written to it between two VACUUMs.

    Each finds pages at the end that rows have left, and cuts them off, and the next rows are on new
    ones: the size is that of a moment.

    Args:
        now: Of the table.

    Returns:
        Bytes, 1 MiB at most; 0 of a table whose rows stay.
    """
    written = (now.inserts or 0) + (now.updates or 0)
    if (now.deletes or 0) < _TURNS_MIN * max(now.rows, 1):
        return 0.0
    return min(written / now.interval_s * NAPTIME_S * _version_bytes(now), GROWTH_FREE_BYTES)


def _version_bytes(now: MeasuredInterval) -> float:
    """Of a version on its page; 0 where its length is not known."""
    if now.tuple_bytes is None:
        return 0.0
    return math.ceil(now.tuple_bytes / _ALIGN_BYTES) * _ALIGN_BYTES + _ITEM_BYTES


def is_unseen(now: MeasuredInterval, forecast: Interval) -> bool:
    """Whether a heap that is larger than foreseen has no more than a horizon may have added."""
    return now.heap_bytes is not None and 0 < now.heap_bytes - forecast.high <= unseen_bytes(now)


def is_cut_off(now: MeasuredInterval, forecast: Interval) -> bool:
    """Whether a heap that is smaller than foreseen is so by what VACUUM cuts off of a queue."""
    return now.heap_bytes is not None and 0 < forecast.low - now.heap_bytes <= cut_bytes(now)


def uncounted_bytes(forecast: Interval, since: Since) -> float:
    """
    What may have come at either end of the count without being counted, or the other way round.

    A size is that of the moment, the counters that its growth is foreseen of are behind: of a table
    that grew for 10 s a second is a tenth.

    Args:
        forecast: Bytes that the heap has grown by.
        since: In what time.
    """
    return max(forecast.high, 0.0) * REPORT_S / max(since.length_s, REPORT_S)


def heap_again(
    before: MeasuredInterval,
    planned: Interval | None,
    now: MeasuredInterval,
    again: Again,
    since: Since,
) -> tuple[MeasureOutcome, ...]:
    """
    The heap, and what came since by itself: pages that are filled under the setting.

    Args:
        before: When it was planned.
        planned: The heap's bytes, as planned.
        now: Measured.
        again: Foreseen for the rows and updates that there are now.
        since: What happened in between.
    """
    grown = None
    if now.heap_bytes is not None and since.heap_bytes is not None:
        grown = now.heap_bytes - since.heap_bytes
    # The size then is known, so all that may be beside the size now is what may be beside growth.
    slack_bytes = GROWN_TOLERANCE_BYTES + uncounted_bytes(again.grown_bytes, since)
    made = []
    for name, first, forecast, found in (
        ("heap_bytes", before.heap_bytes, again.heap_bytes, now.heap_bytes),
        ("heap_grown_bytes", None, again.grown_bytes, grown),
    ):
        verdict: ForecastVerdict | None = None
        note = "its size when it began is not known"
        if forecast is not None and found is not None and since.heap_bytes is not None:
            verdict, note = judge_heap(
                float(found), None, forecast, on_the_way=False, slack_bytes=slack_bytes
            )
            if not is_claimed(forecast, GROWN_TOLERANCE_BYTES):
                grows = again.grown_bytes
                verdict, note = (
                    None,
                    (
                        f"not claimed: {show_bytes(grows.low)} to {show_bytes(grows.high)} may "
                        "come, for room in the pages that were there takes rows in, and when a "
                        "vacuum hands it out is not foreseen"
                    ),
                )
        made.append(
            MeasureOutcome(
                name=name,
                unit="bytes",
                before=first,
                planned=planned if name == "heap_bytes" else None,
                forecast=forecast,
                now=found,
                verdict=verdict,
                note=note,
            )
        )
    return tuple(made)
