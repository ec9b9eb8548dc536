"""
A tick for a script: one object a line, rates and the counts that they are made of.
"""

from __future__ import annotations

from dataclasses import dataclass

import pgheadroom
from pgheadroom.forms import Filed
from pgheadroom.watch.rates import TableRate, Tick
from pgheadroom.watch.reading import HorizonHolder, RunningVacuum
from pgheadroom.watch.sorting import Order, chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLine:
    """
    What happened to a table in the interval.

    Attributes:
        schema: Its schema.
        name: Its name.
        updates_per_s: Updates a second.
        hot_frac: HOT among them (0 to 1); None without any.
        newpage_frac: To another page among them (0 to 1); None without any, and before 16.
        inserts_per_s: Inserts a second.
        deletes_per_s: Deletes a second.
        n_tup_upd: Updates in the interval.
        n_tup_hot_upd: HOT ones.
        n_tup_newpage_upd: Those to another page; None before 16.
        n_tup_ins: Inserts.
        n_tup_del: Deletes.
        n_live_tup: Rows at its end, by the statistics.
        n_dead_tup: Dead ones, by the statistics.
    """

    schema: str
    name: str
    updates_per_s: float
    hot_frac: float | None
    newpage_frac: float | None
    inserts_per_s: float
    deletes_per_s: float
    n_tup_upd: int
    n_tup_hot_upd: int
    n_tup_newpage_upd: int | None
    n_tup_ins: int
    n_tup_del: int
    n_live_tup: int
    n_dead_tup: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchLine(Filed):
    """
    One reading of a server, and what happened since the one before it.

    Attributes:
        tool_version: Of ours.
        asked: Which server it is, where several are asked; else None.
        answered: Whether the server gave a reading; without one, what follows is None or empty.
        notes: What the reader has to know: restarts, resets, what went wrong.
        at_epoch_s: The server's clock, seconds since 1970.
        server: Its version, with the minor.
        database: Its name.
        in_recovery: It is a standby.
        sees_others: The role sees other users' sessions (pg_read_all_stats).
        interval_s: Since the reading before; None where no rates of tables can be told.
        wal_bytes_per_s: WAL written (a standby: replayed) a second.
        wal_fpi_per_s: Full-page images a second.
        checkpoints_timed: Checkpoints by time in the interval.
        checkpoints_requested: Checkpoints in it that were asked for.
        checkpoint_in_progress: One is being written; None where the role may not see it.
        vacuums: Those that run on the server.
        horizon: Who holds it, the oldest first.
        tables: Tables, as they were asked for.
        tables_of_all: How many there are of which anything is counted.
    """

    KIND = "watch"

    tool_version: str
    asked: str | None
    answered: bool
    notes: tuple[str, ...]
    at_epoch_s: float | None
    server: str | None
    database: str | None
    in_recovery: bool | None
    sees_others: bool | None
    interval_s: float | None
    wal_bytes_per_s: float | None
    wal_fpi_per_s: float | None
    checkpoints_timed: int | None
    checkpoints_requested: int | None
    checkpoint_in_progress: bool | None
    vacuums: tuple[RunningVacuum, ...]
    horizon: tuple[HorizonHolder, ...]
    tables: tuple[TableLine, ...]
    tables_of_all: int | None


def line_of(
    tick: Tick, order: Order, limit: int | None = None, *, asked: str | None = None
) -> WatchLine:
    """
    A tick as a line.

    Args:
        tick: It.
        order: Which tables, in what order.
        limit: At most so many of them; None: all.
        asked: Which server it is, of several.
    """
    now = tick.now
    return WatchLine(
        tool_version=pgheadroom.__version__,
        asked=asked,
        answered=now is not None,
        notes=tick.notes,
        at_epoch_s=None if now is None else now.at_s,
        server=None if now is None else now.server,
        database=None if now is None else now.database,
        in_recovery=None if now is None else now.in_recovery,
        sees_others=None if now is None else now.monitors,
        interval_s=tick.interval_s,
        wal_bytes_per_s=tick.wal_bytes_per_s,
        wal_fpi_per_s=tick.wal_fpi_per_s,
        checkpoints_timed=tick.checkpoints_timed,
        checkpoints_requested=tick.checkpoints_requested,
        checkpoint_in_progress=None if now is None else now.is_checkpointing,
        vacuums=() if now is None else now.vacuums,
        horizon=() if now is None else now.holders,
        tables=tuple(_table(table) for table in chosen(tick.tables, order)[:limit]),
        tables_of_all=len(tick.tables) if tick.counts else None,
    )


_OF_RATE = tuple(TableLine.__dataclass_fields__)


def _table(table: TableRate) -> TableLine:
    return TableLine(**{name: getattr(table, name) for name in _OF_RATE})
