"""
The WAL of a window out of a server's own pg_walinspect, where no pg_waldump is at hand.

The function shows each record's length, its images' length, and its blocks as text:

    blkref #0: rel 1663/16384/16390 fork main blk 7 (FPW); hole: offset: 268, length: 1580

Source: GetWALRecordInfo, contrib/pg_walinspect/pg_walinspect.c, and XLogRecGetBlockRefInfo,
src/backend/access/rmgrdesc/xlogdesc.c (REL_15_STABLE to REL_18_STABLE).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pgheadroom.play.waldump import Block, WalRecord, ended_at, parts_of

if TYPE_CHECKING:
    import psycopg

_BLOCK = re.compile(
    r"blkref #\d+: rel (\d+/\d+/\d+) fork (\w+) blk (\d+)( \(FPW(?! for WAL verification))?"
)
_RECORDS = """
SELECT resource_manager, record_type, record_length::bigint, fpi_length::bigint, xid::text,
       coalesce(block_ref, ''), CASE WHEN resource_manager = 'Transaction' THEN description END
FROM pg_get_wal_records_info(%s::pg_lsn, %s::pg_lsn)
"""


def is_available(connection: psycopg.Connection[Any]) -> bool:
    """Whether the server has the extension (not whether the database has)."""
    row = connection.execute(
        "SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_walinspect'"
    ).fetchone()
    assert row is not None, "an aggregate returns one row"
    return bool(row[0])


def read_walinspect(
    connection: psycopg.Connection[Any], start: str, end: str
) -> Iterator[WalRecord]:
    """
    Read the records from one position to another.

    Args:
        connection: A session in a database with the extension.
        start: Where the window begins.
        end: Where it ends; all records before it are flushed.
    """
    connection.execute("SET timezone = 'UTC'")
    with connection.cursor() as cursor:
        for rmgr, kind, total, fpi, xid, blocks, description in cursor.stream(
            _RECORDS, (start, end)
        ):
            yield WalRecord(
                rmgr=rmgr,
                kind=kind,
                xid=xid,
                total_bytes=int(total),
                fpi_bytes=int(fpi),
                blocks=tuple(
                    Block(relation, fork, int(number), bool(image))
                    for relation, fork, number, image in _BLOCK.findall(blocks)
                ),
                ended_at=None if description is None else ended_at(description),
                parts=() if description is None else parts_of(description),
            )
