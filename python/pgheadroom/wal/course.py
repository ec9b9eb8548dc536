"""
A log over time: slices of equal length, and where checkpoints began.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime

from pgheadroom import _core
from pgheadroom.dataclass import dataclass
from pgheadroom.wal.reading import existing, parsed_position, read_wal
from pgheadroom.wal.values import Stretch, WalStats

SLICES = 60
"""About so many; arbitrary."""


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
    """

    begins_at: str
    width_s: float
    slices: tuple[Slice, ...]
    checkpoints_s: tuple[float, ...]


def over_time(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    stats: WalStats,
    *,
    timeline: int | None = None,
) -> LogCourse | None:
    """
    Divide what `stats` sums into slices of time; None where it has no times.

    What lies before the first end of a transaction has no time and goes with the first slice.

    Args:
        paths: The files that were summed; they are read again.
        stats: Their sums.
        timeline: As it was given for them.
    """
    ends = (stats.first_end, stats.last_end, stats.start_lsn, stats.end_lsn)
    first_end, last_end, low, high = ends
    if first_end is None or last_end is None or low is None or high is None:
        return None
    length = datetime.fromisoformat(last_end) - datetime.fromisoformat(first_end)
    width_s = round(length.total_seconds() / SLICES, 6)
    if width_s <= 0:
        return None
    divided = read_wal(paths, begin=low, end=high, timeline=timeline, by=f"{width_s:.6f}s")
    timed = [stretch for stretch in divided.stretches if stretch.begins_at is not None]
    if not timed or timed[0].begins_at is None:
        return None
    start = datetime.fromisoformat(timed[0].begins_at)
    early = [stretch for stretch in divided.stretches if stretch.begins_at is None]
    sums = _core.wal_sums(
        existing(paths),
        timeline=timeline,
        from_lsn=parsed_position(low),
        to_lsn=parsed_position(high),
    )
    return LogCourse(
        begins_at=timed[0].begins_at,
        width_s=width_s,
        slices=tuple(
            Slice(
                begin_s=_seconds(stretch, start),
                bytes=stretch.bytes + sum(one.bytes for one in early) * (place == 0),
                fpi_bytes=stretch.fpi_bytes + sum(one.fpi_bytes for one in early) * (place == 0),
            )
            for place, stretch in enumerate(timed)
        ),
        checkpoints_s=tuple(_checkpoints(sorted(set(sums.redo_points)), timed, start, width_s)),
    )


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
