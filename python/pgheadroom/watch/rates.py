"""
Two readings as what happened between them, or the reason why nothing can be told.

A counter that went back, statistics that were reset, a server that was started anew (a crash resets
all of them), and a clock that was set all make a difference of two readings a wrong number. Then
there is none for this tick, and the next counts from here.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from pgheadroom.watch.reading import ServerReading, TableCounts

_CLOCK_TOLERANCE_S = 0.05
"""By how much the server's clock may run otherwise than ours; arbitrary. A step is larger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRate:
    """
    What happened to a table in an interval.

    Attributes:
        schema: Its schema.
        name: Its name.
        interval_s: The interval.
        n_tup_upd: Updates in it.
        n_tup_hot_upd: Of these, HOT.
        n_tup_newpage_upd: Of these, to another page; None before PostgreSQL 16.
        n_tup_ins: Inserts in it.
        n_tup_del: Deletes in it.
        n_live_tup: Rows at its end, by the statistics.
        n_dead_tup: Dead ones at its end, by the statistics.
    """

    schema: str
    name: str
    interval_s: float
    n_tup_upd: int
    n_tup_hot_upd: int
    n_tup_newpage_upd: int | None
    n_tup_ins: int
    n_tup_del: int
    n_live_tup: int
    n_dead_tup: int

    @property
    def updates_per_s(self) -> float:
        """Updates a second."""
        return self.n_tup_upd / self.interval_s

    @property
    def inserts_per_s(self) -> float:
        """Inserts a second."""
        return self.n_tup_ins / self.interval_s

    @property
    def deletes_per_s(self) -> float:
        """Deletes a second."""
        return self.n_tup_del / self.interval_s

    @property
    def hot_frac(self) -> float | None:
        """The share of HOT among the updates; None without any."""
        return self.n_tup_hot_upd / self.n_tup_upd if self.n_tup_upd else None

    @property
    def newpage_frac(self) -> float | None:
        """The share of updates that went to another page; None without any, and before 16."""
        if not self.n_tup_upd or self.n_tup_newpage_upd is None:
            return None
        return self.n_tup_newpage_upd / self.n_tup_upd


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """
    A reading, and what happened since the one before it.

    Attributes:
        now: The reading; None where the server gave none.
        interval_s: Since the reading before it; None where no rate can be told.
        tables: What happened to tables in it; those of which nothing is counted are left out.
        wal_bytes_per_s: WAL written (a standby: replayed) a second.
        wal_fpi_per_s: Full-page images a second.
        checkpoints_timed: Checkpoints by time in it.
        checkpoints_requested: Checkpoints that were asked for in it.
        notes: What the reader has to know: restarts, resets, what went wrong.
    """

    now: ServerReading | None
    interval_s: float | None = None
    tables: tuple[TableRate, ...] = ()
    wal_bytes_per_s: float | None = None
    wal_fpi_per_s: float | None = None
    checkpoints_timed: int | None = None
    checkpoints_requested: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def counts(self) -> bool:
        """Whether rates of tables can be told."""
        return self.interval_s is not None


def ticked(before: ServerReading | None, now: ServerReading, notes: tuple[str, ...] = ()) -> Tick:
    """
    What happened between two readings.

    Args:
        before: The earlier one; None: there is none.
        now: The later one.
        notes: What is to be said beside.
    """
    if before is None:
        return Tick(now=now, notes=notes)
    if before.life != now.life:
        return Tick(now=now, notes=(*notes, _other_life(before, now)))
    interval_s = now.tables_at_s - before.tables_at_s
    if interval_s <= 0 or not _clock_agrees(before, now, interval_s):
        note = "the server's clock was set: no rates for this interval"
        return Tick(now=now, notes=(*notes, note))
    if before.wal_reset_s != now.wal_reset_s and (
        before.checkpoints_reset_s != now.checkpoints_reset_s
    ):
        # A crash of one process has the same postmaster begin anew, with its time of start.
        note = "all statistics were reset, as after a crash: rates begin anew"
        return Tick(now=now, notes=(*notes, note))
    said = [*notes]
    tables: tuple[TableRate, ...] = ()
    told: float | None = None
    if before.tables_reset_s != now.tables_reset_s:
        said.append("statistics of this database were reset: rates begin anew")
    elif back := [table for table in now.tables.values() if _went_back(before, table)]:
        count = "a table" if len(back) == 1 else f"{len(back)} tables"
        said.append(f"counters of {count} went back: rates begin anew")
    else:
        told = interval_s
        tables = tuple(_table_rates(before, now, interval_s))
    wal_s = now.at_s - before.at_s
    fpi: int | None = None
    if before.wal_reset_s == now.wal_reset_s:
        fpi = _advance(before.wal_fpi, now.wal_fpi)
    timed = requested = None
    if before.checkpoints_reset_s == now.checkpoints_reset_s:
        timed = _advance(before.num_timed, now.num_timed)
        requested = _advance(before.num_requested, now.num_requested)
    wal = _advance(before.wal_bytes, now.wal_bytes)
    return Tick(
        now=now,
        interval_s=told,
        tables=tables,
        wal_bytes_per_s=wal / wal_s if wal is not None and wal_s > 0 else None,
        wal_fpi_per_s=fpi / wal_s if fpi is not None and wal_s > 0 else None,
        checkpoints_timed=timed,
        checkpoints_requested=requested,
        notes=tuple(said),
    )


def _other_life(before: ServerReading, now: ServerReading) -> str:
    if (before.server, before.database) != (now.server, now.database):
        return f"another server answers, {now.server}: rates begin anew"
    if before.started_s != now.started_s:
        when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now.started_s))
        return f"the server was started again ({when}): rates begin anew"
    return "the standby was promoted: rates begin anew"


def _clock_agrees(before: ServerReading, now: ServerReading, interval_s: float) -> bool:
    """Whether our own clock had time for the server's interval, and no more than it."""
    least_s = now.sent_s - before.received_s
    most_s = now.received_s - before.sent_s
    slack_s = _CLOCK_TOLERANCE_S + 0.01 * most_s
    return least_s - slack_s <= interval_s <= most_s + slack_s


def _advance(before: int | None, now: int | None) -> int | None:
    """By how much a counter went on; None where it went back, or is not known."""
    if before is None or now is None or now < before:
        return None
    return now - before


_COUNTERS = ("n_tup_ins", "n_tup_upd", "n_tup_hot_upd", "n_tup_newpage_upd", "n_tup_del")
_ZERO = dict.fromkeys(_COUNTERS, 0)


def _earlier(before: ServerReading, table: TableCounts) -> dict[str, int]:
    """Its counters then; a table that was not there had nothing counted."""
    found = before.tables.get(table.oid)
    if found is None:
        return _ZERO
    return {name: getattr(found, name) or 0 for name in _COUNTERS}


def _went_back(before: ServerReading, table: TableCounts) -> bool:
    earlier = _earlier(before, table)
    return any((getattr(table, name) or 0) < count for name, count in earlier.items())


def _table_rates(
    before: ServerReading, now: ServerReading, interval_s: float
) -> Iterator[TableRate]:
    for table in now.tables.values():
        earlier = _earlier(before, table)
        newpage = table.n_tup_newpage_upd
        yield TableRate(
            schema=table.schema,
            name=table.name,
            interval_s=interval_s,
            n_tup_upd=table.n_tup_upd - earlier["n_tup_upd"],
            n_tup_hot_upd=table.n_tup_hot_upd - earlier["n_tup_hot_upd"],
            n_tup_newpage_upd=None if newpage is None else newpage - earlier["n_tup_newpage_upd"],
            n_tup_ins=table.n_tup_ins - earlier["n_tup_ins"],
            n_tup_del=table.n_tup_del - earlier["n_tup_del"],
            n_live_tup=table.n_live_tup,
            n_dead_tup=table.n_dead_tup,
        )
