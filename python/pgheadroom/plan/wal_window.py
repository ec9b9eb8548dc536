"""
The write-ahead log of a time beside the rows changed in it, from two readings of counters.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgheadroom.plan.remedies import TableWork, WalWindow

if TYPE_CHECKING:
    import psycopg

_SERVER = """
SELECT (pg_current_wal_insert_lsn() - '0/0')::int8 AS wal_bytes, w.wal_fpi::int8 AS images,
       (to_jsonb(w) ->> 'wal_fpi_bytes')::numeric::int8 AS image_bytes,
       (SELECT coalesce(sum(d.tup_inserted + d.tup_updated + d.tup_deleted), 0)::int8
        FROM pg_stat_database d
        WHERE d.datname IS DISTINCT FROM current_database()) AS elsewhere_rows
FROM pg_stat_wal w
"""
_TABLES = """
SELECT c.oid::int8 AS oid, pg_stat_get_tuples_inserted(c.oid) AS inserts,
       pg_stat_get_tuples_updated(c.oid) AS updates,
       pg_stat_get_tuples_hot_updated(c.oid) AS hot_updates,
       pg_stat_get_tuples_deleted(c.oid) AS deletes
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'm') AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WalReading:
    """Counters at a moment; `at_s` by our own clock."""

    at_s: float
    wal_bytes: int
    images: int
    image_bytes: int | None
    elsewhere_rows: int
    tables: dict[int, TableWork]


def read_wal(connection: psycopg.Connection[Any]) -> WalReading:
    """
    Read the counters now.

    Raises:
        psycopg.Error: A query failed.
    """
    from psycopg.rows import dict_row  # noqa: PLC0415 - as psycopg

    with connection.cursor(row_factory=dict_row) as cursor:
        server = cursor.execute(_SERVER.encode()).fetchone()
        rows = cursor.execute(_TABLES.encode()).fetchall()
    assert server is not None, "the view has one row"
    return WalReading(
        at_s=time.monotonic(),
        wal_bytes=server["wal_bytes"],
        images=server["images"],
        image_bytes=server["image_bytes"],
        elsewhere_rows=server["elsewhere_rows"],
        tables={row["oid"]: TableWork(**row) for row in rows},
    )


def window_of(begin: WalReading, end: WalReading) -> WalWindow | None:
    """What came between; None where counters went back, for they were reset."""
    tables = []
    for oid, now in end.tables.items():
        was = begin.tables.get(oid)
        work = TableWork(
            oid=oid,
            inserts=now.inserts - (was.inserts if was else 0),
            updates=now.updates - (was.updates if was else 0),
            hot_updates=now.hot_updates - (was.hot_updates if was else 0),
            deletes=now.deletes - (was.deletes if was else 0),
        )
        if min(work.inserts, work.updates, work.hot_updates, work.deletes) < 0:
            return None
        if work.rows:
            tables.append(work)
    images, elsewhere = end.images - begin.images, end.elsewhere_rows - begin.elsewhere_rows
    if images < 0 or elsewhere < 0:
        return None
    both = begin.image_bytes is not None and end.image_bytes is not None
    return WalWindow(
        interval_s=max(round(end.at_s - begin.at_s, 3), 0.001),
        wal_bytes=end.wal_bytes - begin.wal_bytes,
        images=images,
        image_bytes=(end.image_bytes or 0) - (begin.image_bytes or 0) if both else None,
        tables=tuple(sorted(tables, key=lambda each: each.oid)),
        elsewhere_rows=elsewhere,
    )
