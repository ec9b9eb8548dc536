"""
Full-page images in a stretch of WAL, by the server's own pg_waldump.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pgheadroom.errors import MeasurementInvalid
from pgheadroom.servers import find_client

if TYPE_CHECKING:
    from pgheadroom.lab.place import Running

_TOTAL = re.compile(r"^Total\s+(\d+)\s+(\d+)\s+\[[^]]*\]\s+(\d+)\s+\[", re.MULTILINE)


def wal_position(server: Running) -> str:
    """How far the WAL is written, as a server prints it."""
    with server.connect() as connection:
        row = connection.execute("SELECT pg_current_wal_lsn()::text").fetchone()
    assert row is not None, "a function returns one row"
    return str(row[0])


def image_bytes(server: Running, start: str, end: str) -> int | None:
    """
    Bytes of full-page images between two positions.

    Returns:
        None where the files cannot be read: a borrowed server, or one without pg_waldump.

    Raises:
        MeasurementInvalid: pg_waldump fails, or prints no total.
    """
    host = server.host
    if host is None or server.cluster is None:
        return None
    program, version = find_client("pg_waldump", host.programs)
    if version.major != host.programs.version.major:
        return None
    done = host.run(
        [program, "--stats", "-p", str(server.cluster.data_dir / "pg_wal"), "-s", start, "-e", end],
        env={},
        timeout=600,
    )
    total = _TOTAL.search(done.stdout)
    if total is None:
        raise MeasurementInvalid(
            f"pg_waldump --stats of {start} to {end} printed no total: {done.stderr[-300:]!r}"
        )
    return int(total[3])
