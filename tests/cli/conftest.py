"""The program as a user runs it: a process of its own, in a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from leftovers import eventually_empty

from pgheadroom.cli import app
from places import fast_place

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def environment() -> dict[str, str]:
    """The environment without what would change the program's words: colours, PG* variables."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    kept |= {name: os.environ[name] for name in os.environ if name.startswith("PGHEADROOM_")}
    return kept | {"NO_COLOR": "1", "COLUMNS": "100", "PYTHONWARNINGS": "error"}


@pytest.fixture
def pgheadroom(tmp_path: Path, environment: dict[str, str]) -> Run:
    """Run the program in an empty folder and return what it printed and its exit code."""

    def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pgheadroom", *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            check=False,
            timeout=300,
            **options,  # type: ignore[call-overload]
        )

    return run


@pytest.fixture
def in_process(
    tmp_path: Path,
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """
    The same in this process, for what needs none of its own.

    A start takes half a second, and most mistakes are told within a hundredth of one. What is
    shown of processes (signals, closed streams, exit codes that a shell sees) takes `pgheadroom`.
    """

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        monkeypatch.chdir(tmp_path)
        for name in set(os.environ) - set(environment):
            monkeypatch.delenv(name)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["pgheadroom", *arguments])
        capsys.readouterr()
        code = app.run(arguments)
        said = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, code, said.out, said.err)

    return run


@pytest.fixture
def run_parent(environment: dict[str, str]) -> Iterator[Path]:
    """The folder for run folders; anything left in it at the end fails the test."""
    parent = Path(tempfile.mkdtemp(prefix="pgh-cli-", dir=fast_place()))
    parent.chmod(0o755)
    environment["PGHEADROOM_TMPDIR"] = str(parent)
    yield parent
    left = eventually_empty(parent)
    assert left == [], f"left behind: {left}"
    parent.rmdir()
