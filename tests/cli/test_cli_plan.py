"""`apply` and `verify` from outside: each mistake with its exit code, and what --help says."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
NOWHERE = "host=/nowhere user=u password=secret"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["apply", "absent.json", NOWHERE, "--yes"], 2, "no such file: absent.json"),
        (["apply", "text", NOWHERE, "--yes"], 2, "text is no JSON"),
        (["apply", "other.json", NOWHERE], 2, "expected a plan of version 2"),
        (["apply", "other.json", NOWHERE, "--lock-timeout", "soon"], 2, "duration 'soon'"),
        (["apply", "other.json", NOWHERE, "--lock-retries", "-1"], 2, "expected 0 to 1000"),
        (["verify", "absent.json", NOWHERE], 2, "no such file: absent.json"),
        (["verify", "other.json", NOWHERE, "-o", "absent/v.json"], 2, "make the folder first"),
        (["advise", "other.json", "--plan", "absent/plan.json"], 2, "make the folder first"),
        (
            ["advise", "other.json", "--plan", "p.json", "--rewrite", "cluster"],
            2,
            "expected one of none, auto, repack",
        ),
    ],
)
def test_mistakes(
    in_process: Run, tmp_path: Path, arguments: list[str], code: int, message: str
) -> None:
    """Before anything is connected to, with one clear message, without the password."""
    (tmp_path / "text").write_text("-- SQL\n")
    (tmp_path / "other.json").write_text('{"kind": "profile", "schema_version": 1}')
    done = in_process(*arguments)
    assert message in done.stderr
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert "secret" not in done.stderr
    assert done.stdout == ""


def test_help_names_the_options(pgheadroom: Run) -> None:
    """-h is the host, as everywhere; the options of the contract are there."""
    text = pgheadroom("apply", "--help").stdout
    for option in ("--yes", "--undo", "--skip", "--dry-run", "--lock-timeout", "--backoff"):
        assert option in text
    text = pgheadroom("verify", "--help").stdout
    for option in ("--for", "--format", "--output", "--log", "--host", "6: none failed"):
        assert option in text
