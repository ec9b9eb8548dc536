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

from pgheadroom.advise.blame import within
from pgheadroom.advise.cold_updates import Blamed, Cause, IndexFinding
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
from pgheadroom.outcome import Value, ends, mid, scaled
from pgheadroom.profile import TableProfile
from pgheadroom.profile.observed_server import ObservedServer
from pgheadroom.profile.unpriced import PRICED, played_gins, unpriced_of

FRAC_MIN = 0.05
"""Of the updates, for an index to be a finding; arbitrary."""

_ROOM_UNKNOWN = 0.5  # 15 does not count what found no room: from half of it on; arbitrary


def findings_of(
    table: TableProfile,
    updates: Updates | None,
    causes: Sequence[Cause],
    major: int,
    server: ObservedServer | None,
) -> tuple[IndexFinding, ...]:
    """
    The indexes of a table that end HOT for a good part of its updates.

    Args:
        table: As observed.
        updates: Of its interval; None without.
        causes: The same by cause.
        major: Of the server.
        server: `[server.observed]`, for wal_level.

    Returns:
        By falling WAL saved.
    """
    interval_s = interval_of(table)
    blamed = [one for cause in causes for one in cause.indexes]
    if updates is None or interval_s is None or not blamed:
        return ()
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
        if reads is not None and mid(one.updates) >= FRAC_MIN * updates.count:
            found.append(_finding(case, one, reads))
    return ranked(found)


def ranked(findings: Iterable[IndexFinding]) -> tuple[IndexFinding, ...]:
    """By the WAL that they cost; those that nobody can price by their updates, last."""
    return tuple(
        sorted(
            findings,
            key=lambda f: (-mid(f.wal_bytes_saved_per_day), -mid(f.updates_frac), f.table, f.name),
        )
    )


def predicted(
    finding: IndexFinding, now: Point, then: Point, updates_per_s: float, *, is_priced: bool
) -> IndexFinding:
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


def _finding(case: _Case, blamed: Blamed, reads: Reads) -> IndexFinding:
    updates = case.updates
    others = tuple(index for index in case.shape.indexes if index.name != blamed.name)
    without = replace(case.shape, indexes=others)
    freed = outcome(case.parts, case.shape, without).gained
    by = _blocking(case, blamed.name)
    with_others = {
        blocker.index
        for part in case.parts
        if any(b.index == blamed.name for b in blockers(case.shape, part.assigned, part.steady))
        for blocker in blockers(without, part.assigned, part.steady)
    }
    freed_frac = sum(part.frac for part in freed)
    blamed_frac = mid(blamed.updates) / updates.count
    if not case.parts:
        # No statement is known: what is not HOT is this index's doing if no other can have done it.
        freed_frac = 0.0 if without.blocking else blamed_frac
        with_others = {index.name for index in others if index.ends_hot(case.shape.major)}
    now = updates.hot / updates.count
    room = _room(updates)
    high = min(now + freed_frac, 1.0)
    low = min(now + freed_frac * room, high)
    return IndexFinding(
        table=case.table.name,
        name=blamed.name,
        columns=by,
        updates_frac=scaled(blamed.updates, 1 / updates.count),
        hot_frac_now=now,
        hot_frac_then=within(low, (low + high) / 2, high),
        wal_bytes_saved_per_day=_saved(case, blamed, reads, freed_frac, freed),
        evidence="estimated",
        certainty=blamed.certainty,
        enforces=reads.enforces or ("unique" if blamed.unique else None),
        only_with=tuple(sorted(with_others)),
        scans=blamed.scans,
        total_scans=blamed.total_scans,
    )


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
    case: _Case, blamed: Blamed, reads: Reads, freed_frac: float, freed: Sequence[Part]
) -> Value:
    """WAL a day without the index."""
    room = _room(case.updates)
    label = index_label(case.table, blamed.name)
    own = tuple(index for index in case.table.indexes if index.name == label)
    entry = index_bytes(replace(case.table, indexes=own))
    low = mid_ = high = 0.0
    stays = max(mid(blamed.updates) / case.updates.count - freed_frac, 0.0)
    for part in freed or ([Part(assigned=frozenset(), frac=freed_frac)] if freed_frac else []):
        one = _saved_each(case, part)
        if one is None:
            return None
        low += part.frac * room * one[0]
        mid_ += part.frac * (room + 1) / 2 * one[1]
        high += part.frac * one[2]
    if stays and reads.method not in PRICED:  # what an entry of a GIN writes only the twin has
        if not freed_frac:
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
    hot = heap.mid + prune_bytes().mid
    measured = _measured_each(case, part, hot)
    if measured is None:
        # What an entry of a GIN writes has no formula.
        known = not (unpriced_of(case.table) or played_gins(case.table))
        return (entries.low, entries.mid, entries.high) if known else None
    indexes = max(len(case.shape.indexes), 1)
    beyond = max(measured - hot - entries.mid, 0.0)
    likely = min(entries.mid + beyond * indexes / (indexes + 1), max(measured - hot, 0.0))
    return min(entries.low, likely), likely, max(measured - heap.low, likely)


def _measured_each(case: _Case, part: Part, hot: float) -> float | None:
    """WAL of one such update where its class was counted: without what its HOT ones wrote."""
    observed = case.table.observed
    if observed is None:
        return None
    for found in observed.updates.classes:
        columns = assigned_columns(observed, found)
        if columns != part.assigned or not found.rows or found.wal_bytes is None:
            continue
        each = float(found.wal_bytes) / float(found.rows)
        of_class = sum(p.frac for p in case.parts if p.assigned == part.assigned)
        cold = part.frac / of_class if of_class else 1.0
        return max((each - (1 - cold) * hot) / cold, 0.0)
    return None
