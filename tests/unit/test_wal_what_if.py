"""`wal what-if` without a server: one history written under several checkpoints, each from each."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from wal_files import PAGE, SEGMENT, WalFile

from pgheadroom import _core
from pgheadroom.cli.app import run
from pgheadroom.errors import InputError, WalIncomplete
from pgheadroom.report.wal.what_if import headline
from pgheadroom.wal import Grid, Names, WhatIf, read_wal, wal_what_if
from pgheadroom.wal.names import RelationName
from pgheadroom.wal.what_if_values import CheckpointWal, Range, middle

HUGE = 2**50
SECOND = 1_000_000
TABLE, INDEX = 100, 200
IMAGE = {TABLE: 500, INDEX: 300}
DATA = {TABLE: 60, INDEX: 20}
NAMES = Names(
    relations=(
        RelationName(
            tablespace_oid=1663, database_oid=5, relfilenode=TABLE, database="a", name="t"
        ),
        RelationName(
            tablespace_oid=1663, database_oid=5, relfilenode=INDEX, database="a", name="t_pkey",
            table="t", method="btree",
        ),
    )
)  # fmt: skip

Touch = tuple[str, int, int]


def _history(length: int) -> list[Touch]:
    """Changes of pages, some of them new, some logged whole, one transaction a second."""
    chance = random.Random(5)
    touches: list[Touch] = []
    for at in range(length):
        relation = chance.choice((TABLE, INDEX))
        what = chance.choices(("change", "new", "whole"), (20, 1, 1))[0]
        touches.append((what, relation, at % 40 + 1000 if what == "new" else chance.randrange(40)))
    return touches


class _Server:
    """Writes a history as a server does: an image at a page's first change after a checkpoint."""

    def __init__(self, *, full_page_writes: bool = True) -> None:
        self.wal = WalFile(7 * SEGMENT)
        self.redo = 0
        self.full_page_writes = full_page_writes
        self.pages: dict[tuple[int, int], int] = {}

    def checkpoint(self) -> None:
        self.redo = self.wal.position
        if self.redo % PAGE == 0:  # a page's header comes first
            self.redo += 40 if self.redo % SEGMENT == 0 else 24
        self.wal.record(0, 0x10, main=struct.pack("<q", self.redo) + b"\0" * 80)

    def play(self, touches: Iterable[Touch], *, every_s: int = 0, distance: int = 0) -> None:
        self.checkpoint()
        begun_s = 0
        for second, (what, relation, block) in enumerate(touches):
            self.touch(what, relation, block)
            due_s = every_s > 0 and second == begun_s + every_s
            if due_s or (
                distance and self.wal.position >= self.redo // SEGMENT * SEGMENT + distance
            ):
                self.checkpoint()
                begun_s = second
            self.wal.record(1, 0x00, main=struct.pack("<q", second * SECOND))

    def touch(self, what: str, relation: int, block: int) -> None:
        before = self.pages.get((relation, block), 0)
        self.pages[relation, block] = self.wal.position
        if what == "whole":
            self.wal.record(0, 0xB0, relation, blkno=block, image=IMAGE[relation])
        elif what == "new" or before >= self.redo or not self.full_page_writes:
            self.wal.record(
                10, 0x40, relation, blkno=block, data=DATA[relation], main=b"\0" * 14,
                is_new=what == "new",
            )  # fmt: skip
        else:
            self.wal.record(10, 0x40, relation, blkno=block, image=IMAGE[relation], main=b"\0" * 14)


def _log(folder: Path, touches: Sequence[Touch], *, every_s: int = 0, distance: int = 0) -> Path:
    folder.mkdir()
    server = _Server()
    server.play(touches, every_s=every_s, distance=distance)
    server.wal.save(folder)
    return folder


def _tried(result: WhatIf) -> tuple[CheckpointWal, ...]:
    return tuple(one for one in result.checkpoint if not one.in_force)


def _without_checkpoints(folder: Path) -> tuple[int, int]:
    """Bytes and bytes of images without the checkpoints' own records."""
    stats = read_wal(folder)
    own = sum(one.bytes for one in stats.record_types if one.type == "CHECKPOINT_ONLINE")
    return stats.total.bytes - own, stats.total.fpi_bytes


def test_each_distance_from_each(tmp_path: Path) -> None:
    """Images of one size: exactly the log that a server with the other timeout has written."""
    touches = _history(900)
    timeouts = (30, 100, 350, 2000)
    folders = [_log(tmp_path / str(every), touches, every_s=every) for every in timeouts]
    truth = [_without_checkpoints(folder) for folder in folders]
    assert len({images for _, images in truth}) == len(timeouts)
    for folder, (length, _) in zip(folders, truth, strict=True):
        own = read_wal(folder).total.bytes - length
        grid = Grid(timeouts_s=[float(one) for one in timeouts], sizes_bytes=[HUGE])
        result = wal_what_if(folder, grid=grid, images_most=10)
        found = [(middle(one.bytes) - own, middle(one.fpi_bytes)) for one in _tried(result)]
        assert found == truth
        assert [one.checkpoints for one in _tried(result)] == [29, 8, 2, 0]
        assert result.checkpoint[0].in_force
        assert not any("The rule" in note for note in result.notes)


def test_relations_add_up(tmp_path: Path) -> None:
    """What changes by relation is what changes in all; longer is a number, shorter a range."""
    folder = _log(tmp_path / "log", _history(600), every_s=100)
    grid = Grid(timeouts_s=(20.0, 100.0, 1000.0), sizes_bytes=[HUGE])
    result = wal_what_if(folder, grid=grid, names=NAMES)
    now = result.checkpoint[0]
    before = {one.relfilenode: one for one in read_wal(folder).relations}
    for one in _tried(result):
        for field in ("bytes", "fpi_bytes"):
            changes = [
                middle(getattr(relation, field)) - getattr(before[relation.relfilenode], field)
                for relation in one.relations
            ]
            assert sum(changes) == middle(getattr(one, field)) - getattr(now, field)
    shorter, same, longer = _tried(result)
    assert isinstance(shorter.fpi_bytes, Range)
    assert shorter.fpi_bytes.low < shorter.fpi_bytes.mid < shorter.fpi_bytes.high
    assert (same.bytes, same.images_gone, same.images_new) == (now.bytes, 0, 0)
    assert isinstance(longer.bytes, int)
    assert longer.images_new == 0
    (index,) = result.without_index
    assert (index.name, index.table, index.bytes) == ("t_pkey", "t", before[INDEX].bytes)


def test_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By bytes of the course's own log: within 2 % of what a server with that distance writes."""
    monkeypatch.setitem(IMAGE, TABLE, 2000)
    monkeypatch.setitem(DATA, TABLE, 400)
    touches = _history(8_000)
    distances = (1, 2)
    folders = [_log(tmp_path / str(one), touches, distance=one * SEGMENT) for one in distances]
    truth = [read_wal(folder).total.fpi_bytes for folder in folders]
    assert truth[0] > 1.1 * truth[1]
    for folder in folders:
        sizes = [2 * one * SEGMENT for one in distances]
        grid = Grid(timeouts_s=(1e6,), sizes_bytes=sizes, completion_target=1.0)
        for one, images in zip(_tried(wal_what_if(folder, grid=grid)), truth, strict=True):
            assert middle(one.fpi_bytes) == pytest.approx(images, rel=0.02)


def test_blocks_beyond_memory(tmp_path: Path) -> None:
    """One of so many is followed by its hash: near the count of all."""
    server = _Server()
    server.checkpoint()
    for second in range(3):
        for block in range(1000):
            server.touch("change", TABLE, block)
        server.wal.record(1, 0x00, main=struct.pack("<q", second * SECOND))
        server.checkpoint()
    paths = server.wal.save(tmp_path)
    start, end = 7 * SEGMENT + 40, server.wal.position
    every, some = (
        _core.wal_courses(
            paths, start_lsn=start, to_lsn=end, triggers=[(HUGE, HUGE)], blocks_most=most
        )
        for most in (10_000, 300)
    )
    assert (every.one_in, some.one_in) == (1, 4)
    ((_, gone, *_),) = every.courses[0][3]
    ((_, near, *_),) = some.courses[0][3]
    assert gone == 2000
    assert near == pytest.approx(2000, rel=0.2)


def test_the_knee(tmp_path: Path) -> None:
    """The smallest settings that leave little; none where nothing changes."""
    folder = _log(tmp_path / "log", _history(900), every_s=30)
    grid = Grid(timeouts_s=(30.0, 400.0, 2000.0), sizes_bytes=[SEGMENT, HUGE])
    result = wal_what_if(folder, grid=grid)
    lengths = [middle(one.bytes) for one in _tried(result)]
    enough = min(lengths) + 0.1 * (max(lengths) - min(lengths))
    assert result.knee
    for place in result.knee:
        best = result.checkpoint[place]
        assert middle(best.bytes) <= enough
        for one in _tried(result):
            smaller = (one.timeout_s or 0) <= (best.timeout_s or 0) and (
                one.max_wal_size_bytes or 0
            ) <= (best.max_wal_size_bytes or 0)
            assert not smaller or one == best or middle(one.bytes) > enough
    only = Grid(timeouts_s=(30.0,), sizes_bytes=[HUGE])
    assert wal_what_if(folder, grid=only).knee == ()


def test_without_full_page_writes(tmp_path: Path) -> None:
    """The log contradicts the rule, and that is said."""
    server = _Server(full_page_writes=False)
    server.play(_history(200), every_s=50)
    result = wal_what_if(server.wal.save(tmp_path))
    assert any("full_page_writes was off" in note for note in result.notes)


def test_refused(tmp_path: Path) -> None:
    """No checkpoint, a pipe, a time, a hole: each in words."""
    wal = WalFile(7 * SEGMENT)
    while wal.position < 10 * SEGMENT:
        wal.record(10, 0x40, 100, data=60_000, main=b"\0" * 14)
    paths = wal.save(tmp_path)
    with pytest.raises(WalIncomplete, match="no checkpoint began"):
        wal_what_if(paths)
    with pytest.raises(InputError, match="a pipe cannot be"):
        wal_what_if("-")
    with pytest.raises(InputError, match="no position"):
        wal_what_if(paths, begin="2026-11-23")
    paths[1].unlink()
    with pytest.raises(WalIncomplete, match="without gaps"):
        wal_what_if(tmp_path)
    assert run(["wal", "what-if", str(tmp_path), "--completion-target", "2"]) == 2
    assert run(["wal", "what-if", str(tmp_path), "--sizes", "many"]) == 2


@pytest.mark.parametrize("reading", ["wal_sums", "wal_courses", "wal_packed"])
def test_segment_gone_between_readings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reading: str
) -> None:
    """A server may remove a segment after it was read once: no reading goes on without it."""
    folder = _log(tmp_path / "log", _history(25_000), every_s=800)
    last = {"wal_sums": 3, "wal_courses": 1, "wal_packed": 1}[reading]
    begun = 0
    core = getattr(_core, reading)

    def without_one(*args: Any, **kwargs: Any) -> Any:
        nonlocal begun
        begun += 1
        if begun == last:
            sorted(folder.iterdir())[1].unlink()
        return core(*args, **kwargs)

    monkeypatch.setattr(_core, reading, without_one)
    assert len(list(folder.iterdir())) > 2
    with pytest.raises(WalIncomplete, match="without gaps"):
        wal_what_if(folder)
    assert begun == last


@pytest.mark.parametrize("form", ["text", "json", "csv", "markdown"])
def test_forms(tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str) -> None:
    """Each form has the settings, the one in force, and the other methods of compression."""
    folder = _log(tmp_path / "log", _history(300), every_s=50)
    options = ["--timeouts", "50s,10min", "--sizes", "8GB", "--timeout-in-force", "50s"]
    assert run(["wal", "what-if", str(folder), *options, "-f", form]) == 0
    shown = capsys.readouterr().out
    assert "zstd" in shown or form == "csv"
    if form == "json":
        found = json.loads(shown)
        assert found["kind"] == "wal_what_if"
        assert [one["in_force"] for one in found["checkpoint"]] == [True, False, False]
        assert found["checkpoint"][0]["timeout_s"] == 50
        assert [one["method"] for one in found["compression"]] == ["off", "pglz", "lz4", "zstd"]
    elif form == "text":
        assert "knee" in shown
        assert "8 GiB" in shown


@pytest.mark.parametrize(("every_s", "said"), [(200, "1 checkpoint after"), (100, "2 checkpoints")])
def test_headline(tmp_path: Path, every_s: float, said: str) -> None:
    """It counts the checkpoints after the first."""
    folder = _log(tmp_path / "log", _history(300), every_s=every_s)
    assert said in headline(wal_what_if(folder))
