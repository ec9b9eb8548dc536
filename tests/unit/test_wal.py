"""`wal stats` without a server: sums with names, ranges, gaps, what is refused."""

from __future__ import annotations

import gzip
import json
import os
import struct
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from wal_files import PAGE, SEGMENT, WalFile, small

import pgheadroom as ph
from pgheadroom import _core, errors
from pgheadroom.cli.app import run
from pgheadroom.errors import InputError, WalCorrupt, WalIncomplete, WalUnsupported
from pgheadroom.wal import Names, add_names, read_archive, read_names, read_wal
from pgheadroom.wal.archive import filled_in
from pgheadroom.wal.names import RelationName

UPDATE = 24 + 20 + 20 + 2 + 14
INSERT = 24 + 20 + 50 + 2 + 3
COMMIT = 24 + 2 + 8


def _name(relfilenode: int, name: str) -> RelationName:
    return RelationName(
        tablespace_oid=1663,
        database_oid=5,
        relfilenode=relfilenode,
        database="app",
        name=name,
    )


def test_sums(tmp_path: Path) -> None:
    """By relation and cause, largest first, with the names that there are."""
    path = small(tmp_path)
    stats = read_wal(path, names=Names(relations=(_name(100, "accounts"),)))
    assert [(one.name, one.relfilenode, one.bytes) for one in stats.relations] == [
        ("accounts", 100, 3 * UPDATE),
        (None, 200, INSERT),
        (None, None, COMMIT),
    ]
    assert stats.relations[0].by_cause["hot_update"].records == 3
    assert (stats.total.records, stats.total.bytes) == (5, 3 * UPDATE + INSERT + COMMIT)
    assert (stats.start_lsn, stats.server) == ("0/700028", "18")
    assert stats.end_lsn is not None
    passed = int(stats.end_lsn.partition("/")[2], 16) - 0x700028
    assert stats.overhead_bytes == passed - stats.total.bytes
    assert any(note.startswith("1 of 2 relations, with ") for note in stats.notes)


def test_names_of_a_profile_are_of_its_database() -> None:
    """
    A profile knows its database and no tablespace; a names file both, and is the better witness.

    Databases made from one template have files of the same numbers: another one's WAL took the
    name of the profile's table.
    """
    of_profile = replace(_name(100, "told by a profile"), tablespace_oid=None)
    names = Names(relations=(_name(100, "known"), of_profile))
    elsewhere = names.of(16500, 5, 100)
    assert (names.of(1663, 5, 100) or _name(0, "")).name == "known"
    assert elsewhere is not None
    assert elsewhere.name == "told by a profile"
    assert names.of(1663, 99, 100) is None
    assert names.of(1663, 5, 101) is None


def test_names_are_added_to(tmp_path: Path) -> None:
    """A rewritten table has another file: the old one's name is kept."""
    both = add_names(
        Names(relations=(_name(100, "t"), _name(101, "u"))),
        Names(relations=(_name(102, "t"), _name(101, "v"))),
    )
    path = tmp_path / "names.json"
    path.write_text(json.dumps(both.to_json()), encoding="utf-8")
    read = read_names(path)
    assert {(one.relfilenode, one.name) for one in read.relations} == {
        (100, "t"),
        (101, "v"),
        (102, "t"),
    }


@pytest.mark.parametrize("text", ['{"kind": "wal_names"}', "[1]", '{"a": 1}', "\0"])
def test_names_that_are_none(tmp_path: Path, text: str) -> None:
    """Refused in words, whatever the file is."""
    path = tmp_path / "names.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"names\.json"):
        read_names(path)


def test_times(tmp_path: Path) -> None:
    """Of a time is what follows a commit of that time; UTC where no zone is named."""
    day = datetime(2026, 11, 23, tzinfo=UTC)
    since = day - datetime(2000, 1, 1, tzinfo=UTC)
    hours = [(since + timedelta(hours=hour)) // timedelta(microseconds=1) for hour in range(4)]
    path = small(tmp_path, hours)
    stats = read_wal(path, begin="2026-11-23T01:00", end="2026-11-23T03:00+01:00")
    assert stats.total.records == 2
    assert stats.first_end == "2026-11-23T01:00:00+00:00"
    assert stats.last_end == "2026-11-23T02:00:00+00:00"
    for wrong in ("yesterday", "1/", "1/123456789"):
        with pytest.raises(InputError, match="neither a position nor a time"):
            read_wal(path, begin=wrong)


def test_packed_and_patterns(tmp_path: Path) -> None:
    """A pattern that no shell has expanded, and a packed segment."""
    path = small(tmp_path)
    whole = read_wal(path).total
    packed = path.with_name(path.name + ".gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    assert read_wal(str(tmp_path / "0*.gz")).total == whole
    assert read_wal(tmp_path).total == whole


def test_refused(tmp_path: Path) -> None:
    """Each by its class, with the file's name."""
    path = small(tmp_path)
    with pytest.raises(InputError, match="no such file"):
        read_wal(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(WalIncomplete, match="no record of WAL"):
        read_wal(tmp_path / "empty")
    text = tmp_path / "text"
    text.write_bytes(b"x" * 100)
    with pytest.raises(WalUnsupported, match=r"text has the page magic 7878"):
        read_wal(text)
    text.write_bytes(b"x")
    with pytest.raises(WalCorrupt, match="ends within"):
        read_wal(text)
    other = WalFile(8 * SEGMENT, system=43)
    other.record(10, 0, 1)
    other.save(tmp_path)
    with pytest.raises(WalUnsupported, match="the system 43"):
        read_wal([path, tmp_path / f"{1:08X}{0:08X}{8:08X}"])
    assert issubclass(errors.WalError, errors.SourceError)


def test_a_hole_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 3 with both sides summed; 0 where gaps are allowed."""
    wal = WalFile(7 * SEGMENT)
    while wal.position < 9 * SEGMENT + 50_000:
        wal.record(10, 0x40, wal.position // SEGMENT, main=b"\0" * 14, data=60_000)
    wal.save(tmp_path)[1].unlink()
    assert run(["wal", "stats", str(tmp_path), "-f", "json"]) == 3
    said = capsys.readouterr()
    stats = json.loads(said.out)
    assert {one["relfilenode"] for one in stats["relations"]} == {7, 9}
    assert "was not read" in said.err
    assert "--allow-gaps" in said.err
    assert run(["wal", "stats", str(tmp_path), "--allow-gaps"]) == 0
    shown = capsys.readouterr().out
    assert "Not read" in shown
    assert stats["gaps"][0]["to_lsn"] in shown


def test_a_range_in_a_hole_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was asked for and is not there is said, at either end of the range."""
    _of_three_segments(tmp_path)
    (tmp_path / f"{1:08X}{0:08X}{8:08X}").unlink()
    for options, gap in {
        ("--from", "0/880000"): ("0/880000", None),
        ("--to", "0/880000"): (None, "0/880000"),
        ("--from", "0/880000", "--to", "0/890000"): ("0/880000", "0/890000"),
        ("--from", "0/600000", "--to", "0/720000"): ("0/600000", None),
    }.items():
        assert run(["wal", "stats", str(tmp_path), *options, "-f", "json"]) == 3, options
        said = capsys.readouterr()
        (found,) = json.loads(said.out)["gaps"]
        assert gap[0] in (None, found["from_lsn"])
        assert gap[1] in (None, found["to_lsn"])
        assert "--allow-gaps" in said.err
    assert run(["wal", "stats", str(tmp_path), "--from", "0/910000", "--to", "1/0"]) == 0


def _of_three_segments(folder: Path) -> list[bytes]:
    """Segments 7 to 9, each with records of a relation of its number."""
    wal = WalFile(7 * SEGMENT)
    while wal.position < 9 * SEGMENT + 50_000:
        wal.record(10, 0x40, wal.position // SEGMENT, main=b"\0" * 14, data=60_000)
    return [path.read_bytes() for path in wal.save(folder)]


def test_a_hole_in_a_pipe_is_named(tmp_path: Path) -> None:
    """Segments one after another, one of which is lacking, are no log that ends there."""
    first, second, third = _of_three_segments(tmp_path)
    (joined := tmp_path / "joined").write_bytes(first + third)
    found = read_wal(joined)
    assert {one.relfilenode for one in found.relations} == {7, 9}
    (gap,) = found.gaps
    # Up to the first record that is whole again: one began in the missing segment.
    assert ("0/900028" < gap.to_lsn < "0/920000", gap.path) == (True, str(joined))
    assert read_wal(joined, begin=gap.to_lsn).total.records == (
        found.total.records - read_wal(joined, end=gap.from_lsn).total.records
    )
    assert found.end_lsn == read_wal(tmp_path).end_lsn
    # Behind the log's end lie segments that are kept for later, with what they held before.
    joined.write_bytes(second + third + first)
    behind = read_wal(joined)
    assert ({one.relfilenode for one in behind.relations}, behind.gaps) == ({8, 9}, ())
    # Another server's is none of this log, wherever it would begin.
    foreign = bytearray(third)
    foreign[24] ^= 1
    joined.write_bytes(first + foreign)
    assert {one.relfilenode for one in read_wal(joined).relations} == {7}


@pytest.mark.parametrize("length", [5 * PAGE, 5 * PAGE + 100, 3, SEGMENT - 1, SEGMENT - 3000])
def test_a_segment_cut_short_in_a_pipe_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], length: int
) -> None:
    """
    At the end of a page too, and whatever comes behind: the next segment is found at any byte.

    A segment that is missing and one that was cut off are two stretches side by side.
    """
    folder = tmp_path / "segments"
    folder.mkdir()
    first, second, third = _of_three_segments(folder)
    (joined := tmp_path / "joined").write_bytes(first + second[:length] + third)
    assert run(["wal", "stats", str(joined), "-f", "json"]) == 3
    (gap,) = json.loads(capsys.readouterr().out)["gaps"]
    sorted(folder.iterdir())[1].write_bytes(second[:length])
    (of_file,) = read_wal(folder).gaps
    assert (gap["from_lsn"], gap["to_lsn"]) == (of_file.from_lsn, of_file.to_lsn)
    assert read_wal(joined).total == read_wal(folder).total
    assert run(["wal", "stats", str(joined), "--allow-gaps"]) == 0
    joined.write_bytes(first + third[: 2 * PAGE])
    missing, cut = read_wal(joined).gaps
    assert (missing.to_lsn, cut.from_lsn, cut.to_lsn) == ("0/900000", "0/900000", "0/A00000")


@pytest.mark.parametrize("place", [1, 2])
def test_a_packed_file_cut_short_is_named(tmp_path: Path, place: int) -> None:
    """As a plain one: what it has and what is behind it is summed, the rest a gap with its name."""
    contents = _of_three_segments(tmp_path)
    path = sorted(tmp_path.iterdir())[place]
    packed = gzip.compress(contents[place], compresslevel=0)
    torn = path.with_name(path.name + ".gz")
    torn.write_bytes(packed[:30_000])
    path.unlink()
    found = read_wal(tmp_path)
    (gap,) = found.gaps
    assert (gap.path, gap.why) == (str(torn), "the file does not unpack any further")
    behind = {1: ("0/900028", "0/920000"), 2: ("0/A00000", "0/A00000")}[place]
    assert behind[0] <= gap.to_lsn <= behind[1]
    numbers = {one.relfilenode for one in found.relations}
    assert {7, 7 + (3 - place)} <= numbers


_NO_ARCHIVE = {
    "gz": gzip.compress(b"\x18\xd1" * 5000)[:9],
    "lz4": b"no archive at all" * 100,
    "zst": b"",
}


@pytest.mark.parametrize("end", _NO_ARCHIVE)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_file_that_does_not_unpack_is_a_hole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], end: str, place: int
) -> None:
    """One stretch, named by the file, both sides summed; alone it is no log."""
    _of_three_segments(tmp_path)
    path = sorted(tmp_path.iterdir())[place]
    path.unlink()
    found = read_wal(tmp_path)
    torn = path.with_name(f"{path.name}.{end}")
    torn.write_bytes(_NO_ARCHIVE[end])
    assert run(["wal", "stats", str(tmp_path), "-f", "json"]) == 3
    stats = json.loads(capsys.readouterr().out)
    (gap,) = stats["gaps"]
    assert gap["path"] == str(torn)
    assert gap["why"] == "the file does not unpack at all"
    assert gap["from_lsn"] < f"0/{7 + place:X}00029"
    assert gap["to_lsn"] >= f"0/{8 + place:X}00000"
    assert stats["total"]["records"] == found.total.records
    assert run(["wal", "stats", str(torn)]) == 3


@pytest.mark.parametrize("at", [0, 3, 9, 38])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_damaged_first_page_costs_its_records(tmp_path: Path, at: int, place: int) -> None:
    """The name says where the segment lies; the rest of it is read, and the page is named."""
    contents = _of_three_segments(tmp_path)
    whole = read_wal(tmp_path)
    path = sorted(tmp_path.iterdir())[place]
    damaged = bytearray(contents[place])
    damaged[at] ^= 0x40
    path.write_bytes(damaged)
    found = read_wal(tmp_path)
    if at == 38:  # of WAL's page size: no record's place depends on it
        assert (found.total, found.gaps) == (whole.total, ())
        return
    (gap,) = found.gaps
    assert whole.total.records - 2 <= found.total.records < whole.total.records
    assert gap.to_lsn < f"0/{7 + place:X}20000"
    assert not found.notes or "Not read" not in found.notes[0]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_file_that_is_no_log_is_a_hole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], place: int
) -> None:
    """With a segment's name, wherever it lies: behind the last record it is no log's end."""
    _of_three_segments(tmp_path)
    path = sorted(tmp_path.iterdir())[place]
    path.write_bytes(b"no log at all" * 90_000)
    assert run(["wal", "stats", str(tmp_path), "-f", "json"]) == 3
    (gap,) = json.loads(capsys.readouterr().out)["gaps"]
    assert gap["path"] == str(path)
    assert gap["to_lsn"] >= f"0/{8 + place:X}00000"


def test_a_pipe_in_a_folder_is_not_waited_for(tmp_path: Path) -> None:
    """It has a segment's name and nobody writes to it."""
    _of_three_segments(tmp_path)
    path = sorted(tmp_path.iterdir())[1]
    path.unlink()
    os.mkfifo(path)
    assert len(read_wal(tmp_path).gaps) == 1


def test_a_timeline_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """It is not read as if it were another."""
    path = small(tmp_path)
    with pytest.raises(WalIncomplete, match="the timeline that was asked for"):
        read_wal(path, timeline=7)


def test_a_file_cut_short_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Exit code 3 with its position and name, from a pipe too; nothing is missed behind the log's end.

    Also where the range ends before, as a server's last segment is whole whatever is in it.
    """
    wal = WalFile(7 * SEGMENT)
    while wal.position < 7 * SEGMENT + 60_000:
        wal.record(10, 0x40, 100, main=b"\1" * 14, data=200)
    path = wal.save(tmp_path)[0]
    whole = path.read_bytes()
    assert run(["wal", "stats", str(path), "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["gaps"] == []
    path.write_bytes(whole[: len(wal.content) + 8_000])
    assert run(["wal", "stats", str(path)]) == 0
    path.write_bytes(whole[:20_000])
    capsys.readouterr()
    assert run(["wal", "stats", str(path), "-f", "json"]) == 3
    said = capsys.readouterr()
    (gap,) = json.loads(said.out)["gaps"]
    assert (gap["path"], gap["to_lsn"]) == (str(path), "0/800000")
    assert 0x700000 + 19_700 < int(gap["from_lsn"].partition("/")[2], 16) <= 0x700000 + 20_000
    assert "the file ends within its segment" in said.err
    assert run(["wal", "stats", str(path), "--allow-gaps"]) == 0
    assert run(["wal", "stats", str(path), "--to", "0/704000"]) == 0
    read, write = os.pipe()
    os.write(write, whole[:20_000])
    os.close(write)
    try:
        (gap_of_pipe,) = read_wal(f"/dev/fd/{read}").gaps
    finally:
        os.close(read)
    assert gap_of_pipe.from_lsn == gap["from_lsn"]


@pytest.mark.parametrize("form", ["text", "json", "csv", "markdown"])
def test_forms(tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str) -> None:
    """Each form has the relation and its cause."""
    assert run(["wal", "stats", str(small(tmp_path)), "-f", form]) == 0
    shown = capsys.readouterr().out
    assert ("HOT updates" if form in ("text", "markdown") else "hot_update") in shown
    assert "100" in shown


@pytest.mark.parametrize(
    ("by", "lead"),
    [("checkpoint", "from_lsn,to_lsn"), ("1h", "from_lsn,to_lsn"), ("transaction", "xid,from_lsn")],
)
def test_csv_has_what_was_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], by: str, lead: str
) -> None:
    """Divided by --by, the log's parts are the rows, and add up to it."""
    wal = WalFile(7 * SEGMENT)
    for xid in (700, 701):
        wal.record(10, 0x40, 100, data=20, xid=xid)
        wal.record(1, 0x00, main=struct.pack("<q", xid * 3_600_000_000), xid=xid)
    (path,) = wal.save(tmp_path)
    assert run(["wal", "stats", str(path), "--by", by, "-f", "csv"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.startswith(f"{lead},")
    assert head.endswith(",records,bytes,fpi_bytes")
    total = read_wal(path).total
    parts = [list(map(int, row.split(",")[-3:])) for row in rows]
    assert [sum(column) for column in zip(*parts, strict=True)] == [total.records, total.bytes, 0]
    assert len(parts) == {"checkpoint": 1, "1h": 3, "transaction": 2}[by]


def test_nothing_in_the_range(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No record is an answer, too."""
    path = str(small(tmp_path))
    assert run(["wal", "stats", path, "--from", "0/7FFF00", "--to", "0/7FFF08"]) == 0
    assert "No record" in capsys.readouterr().out


def test_for_programs(tmp_path: Path) -> None:
    """`ph.read_wal` gives rows, a relation and cause each."""
    stats = ph.read_wal(small(tmp_path))
    rows = stats.rows()
    assert {(row["relfilenode"], row["cause"]) for row in rows} == {
        (100, "hot_update"),
        (200, "insert"),
        (None, "commit"),
    }
    assert sum(row["bytes"] for row in rows) == stats.total.bytes


def test_threads_agree(tmp_path: Path) -> None:
    """As many as there are segments to share: the same sums."""
    wal = WalFile(7 * SEGMENT)
    while wal.position < 12 * SEGMENT:
        wal.record(10, 0x40, wal.position // SEGMENT, data=60_000)
    wal.save(tmp_path)
    sums = [_core.wal_sums([tmp_path], threads=threads) for threads in (1, 2, 3)]
    assert len({str(one.relations) for one in sums}) == 1
    assert len({str(one.gaps) for one in sums}) == 1
    assert len(sums[0].relations) == 5


def test_checkpoint_cycles(tmp_path: Path) -> None:
    """A cycle begins at the redo point, which its checkpoint's record names later."""
    wal = WalFile(7 * SEGMENT)
    for _ in range(5):
        wal.record(10, 0x40, 100, data=20)
    redo = wal.position
    for _ in range(3):
        wal.record(10, 0x40, 100, data=20)
    wal.record(0, 0x10, main=struct.pack("<q", redo) + b"\0" * 80)
    wal.record(10, 0x40, 100, data=20)
    stats = read_wal(wal.save(tmp_path), by="checkpoint")
    assert [(one.records, one.begins_at) for one in stats.stretches] == [(5, None), (5, None)]
    assert stats.stretches[1].from_lsn == f"0/{redo:X}"
    assert sum(one.bytes for one in stats.stretches) == stats.total.bytes


def test_a_log_within_one_cycle_is_one(tmp_path: Path) -> None:
    """
    Its cycle has all of it.

    Of records that are summed without being taken apart none was counted: 392 of 361,598.
    """
    wal = WalFile(7 * SEGMENT)
    for _ in range(500):
        wal.record(10, 0x40, 200, main=b"\0" * 14, data=30)
    (path,) = wal.save(tmp_path)
    for by in ("checkpoint", "10s"):
        stats = read_wal(path, by=by)
        (only,) = stats.stretches
        assert (only.records, only.bytes) == (500, stats.total.bytes)
        assert (only.from_lsn, only.to_lsn, only.begins_at) == (
            stats.start_lsn, stats.end_lsn, None,
        )  # fmt: skip


def test_slices_of_time(tmp_path: Path) -> None:
    """A slice begins with the first end of a transaction in it; before that there is no time."""
    hour = 3_600_000_000
    path = small(tmp_path, [hour, hour + 1, 2 * hour, hour + 2, 5 * hour])
    stats = read_wal(path, by="1h")
    assert [(one.begins_at, one.records) for one in stats.stretches] == [
        (None, 4),
        ("2000-01-01T01:00:00+00:00", 2),
        ("2000-01-01T02:00:00+00:00", 2),  # with the one whose clock went back
        ("2000-01-01T05:00:00+00:00", 1),
    ]


def test_transactions(tmp_path: Path) -> None:
    """Largest first, committed parts with their transaction, what has not ended as open."""
    wal = WalFile(7 * SEGMENT)
    wal.record(10, 0x40, 100, data=20, xid=701)
    wal.record(10, 0x40, 100, data=900, xid=702)
    wal.record(10, 0x40, 100, data=70, xid=703)
    wal.record(1, 0x20, main=struct.pack("<q", 5), xid=703)
    wal.record(1, 0x80, main=struct.pack("<qIII", 6, 2, 1, 702), xid=701)
    wal.record(10, 0x40, 100, data=10, xid=704)
    stats = read_wal(wal.save(tmp_path), by="transaction")
    found = [(one.xid, one.end, one.records) for one in stats.transactions]
    assert found == [(701, "commit", 3), (703, "abort", 2), (704, "open", 1)]
    assert sum(one.bytes for one in stats.transactions) == stats.total.bytes


def test_what_by_may_be(tmp_path: Path) -> None:
    """Refused before anything is read twice."""
    path = small(tmp_path)
    with pytest.raises(InputError, match="expected checkpoint, transaction"):
        read_wal(path, by="table")
    with pytest.raises(InputError, match="read twice"):
        read_wal("-", by="checkpoint")


def test_a_range_that_ends_before_it_begins(tmp_path: Path) -> None:
    """By position and by time; not an answer of nothing."""
    folder, _ = _archive(tmp_path)
    for begin, end in (("0/800000", "0/700000"), ("2026-11-24", "2026-11-23T23:00")):
        with pytest.raises(InputError, match="lies before"):
            read_wal(folder, begin=begin, end=end)
    assert read_wal(folder, begin="0/800000", end="0/800000").total.records == 0


def test_databases_that_could_not_be_asked_are_named(tmp_path: Path) -> None:
    """With the first line of why."""
    folder, _ = _archive(tmp_path)
    names = Names(relations=(), not_reached={"b\x07": "FATAL: permission denied\nDETAIL: x"})
    notes = read_wal(folder, names=names).notes
    said = [note for note in notes if "was not asked" in note]
    assert said == [r"b\x07 was not asked what its relations are called: FATAL: permission denied"]


def _archive(tmp_path: Path) -> tuple[Path, WalFile]:
    wal = WalFile(7 * SEGMENT)
    while wal.position < 9 * SEGMENT + 100_000:
        wal.record(10, 0x40, wal.position // SEGMENT, main=b"\0" * 14, data=60_000)
    folder = tmp_path / "an archive"
    folder.mkdir()
    wal.save(folder)
    return folder, wal


def test_restore_command(tmp_path: Path) -> None:
    """Fetched one after another until one is lacking: what the folder itself gives."""
    folder, _ = _archive(tmp_path)
    expected = read_wal(folder)
    found = read_archive(f"cp '{folder}'/%f %p", begin="0/700000")
    assert found.total == expected.total
    assert found.relations == expected.relations
    part = read_archive(f"cp '{folder}'/%f %p", begin="0/800000", end="0/8F0000")
    assert {one.relfilenode for one in part.relations} == {8}
    (folder / f"{1:08X}{0:08X}{8:08X}").unlink()
    until = read_archive(f"cp '{folder}'/%f %p", begin="0/700000")
    assert {one.relfilenode for one in until.relations} == {7}
    assert until.gaps == ()


def test_a_segment_that_a_restore_command_cuts_off_is_named(tmp_path: Path) -> None:
    """By its own name, not by the pipe that it came through; what comes behind is summed."""
    folder, _ = _archive(tmp_path)
    whole = read_archive(f"cp '{folder}'/%f %p", begin="0/700000")
    torn = folder / f"{1:08X}{0:08X}{8:08X}"
    torn.write_bytes(torn.read_bytes()[: 20 * PAGE])
    found = read_archive(f"cp '{folder}'/%f %p", begin="0/700000")
    (gap,) = found.gaps
    assert gap.path == torn.name
    assert {one.relfilenode for one in found.relations} == {7, 8, 9}
    assert (found.end_lsn, found.total.records < whole.total.records) == (whole.end_lsn, True)


def test_restore_command_that_gives_nothing(tmp_path: Path) -> None:
    """No first segment, no such program, no position: each in words; nothing is left behind."""
    folder, _ = _archive(tmp_path)
    with pytest.raises(WalIncomplete, match="000000010000000000000000"):
        read_archive(f"cp '{folder}'/%f %p", begin="0/1")
    with pytest.raises(WalCorrupt, match="no-such-program"):
        read_archive("no-such-program %f %p", begin="0/700000")
    with pytest.raises(InputError, match="position"):
        read_archive("cp %f %p", begin="2026-11-23")
    with pytest.raises(InputError, match="none is given"):
        read_archive("cp %f %p", begin=None)
    with pytest.raises(WalIncomplete, match=r"5,000 bytes for the segment 000000010{15}7,"):
        read_archive(f"head -c 5000 '{folder}'/%f > %p", begin="0/700000")
    assert run(["wal", "stats", "--restore-command", "false"]) == 2
    assert run(["wal", "stats"]) == 2


def test_marks_of_a_restore_command(tmp_path: Path) -> None:
    """As PostgreSQL fills them in."""
    filled = filled_in("get %f to=%p %% %x %", "0001", tmp_path / "p")
    assert filled == f"get 0001 to={tmp_path / 'p'} % %x %"


def test_what_records_count_under() -> None:
    """The core's own list, by which records are summed that a server took apart."""
    kinds = {(rmgr, kind): causes for rmgr, kind, *causes in _core.wal_kinds(18)}
    assert kinds["Heap", "UPDATE+INIT"][0] == "cold_update"
    assert kinds["XLOG", "FPI_FOR_HINT"] == ["fpi_hint"] * 3
    assert kinds["Gin", "SPLIT"] == ["index_split", "fpi_forced", "fpi_first_change"]
    assert kinds["Transaction", "COMMIT_PREPARED"][0] == "commit"
    assert _core.wal_kinds(14) == []
