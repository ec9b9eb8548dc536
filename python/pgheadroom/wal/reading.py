"""
Files of WAL become sums with names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pgheadroom
from pgheadroom.errors import InputError, ParameterError
from pgheadroom.quoting import printable
from pgheadroom.units import parse_duration_s, show_bytes
from pgheadroom.wal.archive import fetched
from pgheadroom.wal.names import Names
from pgheadroom.wal.parts import WalAsked, WalSumsRead, read_sums, read_sums_elsewhere
from pgheadroom.wal.paths import STANDARD_INPUT, existing, named
from pgheadroom.wal.values import (
    Count,
    Gap,
    RecordType,
    RelationWal,
    Stretch,
    Total,
    TransactionWal,
    WalStats,
)

CHECKPOINT = "checkpoint"
TRANSACTION = "transaction"

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_LSN = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")
_US_MAX = 2**62
_LSN_MAX = 2**64 - 1
LOG_ENDS = "The log ends at "
"""How the note begins that says where; of a running server's log the interval's end is no news."""

_WHY_NAMELESS = (
    "dropped, rewritten since, of a transaction that has not committed, or of a database that was "
    "not asked"
)
_SEVERAL = 3  # files that a note names; arbitrary


def read_wal(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    begin: str | None = None,
    end: str | None = None,
    timeline: int | None = None,
    names: Names | None = None,
    by: str | None = None,
    executor: Executor | None = None,
) -> WalStats:
    """
    Sum WAL by relation and cause.

    Args:
        paths: Files, folders, patterns; `-` alone is standard input.
        begin: A position (`16/B374D848`) or a time (ISO 8601, UTC where no zone is named).
        end: The same; records that end there or before.
        timeline: The timeline to follow; None: the newest.
        names: What relations are called.
        by: Sums beside those by relation: `checkpoint`, `transaction`, or slices of time (`10m`).
        executor: Where files of these names are read, in parts; None: here, on all cores.

    Raises:
        InputError: No such file, or a position or time that is none.
        WalError: No WAL there, or none that is read here.
    """
    found = existing(paths) if executor is None else named(paths)
    known = names or Names(relations=())
    return _read(found, begin, end, timeline, lambda: known, by, executor=executor)


def read_open(
    pipe: Path, *, begin: str, names: Callable[[], Names], by: str | None = None
) -> WalStats:
    """
    Sum what comes out of a pipe that ends where the log does, wherever in a segment.

    Args:
        pipe: To be read once.
        begin: A position.
        names: Says what relations are called, asked when the pipe has ended.
        by: `transaction`.

    Raises:
        WalError: No WAL there, or none that is read here.
    """
    return _read([pipe], begin, None, None, names, by, open_end=True)


def _read(
    found: Sequence[Path],
    begin: str | None,
    end: str | None,
    timeline: int | None,
    names: Callable[[], Names],
    by: str | None,
    *,
    open_end: bool = False,
    executor: Executor | None = None,
) -> WalStats:
    positions: dict[str, int] = {}
    times = [-_US_MAX, _US_MAX]
    for place, (parameter, text) in enumerate((("from", begin), ("to", end))):
        if text is None:
            continue
        lsn = parsed_position(text)
        if lsn is not None:
            positions[f"{parameter}_lsn"] = lsn
        else:
            times[place] = _moment(text)
    has_times = times != [-_US_MAX, _US_MAX]
    if times[0] > times[1] or positions.get("from_lsn", 0) > positions.get("to_lsn", _LSN_MAX):
        raise ParameterError("end", f"{end} lies before {begin}: expected one behind it")

    asked = WalAsked(
        paths=tuple(found),
        timeline=timeline,
        from_lsn=positions.get("from_lsn"),
        to_lsn=positions.get("to_lsn"),
        times_us=(times[0], times[1]) if has_times else None,
        transactions=by == TRANSACTION,
        open_end=open_end,
    )

    def sums(*, cuts: Sequence[int] | None = None, slice_us: int | None = None) -> WalSumsRead:
        wanted = replace(asked, cuts=None if cuts is None else tuple(cuts), slice_us=slice_us)
        return read_sums(wanted) if executor is None else read_sums_elsewhere(wanted, executor)

    if by in (None, TRANSACTION):
        return _stats(sums(), names)
    if list(found) == [STANDARD_INPUT] or found[0].is_fifo():
        raise ParameterError(
            "by", f"{by}: the log is read twice for that, which a pipe cannot be; expected files"
        )
    width_us = None if by == CHECKPOINT else _width_us(by)
    whole = sums(slice_us=width_us)
    begins = _begins(whole, width_us)
    if not begins:
        stats = _stats(whole, names)
        return replace(stats, stretches=tuple(_undivided(stats)))
    again = sums(cuts=list(begins))
    stats = _stats(again, names)
    return replace(stats, stretches=tuple(_stretches(again, begins)))


def _width_us(by: str) -> int:
    try:
        return max(round(parse_duration_s(by) * 1_000_000), 1)
    except InputError:
        raise ParameterError(
            "by",
            f"{by!r}: expected {CHECKPOINT}, {TRANSACTION}, or the length of slices of time, for "
            "example 10m",
        ) from None


def _begins(sums: WalSumsRead, width_us: int | None) -> dict[int, str | None]:
    """Where stretches begin, with the time where it is one of time."""
    if width_us is not None:
        return {lsn: _shown_time(number * width_us) for lsn, number in sums.slices}
    if not sums.spans:
        return {}
    low, high = sums.spans[0][0], sums.spans[-1][1]
    return dict.fromkeys(sorted(lsn for lsn in set(sums.redo_points) if low < lsn < high))


def _undivided(stats: WalStats) -> Iterable[Stretch]:
    """A log in which no cycle and no slice begins is one."""
    if stats.start_lsn is not None and stats.end_lsn is not None:
        yield Stretch(
            from_lsn=stats.start_lsn,
            to_lsn=stats.end_lsn,
            begins_at=None,
            records=stats.total.records,
            bytes=stats.total.bytes,
            fpi_bytes=stats.total.fpi_bytes,
        )


def _stretches(sums: WalSumsRead, begins: Mapping[int, str | None]) -> Iterable[Stretch]:
    if not sums.spans:
        return
    edges = [sums.spans[0][0], *begins, sums.spans[-1][1]]
    times = [None, *begins.values()]
    for low, high, time, (records, length, images) in zip(
        edges[:-1], edges[1:], times, sums.stretches, strict=True
    ):
        if records:
            yield Stretch(
                from_lsn=shown_lsn(low),
                to_lsn=shown_lsn(high),
                begins_at=time,
                records=records,
                bytes=length,
                fpi_bytes=images,
            )


def read_archive(
    restore_command: str,
    *,
    begin: str | None,
    end: str | None = None,
    timeline: int | None = None,
    names: Names | None = None,
    by: str | None = None,
) -> WalStats:
    """
    Sum WAL that a program fetches, from a position's segment on, until one is lacking.

    Args:
        restore_command: As servers have it, `%f` the segment and `%p` where it goes.
        begin: A position.
        end: A position or a time.
        timeline: Of the segments; None: 1.
        names: What relations are called.
        by: `transaction`; what wants the log twice is not for an archive.

    Raises:
        InputError: No position to begin with.
        WalError: The archive has no first segment, or its program cannot be run.
    """
    lsn = None if begin is None else parsed_position(begin)
    if lsn is None:
        given = "none is given" if begin is None else f"{begin!r} is none"
        raise ParameterError(
            "begin",
            f"an archive behind a program is read from a position on, and {given}: expected one "
            "such as 16/B374D848",
        )
    with fetched(restore_command, timeline=timeline or 1, from_lsn=lsn) as archive:
        stats = read_wal(archive.pipe, begin=begin, end=end, names=names, by=by)

        def named(gap: Gap) -> Gap:
            reach = (parsed_position(one) or 0 for one in (gap.from_lsn, gap.to_lsn))
            return replace(gap, path=archive.at_fault(*reach))

        return replace(stats, gaps=tuple(map(named, stats.gaps)))


def parsed_position(text: str) -> int | None:
    """A position as a number; None if the text is none."""
    lsn = _LSN.fullmatch(text.strip())
    return None if lsn is None else (int(lsn[1], 16) << 32) + int(lsn[2], 16)


def _moment(text: str) -> int:
    """Microseconds since 2000-01-01 UTC."""
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InputError(
            f"{text!r} is neither a position nor a time: expected 16/B374D848 or 2026-11-23T08:30 "
            "(UTC where no zone is named)"
        ) from None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return (when - _EPOCH) // timedelta(microseconds=1)


def _shown_time(moment_us: int) -> str | None:
    try:
        return (_EPOCH + timedelta(microseconds=moment_us)).isoformat()
    except OverflowError:
        return None


def shown_lsn(lsn: int) -> str:
    """A position as PostgreSQL writes it."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def _stats(sums: WalSumsRead, names: Callable[[], Names]) -> WalStats:
    spans, ended = sums.spans, sums.ended_us
    records, total_bytes, fpi, fpi_bytes = sums.total
    known = names()
    relations = _relations(sums, known)
    return WalStats(
        tool_version=pgheadroom.__version__,
        server=str(sums.major),
        system_identifier=str(sums.system_identifier),
        timeline=sums.timeline,
        start_lsn=shown_lsn(spans[0][0]) if spans else None,
        end_lsn=shown_lsn(spans[-1][1]) if spans else None,
        first_end=None if ended is None else _shown_time(ended[0]),
        last_end=None if ended is None else _shown_time(ended[1]),
        total=Total(records=records, bytes=total_bytes, fpi=fpi, fpi_bytes=fpi_bytes),
        overhead_bytes=sums.overhead_bytes,
        by_cause=over_all(relations),
        relations=relations,
        record_types=tuple(
            RecordType(rmgr=rmgr, type=kind, records=count, bytes=length, fpi_bytes=images)
            for rmgr, kind, count, length, images in sorted(
                sums.record_types, key=lambda found: (-found[3], found[:2])
            )
        ),
        memo=dict(sums.memo),
        gaps=tuple(map(as_gap, sums.gaps)),
        files=sums.files,
        notes=tuple(_notes(sums, relations, known)),
        transactions=tuple(
            TransactionWal(
                xid=xid,
                from_lsn=shown_lsn(first),
                end=ending,
                ended_at=None if at is None else _shown_time(at),
                records=count,
                bytes=length,
                fpi_bytes=images,
            )
            for xid, first, ending, at, count, length, images in sums.transactions
        ),
    )


def as_gap(gap: tuple[int, int, str, str]) -> Gap:
    """A stretch that could not be read."""
    low, high, path, why = gap
    return Gap(from_lsn=shown_lsn(low), to_lsn=shown_lsn(high), path=path, why=why)


def _relations(sums: WalSumsRead, names: Names) -> tuple[RelationWal, ...]:
    causes: dict[int, dict[str, Count]] = {}
    for place, cause, records, length in sums.causes:
        causes.setdefault(place, {})[cause] = Count(records=records, bytes=length)
    made = []
    for place, (numbers, *counted) in enumerate(sums.relations):
        made.append(named_relation(numbers, counted, causes.get(place, {}), names))
    return tuple(sorted(made, key=lambda relation: -relation.bytes))


def over_all(relations: Iterable[RelationWal]) -> dict[str, Count]:
    """Causes of all relations together."""
    found: dict[str, Count] = {}
    for relation in relations:
        for cause, count in relation.by_cause.items():
            before = found.get(cause, Count(records=0, bytes=0))
            found[cause] = Count(
                records=before.records + count.records, bytes=before.bytes + count.bytes
            )
    return largest_first(found)


def named_relation(
    numbers: tuple[int, int, int] | None,
    counted: Sequence[int],
    causes: Mapping[str, Count],
    names: Names,
) -> RelationWal:
    """
    A relation's WAL under its name, where the names have it.

    Args:
        numbers: Tablespace, database and relfilenode; None for records without a block.
        counted: Records, bytes, images and their bytes.
        causes: Its records and bytes by cause.
        names: At hand.
    """
    tablespace, database, relfilenode = numbers or (None, None, None)
    known = None if numbers is None else names.of(*numbers)
    records, length, fpi, fpi_bytes = counted
    return RelationWal(
        tablespace_oid=tablespace,
        database_oid=database,
        relfilenode=relfilenode,
        name=None if known is None else known.name,
        database=None if known is None else known.database,
        table=None if known is None else known.table,
        method=None if known is None else known.method,
        records=records,
        bytes=length,
        fpi=fpi,
        fpi_bytes=fpi_bytes,
        by_cause=largest_first(causes),
    )


def largest_first(causes: Mapping[str, Count]) -> dict[str, Count]:
    """Causes by their bytes."""
    return dict(sorted(causes.items(), key=lambda item: (-item[1].bytes, item[0])))


def _notes(sums: WalSumsRead, relations: Sequence[RelationWal], names: Names) -> Iterable[str]:
    if sums.history_missing:
        yield (
            "Segments of several timelines are joined without a history file that says where each "
            "was left: the newest one's segment stands for those of the same name."
        )
    if sums.other_timelines:
        yield f"Not read, of another timeline or there twice: {_named(sums.other_timelines)}."
    if sums.not_yet_written:
        yield f"Not read, nothing is written to them yet: {_named(sums.not_yet_written)}."
    if sums.end is not None:
        lsn, why = sums.end
        yield f"{LOG_ENDS}{shown_lsn(lsn)}: {why} is there."
    yield from not_asked_notes(names)
    yield from nameless_note(relations)
    if sums.major >= 19:
        yield "PostgreSQL 19 was read by its release candidate's format."


def not_asked_notes(names: Names) -> Iterable[str]:
    """Which databases could not be asked, and why not."""
    for database, why in names.not_reached.items():
        first, *_ = why.splitlines() or [""]
        yield f"{printable(database)} was not asked what its relations are called: {first}"


def nameless_note(relations: Sequence[RelationWal], why: str | None = None) -> Iterable[str]:
    """
    How many relations have no name, and how much they have written; nothing where all have.

    Args:
        relations: Of the log.
        why: They have none; None: what it may be where others have one.
    """
    all_files = [one for one in relations if one.relfilenode is not None]
    nameless = [one for one in all_files if one.name is None]
    if nameless:
        length = show_bytes(sum(one.bytes for one in nameless))
        if why is None and len(nameless) < len(all_files):
            why = _WHY_NAMELESS
        yield (
            f"{len(nameless)} of {len(all_files)} relations, with {length}, have no name that is "
            f"known{'' if why is None else ': ' + why}."
        )


def _named(paths: Sequence[Path]) -> str:
    shown = ", ".join(path.name for path in paths[:_SEVERAL])
    more = len(paths) - _SEVERAL
    return shown if more <= 0 else f"{shown} and {more} more"
