"""
PostgreSQL's own counters, read when nobody else is connected to the database under test.

A backend hands its counts over at the latest when it ends, so reading waits until the clients
have gone. What a version lacks is None, never 0.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgheadroom.errors import MeasurementInvalid
from pgheadroom.lab.checkpoints import checkpoints_begun
from pgheadroom.types import PgVersion

if TYPE_CHECKING:
    import psycopg

    from pgheadroom.lab.place import Running

CLIENTS_GONE_WITHIN_S = 30.0
_NEWPAGE_FROM_MAJOR = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMoment:
    """Counters of one table, its sizes, and the server's, at one moment."""

    n_tup_ins: int
    n_tup_upd: int
    n_tup_del: int
    n_tup_hot_upd: int
    n_tup_newpage_upd: int | None
    heap_pages: int
    index_pages: int
    autovacuums: int
    checkpoints: int
    wal_records: int
    wal_fpi: int
    wal_bytes: int
    buffers_hit: int
    buffers_read: int


def wait_for_clients(connection: psycopg.Connection[Any], *, others: int = 0) -> None:
    """
    Wait until this is the only client of its database, but for `others` that are meant to be there.

    Raises:
        MeasurementInvalid: Somebody else stays connected.
    """
    deadline = time.monotonic() + CLIENTS_GONE_WITHIN_S
    while True:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        ).fetchone()
        assert row is not None, "an aggregate returns one row"
        if row[0] <= others:
            return
        if time.monotonic() > deadline:
            raise MeasurementInvalid(
                f"{row[0]} other clients are still connected to the database under test"
            )
        time.sleep(0.01)


def table_counters(server: Running, table: str, *, others: int = 0) -> TableMoment:
    """
    Read the counters of `table` and of the server.

    Args:
        server: A running server; nothing of ours may be connected to its database.
        table: The table's name, as on the search path.
        others: Sessions of ours that stay connected meanwhile, idle in what they do.

    Raises:
        MeasurementInvalid: Somebody is connected to the database under test.
    """
    version = server.version
    newpage = "n_tup_newpage_upd" if version.major >= 16 else "NULL::bigint"
    with server.connect() as connection:
        wait_for_clients(connection, others=others)
        row = connection.execute(
            f"SELECT n_tup_ins, n_tup_upd, n_tup_del, n_tup_hot_upd, {newpage}, "
            "pg_relation_size(relid) / current_setting('block_size')::int, "
            "(SELECT coalesce(sum(pg_relation_size(indexrelid)), 0)::bigint "
            " / current_setting('block_size')::int FROM pg_index WHERE indrelid = relid), "
            "autovacuum_count FROM pg_stat_user_tables WHERE relid = %s::regclass",
            (table,),
        ).fetchone()
        assert row is not None, f"{table} has a row in pg_stat_user_tables"
        wal = connection.execute(
            "SELECT wal_records, wal_fpi, wal_bytes::bigint FROM pg_stat_wal"
        ).fetchone()
        assert wal is not None, "pg_stat_wal has one row"
        checkpoints = checkpoints_begun(connection, version)
        buffers = connection.execute(
            "SELECT blks_hit, blks_read FROM pg_stat_database WHERE datname = current_database()"
        ).fetchone()
        assert buffers is not None, "the current database has a row"
    return TableMoment(
        n_tup_ins=row[0],
        n_tup_upd=row[1],
        n_tup_del=row[2],
        n_tup_hot_upd=row[3],
        n_tup_newpage_upd=row[4],
        heap_pages=row[5],
        index_pages=row[6],
        autovacuums=row[7],
        checkpoints=checkpoints,
        wal_records=wal[0],
        wal_fpi=wal[1],
        wal_bytes=wal[2],
        buffers_hit=buffers[0],
        buffers_read=buffers[1],
    )


def uncounted(version: PgVersion) -> dict[str, str]:
    """Counters that a version lacks, each with why, for what a sample assumed."""
    if version.major >= _NEWPAGE_FROM_MAJOR:
        return {}
    first = f"not counted by PostgreSQL {version} ({_NEWPAGE_FROM_MAJOR} is the first)"
    return {"n_tup_newpage_upd": first}
