"""`mcp` as a person starts it: what is granted is checked before an agent asks."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

Run = Callable[..., "CompletedProcess[str]"]
PROFILE = Path(__file__).parents[1] / "unit" / "observed" / "job-queue.json"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "nothing to ask about: expected --profile FILE or --connection NAME=CONN"),
        (("--connection", "dbname"), "expected NAME=CONN"),
        (("--connection", "a b=dbname=x"), "expected NAME=CONN"),
        (("--connection", "postgresql://user:secret9@host/db?a=b"), "expected NAME=CONN"),
        (("--connection", "shop=what ever"), "--connection shop=... is not understood"),
        (("--connection", "a=dbname=x", "--connection", "a=dbname=y"), "a is named twice"),
        (("--profile", "none.json"), "none.json"),
        (("--profile", "job.json", "--connection", "job=dbname=x"), "a profile and a connection"),
        (("--profile", "broken.json"), "broken.json"),
    ],
)
def test_mistakes(options: tuple[str, ...], said: str, in_process: Run, tmp_path: Path) -> None:
    """Told at once, to whoever starts it, and without a password."""
    shutil.copy(PROFILE, tmp_path / "job.json")
    (tmp_path / "broken.json").write_text("{}", encoding="utf-8")
    done = in_process("mcp", *options)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "secret9" not in done.stderr
    assert done.stdout == ""


def test_without_the_extra(
    in_process: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says what to install; the other commands do without."""
    shutil.copy(PROFILE, tmp_path / "job.json")
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    done = in_process("mcp", "--profile", "job.json")
    assert done.returncode == 2
    assert "pip install 'pgheadroom[mcp]'" in done.stderr


def test_it_ends_with_its_input(pgheadroom: Run, tmp_path: Path) -> None:
    """The agent is gone: nothing is left, and nothing but the protocol was on standard output."""
    shutil.copy(PROFILE, tmp_path / "job.json")
    done: subprocess.CompletedProcess[str] = pgheadroom("mcp", "--profile", "job.json")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
