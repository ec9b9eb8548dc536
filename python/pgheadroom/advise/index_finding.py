"""
Which indexes end HOT, by which column, for which updates, and what that costs: by rule.

What can be HOT without an index follows from the catalog and the statements (`hot.py`), the WAL
that it costs from the layout and, where statements' WAL was counted, from that. Nothing is played;
where the twin plays the table too, its figures take the place of these (`predicted`).

An index's entry is not all that it costs: an update that is not HOT has an entry in every index of
the table, and a full-page image where one of their pages is changed first after a checkpoint. Of
measured images the part is taken that is the other indexes' share of the pages touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pgheadroom.advise.blame import within
from pgheadroom.advise.cold_updates import Blamed, Cause, IndexesTogether, IndexFinding
from pgheadroom.advise.foreseen import Point
from pgheadroom.advise.hot import HotShape, Part, blockers, can_be_hot, outcome, parts_of, shape_of
from pgheadroom.advise.remark_index import Reads, reads_of
from pgheadroom.advise.row import (
    index_bytes,
    index_label,
    prune_bytes,
    same_page_bytes,
    wal_level_of,
)
from pgheadroom.advise.stake import DAY_S, interval_of
from pgheadroom.advise.updates import Updates, assigned_columns
from pgheadroom.outcome import Value, ends, mid
from pgheadroom.profile import TableProfile
from pgheadroom.profile.observed_server import ObservedServer
from pgheadroom.profile.unpriced import PRICED, played_gins, unpriced_of

FRAC_MIN = 0.05
"""Of the updates, for an index to be a finding; arbitrary."""

_ROOM_UNKNOWN = 0.5  # 15 does not count what found no room: from half of it on; arbitrary


_SETS_MAX = 3  # of a table, that are told; arbitrary


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """
    Indexes of a table that end HOT.

    Attributes:
        each: By falling WAL saved.
        together: Several of them that may go: first those that end HOT for the same updates, then
            all.
    """

    each: tuple[IndexFinding, ...] = ()
    together: tuple[IndexesTogether, ...] = ()


def findings_of(
    table: TableProfile,
    updates: Updates | None,
    causes: Sequence[Cause],
    major: int,
    server: ObservedServer | None,
) -> Findings:
    """
    The indexes of a table that end HOT for a good part of its updates.

    Args:
        table: As observed.
        updates: Of its interval; None without.
        causes: The same by cause.
        major: Of the server.
        server: `[server.observed]`, for wal_level.

    Returns:
        Each, and what goes without several of them.
    """
    interval_s = interval_of(table)
    blamed = [one for cause in causes for one in cause.indexes]
    if updates is None or interval_s is None or not blamed:
        return Findings()
    indexed = sum(mid(one.updates) for one in blamed) / updates.count
    shape = shape_of(table, major)
    case = _Case(
        table=table,
        updates=updates,
        shape=shape,
        parts=parts_of(updates, shape),
        interval_s=interval_s,
        wal_level=wal_level_of(server),
    )
    found = []
    for one in blamed:
        reads = reads_of(table, one.name)
        if reads is None:
            continue
        finding = _finding(case, one, reads, indexed)
        if mid(finding.updates_frac) >= FRAC_MIN:
            found.append(finding)
    findings = ranked(found)
    sets = _sets(findings)
    return Findings(
        each=findings, together=tuple(_together(case, one, blamed, indexed) for one in sets)
    )


def ranked(findings: Iterable[IndexFinding]) -> tuple[IndexFinding, ...]:
    """By the WAL that they cost; those that nobody can price by their updates, last."""
    return tuple(
        sorted(
            findings,
            key=lambda f: (-mid(f.wal_bytes_saved_per_day), -mid(f.updates_frac), f.table, f.name),
        )
    )


_FoundT = TypeVar("_FoundT", IndexFinding, IndexesTogether)


def predicted(
    finding: _FoundT, now: Point, then: Point, updates_per_s: float, *, is_priced: bool
) -> _FoundT:
    """
    The finding with the twin's figures, where these are what the table does.

    WAL stays as estimated where an index is among the table's whose own the twin has not.

    Args:
        finding: By rule.
        now: The table as it is, by the twin.
        then: The same without the index.
        updates_per_s: Of the table.
        is_priced: Whether the twin has the WAL of all of its indexes.
    """
    per_day = updates_per_s * DAY_S
    made = replace(
        finding, hot_frac_now=now.hot_frac, hot_frac_then=then.hot_frac, evidence="predicted"
    )
    if not is_priced:
        return made
    before, after = now.wal_bytes_per_update, then.wal_bytes_per_update
    if before is None or after is None:  # the guard shows none
        return made
    saved = max(mid(before) - mid(after), 0.0)
    (least, _, most), (least_then, _, most_then) = ends(before or 0.0), ends(after or 0.0)
    low, high = max(least - most_then, 0.0), max(most - least_then, saved)
    return replace(
        made, wal_bytes_saved_per_day=within(low * per_day, saved * per_day, high * per_day)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """A table whose indexes are weighed."""

    table: TableProfile
    updates: Updates
    shape: HotShape
    parts: tuple[Part, ...]
    interval_s: float
    wal_level: str


def _finding(case: _Case, blamed: Blamed, reads: Reads, indexed: float) -> IndexFinding:
    without = _without(case, (blamed.name,))
    with_others = {
        blocker.index
        for part in case.parts
        if any(b.index == blamed.name for b in blockers(case.shape, part.assigned, part.steady))
        for blocker in blockers(without, part.assigned, part.steady)
    }
    if not case.parts:
        with_others = {index.name for index in without.indexes if index.ends_hot(without.major)}
    freed = _freed(case, (blamed.name,), indexed)
    now, then = _hot(case, freed)
    return IndexFinding(
        table=case.table.name,
        name=blamed.name,
        columns=_blocking(case, blamed.name),
        updates_frac=_changing(case, (blamed,), indexed),
        hot_frac_now=now,
        hot_frac_then=then,
        wal_bytes_saved_per_day=_saved(case, (reads.method,), (blamed.name,), freed),
        evidence="estimated",
        certainty=blamed.certainty,
        enforces=reads.enforces or ("unique" if blamed.unique else None),
        only_with=tuple(sorted(with_others)),
        scans=blamed.scans,
        total_scans=blamed.total_scans,
    )


def _sets(findings: Sequence[IndexFinding]) -> list[tuple[IndexFinding, ...]]:
    """Findings that may go together: those for the same updates, then all."""
    free = [found for found in findings if found.enforces is None]
    names = {found.name for found in free}
    wanted = [
        frozenset({found.name, *found.only_with})
        for found in free
        if found.only_with and names.issuperset(found.only_with)
    ]
    wanted.append(frozenset(names))
    distinct = [one for one in dict.fromkeys(wanted) if len(one) > 1]
    kept = distinct[: _SETS_MAX - 1] + distinct[-1:]
    return [tuple(f for f in free if f.name in one) for one in dict.fromkeys(kept)]


def _together(
    case: _Case, found: Sequence[IndexFinding], blamed: Sequence[Blamed], indexed: float
) -> IndexesTogether:
    names = tuple(sorted(one.name for one in found))
    freed = _freed(case, names, indexed)
    now, then = _hot(case, freed)
    methods = [reads.method for name in names if (reads := reads_of(case.table, name)) is not None]
    return IndexesTogether(
        table=case.table.name,
        names=names,
        updates_frac=_changing(case, [one for one in blamed if one.name in names], indexed),
        hot_frac_now=now,
        hot_frac_then=then,
        wal_bytes_saved_per_day=_saved(case, methods, names, freed),
        evidence="estimated",
    )


def _without(case: _Case, names: Sequence[str]) -> HotShape:
    left = tuple(index for index in case.shape.indexes if index.name not in names)
    return replace(case.shape, indexes=left)


def _freed(case: _Case, names: Sequence[str], indexed: float) -> tuple[Part, ...]:
    """
    Updates that could be HOT without these indexes.

    Where no statement is known, those that changed an indexed column (`indexed`, of all updates)
    if no other index can have been the reason.
    """
    without = _without(case, names)
    if case.parts:
        return outcome(case.parts, case.shape, without).gained
    if without.blocking or not indexed:
        return ()
    return (Part(assigned=frozenset(), frac=indexed),)


def _hot(case: _Case, freed: Sequence[Part]) -> tuple[Value, Value]:
    """HOT of all updates as it is, and with these, as far as they find room."""
    now = case.updates.hot / case.updates.count
    frac = sum(part.frac for part in freed)
    high = min(now + frac, 1.0)
    low = min(now + frac * _room(case.updates), high)
    return now, within(low, (low + high) / 2, high)


def _changing(case: _Case, blamed: Sequence[Blamed], indexed: float) -> Value:
    """
    Of all updates, those that changed a column of these indexes and were not HOT.

    Where statements tell; else each index's share of those that changed an indexed column, which
    may be all of them.
    """
    names = {one.name for one in blamed}
    if not case.parts:
        high = sum(ends(one.updates or 0.0)[2] for one in blamed) / case.updates.count
        low = max(ends(one.updates or 0.0)[0] for one in blamed) / case.updates.count
        likely = sum(mid(one.updates) for one in blamed) / case.updates.count
        return within(min(low, likely), likely, max(min(high, indexed), likely))
    sure = sum(
        part.frac
        for part in case.parts
        if any(b.index in names for b in blockers(case.shape, part.assigned, part.steady))
    )
    columns = frozenset().union(*(i.columns for i in case.shape.indexes if i.name in names))
    hidden = sum(part.frac for part in case.parts if part.hidden & columns)
    shared = hidden * len(columns & case.shape.blocking) / max(len(case.shape.blocking), 1)
    return within(min(sure, 1.0), min(sure + shared, 1.0), min(sure + hidden, 1.0))


def _blocking(case: _Case, index: str) -> tuple[Mapping[str, str], ...]:
    """The columns by which an index ends HOT for what the statements assign."""
    found = {
        (blocker.column, blocker.reads, blocker.assigned): None
        for part in case.parts
        if not can_be_hot(case.shape, part)
        for blocker in blockers(case.shape, part.assigned, part.steady)
        if blocker.index == index
    }
    return tuple(
        {"column": column, "reads": reads, "assigned": assigned}
        for column, reads, assigned in sorted(found)
    )


def _room(updates: Updates) -> float:
    """The part of the updates that found room on their page, so that these could be HOT."""
    if updates.newpage is None:
        return _ROOM_UNKNOWN
    return 1 - updates.newpage / updates.count


def _saved(
    case: _Case, methods: Sequence[str], names: Sequence[str], freed: Sequence[Part]
) -> Value:
    """
    WAL a day without these indexes.

    Updates that could be HOT then write no entries at all; all others that are not HOT write none
    into these.
    """
    room = _room(case.updates)
    labels = {index_label(case.table, name) for name in names}
    own = tuple(index for index in case.table.indexes if index.name in labels)
    entry = index_bytes(replace(case.table, indexes=own))
    low = mid_ = high = 0.0
    for part in freed:
        one = _saved_each(case, part)
        if one is None:
            return None
        low += part.frac * room * one[0]
        mid_ += part.frac * (room + 1) / 2 * one[1]
        high += part.frac * one[2]
    cold = 1 - case.updates.hot / case.updates.count
    stays = max(cold - sum(part.frac for part in freed), 0.0)
    if stays and not set(PRICED).issuperset(
        methods
    ):  # what an entry of a GIN writes only the twin has
        if not freed:
            return None
        stays = 0.0  # its entries come on top, by nobody knows how much
    low, mid_, high = (
        low + stays * entry.low,
        mid_ + stays * entry.mid,
        high + stays * entry.high,
    )
    per_day = case.updates.count * DAY_S / case.interval_s
    return within(low * per_day, mid_ * per_day, high * per_day)


def blamed_of(finding: IndexFinding, causes: Iterable[Cause]) -> Blamed:
    """The index of a finding as the causes have it; one of them does."""
    return next(one for cause in causes for one in cause.indexes if one.name == finding.name)


def _saved_each(case: _Case, part: Part) -> tuple[float, float, float] | None:
    """Bytes that one update of a part writes less when it is HOT: at least, likely, at most."""
    columns = part.assigned
    heap = same_page_bytes(case.table, columns, wal_level=case.wal_level)
    entries = index_bytes(case.table)
    counted = _counted_each(case, part)
    if counted is None:
        # What an entry of a GIN writes has no formula.
        known = not (unpriced_of(case.table) or played_gins(case.table))
        return (entries.low, entries.mid, entries.high) if known else None
    each, cold = counted
    # Pruning writes no more than entries leave of what was counted: it need not come every time.
    pruning = min(prune_bytes().mid, max(each - heap.mid - cold * entries.low, 0.0))
    hot = heap.mid + pruning
    measured = max((each - (1 - cold) * hot) / cold, 0.0)
    indexes = max(len(case.shape.indexes), 1)
    beyond = max(measured - hot - entries.mid, 0.0)
    likely = min(entries.mid + beyond * indexes / (indexes + 1), max(measured - hot, 0.0))
    return min(entries.low, likely), likely, max(measured - heap.low, likely)


def _counted_each(case: _Case, part: Part) -> tuple[float, float] | None:
    """WAL of an update of a part's class, where it was counted, and which share was not HOT."""
    observed = case.table.observed
    if observed is None:
        return None
    for found in observed.updates.classes:
        columns = assigned_columns(observed, found)
        if columns != part.assigned or not found.rows or found.wal_bytes is None:
            continue
        of_class = sum(p.frac for p in case.parts if p.assigned == part.assigned)
        cold = part.frac / of_class if of_class else 1.0
        return float(found.wal_bytes) / float(found.rows), cold
    return None
