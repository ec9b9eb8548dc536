"""
The WAL of a window by relation, out of the text of the server's own pg_waldump.

One line a record (15 to 18):

    rmgr: Heap        len (rec/tot):     59/  8183, tx:  741, lsn: 0/..., prev 0/..., desc: LOCK
    ..., blkref #0: rel 1663/16384/16390 blk 7 FPW, blkref #1: rel 1663/16384/16390 fork vm blk 0

`tot` is xl_tot_len; `tot - rec` is what its images take, and `FPW` stands behind each block that
carries one. Source: XLogDumpDisplayRecord, src/bin/pg_waldump/pg_waldump.c, and
XLogRecGetBlockRefInfo, src/backend/access/rmgrdesc/xlogdesc.c (REL_15_STABLE to REL_18_STABLE).
Leaves out how WAL is stored: page headers and padding are not part of a record's length.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pgheadroom.errors import LabError, MeasurementInvalid

_RECORD = re.compile(
    r"rmgr: (\S+)\s+len \(rec/tot\):\s*(\d+)/\s*(\d+), tx:\s*(\d+), "
    r"lsn: [^,]*, prev [^,]*, desc: (\S+)"
)
_BLOCK = re.compile(
    r", blkref #\d+: rel (\d+/\d+/\d+)(?: fork (\w+))? blk (\d+)( FPW(?! for WAL verification))?"
)
_PARTS = re.compile(r"; subxacts: ([\d ]+)")
# As pg_waldump writes it, and as a session with DateStyle ISO does.
_ENDED = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?)(?: UTC| GMT|\+00(?!:?\d))")
_TOTAL = re.compile(r"^Total\s+(\d+)\s.*?(\d+)\s+\[[^\]]*\]\s*$", re.MULTILINE)

_SEGMENT_BYTES = 16 * 1024**2  # initdb's default, which our clusters have
_LONG_HEADER_BYTES = 40  # SizeOfXLogLongPHD, src/include/access/xlog_internal.h


def window_arguments(start: str, end: str) -> list[str]:
    """
    Arguments of pg_waldump for the records from one position to another, on timeline 1.

    Its segments are named too: without a name pg_waldump takes the segment size from any file of
    the folder, and fails when that is one that the server has made ready but not yet written.
    """
    first, last = _lsn(start), _lsn(end)
    if last % _SEGMENT_BYTES <= _LONG_HEADER_BYTES:  # nothing of ours in that segment yet
        last -= last % _SEGMENT_BYTES
    segments = [_segment(first), _segment(last - 1)]
    return ["-s", start, "-e", f"{last >> 32:X}/{last & 0xFFFFFFFF:X}", *segments]


def _lsn(text: str) -> int:
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) + int(low, 16)


def _segment(lsn: int) -> str:
    high, low = divmod(lsn // _SEGMENT_BYTES, 2**32 // _SEGMENT_BYTES)
    return f"{1:08X}{high:08X}{low:08X}"


@dataclass(frozen=True, slots=True)
class Block:
    """A block that a record references."""

    relation: str
    fork: str
    number: int
    has_image: bool


@dataclass(frozen=True, slots=True)
class WalRecord:
    """
    A record, as far as sums need it; `total_bytes` is xl_tot_len.

    `ended_at` is what a Transaction record says of its time, in epoch seconds, `parts` of its
    subtransactions.
    """

    rmgr: str
    kind: str
    xid: str
    total_bytes: int
    fpi_bytes: int
    blocks: tuple[Block, ...]
    ended_at: float | None = None
    parts: tuple[str, ...] = ()


@dataclass(slots=True)
class WalSums:
    """Sums over records; `bytes` are their whole lengths, images included."""

    records: int = 0
    bytes: int = 0
    fpi: int = 0
    fpi_bytes: int = 0
    blocks: set[tuple[str, str, int]] = field(default_factory=set)

    def add(self, total_bytes: int, fpi: int, fpi_bytes: int) -> None:
        """Count one record."""
        self.records += 1
        self.bytes += total_bytes
        self.fpi += fpi
        self.fpi_bytes += fpi_bytes


@dataclass(frozen=True, slots=True)
class WindowWal:
    """
    WAL of a window: of each table, of the clients' transactions, and of everything.

    `by_record` divides the tables' and the transactions' records by type, under the names of
    `pg_waldump --stats=record`. `ended_at` has the times of the transactions' records.
    """

    tables: Mapping[str, WalSums]
    transactions: WalSums
    everything: WalSums
    by_record: Mapping[str, WalSums]
    ended_at: Sequence[float] = ()


def ended_at(description: str) -> float | None:
    """The time in a Transaction record's description, in UTC; None where there is none."""
    match = _ENDED.search(description)
    if match is None:
        return None
    return datetime.fromisoformat(match[1]).replace(tzinfo=UTC).timestamp()


def parts_of(description: str) -> tuple[str, ...]:
    """The subtransactions in a Transaction record's description."""
    match = _PARTS.search(description)
    return () if match is None else tuple(match[1].split())


def waldump_records(lines: Iterable[str]) -> Iterator[WalRecord]:
    """
    Read pg_waldump's lines, its output without --bkp-details.

    Raises:
        LabError: A line is not what this reader knows.
    """
    for line in lines:
        record = _RECORD.match(line)
        if record is None:
            if line.strip():
                raise LabError(f"pg_waldump printed {line[:200]!r}, which is not a record")
            continue
        rmgr, own, total, xid, kind = record.groups()
        yield WalRecord(
            rmgr=rmgr,
            kind=kind.rstrip(","),
            xid=xid,
            total_bytes=int(total),
            fpi_bytes=int(total) - int(own),
            blocks=tuple(
                Block(relation, fork or "main", int(block), bool(image))
                for relation, fork, block, image in _BLOCK.findall(line, record.end())
            ),
            ended_at=ended_at(line[record.end() :]) if rmgr == "Transaction" else None,
            parts=parts_of(line) if rmgr == "Transaction" else (),
        )


def sum_wal(records: Iterable[WalRecord], table_of: Mapping[str, str]) -> WindowWal:
    """
    Sum up a window's records.

    A record belongs to the table one of whose relations it references by a block. A Transaction
    record is a client's if its transaction or a part of it changed or locked a row of these
    tables, and wrote no new file of theirs: what VACUUM FULL commits is mostly the catalogue's.
    Multixacts are told by type alone: they belong to no table, and end no transaction.

    Args:
        records: The records in their order.
        table_of: The table of each relation, by `tablespace/database/relfilenode`.

    Raises:
        MeasurementInvalid: A record references two tables.
    """
    tables = {name: WalSums() for name in table_of.values()}
    transactions, everything = WalSums(), WalSums()
    by_record: dict[str, WalSums] = {}
    clients: set[str] = set()
    rewriters: set[str] = set()
    writers: set[str] = set()
    hash_indexes: set[str] = set()
    times: list[float] = []
    for record in records:
        fpi = sum(1 for block in record.blocks if block.has_image)
        sums = [everything]
        found = {table_of[block.relation] for block in record.blocks if block.relation in table_of}
        if len(found) > 1:
            raise MeasurementInvalid(f"one WAL record references the tables {sorted(found)}")
        for name in found:
            sums.append(tables[name])
            tables[name].blocks.update(
                (block.relation, block.fork, block.number)
                for block in record.blocks
                if block.relation in table_of
            )
            changes_rows = record.rmgr == "Heap" or record.kind.startswith("MULTI_INSERT")
            if changes_rows and record.xid != "0":
                clients.add(record.xid)
            relations = {block.relation for block in record.blocks}
            if record.rmgr == "Hash":
                hash_indexes |= relations
            # A hash index that makes room for buckets logs a page so too.
            is_whole_page = (record.rmgr, record.kind) == ("XLOG", "FPI")
            if is_whole_page and record.xid != "0" and not relations <= hash_indexes:
                rewriters.add(record.xid)
        xids = {record.xid, *record.parts}
        is_end = record.rmgr == "Transaction"
        # A client that has waited in vain has a number and no other record; ANALYZE and its like
        # write to catalogs.
        has_none = record.kind in ("COMMIT", "ABORT") and writers.isdisjoint(xids)
        is_client = not clients.isdisjoint(xids) or has_none
        if is_end and is_client and rewriters.isdisjoint(xids):
            sums.append(transactions)
            if record.ended_at is not None:
                times.append(record.ended_at)
        # Hints on catalogs' pages come from whoever looks at them.
        if not is_end and record.kind != "FPI_FOR_HINT":
            writers.add(record.xid)
        if len(sums) > 1 or (record.rmgr == "MultiXact" and record.xid != "0"):
            sums.append(by_record.setdefault(f"{record.rmgr}/{record.kind}", WalSums()))
        for one in sums:
            one.add(record.total_bytes, fpi, record.fpi_bytes)
    return WindowWal(
        tables=tables,
        transactions=transactions,
        everything=everything,
        by_record=by_record,
        ended_at=times,
    )


def read_waldump(lines: Iterable[str], table_of: Mapping[str, str]) -> WindowWal:
    """Sum up pg_waldump's lines (`waldump_records`, `sum_wal`)."""
    return sum_wal(waldump_records(lines), table_of)


def check_stats(wal: WindowWal, stats: str) -> None:
    """
    Compare the sums over all records with `pg_waldump --stats` of the same range.

    Raises:
        LabError: No total in it.
        MeasurementInvalid: It counts otherwise: this reader does not understand that version.
    """
    total = _TOTAL.search(stats)
    if total is None:
        raise LabError(f"pg_waldump --stats has no total: it ends {stats[-200:]!r}")
    ours = (wal.everything.records, wal.everything.bytes)
    if ours != (int(total[1]), int(total[2])):
        raise MeasurementInvalid(
            f"pg_waldump --stats counts {total[1]} records of {total[2]} bytes, its list has "
            f"{ours[0]} of {ours[1]}"
        )
