"""The page of `wal stats`: bars by relation and cause, time with checkpoints; foreign text."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest
from wal_files import SEGMENT, WalFile

from pgheadroom.cli.app import run
from pgheadroom.report.wal import html as wal_html
from pgheadroom.wal import Names, read_wal
from pgheadroom.wal.cause_names import CAUSE_NAMES, cause_name
from pgheadroom.wal.course import LogCourse, over_time
from pgheadroom.wal.names import RelationName

SECOND = 1_000_000
NAMES = Names(
    relations=(
        RelationName(
            tablespace_oid=1663, database_oid=5, relfilenode=100, database="a", name="<b>t</b>"
        ),
    )
)  # fmt: skip


def _log(folder: Path) -> Path:
    """A hundred seconds, twenty of them idle, with checkpoints at 30 and 70."""
    wal = WalFile(7 * SEGMENT)
    redo = 0
    for second in (*range(40), *range(60, 100)):
        if second in (30, 70):
            redo = wal.position
        wal.record(10, 0x40, 100, data=60, image=900 if second % 10 == 0 else 0)
        wal.record(11, 0x00, 200, data=30)
        if second in (33, 73):
            wal.record(0, 0x10, main=struct.pack("<q", redo) + b"\0" * 80)
        wal.record(1, 0x00, main=struct.pack("<q", second * SECOND))
    return wal.save(folder)[0]


def _course(path: Path) -> LogCourse:
    course = over_time(path, read_wal(path))
    assert course is not None
    return course


def test_slices_and_checkpoints(tmp_path: Path) -> None:
    """Slices add up to the total; checkpoints stand where they began, not where they ended."""
    path = _log(tmp_path)
    course, total = _course(path), read_wal(path).total
    assert sum(one.bytes for one in course.slices) == total.bytes
    assert sum(one.fpi_bytes for one in course.slices) == total.fpi_bytes == 8 * 900
    assert course.checkpoints_s == pytest.approx([30, 70], abs=2 * course.width_s)
    begins = [one.begin_s for one in course.slices]
    assert begins == sorted(begins)
    assert not any(42 < begin < 58 for begin in begins)


def test_hours_in_which_nothing_was_written_are_left_out(tmp_path: Path) -> None:
    """A server was made twenty hours before it was used: what it then wrote is one picture."""
    wal = WalFile(7 * SEGMENT)
    for second in (0, 1, *(72_000 + tenth / 10 for tenth in range(900))):
        wal.record(11, 0x00, 200, data=30)
        wal.record(1, 0x00, main=struct.pack("<q", round(second * SECOND)))
    (path,) = wal.save(tmp_path)
    course, stats = _course(path), read_wal(path)
    assert len(course.slices) >= 30
    assert course.begins_at.startswith(("2000-01-01T19:59:5", "2000-01-01T20:00:0"))
    length_s = course.slices[-1].begin_s + course.width_s
    assert 80 < length_s < 100
    assert course.whole_s == pytest.approx(72_000 + 89.9)
    assert 2 <= course.left_out_bytes * 902 / stats.total.bytes <= 3  # transactions
    assert sum(one.bytes for one in course.slices) + course.left_out_bytes == stats.total.bytes
    shown = wal_html.render(stats, course, command="")
    assert "lie before and behind it, within 20 h" in shown
    (tmp_path / "even").mkdir()
    assert _course(_log(tmp_path / "even")).left_out_bytes == 0


def test_the_page(tmp_path: Path) -> None:
    """A bar a relation, its parts as long as its bytes; lines for checkpoints; nothing foreign."""
    path = _log(tmp_path)
    stats = read_wal(path, names=NAMES)
    shown = wal_html.render(stats, _course(path), command="pgheadroom wal stats '<i>'")
    assert "<b>t</b>" not in shown
    assert "&lt;b&gt;t&lt;/b&gt;" in shown
    assert "&lt;i&gt;" in shown
    assert "<script" not in shown
    assert "default-src &#39;none&#39;" in shown or "default-src 'none'" in shown
    assert shown.count('class="checkpoint"') == 2
    bars = re.findall(r'<span class="bar">(.*?)</span></span>', shown)
    assert len(bars) == len(stats.relations)
    longest = stats.relations[0].bytes
    for bar, one in zip(bars, stats.relations, strict=True):
        widths = [float(width) for width in re.findall(r"width:([\d.]+)%", bar)]
        assert sum(widths) == pytest.approx(100 * one.bytes / longest, abs=0.01)
        assert len(widths) == len(one.by_cause)


def test_without_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One end of a transaction is no course; the page is made all the same."""
    wal = WalFile(7 * SEGMENT)
    wal.record(10, 0x40, 100, data=60)
    wal.record(1, 0x00, main=struct.pack("<q", SECOND))
    (path,) = wal.save(tmp_path)
    assert over_time(path, read_wal(path)) is None
    page = tmp_path / "page.html"
    assert run(["wal", "stats", str(path), "--html", str(page)]) == 0
    assert "Over time" not in page.read_text(encoding="utf-8")
    assert str(page) in capsys.readouterr().err


def test_every_cause_has_a_name_of_its_own() -> None:
    """Those of the page that is their contract, and no others."""
    page = (Path(__file__).parents[2] / "docs" / "wal.md").read_text("utf-8")
    table = page.split("| cause | what |")[1].split("\n\n")[0]
    first = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    documented = {name for cells in first for name in re.findall(r"`(\w+)`", cells)}
    assert documented == set(CAUSE_NAMES)
    assert len(set(CAUSE_NAMES.values())) == len(CAUSE_NAMES)
    assert cause_name("other:XLOG") == "XLOG records"
    assert cause_name("of_a_later_version") == "of_a_later_version"
