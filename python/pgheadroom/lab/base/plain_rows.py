"""
A table of rows of equal length, `(k int, v char(n))`, and the ways in which they come into it.

Shared by the experiments about loading. Nothing of the data differs from run to run.
"""

from __future__ import annotations

import hashlib
import random
import string
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgheadroom import _core
from pgheadroom.errors import MeasurementInvalid
from pgheadroom.lab.counters import wait_for_clients
from pgheadroom.lab.design import Factor
from pgheadroom.lab.place import Running
from pgheadroom.units import PAGE_BYTES, setting_bytes

if TYPE_CHECKING:
    import psycopg

TABLE = "t"
ROWS_PER_SCALE = 100_000
_LINES_PER_BLOCK = 1000
_ALPHABET = string.ascii_letters + string.digits + "_-"
_VALUE_SEED = 20260506

FILLER_OPTION = Factor(
    name="filler_length",
    description="length of the column v, char(n)",
    unit="characters",
    default=(64,),
    bounds=(1, 1000),
    single=True,
)


def row_bytes(filler_length: int) -> int:
    """Heap tuple length of a row, header included, not rounded."""
    return _core.heap_tuple_bytes([("int4", 4), ("bpchar", filler_length)])


def value_text(length: int) -> str:
    """
    So many characters that pglz and lz4 cannot compress, the same in every run.

    Of 64 kinds: a third character matches one before by chance once in sixty positions.
    """
    generator = random.Random(_VALUE_SEED)  # noqa: S311 - data, not a secret
    return "".join(generator.choices(_ALPHABET, k=length))


def quiet_settings(data_bytes: int, memory_bytes: int) -> dict[str, str]:
    """Buffers for all data, and nothing that writes but the statements."""
    wanted = max(int(data_bytes * 1.5) + 64 * 1024**2, 128 * 1024**2)
    return {
        "shared_buffers": setting_bytes(min(wanted, memory_bytes // 2)),
        "autovacuum": "off",
        "checkpoint_timeout": "1d",
        "max_wal_size": "1TB",
        "bgwriter_lru_maxpages": "0",
        "synchronize_seqscans": "off",
        "jit": "off",
        "max_parallel_workers_per_gather": "0",
        "max_parallel_maintenance_workers": "0",
        "fsync": "off",
    }


def filler(key: int, length: int) -> str:
    """The text of a row: hexadecimal digits of a hash, so that a compressor finds half at most."""
    text = ""
    part = 0
    while len(text) < length:
        text += hashlib.sha256(f"{key}.{part}".encode()).hexdigest()
        part += 1
    return text[:length]


def copy_blocks(rows: int, length: int) -> Iterator[bytes]:
    """The rows as COPY reads them, a thousand lines at a time."""
    for first in range(1, rows + 1, _LINES_PER_BLOCK):
        last = min(first + _LINES_PER_BLOCK - 1, rows)
        lines = [f"{key}\t{filler(key, length)}\n" for key in range(first, last + 1)]
        yield "".join(lines).encode("ascii")


@dataclass(frozen=True, slots=True, kw_only=True)
class WalMoment:
    """The server's WAL counters and its last checkpoint at one moment."""

    records: int
    images: int
    size_bytes: int
    checkpoint_lsn: str

    def since(self, start: WalMoment) -> WalMoment:
        """
        What was added.

        Raises:
            MeasurementInvalid: A checkpoint ended in between.
        """
        if self.checkpoint_lsn != start.checkpoint_lsn:
            raise MeasurementInvalid("a checkpoint ended inside a step, expected none")
        return WalMoment(
            records=self.records - start.records,
            images=self.images - start.images,
            size_bytes=self.size_bytes - start.size_bytes,
            checkpoint_lsn=self.checkpoint_lsn,
        )


def wal_counters(server: Running) -> WalMoment:
    """
    Read pg_stat_wal when nobody else is connected to the database under test.

    The last checkpoint is the control file's: a counter is told of one only after it has ended.

    Raises:
        MeasurementInvalid: Somebody is connected to the database under test.
    """
    with server.connect() as connection:
        wait_for_clients(connection)
        row = connection.execute(
            "SELECT wal_records, wal_fpi, wal_bytes::bigint, checkpoint_lsn::text "
            "FROM pg_stat_wal, pg_control_checkpoint()"
        ).fetchone()
        assert row is not None, "pg_stat_wal has one row"
        return WalMoment(
            records=row[0],
            images=row[1],
            size_bytes=row[2],
            checkpoint_lsn=row[3],
        )


def require_rows(connection: psycopg.Connection[Any], rows: int, *, table: str = TABLE) -> None:
    """Raise MeasurementInvalid unless the table has so many rows; reads it, and so sets hints."""
    found = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    assert found is not None, "an aggregate returns one row"
    if found[0] != rows:
        raise MeasurementInvalid(f"{table} has {found[0]} rows, expected {rows}")


def relation_pages(
    connection: psycopg.Connection[Any], name: str = TABLE, *, fork: str = "main"
) -> int:
    """Pages of one fork of a relation: `main`, `fsm`, `vm`."""
    row = connection.execute("SELECT pg_relation_size(%s::regclass, %s)", (name, fork)).fetchone()
    assert row is not None, "a function returns one row"
    return int(row[0]) // PAGE_BYTES


def map_pages(connection: psycopg.Connection[Any]) -> int:
    """Pages of the table's free space map and visibility map."""
    return sum(relation_pages(connection, fork=fork) for fork in ("fsm", "vm"))


def checkpoints_logged(server: Running) -> int:
    """Checkpoints that a server of ours has begun so far, by its log, which is told at once."""
    assert server.cluster is not None, "only our own servers have a log that we can read"
    return server.cluster.log_path.read_text(errors="replace").count("checkpoint starting")
