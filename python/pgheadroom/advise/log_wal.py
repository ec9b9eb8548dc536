"""
WAL of a table's updates by the log of the interval, where the profile has it (`observe --wal`).

The log has each record and no statement. What only an update writes is counted; what inserts,
deletes and updates write alike, entries of indexes and pruning, is shared by how many there were,
and the interval says how far off that may be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pgheadroom.advise.table_advice import Remark
from pgheadroom.profile.observed import TableWal, WalCount
from pgheadroom.profile.tables import TableProfile
from pgheadroom.types import Interval
from pgheadroom.units import percent, show_bytes
from pgheadroom.wal.cause_names import cause_name

UPDATES = ("hot_update", "cold_update", "newpage_update")
_NOT_HOT = ("cold_update", "newpage_update")
_ENTRIES = ("index_insert", "index_split", "index_dedup", "index_delete", "index_other")
_PRUNING = ("prune", "prune_on_access")
_CAUSES_SHOWN = 4
_IMAGES = ("fpi_first_change", "fpi_hint", "fpi_forced")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogWal:
    """
    What the log says of a table's updates.

    Attributes:
        updates: Records of updates; those of transactions that aborted too.
        own_bytes_per_update: What they wrote, images apart.
        most_bytes_per_update: All WAL of the table over its updates, images included.
        with_images_bytes: What they wrote with their share of the images, all together.
        hot_bytes: What HOT ones wrote, images apart, all together; pruning is every update's alike.
        not_hot_bytes: The others, with their entries in indexes.
    """

    updates: int
    own_bytes_per_update: Interval
    most_bytes_per_update: float
    with_images_bytes: float
    hot_bytes: float
    not_hot_bytes: float


def log_wal(table: TableProfile) -> LogWal | None:
    """What the log says of a table's updates; None where it was not read or has none."""
    facts = table.observed
    if facts is None or facts.wal is None:
        return None
    wal = facts.wal
    updates = _records(wal, UPDATES)
    if not updates:
        return None
    # Files may have a part of the interval; counters have all of it.
    seen = min(updates / facts.counters.n_tup_upd, 1.0) if facts.counters.n_tup_upd else 1.0
    inserts = max(seen * (facts.counters.n_tup_ins or 0), _records(wal, ("insert",)))
    deletes = _records(wal, ("delete",))
    # Each version that is not heap-only has an entry in each index.
    entries = _shared(_bytes(wal, _ENTRIES), _records(wal, _NOT_HOT), inserts)
    pruning = _shared(_bytes(wal, _PRUNING), updates, deletes)
    alone = _bytes(wal, UPDATES) + _locks(wal)
    low, mid, high = (alone + one + other for one, other in zip(entries, pruning, strict=True))
    hot_pruning = pruning[1] * _records(wal, ("hot_update",)) / updates
    hot = _bytes(wal, ("hot_update",)) + hot_pruning
    beside_images = max(wal.bytes - _bytes(wal, _IMAGES), 1)
    return LogWal(
        updates=updates,
        own_bytes_per_update=Interval(
            low=low / updates, mid=mid / updates, high=high / updates, level=0.9
        ),
        most_bytes_per_update=wal.bytes / updates,
        with_images_bytes=mid * (1 + _bytes(wal, _IMAGES) / beside_images),
        hot_bytes=hot,
        not_hot_bytes=mid - hot,
    )


def log_remark(table: TableProfile) -> Remark | None:
    """What the log says of the table, and by which causes; None where it was not read."""
    wal = None if table.observed is None else table.observed.wal
    if wal is None or not wal.bytes:
        return None
    largest = sorted(wal.by_cause.items(), key=lambda item: -item[1].bytes)
    causes = ", ".join(
        f"{cause_name(cause)} {percent(count.bytes / wal.bytes)}"
        for cause, count in largest[:_CAUSES_SHOWN]
    )
    indexes = (
        f", {percent(wal.index_bytes / wal.bytes)} of it its indexes'" if wal.index_bytes else ""
    )
    return Remark(
        kind="wal",
        text=f"By the log the table wrote {show_bytes(wal.bytes)} of WAL in the interval"
        f"{indexes}: {causes}.",
        evidence="measured",
        gain={},
    )


def _shared(whole: float, ours: int, theirs: float) -> tuple[float, float, float]:
    """Our part by counts; off by as much as the smaller part at most."""
    if not ours:
        return 0.0, 0.0, 0.0
    frac = ours / (ours + theirs)
    off = min(frac, 1 - frac)
    return whole * (frac - off), whole * frac, whole * (frac + off)


def _locks(wal: TableWal) -> float:
    """An update that goes to another page locks its row first; other locks are SELECTs'."""
    locks = wal.by_cause.get("lock")
    if locks is None or not locks.records:
        return 0.0
    ours = min(_records(wal, ("newpage_update",)), locks.records)
    return float(locks.bytes) * ours / locks.records


def _records(wal: TableWal, causes: tuple[str, ...]) -> int:
    return sum(count.records for count in _of(wal.by_cause, causes))


def _bytes(wal: TableWal, causes: tuple[str, ...]) -> float:
    return float(sum(count.bytes for count in _of(wal.by_cause, causes)))


def _of(causes: Mapping[str, WalCount], wanted: tuple[str, ...]) -> list[WalCount]:
    return [count for cause, count in causes.items() if cause in wanted]
