"""
What the log would be otherwise: other checkpoints, another compression, without an index.

All of it from the log alone. A page's first change after a redo point has an image, so where pages
were touched tells what other redo points would make of it; `_core.wal_courses` replays that for
every setting at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pgheadroom
from pgheadroom import _core
from pgheadroom.defaults import COMPLETION_TARGET
from pgheadroom.errors import InputError, WalIncomplete
from pgheadroom.forms import write
from pgheadroom.units import show_duration
from pgheadroom.wal.names import Names
from pgheadroom.wal.reading import existing, parsed_position, read_wal, shown_lsn
from pgheadroom.wal.values import RelationWal, WalStats

SCHEMA_VERSION = 1
GB = 1024**3
TIMEOUTS_S = (60.0, 300.0, 900.0, 1800.0, 3600.0)
SIZES_BYTES = (GB, 4 * GB, 16 * GB, 64 * GB)

IMAGES_MOST = 20_000
"""Images that are compressed again; of more every n-th. Arbitrary: some seconds."""

KNEE_LEFT_FRAC = 0.1
"""Of what the whole grid would save, at the knee; arbitrary."""

_FIT_DIFFERING_FRAC = 0.02  # more is worth a note; arbitrary


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """
    A number that is partly estimated.

    The ends are bounds by the mean error of a single estimate, by how late checkpoints begin, and
    by hint bits that were not logged; no interval of a stated coverage, so `level` is None.
    """

    low: int
    mid: int
    high: int
    level: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationWhatIf:
    """A relation's log under other checkpoints, where it differs."""

    name: str | None
    tablespace_oid: int
    database_oid: int
    relfilenode: int
    bytes: int | Range
    fpi_bytes: int | Range


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointWal:
    """
    The log with checkpoints at this distance.

    Of the setting in force, timeout and size are None where nobody said them; its numbers are those
    of the log itself.
    """

    timeout_s: float | None
    max_wal_size_bytes: int | None
    bytes: int | Range
    fpi_bytes: int | Range
    in_force: bool
    checkpoints: int
    images_gone: int
    images_new: int
    relations: tuple[RelationWhatIf, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressionWal:
    """The log with images compressed like this; a sample where there are very many."""

    method: str
    bytes: int
    fpi_bytes: int
    sampled_frac: float
    cpu_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexWal:
    """
    What would not be written without an index: a lower bound.

    The updates that would become HOT, and what that saves in the table and in other indexes, are
    not in it.
    """

    name: str
    table: str | None
    method: str | None
    records: int
    bytes: int
    fpi_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """
    The log otherwise.

    Attributes:
        server: The major version that wrote it.
        start_lsn: The redo point at which every course begins with a checkpoint.
        end_lsn: Where the last record ends.
        length_s: Seconds between the first and the last end of a transaction.
        checkpoint: The setting in force first.
        knee: Places in `checkpoint` from which on little is left to save; empty without a saving.
        compression: By method; empty without images.
        without_index: Largest first.
        notes: What a reader of the numbers has to know.
    """

    tool_version: str
    server: str
    start_lsn: str
    end_lsn: str
    length_s: float
    checkpoint: tuple[CheckpointWal, ...]
    knee: tuple[int, ...]
    compression: tuple[CompressionWal, ...]
    without_index: tuple[IndexWal, ...]
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The file's form."""
        return {"schema_version": SCHEMA_VERSION, "kind": "wal_what_if", **write(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Settings that are tried: each timeout with each size; and what is in force, where known."""

    timeouts_s: Sequence[float] = TIMEOUTS_S
    sizes_bytes: Sequence[int] = SIZES_BYTES
    completion_target: float = COMPLETION_TARGET
    timeout_in_force_s: float | None = None
    size_in_force_bytes: int | None = None


def wal_what_if(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    begin: str | None = None,
    end: str | None = None,
    timeline: int | None = None,
    names: Names | None = None,
    grid: Grid | None = None,
    images_most: int = IMAGES_MOST,
) -> WhatIf:
    """
    Ask what the log would be under other checkpoints, compressions, and without an index.

    Args:
        paths: Files and folders, read several times: no pipe.
        begin: A position.
        end: A position.
        timeline: The timeline to follow; None: the newest.
        names: What relations are called.
        grid: Settings of checkpoints.
        images_most: Images that are compressed again; of more every n-th.

    Raises:
        InputError: No such file, a pipe, a time instead of a position.
        WalIncomplete: No checkpoint in the range, or a part of it is missing.
    """
    found = existing(paths)
    if found == [Path("-")] or found[0].is_fifo():
        raise InputError("what-if reads the log several times, which a pipe cannot be; give files")
    for text in (begin, end):
        if text is not None and parsed_position(text) is None:
            raise InputError(f"{text!r} is no position: expected one such as 16/B374D848")
    grid = grid or Grid()
    whole = read_wal(found, begin=begin, end=end, timeline=timeline)
    start, stop, segment_bytes = _bounds(found, whole, timeline)
    stats = read_wal(
        found, begin=shown_lsn(start), end=shown_lsn(stop), timeline=timeline, names=names
    )
    courses = _core.wal_courses(
        found,
        start_lsn=start,
        to_lsn=stop,
        triggers=_triggers(grid, segment_bytes),
        timeline=timeline,
    )
    checkpoint = (
        _in_force(stats, grid, courses),
        *_checkpoints(stats, grid, courses, segment_bytes),
    )
    return WhatIf(
        tool_version=pgheadroom.__version__,
        server=stats.server,
        start_lsn=shown_lsn(start),
        end_lsn=shown_lsn(stop),
        length_s=courses.length_us / 1_000_000,
        checkpoint=checkpoint,
        knee=tuple(_knee(checkpoint)),
        compression=tuple(_compressions(found, stats, (start, stop), timeline, images_most)),
        without_index=tuple(_without_index(stats)),
        notes=tuple(_notes(stats, grid, courses)),
    )


def _bounds(found: Sequence[Path], whole: WalStats, timeline: int | None) -> tuple[int, int, int]:
    """The first redo point, the end, and the segments' size."""
    if whole.gaps:
        gap = whole.gaps[0]
        raise WalIncomplete(
            f"{gap.from_lsn} to {gap.to_lsn} is missing ({gap.path}: {gap.why}): what-if wants a "
            "log without gaps; name a range on one side of it",
            lsn=gap.from_lsn,
            path=gap.path,
        )
    low = None if whole.start_lsn is None else parsed_position(whole.start_lsn)
    high = None if whole.end_lsn is None else parsed_position(whole.end_lsn)
    sums = _core.wal_sums(found, timeline=timeline, from_lsn=low, to_lsn=high)
    points = [lsn for lsn in sums.redo_points if low is not None and lsn >= low]
    if low is None or high is None or not points:
        raise WalIncomplete(
            "no checkpoint began in this log: expected one at least, from which on it is clear "
            "which pages have had their images; give more segments"
        )
    return min(points), high, sums.segment_bytes


def _triggers(grid: Grid, segment_bytes: int) -> list[tuple[int, int]]:
    return [
        (round(timeout_s * 1_000_000), _distance(size, grid.completion_target, segment_bytes))
        for timeout_s in grid.timeouts_s
        for size in grid.sizes_bytes
    ]


def _distance(size_bytes: int, completion_target: float, segment_bytes: int) -> int:
    """Bytes between checkpoints (CalculateCheckpointSegments, xlog.c)."""
    segments = int(size_bytes // segment_bytes / (1.0 + completion_target))
    return max(segments, 1) * segment_bytes


def _in_force(stats: WalStats, grid: Grid, courses: _core.WalCourses) -> CheckpointWal:
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


def _checkpoints(
    stats: WalStats, grid: Grid, courses: _core.WalCourses, segment_bytes: int
) -> Iterable[CheckpointWal]:
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


def middle(value: int | Range) -> int:
    """The number, or the middle of a range."""
    return value.mid if isinstance(value, Range) else value


def _knee(checkpoint: Sequence[CheckpointWal]) -> Iterable[int]:
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


def _compressions(
    found: Sequence[Path],
    stats: WalStats,
    bounds: tuple[int, int],
    timeline: int | None,
    images_most: int,
) -> Iterable[CompressionWal]:
    if stats.total.fpi == 0:
        return
    every = -(-stats.total.fpi // max(images_most, 1))
    packed = _core.wal_packed(
        found, from_lsn=bounds[0], to_lsn=bounds[1], every=every, timeline=timeline
    )
    if packed.sampled == 0:
        return
    factor = packed.unpacked_bytes / max(packed.sampled_bytes, 1)
    for method, length, with_length, cpu_ns in packed.methods:
        images = round(length * factor)
        extra = 2 * (round(with_length * factor) - packed.with_length)
        yield CompressionWal(
            method=method,
            bytes=stats.total.bytes - packed.logged_bytes + images + extra,
            fpi_bytes=images,
            sampled_frac=packed.sampled / packed.images,
            cpu_s=cpu_ns * factor / 1e9,
        )


def _without_index(stats: WalStats) -> Iterable[IndexWal]:
    for one in stats.relations:
        if one.name is not None and one.table is not None and one.method != _TABLE_METHOD:
            yield IndexWal(
                name=one.name,
                table=one.table,
                method=one.method,
                records=one.records,
                bytes=one.bytes,
                fpi_bytes=one.fpi_bytes,
            )


_TABLE_METHOD = "heap"
"""Of TOAST tables."""


def _notes(stats: WalStats, grid: Grid, courses: _core.WalCourses) -> Iterable[str]:
    yield from stats.notes
    images, differing, _, _ = courses.fit
    if images and differing / images > _FIT_DIFFERING_FRAC:
        yield (
            f"The rule and the log differ in {differing} of {images} images: full_page_writes was "
            "off in a part of it, or checkpoints began that its end does not name yet."
        )
    if courses.one_in > 1:
        yield (
            f"One of {courses.one_in} blocks was followed by its hash, for the sake of memory: "
            "images that go or come are counted from these."
        )
    if courses.hints_logged:
        yield (
            "Hint bits have images here (checksums or wal_log_hints). At shorter distances there "
            "would be more of them, of changes that this log does not show: the middle is without "
            "them, the range's upper end takes twice as many beside each new image as there are."
        )
    length_s = courses.length_us / 1_000_000
    longer = [timeout for timeout in grid.timeouts_s if timeout > length_s]
    if length_s <= 0:
        yield "No two transactions ended in it: times are not known, and no timeout ever passes."
    elif longer:
        yield (
            f"A timeout of {show_duration(min(longer))} or more does not pass within the "
            f"{show_duration(length_s)} of this log: there the size alone decides."
        )
