"""
A log over time: slices of equal length, and where checkpoints began.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pgheadroom import _core
from pgheadroom.wal.paths import existing
from pgheadroom.wal.reading import parsed_position, read_wal
from pgheadroom.wal.values import Stretch, WalStats

SLICES = 60
"""About so many; arbitrary."""

_FEW_SLICES = 6
_NEARLY_ALL_FRAC = 0.99
"""Of a log's bytes in so few of its slices: these are looked at more closely. Arbitrary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A slice of time: when it begins, in seconds after the first; its WAL and images."""

    begin_s: float
    bytes: int
    fpi_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCourse:
    """
    The log over time.

    Attributes:
        begins_at: When the first slice begins, ISO 8601 in UTC.
        width_s: Length of a slice.
        slices: In order; what nothing was written in is left out.
        checkpoints_s: When checkpoints began, interpolated, in seconds after `begins_at`.
        left_out_bytes: Of the log, before and behind the slices.
        whole_s: From the first end of a transaction to the last, what is left out with it.
    """

    begins_at: str
    width_s: float
    slices: tuple[Slice, ...]
    checkpoints_s: tuple[float, ...]
    left_out_bytes: int = 0
    whole_s: float = 0.0


def over_time(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    stats: WalStats,
    *,
    timeline: int | None = None,
) -> LogCourse | None:
    """
    Divide what `stats` sums into slices of time; None where it has no times.

    What lies before the first end of a transaction has no time and goes with the first slice. Where
    a few slices hold nearly all, as on a server that was made hours before it was used, these are
    divided, and what lies outside is left out.

    Args:
        paths: The files that were summed; they are read again.
        stats: Their sums.
        timeline: As it was given for them.
    """
    ends = (stats.first_end, stats.last_end, stats.start_lsn, stats.end_lsn)
    first_end, last_end, low, high = ends
    if first_end is None or last_end is None or low is None or high is None:
        return None
    whole_s = (datetime.fromisoformat(last_end) - datetime.fromisoformat(first_end)).total_seconds()
    length_s, found = whole_s, None
    while round(length_s / SLICES, 6) > 0:
        width_s = round(length_s / SLICES, 6)
        divided = read_wal(paths, begin=low, end=high, timeline=timeline, by=f"{width_s:.6f}s")
        if all(stretch.begins_at is None for stretch in divided.stretches):
            break
        found = (width_s, divided.stretches)
        busy = _busy(found[1], width_s)
        if busy is None:
            break
        low, high, length_s = busy
    if found is None:
        return None
    sums = _core.wal_sums(
        existing(paths),
        timeline=timeline,
        from_lsn=parsed_position(stats.start_lsn or ""),
        to_lsn=parsed_position(stats.end_lsn or ""),
    )
    course = _course(*found, sorted(set(sums.redo_points)))
    left_out = stats.total.bytes - sum(one.bytes for one in course.slices)
    return replace(course, left_out_bytes=left_out, whole_s=whole_s)


def _course(width_s: float, stretches: Sequence[Stretch], redo_points: Sequence[int]) -> LogCourse:
    timed = [stretch for stretch in stretches if stretch.begins_at is not None]
    early = [stretch for stretch in stretches if stretch.begins_at is None]
    begins_at = timed[0].begins_at or ""
    start = datetime.fromisoformat(begins_at)
    return LogCourse(
        begins_at=begins_at,
        width_s=width_s,
        slices=tuple(
            Slice(
                begin_s=_seconds(stretch, start),
                bytes=stretch.bytes + sum(one.bytes for one in early) * (place == 0),
                fpi_bytes=stretch.fpi_bytes + sum(one.fpi_bytes for one in early) * (place == 0),
            )
            for place, stretch in enumerate(timed)
        ),
        checkpoints_s=tuple(_checkpoints(redo_points, timed, start, width_s)),
    )


def _busy(stretches: Sequence[Stretch], width_s: float) -> tuple[str, str, float] | None:
    """From where to where nearly all was written, and how long; None where it is not short."""
    timed = [stretch for stretch in stretches if stretch.begins_at is not None]
    start = datetime.fromisoformat(timed[0].begins_at or "")
    wanted = _NEARLY_ALL_FRAC * sum(stretch.bytes for stretch in timed)
    for first, begin in enumerate(timed):
        held = 0
        for stretch in timed[first:]:
            length_s = _seconds(stretch, start) - _seconds(begin, start) + width_s
            if length_s > _FEW_SLICES * width_s:
                break
            held += stretch.bytes
            if held >= wanted:
                return begin.from_lsn, stretch.to_lsn, length_s
    return None


def _seconds(stretch: Stretch, start: datetime) -> float:
    return (datetime.fromisoformat(stretch.begins_at or "") - start).total_seconds()


def _checkpoints(
    redo_points: Sequence[int], timed: Sequence[Stretch], start: datetime, width_s: float
) -> list[float]:
    """Each redo point's place in the slice on which it lies."""
    found = []
    for lsn in redo_points:
        for stretch in timed:
            low, high = parsed_position(stretch.from_lsn), parsed_position(stretch.to_lsn)
            if low is not None and high is not None and low <= lsn < high:
                share = (lsn - low) / (high - low)
                found.append(_seconds(stretch, start) + share * width_s)
    return found
