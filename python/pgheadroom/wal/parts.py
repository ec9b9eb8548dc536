"""
The log in parts, each read on another machine, and the sums joined.

    bounds   where parts begin, at a record's begin behind a segment's; who has the files tells
    parts    each the records from one bound to the next: `_core.wal_sums` of that range
    joined   added up, if each part is without a gap and the next one begins where it ends

Where they do not join, or what is asked for follows from what comes before a record, one machine
reads all of it: it then says itself what is missing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from pgheadroom import _core
from pgheadroom.schedule import DistantExecutor, run_pieces
from pgheadroom.wal.paths import existing, segment_starts

KeyT = TypeVar("KeyT")

PARTS_EACH = 4
"""Parts for each piece that an executor has room for: one second of log is not like another, and
who is done takes the next one. Arbitrary."""
_PARTS_DEFAULT = 8  # of an executor that does not say how much room it has; arbitrary
_LOOKED_AT_BYTES = 512 * 1024
"""How far behind a segment's begin its first record's is looked for: most have a page."""
_BETWEEN_BYTES = (0, 24, 40)
"""Between two records: nothing, or a page's header, a segment's first one (XLogPageHeaderData and
XLogLongPageHeaderData, src/include/access/xlog_internal.h)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WalAsked:
    """What is asked of a log, as `_core.wal_sums` takes it."""

    paths: tuple[Path, ...]
    timeline: int | None = None
    from_lsn: int | None = None
    to_lsn: int | None = None
    times_us: tuple[int, int] | None = None
    cuts: tuple[int, ...] | None = None
    slice_us: int | None = None
    transactions: bool = False
    open_end: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WalSumsRead:
    """What came of it: as `_core.WalSums`, which stays in its process."""

    major: int
    system_identifier: int
    timeline: int
    segment_bytes: int
    history_missing: bool
    files: int
    not_yet_written: list[Path]
    other_timelines: list[Path]
    total: tuple[int, int, int, int]
    overhead_bytes: int
    spans: list[tuple[int, int]]
    ended_us: tuple[int, int] | None
    relations: list[tuple[tuple[int, int, int] | None, int, int, int, int]]
    causes: list[tuple[int, str, int, int]]
    record_types: list[tuple[str, str, int, int, int]]
    memo: list[tuple[str, int]]
    redo_points: list[int]
    slices: list[tuple[int, int]]
    stretches: list[tuple[int, int, int]]
    transactions: list[tuple[int, int, str, int | None, int, int, int]]
    gaps: list[tuple[int, int, str, str]]
    end: tuple[int, str] | None


_OF_ALL = (
    *("major", "system_identifier", "timeline", "segment_bytes", "history_missing"),
    *("files", "not_yet_written", "other_timelines"),
)
"""What each part says of the whole log."""


def read_sums(asked: WalAsked) -> WalSumsRead:
    """
    Read a log here, on all cores.

    Raises:
        WalError: As `_core.wal_sums`.
    """
    given = {each.name: getattr(asked, each.name) for each in fields(asked)}
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    sums = _core.wal_sums(**given, threads=cores)
    return WalSumsRead(**{each.name: getattr(sums, each.name) for each in fields(WalSumsRead)})


def read_sums_elsewhere(asked: WalAsked, executor: Executor) -> WalSumsRead:
    """
    Read a log in parts where an executor leads, which has files of these names.

    Returns:
        What `read_sums` gives there, to the byte.

    Raises:
        InputError: There are no such files.
        WalError: As `_core.wal_sums`.
    """
    follows_from_before = asked.times_us or asked.slice_us or asked.transactions
    if not follows_from_before:
        room = executor.room() if isinstance(executor, DistantExecutor) else _PARTS_DEFAULT
        found = partial(bounds, parts=PARTS_EACH * room)
        ((_, begins),) = run_pieces(found, [asked], executor=executor)
        pieces = [
            replace(asked, from_lsn=low, to_lsn=high)
            for low, high in pairwise((asked.from_lsn, *begins, asked.to_lsn))
        ]
        read = dict(run_pieces(_read_there, pieces, executor=executor, in_flight=len(pieces)))
        joined = join([read[piece] for piece in pieces])
        if joined is not None:
            return joined
    ((_, whole),) = run_pieces(_read_there, [asked], executor=executor)
    return whole


def _read_there(asked: WalAsked) -> WalSumsRead:
    return read_sums(replace(asked, paths=tuple(existing(asked.paths))))


def bounds(asked: WalAsked, parts: int) -> tuple[int, ...]:
    """
    Where parts behind the first one begin: records' begins, in order.

    Args:
        asked: Of which log.
        parts: How many at most.
    """
    paths = existing(asked.paths)
    look = partial(_core.wal_sums, paths, timeline=asked.timeline)
    size_bytes = look(from_lsn=0, to_lsn=1).segment_bytes
    low, high = asked.from_lsn or 0, 2**64 - 1 if asked.to_lsn is None else asked.to_lsn
    all_starts = sorted(set(segment_starts(paths, size_bytes)))
    starts = [lsn for lsn in all_starts[1:] if low < lsn < high]  # the first part has the first one
    step = -(-(len(starts) + 1) // parts)
    found: list[int] = []
    for start in starts[step - 1 :: step]:
        spans = look(from_lsn=start, to_lsn=min(high, start + _LOOKED_AT_BYTES)).spans
        if spans and spans[0][0] > max(found, default=low):
            found.append(spans[0][0])
    return tuple(found)


def join(parts: Sequence[WalSumsRead]) -> WalSumsRead | None:
    """The sums of a log out of those of its parts, in order; None where they do not join."""
    first, last = parts[0], parts[-1]
    if len(parts) == 1:
        return first
    for part in parts:
        is_whole = len(part.spans) == 1 and not part.gaps and (part is last or part.end is None)
        if not is_whole or any(getattr(part, name) != getattr(first, name) for name in _OF_ALL):
            return None
    for before, after in pairwise(parts):
        if after.spans[0][0] - before.spans[0][1] not in _BETWEEN_BYTES:
            return None
    low, high = first.spans[0][0], last.spans[0][1]
    total = _added([part.total for part in parts])
    ended = [moment for part in parts for moment in part.ended_us or ()]
    relations, causes = _by_relation(parts)
    types = _summed(
        ((rmgr, kind), counts) for part in parts for rmgr, kind, *counts in part.record_types
    )
    memo = _summed((name, (count,)) for part in parts for name, count in part.memo)
    return replace(
        first,
        total=_four(total),
        overhead_bytes=high - low - total[1],
        spans=[(low, high)],
        ended_us=(min(ended), max(ended)) if ended else None,
        relations=relations,
        causes=causes,
        record_types=[(*kind, found[0], found[1], found[2]) for kind, found in types.items()],
        memo=[(name, count) for name, (count,) in memo.items()],
        redo_points=[lsn for part in parts for lsn in part.redo_points],
        stretches=[
            (records, length, images)
            for records, length, images in map(
                _added, zip(*(part.stretches for part in parts), strict=True)
            )
        ],
        end=last.end,
    )


def _by_relation(
    parts: Sequence[WalSumsRead],
) -> tuple[
    list[tuple[tuple[int, int, int] | None, int, int, int, int]],
    list[tuple[int, str, int, int]],
]:
    """Relations by their numbers, the one without first, and their causes by place."""
    sums = _summed((numbers, counts) for part in parts for numbers, *counts in part.relations)
    causes = _summed(
        ((part.relations[place][0], cause), counts)
        for part in parts
        for place, cause, *counts in part.causes
    )
    order = sorted(sums, key=lambda numbers: (numbers is not None, numbers or (0, 0, 0)))
    places = {numbers: place for place, numbers in enumerate(order)}
    return (
        [(numbers, *_four(sums[numbers])) for numbers in order],
        [
            (places[numbers], cause, found[0], found[1])
            for (numbers, cause), found in causes.items()
        ],
    )


def _four(counts: tuple[int, ...]) -> tuple[int, int, int, int]:
    records, length, images, image_bytes = counts
    return records, length, images, image_bytes


def _summed(
    counted: Iterable[tuple[KeyT, Sequence[int]]],
) -> dict[KeyT, tuple[int, ...]]:
    """Counts of equal keys added up, in the order in which they came first."""
    found: dict[KeyT, tuple[int, ...]] = {}
    for key, counts in counted:
        found[key] = _added([found[key], counts]) if key in found else tuple(counts)
    return found


def _added(counts: Sequence[Sequence[int]]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*counts, strict=True)))
