"""Small files of WAL, laid out as PostgreSQL does, for tests without a server."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

SEGMENT = 1024**2
PAGE = 8192
_POLYNOMIAL = 0x82F63B78


def _table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
        table.append(crc)
    return table


_TABLE = _table()


def crc32c(content: bytes, crc: int = 0) -> int:
    """Castagnoli's checksum, byte by byte."""
    crc ^= 0xFFFFFFFF
    for byte in content:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


class WalFile:
    """WAL from a segment's begin; each record has at most one block."""

    def __init__(self, start: int, *, magic: int = 0xD118, system: int = 42) -> None:
        self.start = start
        self.magic = magic
        self.system = system
        self.content = b""
        self.prev = 0

    @property
    def position(self) -> int:
        """Where the next byte goes."""
        return self.start + len(self.content)

    def _page_header(self, left: int) -> None:
        first = self.position % SEGMENT == 0
        info = (1 if left else 0) | (2 if first else 0)
        self.content += struct.pack("<HHIQI4x", self.magic, info, 1, self.position, left)
        if first:
            self.content += struct.pack("<QII", self.system, SEGMENT, PAGE)

    def record(
        self,
        rmgr: int,
        info: int,
        relfilenode: int | None = None,
        *,
        main: bytes = b"",
        data: int = 0,
        xid: int = 700,
    ) -> int:
        """Write a record; returns its length."""
        payload = b""
        if relfilenode is not None:
            flags = 0x20 if data else 0
            payload += struct.pack("<BBHIIII", 0, flags, data, 1663, 5, relfilenode, 0)
        if main:
            payload += struct.pack("<BB", 255, len(main))
        payload += b"\1" * data + main
        head = struct.pack("<IIQBBxx", 24 + len(payload), xid, self.prev, info, rmgr)
        whole = head + struct.pack("<I", crc32c(head, crc32c(payload))) + payload
        if self.position % PAGE == 0:
            self._page_header(0)
        self.prev = self.position
        left = whole + b"\0" * (-len(whole) % 8)
        missing = len(whole)
        while left:
            if self.position % PAGE == 0:
                self._page_header(missing)
            room = PAGE - self.position % PAGE
            self.content += left[:room]
            missing -= min(room, missing)
            left = left[room:]
        return len(whole)

    def save(self, folder: Path) -> list[Path]:
        """Write the segments that there are, the last one filled up with zeros."""
        paths = []
        for at in range(0, len(self.content), SEGMENT):
            path = folder / f"{1:08X}{0:08X}{(self.start + at) // SEGMENT:08X}"
            path.write_bytes(self.content[at : at + SEGMENT].ljust(SEGMENT, b"\0"))
            paths.append(path)
        return paths


def small(folder: Path, times: Sequence[int] = ()) -> Path:
    """A segment with three updates of relation 100, an insert into 200, and commits at times."""
    wal = WalFile(7 * SEGMENT)
    for _ in range(3):
        wal.record(10, 0x40, 100, main=b"\0" * 14, data=20)
    wal.record(10, 0x00, 200, main=b"\0" * 3, data=50)
    for moment in times or (0,):
        wal.record(1, 0x00, main=struct.pack("<q", moment))
    return wal.save(folder)[0]
