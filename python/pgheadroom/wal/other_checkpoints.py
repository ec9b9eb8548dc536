"""
The log with checkpoints at other distances: what would go and come of its full-page images.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pgheadroom import _core
from pgheadroom.defaults import COMPLETION_TARGET
from pgheadroom.wal.values import RelationWal, WalStats
from pgheadroom.wal.what_if_values import CheckpointWal, Range, RelationWhatIf, middle

GB = 1024**3
TIMEOUTS_S = (60.0, 300.0, 900.0, 1800.0, 3600.0)
SIZES_BYTES = (GB, 4 * GB, 16 * GB, 64 * GB)

KNEE_LEFT_FRAC = 0.1
"""Of what the whole grid would save, at the knee; arbitrary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Settings that are tried: each timeout with each size; and what is in force, where known."""

    timeouts_s: Sequence[float] = TIMEOUTS_S
    sizes_bytes: Sequence[int] = SIZES_BYTES
    completion_target: float = COMPLETION_TARGET
    timeout_in_force_s: float | None = None
    size_in_force_bytes: int | None = None


def triggers(grid: Grid, segment_bytes: int) -> list[tuple[int, int]]:
    """When a checkpoint begins, by each setting: after microseconds, or so many bytes."""
    return [
        (round(timeout_s * 1_000_000), _distance(size, grid.completion_target, segment_bytes))
        for timeout_s in grid.timeouts_s
        for size in grid.sizes_bytes
    ]


def _distance(size_bytes: int, completion_target: float, segment_bytes: int) -> int:
    """Bytes between checkpoints (CalculateCheckpointSegments, xlog.c)."""
    segments = int(size_bytes // segment_bytes / (1.0 + completion_target))
    return max(segments, 1) * segment_bytes


def in_force_of(stats: WalStats, grid: Grid, courses: _core.WalCourses) -> CheckpointWal:
    """The log as it is, by the setting in force."""
    return CheckpointWal(
        timeout_s=grid.timeout_in_force_s,
        max_wal_size_bytes=grid.size_in_force_bytes,
        bytes=stats.total.bytes,
        fpi_bytes=stats.total.fpi_bytes,
        in_force=True,
        checkpoints=courses.checkpoints,
        images_gone=0,
        images_new=0,
        relations=(),
    )


def with_checkpoints(
    stats: WalStats, grid: Grid, courses: _core.WalCourses, segment_bytes: int
) -> Iterable[CheckpointWal]:
    """
    The log by each setting of a grid but the one in force.

    Args:
        stats: Of the log as it is.
        grid: Settings.
        courses: What each does to images, in the order of `triggers`.
        segment_bytes: Size of a segment.
    """
    settings = [(timeout, size) for timeout in grid.timeouts_s for size in grid.sizes_bytes]
    by_number = {
        (one.tablespace_oid, one.database_oid, one.relfilenode): one for one in stats.relations
    }
    spread = _Spread.of(stats, courses)
    for (timeout_s, size_bytes), (_, distance, checkpoints, changes) in zip(
        settings, courses.courses, strict=True
    ):
        delay = _delay_frac(distance, segment_bytes)
        if (timeout_s, size_bytes) == (grid.timeout_in_force_s, grid.size_in_force_bytes):
            continue
        totals = [
            sum(column) for column in zip((0,) * 6, *(one[1:] for one in changes), strict=True)
        ]
        length, images = spread.applied(stats.total.bytes, stats.total.fpi_bytes, totals, delay)
        yield CheckpointWal(
            timeout_s=timeout_s,
            max_wal_size_bytes=size_bytes,
            bytes=length,
            fpi_bytes=images,
            in_force=False,
            checkpoints=checkpoints,
            images_gone=totals[0],
            images_new=totals[3],
            relations=tuple(
                _relation(by_number[numbers], spread, list(change), delay)
                for numbers, *change in changes
                if numbers in by_number
            ),
        )


def _relation(
    relation: RelationWal, spread: _Spread, change: list[int], delay_frac: float
) -> RelationWhatIf:
    length, images = spread.applied(relation.bytes, relation.fpi_bytes, change, delay_frac)
    return RelationWhatIf(
        name=relation.name,
        tablespace_oid=relation.tablespace_oid or 0,
        database_oid=relation.database_oid or 0,
        relfilenode=relation.relfilenode or 0,
        bytes=length,
        fpi_bytes=images,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spread:
    """How far off estimated images may be."""

    error_frac: float
    """Mean error of a single image's size, of those in the log that could be estimated before."""
    hint_frac: float
    """Images for hint bits beside each for a first change, where they are logged."""

    @classmethod
    def of(cls, stats: WalStats, courses: _core.WalCourses) -> _Spread:
        _, _, estimated_bytes, error_bytes = courses.fit
        hint = stats.by_cause.get("fpi_hint")
        first = stats.by_cause.get("fpi_first_change")
        hint_frac = 0.0
        if courses.hints_logged and hint is not None:
            hint_frac = hint.bytes / max(first.bytes if first is not None else 0, 1)
        return cls(
            error_frac=min(error_bytes / estimated_bytes, 1.0) if estimated_bytes else 0.25,
            hint_frac=min(hint_frac, 1.0),
        )

    def applied(
        self, length: int, fpi_bytes: int, change: Sequence[int], delay_frac: float
    ) -> tuple[int | Range, int | Range]:
        """Bytes and bytes of images after a change."""
        _, image_gone, gone, new, image_new, length_new = change
        if not new:
            return length - gone, fpi_bytes - image_gone
        images = fpi_bytes - image_gone + image_new
        error = round(image_new * self.error_frac + images * delay_frac)
        hints = round(2 * image_new * self.hint_frac)

        def around(mid: int) -> Range:
            return Range(low=max(mid - error, 0), mid=mid, high=mid + error + hints)

        return around(length - gone + length_new), around(images)


def _delay_frac(distance_bytes: int, segment_bytes: int) -> float:
    """
    By how much images differ since a checkpoint begins later than it is asked for.

    Measured: up to 5 % at one segment, 0.8 % at three, 0.5 % at six (docs/wal.md). At one segment
    a busy server does not keep up: how far it falls behind differs from run to run.
    """
    frac = min(segment_bytes / distance_bytes, 1.0)
    return max(0.08 * frac * frac, 0.04 * frac, 0.005)


def knee_of(checkpoint: Sequence[CheckpointWal]) -> Iterable[int]:
    """The smallest settings at which little is left of what the grid would save."""
    tried = [(place, one) for place, one in enumerate(checkpoint) if not one.in_force]
    lengths = [middle(one.bytes) for _, one in tried]
    if not lengths or max(lengths) == min(lengths):
        return
    enough = min(lengths) + KNEE_LEFT_FRAC * (max(lengths) - min(lengths))
    good = [
        (place, one.timeout_s or 0, one.max_wal_size_bytes or 0)
        for place, one in tried
        if middle(one.bytes) <= enough
    ]
    for place, timeout, size in good:
        smaller = [
            other
            for other, other_timeout, other_size in good
            if other != place and other_timeout <= timeout and other_size <= size
        ]
        if not smaller:
            yield place
