"""An interval cannot be had again: room is looked for before it, and its profile kept after it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from pgheadroom.cli.observe import check_room, save
from pgheadroom.errors import InputError

CONTENT = '{"profile": "' + "x" * 100_000 + '"}\n'


class Usage(NamedTuple):
    total: int
    used: int
    free: int


def kept(message: str) -> Path:
    """The file that a message names."""
    found = re.search(r"The profile is in (\S+) instead", message)
    assert found is not None, message
    return Path(found[1])


def test_room_is_looked_for_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is said before five minutes are spent, with both numbers."""
    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage(10, 9, 1_000_000))
    check_room(tmp_path / "p.json", 999_999)
    with pytest.raises(InputError, match=r"has 1\.0 MB free, and the profile may take 2\.0 MB"):
        check_room(tmp_path / "p.json", 2_000_000)
    check_room(Path("/dev/null"), 2_000_000)


def test_a_full_disk_loses_no_profile() -> None:
    """A write that fails at the end is followed by one elsewhere, and the message says where."""
    with pytest.raises(InputError, match="/dev/full could not be written") as caught:
        save(CONTENT, Path("/dev/full"))
    place = kept(str(caught.value))
    assert place.read_text() == CONTENT
    assert place.stat().st_mode & 0o077 == 0, "names of tables are its owner's"
    place.unlink()


def test_where_no_folder_has_room_it_goes_to_standard_output(tmp_path: Path) -> None:
    """The last resort is the terminal or pipe that is there in any case."""
    program = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from pgheadroom.cli.observe import save\n"
        "from pgheadroom.errors import InputError\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try:\n"
        "    save(sys.argv[2], Path(sys.argv[1]))\n"
        "except InputError as error:\n"
        "    sys.exit(str(error))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "p.json", CONTENT],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == CONTENT
    assert "The profile went to standard output instead" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_full_standard_output_loses_no_profile() -> None:
    """Without -o the profile goes to standard output, which may be a file on a full disk."""
    program = (
        "import sys\n"
        "from pgheadroom.cli.observe import save\n"
        "from pgheadroom.errors import InputError\n"
        "try:\n"
        "    save(sys.argv[1], None)\n"
        "except InputError as error:\n"
        "    sys.stderr.write(str(error))\n"
        "    sys.stdout = None\n"
    )
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", program, CONTENT],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    place = kept(done.stderr)
    assert place.read_text() == CONTENT
    place.unlink()
