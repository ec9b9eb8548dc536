"""
One reading of a server's counters.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgheadroom.watch import queries

if TYPE_CHECKING:
    import psycopg


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCounts:
    """
    What the statistics have of a table, under PostgreSQL's names.

    `n_tup_newpage_upd` is None before PostgreSQL 16, which does not count it.
    """

    oid: int
    schema: str
    name: str
    n_tup_ins: int
    n_tup_upd: int
    n_tup_hot_upd: int
    n_tup_newpage_upd: int | None
    n_tup_del: int
    n_live_tup: int
    n_dead_tup: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningVacuum:
    """
    A VACUUM that runs, by pg_stat_progress_vacuum.

    Attributes:
        pid: Its process.
        database: Where.
        schema: Of its table; None in another database, or without pg_read_all_stats.
        name: Of its table, or of the table whose TOAST table it is.
        is_toast: It works on the TOAST table of that.
        phase: In PostgreSQL's words; None where the role may not see it.
        heap_blks_total: Pages at its beginning.
        heap_blks_scanned: Of these, looked at or passed by.
        index_vacuum_count: Passes over the indexes that are done.
        dead_items: Line pointers gathered for the next pass.
        indexes_total: Indexes of this pass (from 17 on).
        indexes_processed: Of these, done.
        is_auto: It is autovacuum's.
        for_s: For how long.
    """

    pid: int
    database: str | None
    schema: str | None
    name: str | None
    is_toast: bool
    phase: str | None
    heap_blks_total: int | None
    heap_blks_scanned: int | None
    index_vacuum_count: int | None
    dead_items: int | None
    indexes_total: int | None
    indexes_processed: int | None
    is_auto: bool | None
    for_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HorizonHolder:
    """
    Who holds the horizon, the oldest first.

    Attributes:
        kind: session, prepared transaction, standby feedback, or slot.
        name: Its process, transaction, standby or slot.
        what: State and application.
        database: Of which the rows are; None: of all.
        is_here: It holds rows of this database.
        is_catalog: It holds rows of catalogs alone.
        age_xids: How many transactions began since.
        for_s: For how long, where that is known.
    """

    kind: str
    name: str
    what: str
    database: str | None
    is_here: bool
    is_catalog: bool
    age_xids: int
    for_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerReading:
    """
    One reading.

    Attributes:
        at_s: The server's clock, seconds since 1970.
        sent_s: Our own clock (monotonic) before the reading of tables.
        received_s: And after it.
        tables_at_s: The server's clock at the reading of tables.
        started_s: When the server started.
        server: Its version, with the minor.
        database: Its name.
        in_recovery: It is a standby.
        monitors: The role sees other users' sessions.
        wal_bytes: Position of the log's end (a standby: of what is replayed); None: none yet.
        wal_fpi: Full-page images since `wal_reset_s`.
        num_timed: Checkpoints by time since `checkpoints_reset_s`.
        num_requested: Checkpoints that were asked for, by WAL or by somebody.
        is_checkpointing: One is being written; None where the role may not see it.
        tables: By oid; those of which anything is counted.
        tables_reset_s: When this database's statistics were reset; None: never.
        vacuums: Those that run on the server.
        holders: Of the horizon, the oldest first.
    """

    at_s: float
    sent_s: float
    received_s: float
    tables_at_s: float
    started_s: float
    server: str
    database: str
    in_recovery: bool
    monitors: bool
    wal_bytes: int | None
    wal_fpi: int
    wal_reset_s: float | None
    num_timed: int
    num_requested: int
    checkpoints_reset_s: float | None
    is_checkpointing: bool | None
    tables: Mapping[int, TableCounts]
    tables_reset_s: float | None
    vacuums: tuple[RunningVacuum, ...]
    holders: tuple[HorizonHolder, ...]

    @property
    def life(self) -> tuple[object, ...]:
        """What is the same as long as it is the same server, not started again."""
        return (self.started_s, self.server, self.database, self.in_recovery)


def read_counters(connection: psycopg.Connection[Any]) -> ServerReading:
    """
    Read a server's counters.

    Args:
        connection: From `read_only_session`.
    """
    major = connection.info.server_version // 10000
    (moment,) = _rows(connection, queries.text_for(queries.MOMENT, major))
    sent_s = time.monotonic()
    tables = _rows(connection, queries.text_for(queries.TABLES, major))
    received_s = time.monotonic()
    vacuums = _rows(connection, queries.text_for(queries.VACUUMS, major))
    holders = _rows(connection, queries.holders_for(major))
    return ServerReading(
        at_s=moment["at_epoch_s"],
        sent_s=sent_s,
        received_s=received_s,
        tables_at_s=tables[0]["at_epoch_s"],
        started_s=moment["started_epoch_s"],
        server=moment["server_version"].split()[0],
        database=moment["database"],
        in_recovery=moment["in_recovery"],
        monitors=bool(moment["monitors"]),
        wal_bytes=moment["wal_position_bytes"],
        wal_fpi=moment["wal_fpi"],
        wal_reset_s=moment["wal_reset_epoch_s"],
        num_timed=moment["num_timed"],
        num_requested=moment["num_requested"],
        checkpoints_reset_s=moment["checkpoints_reset_epoch_s"],
        is_checkpointing=moment["is_writing"],
        tables={
            row["oid"]: TableCounts(**{name: row[name] for name in _COUNTED})
            for row in tables
            if row["oid"] is not None
        },
        tables_reset_s=moment["tables_reset_epoch_s"],
        vacuums=tuple(_vacuum(row) for row in vacuums),
        holders=tuple(_holder(row, moment["at_epoch_s"]) for row in holders),
    )


_COUNTED = tuple(TableCounts.__dataclass_fields__)
_SHOWN_OF_VACUUM = tuple(RunningVacuum.__dataclass_fields__)


def _rows(connection: psycopg.Connection[Any], query: str) -> list[dict[str, Any]]:
    from psycopg.rows import dict_row  # noqa: PLC0415 - loads libpq

    with connection.cursor(row_factory=dict_row) as cursor:
        return list(cursor.execute(query.encode()).fetchall())


def _vacuum(row: dict[str, Any]) -> RunningVacuum:
    return RunningVacuum(**{name: row[name] for name in _SHOWN_OF_VACUUM})


def _holder(row: dict[str, Any], at_s: float) -> HorizonHolder:
    from_s = row["from_epoch_s"]
    return HorizonHolder(
        kind=row["kind"],
        name=row["name"],
        what=" ".join(filter(None, (row["state"], row["application_name"]))),
        database=row["database"],
        is_here=bool(row["is_here"]),
        is_catalog=bool(row["is_catalog"]),
        age_xids=row["age_xids"],
        for_s=None if from_s is None else max(at_s - from_s, 0.0),
    )
