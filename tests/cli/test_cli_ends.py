"""How the program ends: interrupted, with nowhere to write, by a bug of ours."""

from __future__ import annotations

import re
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pgheadroom.cli import app

# Python's own start comes before any of our code: the signal is sent by the Nth import after it.
_INTERRUPTED_AT = """
import os, signal, sys
import pgheadroom.cli

class Interrupting:
    left = int(sys.argv.pop(1))
    def find_spec(self, name, path=None, target=None):
        Interrupting.left -= 1
        if Interrupting.left == 0:
            os.kill(os.getpid(), signal.SIGINT)

class Signals:
    def signal(self, *arguments):
        before = signal.signal(*arguments)
        if Interrupting not in map(type, sys.meta_path):
            sys.meta_path.insert(0, Interrupting())
        return before
    def __getattr__(self, name):
        return getattr(signal, name)

pgheadroom.cli.signal = Signals()
pgheadroom.cli.main()
"""


def _run(
    arguments: list[str], environment: dict[str, str], folder: Path, **options: object
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        text=True,
        cwd=folder,
        env=environment,
        check=False,
        timeout=300,
        **options,  # type: ignore[call-overload]
    )


@pytest.mark.parametrize("place", [1, 40, 200])
def test_ctrl_c_while_it_loads(environment: dict[str, str], tmp_path: Path, place: int) -> None:
    """The first half second is imports, in any of which Ctrl-C ended with a trace and code 1."""
    done = _run(
        ["-c", _INTERRUPTED_AT, str(place), "lab", "list"],
        environment,
        tmp_path,
        capture_output=True,
    )
    assert done.returncode == 130
    # Once the command itself runs, and loads what it needs, it also says what is left of servers.
    (line,) = done.stderr.splitlines()
    assert line.partition(";")[0] == "pgheadroom: interrupted"


@pytest.mark.parametrize("arguments", [["lab", "list"], ["--help"]])
def test_full_standard_output(
    environment: dict[str, str], tmp_path: Path, arguments: list[str]
) -> None:
    """What cannot be printed is the user's to know, by message and code 2, without a trace."""
    with Path("/dev/full").open("w") as full:
        done = _run(
            ["-m", "pgheadroom", *arguments],
            environment,
            tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
        )
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "pgheadroom: standard output cannot be written: No space left on device; give it room, or "
        "write into a file with --output"
    ]


@pytest.mark.parametrize(
    ("redirection", "code"),
    [(">&-", 2), ("2>&-", 0), ("2>/dev/full", 0), ("<&-", 0), ("<&- >&- 2>&-", 2)],
)
def test_closed_streams(
    environment: dict[str, str], tmp_path: Path, redirection: str, code: int
) -> None:
    """Daemons and cron start programs without some of them; none may cost the exit code."""
    command = f'exec "$0" -m pgheadroom lab list {redirection}'
    done = subprocess.run(
        ["/bin/sh", "-c", command, sys.executable],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        check=False,
    )
    assert done.returncode == code
    assert "Traceback" not in done.stderr


def test_a_closed_pipe_does_not_hide_findings(environment: dict[str, str], tmp_path: Path) -> None:
    """`check | head` in a script with pipefail must not turn a finding into a 0."""
    script = (
        "import sys, typer, pgheadroom.cli.app as ours\n"
        "def finding():\n"
        "    sys.stdout.write('x' * 10_000_000); raise typer.Exit(1)\n"
        "ours.app.command('finding')(finding)\n"
        "sys.exit(ours.run_program(['finding']))\n"
    )
    done = subprocess.run(
        ["/bin/bash", "-c", '"$0" -c "$1" | true; echo ${PIPESTATUS[0]}', sys.executable, script],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == ("1", "")


class _Command:
    """As Typer makes one, without options."""

    def get_params(self, _context: object) -> list[object]:
        return []


class _Broken(_Command):
    def main(self, **_: object) -> int:
        raise KeyError("no password=planted1 in postgresql://me:planted2@host/db, planted3")


class _Panic(BaseException):
    """As PyO3's, which is no Exception."""


class _Panicking(_Command):
    def main(self, **_: object) -> int:
        raise _Panic("index out of bounds")


@pytest.mark.parametrize("kind", [_Broken, _Panicking])
def test_a_bug_has_its_own_exit_code(
    kind: type,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """Exit code 1 means findings: a trace never ends with it. The details hold no password."""
    monkeypatch.setattr(app, "get_command", lambda _: kind())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("PGPASSWORD", "planted3")
    target = "postgresql://me:planted4@host/db"
    assert app.run(["observe", target, "-d", "password='planted 5'"]) == 70
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    assert "this is a bug of pgheadroom's" in said
    details = Path(re.search(r"are in (\S+)$", said)[1])  # type: ignore[index]
    text = details.read_text()
    assert stat.S_IMODE(details.stat().st_mode) == 0o600
    assert "Traceback" in text
    assert "observe" in text
    assert "planted" not in said + text


def test_a_bug_whose_details_cannot_be_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Without a folder for them they stand on standard error, before the line."""
    monkeypatch.setattr(app, "get_command", lambda _: _Panicking())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    assert app.run(["lab"]) == 70
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert said.splitlines()[-1].endswith("The details could not be written down")


def test_out_of_memory_is_no_bug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A limit that was reached is code 5, as the twin's own."""

    class Large(_Command):
        def main(self, **_: object) -> int:
            raise MemoryError

    monkeypatch.setattr(app, "get_command", lambda _: Large())
    assert app.run(["predict"]) == 5
    assert "out of memory" in capsys.readouterr().err


def test_signals_that_are_ignored_stay_so(environment: dict[str, str], tmp_path: Path) -> None:
    """A shell starts background jobs with SIGINT ignored: Ctrl-C is then for another program."""
    script = (
        "import os, signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "from pgheadroom.cli import main\n"
        "import pgheadroom.cli.app as ours\n"
        "def killing(arguments):\n"
        "    os.kill(os.getpid(), signal.SIGINT); return 0\n"
        "ours.run_program = killing\n"
        "main()\n"
    )
    done = _run(["-c", script], environment, tmp_path, capture_output=True)
    assert (done.returncode, done.stderr) == (0, "")
