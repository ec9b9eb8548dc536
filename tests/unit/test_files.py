"""Files that are replaced whole, and what a killed writer leaves."""

from __future__ import annotations

import errno
import fcntl
import math
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pgheadroom import files
from pgheadroom.errors import DiskFull, InputError
from pgheadroom.files import file_error, sweep, write_atomically
from pgheadroom.lab.record import to_json_text

LEFT = ".a.0123456789abcdef.partial"


def test_json_never_holds_nan(tmp_path: Path) -> None:
    """NaN is no JSON; better no file than one that others cannot read."""
    path = tmp_path / "x.json"
    write_atomically(path, "old")
    with pytest.raises(ValueError, match="JSON"):
        write_atomically(path, to_json_text({"x": math.nan}))
    assert path.read_text(encoding="utf-8") == "old"


def test_writing_leaves_no_partial_file(tmp_path: Path) -> None:
    """Replaced whole, nothing beside it."""
    write_atomically(tmp_path / "a", "1")
    write_atomically(tmp_path / "a", "2")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    with pytest.raises(InputError, match="cannot write"):
        write_atomically(tmp_path / "missing" / "a", "1")


def test_a_full_device_is_no_full_disk() -> None:
    """Free bytes of the folder were named, and that the command "goes on where it stopped"."""
    with pytest.raises(InputError, match=r"^cannot write /dev/full: No space left on device$"):
        write_atomically(Path("/dev/full"), "x")


def test_a_full_disk_is_said_with_what_is_free(tmp_path: Path) -> None:
    """In units that people read, and nothing that only the laboratory does."""
    found = file_error(OSError(errno.ENOSPC, "No space left on device"), tmp_path / "a.json")
    assert isinstance(found, DiskFull)
    assert re.search(r": [\d,]+ MB are free; .* the same command again$", str(found))


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    """A path that a user gave keeps its kind: replacing the link would surprise."""
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    write_atomically(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    """What is no regular file, /dev/stdout say, must never be replaced by one."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_atomically(pipe, "through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_prepared_partial_file_is_not_followed(tmp_path: Path) -> None:
    """The temporary file is made anew under a name that nobody knows before."""
    write_atomically(tmp_path / "a", "1")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o666 & ~_umask()
    with pytest.raises(UnicodeEncodeError):
        write_atomically(tmp_path / "a", "\ud800")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "1"


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask


@pytest.fixture(params=["unnamed", "named"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of writing: with files without a name, and where a file system has none."""
    if request.param == "named":
        really = os.open

        def without(path: Any, flags: int, *rest: int) -> int:
            if flags & os.O_TMPFILE == os.O_TMPFILE:
                raise OSError(errno.EOPNOTSUPP, "no such files")
            return really(path, flags, *rest)

        monkeypatch.setattr(files.os, "open", without)
    return str(request.param)


def test_both_ways_replace_and_leave_nothing(tmp_path: Path, kind: str) -> None:
    """Whether a file system has unnamed files makes no difference to what is there afterwards."""
    for content in ("1", "22", "é"):
        write_atomically(tmp_path / "a", content)
        assert (tmp_path / "a").read_text(encoding="utf-8") == content
        assert [path.name for path in tmp_path.iterdir()] == ["a"], kind


def test_what_a_killed_writer_left_goes_with_the_next_write(tmp_path: Path, kind: str) -> None:
    """Only what is ours by its name, only of this file, and never what a living writer holds."""
    others = (".b.0123456789abcdef.partial", ".a.partial", ".a.0123456789abcdeX.partial")
    for name in (LEFT, *others):
        (tmp_path / name).write_text("half")
    held = tmp_path / ".a.fedcba9876543210.partial"
    with held.open("w") as living:
        fcntl.flock(living, fcntl.LOCK_EX)
        write_atomically(tmp_path / "a", "whole")
        assert held.exists(), kind
    assert {path.name for path in tmp_path.iterdir()} == {"a", held.name, *others}
    write_atomically(tmp_path / "a", "again")
    assert not held.exists()


KILLED = """
import os, signal, sys
from pathlib import Path
from pgheadroom import files
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[1] == "named":
    files.os.O_TMPFILE = None
if sys.argv[2] == "fsync":
    files.os.fsync = die
else:
    Path.replace = die
files.write_atomically(Path(sys.argv[3]), "new")
"""


@pytest.mark.parametrize("way", ["unnamed", "named"])
@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_a_kill_leaves_the_old_file_and_nothing_for_long(
    tmp_path: Path, way: str, moment: str
) -> None:
    """
    `.plan.applied.json.*.partial` stayed for ever behind a SIGKILL.

    Without a name there is nothing to leave but in the moment of the rename; that, and what file
    systems without unnamed files leave, the next writer takes away.
    """
    target = tmp_path / "plan.applied.json"
    target.write_text("old")
    done = subprocess.run([sys.executable, "-c", KILLED, way, moment, str(target)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert target.read_text() == "old"
    left = [path.name for path in tmp_path.iterdir() if path != target]
    assert len(left) == (0 if (way, moment) == ("unnamed", "fsync") else 1)
    write_atomically(target, "next")
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


def test_a_sweep_never_takes_what_became_the_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its writer renamed it between our look at the folder and our lock."""
    (tmp_path / LEFT).write_text("whole by now")
    really = fcntl.flock

    def renamed_first(descriptor: int, operation: int) -> None:
        (tmp_path / LEFT).rename(tmp_path / "a")
        really(descriptor, operation)

    monkeypatch.setattr(files.fcntl, "flock", renamed_first)
    sweep(tmp_path / "a")
    assert (tmp_path / "a").read_text() == "whole by now"


def test_writers_side_by_side_all_succeed(tmp_path: Path) -> None:
    """Each sweeps what the others have under way, and takes nothing of it."""
    code = (
        "import sys\nfrom pathlib import Path\nfrom pgheadroom import files\n"
        "if sys.argv[2] == 'named': files.os.O_TMPFILE = None\n"
        "files.os.fsync = lambda _: None\n"
        "for n in range(200): files.write_atomically(Path(sys.argv[1]), f'{n}' * 1000)"
    )
    for way in ("unnamed", "named"):
        ours = [
            subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "a"), way])
            for _ in range(3)
        ]
        assert [child.wait(timeout=120) for child in ours] == [0, 0, 0]
        assert (tmp_path / "a").read_text() == "199" * 1000
        assert [path.name for path in tmp_path.iterdir()] == ["a"]
