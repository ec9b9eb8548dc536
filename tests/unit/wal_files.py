"""Small files of WAL, laid out as PostgreSQL does, for tests without a server."""

from __future__ import annotations

import functools
import struct
from collections.abc import Sequence
from pathlib import Path

SEGMENT = 1024**2
PAGE = 8192
_POLYNOMIAL = 0x82F63B78
_RUN_FROM = 64


def _table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
        table.append(crc)
    return table


_TABLE = _table()


def _register(content: bytes, register: int) -> int:
    for byte in content:
        register = register >> 8 ^ _TABLE[(register ^ byte) & 0xFF]
    return register


@functools.cache
def _repeated(content: bytes) -> tuple[int, list[int]]:
    """What the bytes make of an empty register, and of each bit in it beside."""
    empty = _register(content, 0)
    return empty, [_register(content, 1 << bit) ^ empty for bit in range(32)]


def crc32c(*parts: bytes) -> int:
    """Castagnoli's checksum, byte by byte; of a long run of one byte at once."""
    register = 0xFFFFFFFF
    for part in parts:
        if len(part) < _RUN_FROM or part.count(part[0]) < len(part):
            register = _register(part, register)
            continue
        empty, bits = _repeated(part)
        found = empty
        for bit in range(32):
            if register >> bit & 1:
                found ^= bits[bit]
        register = found
    return register ^ 0xFFFFFFFF


class WalFile:
    """WAL from a segment's begin; each record has at most one block."""

    def __init__(self, start: int, *, magic: int = 0xD118, system: int = 42) -> None:
        self.start = start
        self.magic = magic
        self.system = system
        self.content = bytearray()
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
        blkno: int = 0,
        image: int = 0,
        is_new: bool = False,
    ) -> int:
        """Write a record, its block with so many bytes of image or of data; returns its length."""
        payload = b""
        if relfilenode is not None:
            flags = (0x20 if data else 0) | (0x10 if image else 0) | (0x40 if is_new else 0)
            payload += struct.pack("<BBH", 0, flags, data)
            if image:
                has_hole = image < PAGE
                payload += struct.pack("<HHB", image, 100 if has_hole else 0, 2 | has_hole)
            payload += struct.pack("<IIII", 1663, 5, relfilenode, blkno)
        if main:
            payload += struct.pack("<BB", 255, len(main))
        parts = [payload, b"\2" * image, b"\1" * data, main]
        payload = b"".join(parts)
        head = struct.pack("<IIQBBxx", 24 + len(payload), xid, self.prev, info, rmgr)
        whole = head + struct.pack("<I", crc32c(*parts, head)) + payload
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
