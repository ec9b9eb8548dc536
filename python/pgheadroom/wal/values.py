"""
What a range of WAL adds up to, as a value.

Sums over relations and over causes equal the total. A block's header, data and image belong to the
block's relation, the record's own header, main data and count to that of its first block; an
image's bytes count under the image's reason, everything else under the record's cause.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pgheadroom.forms import Filed, in_file
from pgheadroom.tabular import Row, Tabular


def share_of(part: float, whole: float) -> float:
    """Which share of some bytes others are; none of nothing."""
    return part / max(whole, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Records and bytes of a cause; a record counts once, under the cause of its own part."""

    records: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """Everything: `bytes` is the sum of `xl_tot_len`, `fpi_bytes` the images in it."""

    records: int
    bytes: int
    fpi: int
    fpi_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationWal:
    """
    A relation's WAL.

    All numbers are None for records without a block. `name` and what is beside it are None where
    the names at hand do not have the relation; `table` is that of an index or a TOAST table.
    """

    tablespace_oid: int | None
    database_oid: int | None
    relfilenode: int | None
    name: str | None
    database: str | None = None
    table: str | None = None
    method: str | None = None
    records: int
    bytes: int
    fpi: int
    fpi_bytes: int
    by_cause: Mapping[str, Count]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordType:
    """A record type under pg_waldump's names; `bytes` with images."""

    rmgr: str
    type: str
    records: int
    bytes: int
    fpi_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A stretch that could not be read, the file in which it begins, and what is wrong there."""

    from_lsn: str
    to_lsn: str
    path: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """
    A part of the log: a checkpoint cycle, from one redo point to the next, or a slice of time.

    `begins_at` is None of a cycle, and of what lies before the first end of a transaction.
    """

    from_lsn: str
    to_lsn: str
    begins_at: str | None
    records: int
    bytes: int
    fpi_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionWal:
    """
    What a transaction has written, with the parts that it committed.

    `end` is `commit`, `abort` or `open`; a part that was rolled back stands by itself.
    """

    xid: int
    from_lsn: str
    end: str
    ended_at: str | None
    records: int
    bytes: int
    fpi_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WalStats(Tabular, Filed):
    """
    WAL by relation and cause.

    Attributes:
        server: The major version that wrote it.
        system_identifier: As `pg_control_system()` has it, as text: it is more than 2^53.
        timeline: The timeline that the files lead to.
        start_lsn: Where the first record begins; None without one.
        end_lsn: Where the last one ends.
        first_end: Earliest end of a transaction, ISO 8601 in UTC; None without one.
        last_end: Latest end of a transaction.
        total: Everything.
        overhead_bytes: Page headers, padding and rests of switched segments, outside the total.
        by_cause: Over all relations.
        relations: Largest first.
        record_types: Largest first.
        memo: Bytes of interest beside their cause.
        gaps: What could not be read.
        files: How many files were read.
        notes: What a reader of the numbers has to know.
        stretches: Cycles or slices of time, where they were asked for.
        transactions: The largest, where they were asked for.
    """

    KIND = "wal_stats"

    tool_version: str
    server: str
    system_identifier: str
    timeline: int
    start_lsn: str | None
    end_lsn: str | None
    first_end: str | None
    last_end: str | None
    total: Total
    overhead_bytes: int
    by_cause: Mapping[str, Count]
    relations: tuple[RelationWal, ...]
    record_types: tuple[RecordType, ...]
    memo: Mapping[str, int]
    gaps: tuple[Gap, ...]
    files: int
    notes: tuple[str, ...] = ()
    stretches: tuple[Stretch, ...] = field(default=(), metadata=in_file(unless_empty=True))
    transactions: tuple[TransactionWal, ...] = field(
        default=(), metadata=in_file(unless_empty=True)
    )

    def rows(self) -> list[Row]:
        """One row a relation and cause."""
        return [
            {
                "tablespace_oid": relation.tablespace_oid,
                "database_oid": relation.database_oid,
                "relfilenode": relation.relfilenode,
                "database": relation.database,
                "name": relation.name,
                "table": relation.table,
                "method": relation.method,
                "cause": cause,
                "records": count.records,
                "bytes": count.bytes,
            }
            for relation in self.relations
            for cause, count in relation.by_cause.items()
        ]

    def summary(self) -> str:
        """The range and its total."""
        return (
            f"WAL of PostgreSQL {self.server}, {self.start_lsn} to {self.end_lsn}: "
            f"{self.total.records} records, {self.total.bytes} bytes"
        )
