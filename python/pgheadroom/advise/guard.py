"""
Between the twin and what is shown: no figure passes that contradicts what was measured.

The setting in force is where both are known. What the twin has there, in the state that the table
is in, is held against everything that the interval has measured; what lies beyond the interval of
either by more than a stated tolerance is named, and none of its figures is shown, of no setting:
then the answer is what was measured, or none. Whatever the twin returns, the WAL of an update that
is shown stays within what the server can have written (`Guard.shown`).

HOT and new-page shares are compared where they are fitted (`calibrate.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from pgheadroom.advise.foreseen import Point
from pgheadroom.advise.log_wal import log_wal
from pgheadroom.advise.unplayed import said_unplayed, unplayed_wal
from pgheadroom.outcome import Value, ends, middle
from pgheadroom.predict.running_out import flow_of
from pgheadroom.predict.without_row import SAID_FROM_FRAC
from pgheadroom.profile import Profile
from pgheadroom.profile.observed import UpdateClass
from pgheadroom.profile.observed_server import ObservedServer
from pgheadroom.profile.tables import TableProfile
from pgheadroom.profile.unpriced import played_gins, said_unpriced, unpriced_of
from pgheadroom.types import Interval
from pgheadroom.units import PAGE_BYTES, percent, show_bytes

WAL_TOLERANCE = 0.3
"""WAL of an update may be off by this part of what was measured, beside both intervals."""

LONG_RUN = 2.0
"""In the long run an update may write this many times what was measured: fewer or more are HOT."""

SIZE_TOLERANCE = 0.5
"""A heap may be off by this part: a table that has lived has room that nobody has seen."""

INDEX_TOLERANCE = 0.5
"""B-trees may be off by this part, beside the interval: full pages from a build, half full ones
after splits, and rows of before."""

DONE_FRAC_MIN = 0.5
"""Of the updates asked for, that must find their row: rows that come and go are not followed."""

_UPDATE_BYTES_MIN = 40.0  # a record's and a block's header are longer: SizeOfXLogRecord, 24 + 20
# Of a page: what an image takes. Holes are left out; compressed ones are a tenth and more.
_IMAGE_FRAC, _IMAGE_FRAC_LOW, _IMAGE_FRAC_COMPRESSED = 0.9, 0.6, 0.1
_BRIN = "brin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """
    What the server has measured of a table's updates at the setting in force.

    Attributes:
        wal_bytes_per_update: What their statements wrote, images apart; None where nobody counted.
        most_wal_bytes_per_update: What an update can have written at most, images apart: all WAL of
            its statements, else all of the server's; None where neither is known.
        heap_bytes: Main fork of the table.
        index_bytes: Main forks of its B-trees; None where what stands for one is not alike.
        counted: Updates that the WAL was counted of; None: all of them.
        counted_by: Who says the WAL of an update, as a part of a sentence.
    """

    wal_bytes_per_update: Interval | None
    most_wal_bytes_per_update: float | None
    heap_bytes: float | None
    index_bytes: float | None = None
    counted: float | None = None
    counted_by: str = "pg_stat_statements has counted it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Twins:
    """
    The twin's figures of the same table, at the same setting and in the same state.

    `done_frac` is the part of the updates that were asked for that found their row; `without_row`
    says which operation found none in more of its turns than may pass; `left_out` are indexes whose
    pages and WAL are not in it.
    """

    wal_bytes_per_update: Value
    heap_bytes: float | None
    done_frac: float
    index_bytes: Value = None
    without_row: str | None = None
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """
    What of the twin's figures may be shown.

    Attributes:
        measured: Of the setting in force.
        contradicted: What the twin has otherwise, in sentences.
        is_wal_shown: Whether WAL and the costs that are made of it are.
        is_size_shown: Whether sizes of the heap are.
        is_index_size_shown: Whether sizes of the indexes are.
        reason: Why there is no answer at all; None where there may be one.
        unpriced: Indexes whose WAL is that of a B-tree over the same columns.
        left_out: Indexes that the twin ends HOT for and has no pages and no WAL of.
        unplayed: Bytes that those write with each update that is not HOT; None where nobody knows.
    """

    measured: Measured
    contradicted: tuple[str, ...]
    is_wal_shown: bool
    is_size_shown: bool
    reason: str | None
    unpriced: tuple[str, ...] = ()
    is_index_size_shown: bool = True
    left_out: tuple[str, ...] = ()
    unplayed: Interval | None = None

    def shown(self, point: Point) -> Point:
        """The point without what was contradicted."""
        if not self.is_wal_shown or not self._is_possible(point):
            point = replace(
                point, wal_bytes_per_update=None, all_wal_bytes_per_update=None, cost=None
            )
        if not self.is_size_shown:
            point = replace(point, heap_bytes=None, seq_scan_pages=None)
        if not self.is_index_size_shown:
            point = replace(point, index_bytes=None)
        return point

    @property
    def missing(self) -> str:
        """What is not priced, as a sentence; empty where all is."""
        return said_unpriced(self.unpriced) or said_unplayed(self.left_out, self.unplayed)

    def _is_possible(self, point: Point) -> bool:
        """Whether its WAL of an update is one that the server can have written."""
        found, most = middle(point.wal_bytes_per_update), self.limit
        if found is None:
            return True
        return math.isfinite(found) and found >= 0 and (most is None or found <= most)

    @property
    def limit(self) -> float | None:
        """The most that is shown as WAL of an update, at any setting; None where nothing is known.

        The tolerance is for the model; twice as much as was measured, for the state: what the long
        run has may be other than what the interval had.
        """
        known = self.measured.wal_bytes_per_update
        most = self.measured.most_wal_bytes_per_update
        ends = [end for end in (None if known is None else known.high, most) if end is not None]
        return LONG_RUN * (1 + WAL_TOLERANCE) * min(ends) if ends else None


def measured_of(profile: Profile, table: TableProfile) -> Measured:
    """
    What an observed profile has measured of a table's updates.

    Args:
        profile: Made by `observe`.
        table: One of its tables.
    """
    assert table.observed is not None, "an observed profile"
    heap_bytes = table.observed.main_bytes
    logged = log_wal(table)
    if logged is not None:
        return Measured(
            wal_bytes_per_update=logged.own_bytes_per_update,
            most_wal_bytes_per_update=logged.most_bytes_per_update,
            heap_bytes=None if heap_bytes is None else float(heap_bytes),
            index_bytes=_index_bytes(table),
            counted_by="the log has it",
        )
    compressed = profile.server.wal_compression != "off"
    own, most = wal_of_statements(table, compressed=compressed)
    updates = table.observed.counters.n_tup_upd
    server = profile.server.observed
    total = None if server is None else _all_wal(server)
    if updates and total is not None:
        most = total / updates if most is None else min(most, total / updates)
    return Measured(
        wal_bytes_per_update=own,
        most_wal_bytes_per_update=most,
        heap_bytes=None if heap_bytes is None else float(heap_bytes),
        index_bytes=_index_bytes(table),
        counted=sum(float(found.rows or 0) for found in _updates_of(table)),
    )


def _updates_of(table: TableProfile) -> tuple[UpdateClass, ...]:
    """Its UPDATEs; upserts and MERGE are not among them."""
    classes = () if table.observed is None else table.observed.updates.classes
    return tuple(found for found in classes if found.kind == "update")


def _index_bytes(table: TableProfile) -> float | None:
    """
    Of the table's B-trees and played GINs as the server has them.

    None where something else stands for one of them: other methods, and expressions and predicates
    whose entries are others than those of the columns that stand for them.
    """
    gins = {index.name for index in played_gins(table)}
    gins |= {name.rpartition(".")[2] for name in gins}
    listed = [
        found
        for found in (() if table.observed is None else table.observed.indexes)
        if found.method != _BRIN
    ]
    played = [index for index in table.indexes if index.method != _BRIN]
    if len(listed) != len(played) or any(
        found.method not in ("btree", "gin")
        or (found.method == "gin" and found.name not in gins)
        or ("expressions" in found and found.method != "gin")
        or "predicate" in found
        or found.main_bytes is None
        for found in listed
    ):
        return None
    return math.fsum(float(found.main_bytes or 0) for found in listed)


def wal_of_statements(
    table: TableProfile, *, compressed: bool
) -> tuple[Interval | None, float | None]:
    """
    WAL per row of the UPDATEs that pg_stat_statements has counted: images apart, and with them.

    Images are counted, their bytes are not: each takes a page without its hole.

    Args:
        table: Observed.
        compressed: Whether images are.
    """
    classes = _updates_of(table)
    known = [found for found in classes if found.rows and found.wal_bytes is not None]
    rows = sum(float(found.rows or 0) for found in known)
    if not rows or len(known) < len(classes):
        return None, None
    wal_bytes: float = sum(found.wal_bytes or 0 for found in known)
    most = wal_bytes / rows
    images = [found.wal_fpi for found in known]
    if any(number is None for number in images):
        return None, most  # a profile of an earlier version
    whole = PAGE_BYTES * sum(number or 0 for number in images)
    least = _IMAGE_FRAC_COMPRESSED if compressed else _IMAGE_FRAC_LOW

    floor = min(most, _UPDATE_BYTES_MIN)

    def apart(frac: float) -> float:
        return max((wal_bytes - frac * whole) / rows, floor)

    low, high, likely = apart(1.0), apart(least), apart(_IMAGE_FRAC)
    # Images that leave nothing of what was written were smaller than they mostly are.
    mid = (low + high) / 2 if compressed or likely <= floor else likely
    return Interval.within(low, high, mid=mid, level=0.9), most


def _all_wal(server: ObservedServer) -> float | None:
    """All WAL of the interval, whoever wrote it."""
    counted = None if server.counters.wal is None else server.counters.wal.wal_bytes
    wal = counted or server.counters.wal_position_bytes
    return None if wal is None else float(wal)


def _why_without_row(profile: Profile, table: TableProfile) -> str:
    """Why statements come that find nothing in a run of the operations that were observed."""
    flow = flow_of(profile.workload.operations, table.name)
    more = 0.0 if flow is None else flow.more_deleted_frac
    if more > SAID_FROM_FRAC:
        return (
            f"it runs empty within the run that an answer needs, for {percent(more, 1)} more rows "
            "were deleted from it in the interval than inserted"
        )
    return "its rows come and go, and at which age who meets them is not known well enough"


def guard_of(profile: Profile, table: TableProfile, twins: Twins) -> Guard:
    """
    Hold the twin's figures of the setting in force against the measured ones.

    Args:
        profile: Made by `observe`.
        table: One of its tables.
        twins: In the state that the table is in.
    """
    measured = measured_of(profile, table)
    said: list[str] = []
    reason: str | None = None
    if twins.done_frac < DONE_FRAC_MIN:
        reason = (
            "its rows come and go within the run that an answer needs, and the twin cannot follow "
            f"them: {percent(1 - twins.done_frac)} of its updates would find no row"
        )
        said.append(reason)
    elif twins.without_row is not None:
        reason = f"{_why_without_row(profile, table)}: in the twin {twins.without_row}"
        said.append(reason)
    wal = _wal_contradicts(measured, twins.wal_bytes_per_update, is_whole=not twins.left_out)
    unpriced = () if twins.left_out else unpriced_of(table)
    if wal is not None:
        named = f"; {said_unpriced(unpriced)}" if unpriced else ""
        said.append(f"{wal}{named}")
        reason = reason or f"{wal}{named}: measured figures hold, nothing is foreseen of WAL"
    size = _size_contradicts(measured, twins.heap_bytes)
    if size is not None:
        said.append(size)
        # Room from before is nothing that the twin does wrong; rows that lie closer than it has
        # them are: what it plays is not what happens to this table.
        if measured.heap_bytes is not None and (twins.heap_bytes or 0) > measured.heap_bytes:
            reason = reason or f"{size}: it plays something else than what happens to this table"
    indexes = _indexes_contradict(measured, twins.index_bytes)
    if indexes is not None:
        said.append(indexes)
    return Guard(
        measured=measured,
        contradicted=tuple(said),
        is_wal_shown=wal is None and reason is None,
        is_size_shown=size is None and twins.done_frac >= DONE_FRAC_MIN,
        is_index_size_shown=(
            indexes is None
            and not (unpriced or twins.left_out)
            # Buckets are added in steps, which a smaller table takes elsewhere.
            and all(index.method != "hash" for index in table.indexes)
            and twins.done_frac >= DONE_FRAC_MIN
        ),
        reason=reason,
        unpriced=unpriced,
        left_out=twins.left_out,
        unplayed=unplayed_wal(
            table,
            measured.wal_bytes_per_update,
            twins.wal_bytes_per_update,
            counted=measured.counted,
        )
        if twins.left_out
        else None,
    )


def _wal_contradicts(measured: Measured, found: Value, *, is_whole: bool) -> str | None:
    """
    The twin's WAL of an update against what was measured, without the twin's figure.

    Where it leaves indexes out (`is_whole` is not set), less is what it should have.
    """
    if found is None:
        return None
    low, _, high = ends(found)
    known, most = measured.wal_bytes_per_update, measured.most_wal_bytes_per_update
    if not (math.isfinite(low) and math.isfinite(high)):
        return "the twin has no WAL of an update"
    if known is not None:
        beyond = low > known.high * (1 + WAL_TOLERANCE)
        below = high < known.low * (1 - WAL_TOLERANCE)
        if beyond or (below and is_whole):
            return (
                f"the twin does not repeat the WAL of an update, {known.mid:,.0f} bytes as "
                f"{measured.counted_by}"
            )
    if most is not None and low > most * (1 + WAL_TOLERANCE):
        return (
            "the twin has more WAL of an update than the server wrote at all, "
            f"{most:,.0f} bytes an update of this table"
        )
    return None


def _size_contradicts(measured: Measured, found: float | None) -> str | None:
    known = measured.heap_bytes
    if not known or found is None or known < 100 * PAGE_BYTES:  # of few pages one is much
        return None
    if abs(found / known - 1) <= SIZE_TOLERANCE:
        return None
    return (
        f"the heap has {show_bytes(known)}, which its rows and the twin do not explain: it has "
        "room that nobody has seen"
        if found < known
        else f"the heap has {show_bytes(known)}, less than the twin makes of its rows"
    )


def _indexes_contradict(measured: Measured, found: Value) -> str | None:
    """The twin's B-trees against those of the server, beyond the interval and a tolerance."""
    known = measured.index_bytes
    if known is None or found is None or known < 100 * PAGE_BYTES:
        return None
    low, _, high = ends(found)
    if not (math.isfinite(low) and math.isfinite(high)):
        return "the twin has no size of the indexes"
    if high < known * (1 - INDEX_TOLERANCE):
        return (
            f"the indexes have {show_bytes(known)}, which their entries and the twin do not "
            "explain: they have room that nobody has seen"
        )
    if low > known * (1 + INDEX_TOLERANCE):
        return f"the indexes have {show_bytes(known)}, less than the twin makes of their entries"
    return None
