"""
What the log would be otherwise: other checkpoints, another compression, without an index.

All of it from the log alone. A page's first change after a redo point has an image, so where pages
were touched tells what other redo points would make of it; `_core.wal_courses` replays that for
every setting at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import pgheadroom
from pgheadroom import _core
from pgheadroom.errors import InputError, WalIncomplete
from pgheadroom.units import show_duration
from pgheadroom.wal.names import Names
from pgheadroom.wal.other_checkpoints import Grid, in_force_of, knee_of, triggers, with_checkpoints
from pgheadroom.wal.paths import existing
from pgheadroom.wal.reading import as_gap, parsed_position, read_wal, shown_lsn
from pgheadroom.wal.values import Gap, WalStats
from pgheadroom.wal.what_if_values import CompressionWal, IndexWal, WhatIf

IMAGES_MOST = 20_000
"""Images that are compressed again; of more every n-th. Arbitrary: some seconds."""

_FIT_DIFFERING_FRAC = 0.02  # more is worth a note; arbitrary


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
    _refuse(stats.gaps)
    courses = _core.wal_courses(
        found,
        start_lsn=start,
        to_lsn=stop,
        triggers=triggers(grid, segment_bytes),
        timeline=timeline,
    )
    _refuse(map(as_gap, courses.gaps))
    checkpoint = (
        in_force_of(stats, grid, courses),
        *with_checkpoints(stats, grid, courses, segment_bytes),
    )
    return WhatIf(
        tool_version=pgheadroom.__version__,
        server=stats.server,
        start_lsn=shown_lsn(start),
        end_lsn=shown_lsn(stop),
        length_s=courses.length_us / 1_000_000,
        checkpoint=checkpoint,
        knee=tuple(knee_of(checkpoint)),
        compression=tuple(_compressions(found, stats, (start, stop), timeline, images_most)),
        without_index=tuple(_without_index(stats)),
        notes=tuple(_notes(stats, grid, courses)),
    )


def _bounds(found: Sequence[Path], whole: WalStats, timeline: int | None) -> tuple[int, int, int]:
    """The first redo point, the end, and the segments' size."""
    _refuse(whole.gaps)
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


def _refuse(gaps: Iterable[Gap]) -> None:
    """Each reading is refused that misses a part: a server may remove a segment between two."""
    for gap in gaps:
        raise WalIncomplete(
            f"{gap.from_lsn} to {gap.to_lsn} is missing ({gap.path}: {gap.why}): what-if wants a "
            "log without gaps; name a range on one side of it",
            lsn=gap.from_lsn,
            path=gap.path,
        )


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
    _refuse(map(as_gap, packed.gaps))
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
