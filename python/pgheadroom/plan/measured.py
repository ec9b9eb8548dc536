"""
What an observation says of a table, as far as a forecast is held against it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pgheadroom.advise.log_wal import log_wal
from pgheadroom.forms import in_file
from pgheadroom.profile import Profile
from pgheadroom.profile.observed import UpdateClass
from pgheadroom.profile.tables import TableProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateShare:
    """Part of a table's updates that assign these columns."""

    columns: tuple[str, ...]
    frac: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredInterval:
    """
    A table over one interval.

    Attributes:
        interval_s: Its length.
        fillfactor: In force.
        rows: Live rows, as the observation has them.
        heap_bytes: Main fork at the end; None where it could not be read.
        inserts: Rows in the interval; updates, deletes, hot_updates, newpage_updates likewise,
            the last None on 15; all None where the counters broke.
        tuple_bytes: Mean length of a row's version; None without a sample.
        classes: Which columns the updates assign; empty where no source says.
        classes_source: That source.
        wal_bytes_per_update: Of the UPDATE statements alone, without commit records, vacuum and
            inserts; None without pg_stat_statements. By the log where that was read: then images
            are apart.
        held_frac: Part of the interval in which the horizon stood still.
        wal_by_log: True where the WAL is the log's.
    """

    interval_s: float
    fillfactor: int
    rows: int
    heap_bytes: int | None
    inserts: int | None
    updates: int | None
    deletes: int | None
    hot_updates: int | None
    newpage_updates: int | None
    tuple_bytes: float | None
    classes: tuple[UpdateShare, ...]
    classes_source: str | None
    wal_bytes_per_update: float | None
    held_frac: float
    wal_by_log: bool | None = field(default=None, metadata=in_file(unless_none=True))

    @property
    def hot_frac(self) -> float | None:
        """HOT updates over updates; None without updates."""
        if not self.updates or self.hot_updates is None:
            return None
        return self.hot_updates / self.updates

    @property
    def newpage_frac(self) -> float | None:
        """Updates that went to another page, over updates; None without updates, and on 15."""
        if not self.updates or self.newpage_updates is None:
            return None
        return self.newpage_updates / self.updates

    @property
    def updates_per_s(self) -> float:
        """Rate of updates."""
        return (self.updates or 0) / self.interval_s


def measure(profile: Profile, table: TableProfile) -> MeasuredInterval:
    """
    What an observed profile says of one of its tables.

    Args:
        profile: From an observation.
        table: Of it, with what was observed.
    """
    server, facts = profile.server.observed, table.observed
    assert server is not None, "only observed profiles are measured"
    assert facts is not None, "tables of an observed profile are observed"
    counters = facts.counters
    sample = facts.sample
    classes, still = facts.updates.classes, server.horizon.stood_still
    logged = log_wal(table)

    return MeasuredInterval(
        interval_s=float(server.interval_s),
        fillfactor=table.fillfactor,
        rows=table.rows,
        heap_bytes=facts.main_bytes,
        inserts=counters.n_tup_ins,
        updates=counters.n_tup_upd,
        deletes=counters.n_tup_del,
        hot_updates=counters.n_tup_hot_upd,
        newpage_updates=counters.n_tup_newpage_upd,
        tuple_bytes=None if sample is None else float(sample.tuple_bytes.mean),
        classes=tuple(
            UpdateShare(columns=found.columns, frac=float(found.frac or 0.0)) for found in classes
        ),
        classes_source=facts.updates.source,
        wal_bytes_per_update=(
            _wal_per_update(classes) if logged is None else logged.own_bytes_per_update.mid
        ),
        held_frac=min(1.0, sum(float(part.length_frac) for part in still)),
        wal_by_log=True if logged is not None else None,
    )


def _wal_per_update(classes: Sequence[UpdateClass]) -> float | None:
    """Over the classes whose statements were counted with their rows and their WAL."""
    known = [
        (found.rows, found.wal_bytes)
        for found in classes
        if found.kind == "update" and found.rows and found.wal_bytes is not None
    ]
    rows = sum(counted for counted, _ in known)
    return sum(wal_bytes for _, wal_bytes in known) / rows if rows else None
