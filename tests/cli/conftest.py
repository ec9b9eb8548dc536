"""The program as a user runs it: a process of its own, in a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

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
