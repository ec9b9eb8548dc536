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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pgheadroom.errors import LabError, MeasurementInvalid

_RECORD = re.compile(r"rmgr: (\S+)\s+len \(rec/tot\):\s*(\d+)/\s*(\d+), tx:\s*(\d+), lsn: ")
_BLOCK = re.compile(
    r", blkref #\d+: rel (\d+/\d+/\d+)(?: fork (\w+))? blk (\d+)( FPW(?! for WAL verification))?"
)
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
    """WAL of a window: of each table, of the clients' transactions, and of everything."""

    tables: Mapping[str, WalSums]
    transactions: WalSums
    everything: WalSums


def read_waldump(lines: Iterable[str], table_of: Mapping[str, str]) -> WindowWal:
    """
    Sum up pg_waldump's lines.

    A record belongs to the table one of whose relations it references by a block. A Transaction
    record is a client's if its transaction changed or locked a row of these tables.

    Args:
        lines: Its output, without --bkp-details.
        table_of: The table of each relation, by `tablespace/database/relfilenode`.

    Raises:
        LabError: A line is not what this reader knows.
        MeasurementInvalid: A record references two tables.
    """
    tables = {name: WalSums() for name in table_of.values()}
    transactions, everything = WalSums(), WalSums()
    clients: set[str] = set()
    for line in lines:
        record = _RECORD.match(line)
        if record is None:
            if line.strip():
                raise LabError(f"pg_waldump printed {line[:200]!r}, which is not a record")
            continue
        rmgr, own, total, xid = record.groups()
        total_bytes, fpi_bytes = int(total), int(total) - int(own)
        blocks = _BLOCK.findall(line, record.end())
        fpi = sum(1 for block in blocks if block[3])
        everything.add(total_bytes, fpi, fpi_bytes)
        found = {table_of[block[0]] for block in blocks if block[0] in table_of}
        if len(found) > 1:
            raise MeasurementInvalid(f"one WAL record references the tables {sorted(found)}")
        for name in found:
            tables[name].add(total_bytes, fpi, fpi_bytes)
            tables[name].blocks.update(
                (relation, fork or "main", int(block))
                for relation, fork, block, _ in blocks
                if relation in table_of
            )
            if rmgr == "Heap" and xid != "0":
                clients.add(xid)
        if rmgr == "Transaction" and xid in clients:
            transactions.add(total_bytes, fpi, fpi_bytes)
    return WindowWal(tables=tables, transactions=transactions, everything=everything)


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
