"""A log that is read in parts elsewhere: to the byte what one reader says, whatever it holds."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from wal_files import PAGE, SEGMENT, WalFile

from pgheadroom.errors import InputError, ParameterError
from pgheadroom.schedule import InlineExecutor
from pgheadroom.wal import parts, read_wal

Change = Callable[[list[Path]], None]


def _log(folder: Path, *, segments: int = 6, switch: bool = False) -> list[Path]:
    """Records that cross most segments' ends, commits, checkpoints, and one far longer."""
    wal = WalFile(7 * SEGMENT)
    number = 0
    while len(wal.content) < segments * SEGMENT - 3 * PAGE:
        number += 1
        wal.record(10, 0x40, 100 + number % 7, main=b"\0" * 14, data=1000 + number % 501)
        if number % 50 == 0:
            wal.record(1, 0x00, main=struct.pack("<q", number * 1_000_000))
        if number % 400 == 0:
            wal.record(0, 0x10, main=struct.pack("<Q", wal.position).ljust(88, b"\0"))
        if switch and number == 1500:
            wal.record(0, 0x40)
            wal.content += b"\0" * (-len(wal.content) % SEGMENT)
    return wal.save(folder)


def _damage(paths: list[Path]) -> None:
    content = bytearray(paths[3].read_bytes())
    content[5 * PAGE + 100 : 5 * PAGE + 4000] = b"\7" * 3900
    paths[3].write_bytes(content)


def _damage_at_the_seam(paths: list[Path]) -> None:
    content = bytearray(paths[3].read_bytes())
    content[40:4000] = b"\7" * 3960
    paths[3].write_bytes(content)


def _remove(paths: list[Path]) -> None:
    paths[3].unlink()


def _cut_short(paths: list[Path]) -> None:
    paths[3].write_bytes(paths[3].read_bytes()[: SEGMENT // 2])


@pytest.mark.parametrize("by", [None, "checkpoint", "transaction", "2m"])
@pytest.mark.parametrize("switch", [False, True])
def test_parts_are_the_whole(
    tmp_path: Path, by: str | None, switch: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums, causes, spans, stretches; of a range too."""
    paths = _log(tmp_path, switch=switch)
    whole = read_wal(tmp_path, by=by)
    begin = f"0/{7 * SEGMENT + SEGMENT + 77_000:X}"
    ranged = read_wal(paths, begin=begin, end=f"0/{11 * SEGMENT:X}", by=by)
    joined: list[int] = []
    join = parts.join

    def counted(found: list[parts.WalSumsRead]) -> parts.WalSumsRead | None:
        made = join(found)
        joined.append(len(found) if made is not None else 0)
        return made

    monkeypatch.setattr(parts, "join", counted)
    assert read_wal(tmp_path, by=by, executor=InlineExecutor()) == whole
    again = read_wal(
        paths, begin=begin, end=f"0/{11 * SEGMENT:X}", by=by, executor=InlineExecutor()
    )
    assert again == ranged
    assert whole.total.records > 3_000
    once = [6, 3]  # parts: a segment each
    assert joined == {None: once, "checkpoint": [6, 6, 3, 3], "transaction": [], "2m": once}[by]


@pytest.mark.parametrize("change", [_damage, _damage_at_the_seam, _remove, _cut_short])
def test_what_does_not_join_is_read_by_one(tmp_path: Path, change: Change) -> None:
    """What is missing is named as one reader names it."""
    change(_log(tmp_path))
    whole = read_wal(tmp_path)
    assert whole.gaps
    assert read_wal(tmp_path, executor=InlineExecutor()) == whole


def test_files_that_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said where they are looked for, by their whole names; standard input is here."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=f"no such file: {tmp_path}/none"):
        read_wal("none", executor=InlineExecutor())
    with pytest.raises(ParameterError, match="standard input"):
        read_wal("-", executor=InlineExecutor())
