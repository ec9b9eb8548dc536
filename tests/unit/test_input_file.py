"""Whatever stands where a file was named: it is read, bounded, or refused with the reason."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from pgheadroom import input_file
from pgheadroom.errors import InputError
from pgheadroom.plan.reading import read_plan
from pgheadroom.profile import read_profile
from pgheadroom.sources.log import read_statements


def read(path: Path) -> str:
    return input_file.read_text(path, bytes_max=1024**2, expected="a file of SQL")


def _fifo(path: Path) -> Path:
    os.mkfifo(path)
    return path


def _huge(path: Path) -> Path:
    with path.open("wb") as file:
        file.truncate(10 * 1024**3)  # a hole: takes no room
    return path


def _socket(path: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))
    return path


ODD: dict[str, tuple[Callable[[Path], Path], str]] = {
    "missing": (lambda path: path, "no such file"),
    "folder": (lambda path: path.parent, "is a folder"),
    "zeros": (lambda _: Path("/dev/zero"), "is a device"),
    "gigabytes": (_huge, "is larger than"),
    "pipe": (_fifo, "is a pipe that nobody writes"),
    "socket": (_socket, "is a socket"),
    "long name": (lambda path: path / ("x" * 5000), "File name too long"),
    "inside a file": (lambda _: Path("/etc/passwd/x"), "Not a directory"),
    "nul": (lambda path: path.with_name("a\0b"), "no file can be called"),
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("reader", [read, read_profile, read_plan, read_statements])
def test_odd_files(
    kind: str,
    reader: Callable[[Path], object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every reader of files refuses what is none, at once, and says what it expected instead."""
    monkeypatch.setattr(input_file, "_WRITER_WAIT_S", 0.1)
    make, message = ODD[kind]
    with pytest.raises(InputError, match=message) as error:
        reader(make(tmp_path / "given.json"))
    assert "expected" in str(error.value)


def test_pipes_are_read(tmp_path: Path) -> None:
    """A shell's `<(...)` is a pipe, and a pipe by name may get its writer a moment later."""
    path = _fifo(tmp_path / "pipe")
    writer = threading.Thread(target=path.write_text, args=("SELECT 1;" * 50_000,))
    writer.start()
    assert read(path) == "SELECT 1;" * 50_000
    writer.join()
    ours, theirs = os.pipe()
    later = threading.Timer(0.05, lambda: (os.write(theirs, b"SELECT 2"), os.close(theirs)))
    later.start()
    assert read(Path(f"/dev/fd/{ours}")) == "SELECT 2"
    later.join()
    os.close(ours)


def test_a_pipe_without_end() -> None:
    """`<(yes)` is read to the bound and no further."""
    ours, theirs = os.pipe()

    def write() -> None:
        try:
            while True:
                os.write(theirs, b"y\n" * 10_000)
        except BrokenPipeError:
            os.close(theirs)

    writer = threading.Thread(target=write)
    writer.start()
    with pytest.raises(InputError, match="larger than 1 MiB"):
        read(Path(f"/dev/fd/{ours}"))
    os.close(ours)
    writer.join()


def test_text(tmp_path: Path) -> None:
    """A byte order mark, as some editors write it, is no text; other encodings are named."""
    path = tmp_path / "given.sql"
    path.write_bytes(b"\xef\xbb\xbfSELECT 1")
    assert read(path) == "SELECT 1"
    path.write_bytes(b"SELECT 'caf\xe9'")
    with pytest.raises(InputError, match=r"not UTF-8 text .* at byte 11"):
        read(path)
