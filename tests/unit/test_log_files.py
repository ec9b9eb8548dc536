"""Which bytes of a log belong to an interval, however the log is rotated inside it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from pgheadroom.errors import InputError
from pgheadroom.sources.log_files import check_log, parts_since, places

OLD = "".join(f"2026-11-22 10:00:{n:02d}.000 UTC [1] LOG:  before {n}\n" for n in range(60))
NEW = "2026-11-22 10:01:00.000 UTC [1] LOG:  inside\n"


def read(path: Path, before: object, file_name: str | None = None) -> tuple[str, tuple[str, ...]]:
    """The text of the interval without what was there before, and what is lost."""
    found = parts_since(path, file_name, before)  # type: ignore[arg-type]
    texts = [part.path.read_bytes()[part.begin : part.end].decode() for part in found.parts]
    # The entry before the place is read again: its time says that it does not count.
    whole = "".join(texts)
    lines = whole.splitlines(keepends=True)
    return "".join(line for line in lines if "before" not in line), found.lost


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "postgresql-15-main.log"
    path.write_text(OLD)
    (tmp_path / "postgresql-16-main.log").write_text(OLD)
    return path


def test_only_what_was_appended(log: Path) -> None:
    """A log of gigabytes was read from its start; another server's beside it is not read."""
    before = places(log, None)
    with log.open("a") as file:
        file.write(NEW)
    (log.parent / "postgresql-16-main.log").write_text(OLD + NEW)
    found = parts_since(log, None, before)
    assert [part.path for part in found.parts] == [log]
    assert found.parts[0].begin == len(OLD) - len(OLD.splitlines()[-1]) - 1
    assert read(log, before) == (NEW, ())


def test_nothing_written_is_nothing(log: Path) -> None:
    before = places(log, None)
    assert parts_since(log, None, before).parts == ()
    assert parts_since(log, None, before).lost == ()


def test_renamed_and_made_anew(log: Path) -> None:
    """Logrotate's usual way: the old file under another name, then the new one."""
    before = places(log, None)
    with log.open("a") as file:
        file.write(NEW)
    log.rename(log.with_name(log.name + ".1"))
    log.write_text(NEW.replace("inside", "later"))
    os.utime(log.with_name(log.name + ".1"), ns=(0, 0))
    assert read(log, before) == (NEW + NEW.replace("inside", "later"), ())


def test_copied_and_truncated(log: Path) -> None:
    """Copytruncate: a new file has the old bytes, the old file begins again."""
    before = places(log, None)
    with log.open("a") as file:
        file.write(NEW)
    copy = log.with_name(log.name + "-20261122")
    shutil.copyfile(log, copy)
    os.utime(copy, ns=(0, 0))
    os.truncate(log, 0)
    with log.open("a") as file:
        file.write(NEW.replace("inside", "later"))
    assert read(log, before) == (NEW + NEW.replace("inside", "later"), ())


def test_truncated_and_grown_beyond_its_old_place(log: Path) -> None:
    """Longer than before is not appended to: the bytes before the place are others."""
    before = places(log, None)
    log.write_text(NEW * 200)
    text, lost = read(log, before)
    assert text == NEW * 200
    assert "is gone" in lost[0]


@pytest.mark.parametrize(
    ("first", "second", "file_name"),
    [
        ("postgresql-2026-11-22_100000.log", "postgresql-2026-11-22_110000.log", None),
        ("pg.2026-11-22.csv", "pg.2026-11-23.csv", "pg.%Y-%m-%d.log"),
        ("postgresql-Sun.log", "postgresql-Mon.log", "postgresql-%a.log"),
        ("postgresql-Sun.log", "postgresql-Mon.log", None),
        ("server_10.json", "server_11.json", "server_%H.log"),
    ],
)
def test_the_next_file_by_log_filename(
    first: str, second: str, file_name: str | None, tmp_path: Path
) -> None:
    """The collector goes on in a file of another time, which may be an old one used again."""
    log, other = tmp_path / first, tmp_path / second
    log.write_text(OLD)
    other.write_text(OLD.replace("before", "of last week, before"))
    before = places(log, file_name)
    with log.open("a") as file:
        file.write(NEW)
    os.utime(log, ns=(0, 0))
    other.write_text(NEW.replace("inside", "later"))
    assert read(log, before, file_name) == (NEW + NEW.replace("inside", "later"), ())


def test_what_was_compressed_is_named(log: Path) -> None:
    """The interval's part is gone from what can be read: that is said, with the file's name."""
    before = places(log, None)
    log.rename(log.with_name(log.name + ".1.gz"))
    log.write_text(NEW)
    text, lost = read(log, before)
    assert text == NEW
    assert lost == (
        "postgresql-15-main.log was rotated and what it held of the interval is gone: "
        "postgresql-15-main.log.1.gz is compressed, which is not read",
    )


def test_a_half_written_entry_is_read_from_its_start(log: Path) -> None:
    """The interval may begin while an entry is written; a csvlog would be read with quotes off."""
    whole = '2026-11-22 10:01:00.000 UTC,"me","db","UPDATE t\n SET a = 1"\n'
    log.write_text(OLD + whole[:50])
    before = places(log, None)
    log.write_text(OLD + whole)
    found = parts_since(log, None, before)
    assert log.read_text()[found.parts[0].begin : found.parts[0].end] == whole


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("absent.log", None, "is not a file: .* on this machine"),
        ("server.log.1.gz", b"anything", "is compressed"),
        ("server.log", b"\x1f\x8b\x08\x00rest", "is compressed"),
    ],
)
def test_what_cannot_be_read_is_said_before_the_interval(
    name: str, content: bytes | None, expected: str, tmp_path: Path
) -> None:
    """A mistake in an option should not cost an interval."""
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=expected):
        check_log(tmp_path / name)
