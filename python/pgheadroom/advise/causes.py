"""
Why each update of the interval was HOT or not: the table's updates by cause.

Counters first. From 16 on an update that is neither HOT nor on a new page changed an indexed
column, for nothing else ends HOT on a page with room; one that went to a new page had no room, and
may have changed an indexed column too. 15 does not count new pages, and everything is estimated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pgheadroom.advise.blame import blame, within
from pgheadroom.advise.cold_updates import Blamed, Cause, CauseKind, Evidence
from pgheadroom.advise.log_wal import LogWal, log_wal
from pgheadroom.advise.room import PageRoom, RowGrowth, growth_of, room_of
from pgheadroom.advise.row import (
    Bytes,
    index_bytes,
    new_page_bytes,
    prune_bytes,
    same_page_bytes,
    wal_level_of,
)
from pgheadroom.advise.updates import Updates, updates_of
from pgheadroom.outcome import Value, ends, mid, scaled
from pgheadroom.profile import TableProfile
from pgheadroom.profile.observed_server import ObservedServer
from pgheadroom.types import Interval

UpdatesRange = tuple[int, int, int]
"""Updates at least, likely and at most."""


def causes_of(
    table: TableProfile, major: int, server: ObservedServer | None = None
) -> tuple[Cause, ...]:
    """
    Split an observed table's updates by cause.

    Args:
        table: With `observed`.
        major: Of the server.
        server: `[server.observed]`: who holds the horizon, wal_level.

    Returns:
        Causes that have updates, or may have, in the order of `CAUSES`; their (likely) numbers add
        up to the table's updates. Empty where no updates were counted.
    """
    updates = updates_of(table, major)
    if updates is None:
        return ()
    room, growth = room_of(table, updates, server), growth_of(table, updates)
    parts = _parts(updates, room, growth)
    sizes = _Sizes(table, updates, wal_level_of(server))
    made = []
    for kind, part in parts.items():
        if part[2] <= 0:
            continue
        blamed: tuple[Blamed, ...] = ()
        if kind == "indexed_column":
            blamed = tuple(blame(updates, part, updates.same_page_cold))
        value = within(*part)
        made.append(
            Cause(
                kind=kind,
                updates=value,
                frac=scaled(value, 1 / updates.count),
                evidence=_evidence(updates, kind, value),
                detail=_detail(kind, updates, room, growth, blamed),
                indexes=blamed,
                wal_bytes=sizes.of(kind, part, updates),
            )
        )
    logged = log_wal(table)
    return tuple(made) if logged is None else _by_the_log(made, updates, logged)


def _by_the_log(causes: Sequence[Cause], updates: Updates, logged: LogWal) -> tuple[Cause, ...]:
    """What HOT updates wrote and what the others did is measured; shares of these are estimated."""
    counted = updates.count / logged.updates
    measured = {True: logged.hot_bytes * counted, False: logged.not_hot_bytes * counted}
    estimated = {
        is_hot: sum(mid(c.wal_bytes) for c in causes if (c.kind == "hot") == is_hot)
        for is_hot in measured
    }
    factors = {is_hot: measured[is_hot] / whole for is_hot, whole in estimated.items() if whole > 0}
    return tuple(
        replace(cause, wal_bytes=scaled(cause.wal_bytes, factors.get(cause.kind == "hot", 1.0)))
        for cause in causes
    )


def _parts(updates: Updates, room: PageRoom, growth: RowGrowth) -> dict[CauseKind, UpdatesRange]:
    """Each cause's updates; the likely ones add up to all."""
    cold = updates.count - updates.hot
    indexed, unknown = _indexed(updates, cold)
    # What changed an indexed column would not have been HOT with all the room of the world.
    rest = cold - indexed[1] - unknown[1]
    rest_low, rest_high = max(cold - indexed[2] - unknown[2], 0), cold - indexed[0]
    # Where a page was never meant to take a version, growth is not what the row left it for.
    grows = growth.frac if room.spare_versions >= 1 else 0.0
    grew_high = rest_high if growth.frac else 0
    grew_mid = min(round(rest * grows), rest)
    return {
        "hot": (updates.hot,) * 3,
        "indexed_column": indexed,
        "no_room": (max(rest_low - grew_high, 0), rest - grew_mid, rest_high),
        "row_grew": (0, grew_mid, grew_high),
        "unknown": unknown,
    }


def _indexed(updates: Updates, cold: int) -> tuple[UpdatesRange, UpdatesRange]:
    """Updates that changed an indexed column, and those of which nobody can tell."""
    nothing: UpdatesRange = (0, 0, 0)
    _, likely, most = updates.bounds(indexed=True)
    others_least, _, others_most = updates.bounds(indexed=False)
    same_page = updates.same_page_cold
    if same_page is None:
        if not updates.indexes:
            return nothing, nothing
        # Others can be HOT; what of them was not had no room.
        high = min(most, cold - max(others_least - updates.hot, 0.0))
        if not updates.classes:
            return (0, 0, cold), (0, cold, cold)
        mid = min(likely, high, cold)
        return (0, round(mid), max(round(high), round(mid))), nothing
    newpage = cold - same_page
    if not updates.indexes:  # one was dropped inside the interval
        return (same_page,) * 3, nothing
    # Rows of classes that assign an indexed column, less those that were HOT in any case.
    high = min(max(most - same_page - max(updates.hot - others_most, 0.0), 0.0), newpage)
    stayed = same_page + updates.hot
    share = same_page / stayed if stayed else likely / updates.count
    mid = min(newpage * share, high)
    part = (same_page, same_page + round(mid), same_page + max(round(high), round(mid)))
    return part, nothing


def _evidence(updates: Updates, kind: CauseKind, value: Value) -> Evidence:
    if kind == "hot":
        return "measured"
    if updates.newpage is None or isinstance(value, Interval):
        return "estimated"
    return "measured"


class _Sizes:
    """WAL bytes of an update by cause, without full-page images."""

    def __init__(self, table: TableProfile, updates: Updates, wal_level: str) -> None:
        self._indexes = index_bytes(table)
        self._moved = new_page_bytes(table) + self._indexes + prune_bytes()
        self._by_kind: dict[bool | None, Bytes] = {}
        for indexed in (True, False, None):
            chosen = updates.classes if indexed is None else updates.assigning(indexed=indexed)
            sizes = [
                (c.rows, same_page_bytes(table, c.columns, wal_level=wal_level)) for c in chosen
            ]
            sizes = sizes or [(1.0, same_page_bytes(table, (), wal_level=wal_level))]
            self._by_kind[indexed] = _mean(sizes) + prune_bytes()

    def of(self, kind: CauseKind, part: UpdatesRange, updates: Updates) -> Value:
        """Of all updates of a cause."""
        if kind == "hot":
            each = self._by_kind[False if updates.assigning(indexed=False) else None]
            return _times(part, each, each)
        stayed = self._by_kind[True if updates.assigning(indexed=True) else None] + self._indexes
        if kind == "indexed_column":
            same_page = updates.same_page_cold
            if same_page is None:
                return _times(part, stayed, self._moved)
            # Those of other pages come on top of those that stayed.
            moved = (part[0] - same_page, part[1] - same_page, part[2] - same_page)
            return _added(
                _times((same_page,) * 3, stayed, stayed), _times(moved, self._moved, self._moved)
            )
        if kind == "unknown":
            return _times(part, stayed, self._moved)
        return _times(part, self._moved, self._moved)


def _mean(weighted: list[tuple[float, Bytes]]) -> Bytes:
    total = sum(weight for weight, _ in weighted) or 1.0
    return Bytes(
        low=min(size.low for _, size in weighted),
        mid=sum(weight * size.mid for weight, size in weighted) / total,
        high=max(size.high for _, size in weighted),
    )


def _times(part: UpdatesRange, one: Bytes, other: Bytes) -> Value:
    """Updates times bytes each, which are those of the one or the other."""
    low = part[0] * min(one.low, other.low)
    high = part[2] * max(one.high, other.high)
    mid = part[1] * (one.mid + other.mid) / 2
    return within(low, min(max(mid, low), high), high)


def _added(one: Value, other: Value) -> Value:
    low, mid, high = (a + b for a, b in zip(ends(one or 0.0), ends(other or 0.0), strict=True))
    return within(low, mid, high)


def _detail(
    kind: CauseKind, updates: Updates, room: PageRoom, growth: RowGrowth, blamed: tuple[Blamed, ...]
) -> str:
    if kind == "hot":
        return "The new version stayed on its page, and no index needed an entry."
    if kind == "indexed_column":
        return _indexed_detail(updates, blamed)
    if kind == "no_room":
        also = f" Rows may grow too: {growth.text}." if growth.text else ""
        return room.text[0].upper() + room.text[1:] + also
    if kind == "row_grew":
        return f"The longer version did not fit into the room of the old one: {growth.text}."
    return (
        "15 does not count updates that went to another page, and no statement is known that "
        "would tell which columns they assign."
    )


def _convicted(same_page: int, blamed: tuple[Blamed, ...]) -> str:
    """The one index that must have done it, and how many others may have; empty: not one."""
    certain = [item for item in blamed if item.certainty == "certain"]
    if len(certain) != 1 or len(blamed) == 1:
        return ""
    rest = same_page - round(ends(certain[0].updates or 0.0)[0])
    return certain[0].name + (f" (of another index for {rest:,} at most)" if rest > 0 else "")


def _indexed_detail(updates: Updates, blamed: tuple[Blamed, ...]) -> str:
    same_page = updates.same_page_cold
    if not updates.indexes:
        return "They stayed on their page and were not HOT, yet no index is left that ends HOT."
    names = ", ".join(item.name for item in blamed) or "one of the table's indexes"
    said = bool(updates.assigning(indexed=True))
    if same_page:
        text = (
            f"{same_page:,} stayed on their page and still were not HOT: a column of "
            f"{_convicted(same_page, blamed) or names} has changed."
        )
        if not said:
            text += (
                " No statement that is known assigns one: a trigger does, or a statement that "
                "nobody has seen."
            )
    elif said:
        text = (
            f"Statements assign columns of {names}; whether the values changed is not known, and "
            "an equal value keeps HOT."
        )
    elif updates.classes:
        text = (
            "No statement that is known assigns a column of an index; whether all are known is not "
            "counted."
        )
    else:
        text = "No statement is known that tells which columns were assigned."
    if updates.newpage and same_page is not None:
        text += " Updates that went to another page may have changed one as well."
    return text
