"""`observe` from outside: each mistake with its exit code, what is printed without a server."""

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
        ([NOWHERE, "--for", "1s"], 3, "no connection"),
        ([NOWHERE, "--print-grants"], 3, "no connection"),
        (["what is this", "--for", "1s"], 2, "the connection is not understood"),
        ([NOWHERE, "--for", "soon"], 2, "duration 'soon' is not understood"),
        ([NOWHERE, "-o", "absent/profile.json"], 2, "make the folder first"),
        ([NOWHERE, "--statements", "no.sql"], 2, "no such file: no.sql"),
        ([NOWHERE, "--log", "no.log"], 2, "--log no.log is not a file"),
        (["--from", "absent"], 2, "holds no pgheadroom-observed"),
        ([NOWHERE, "--from", "."], 2, "--from stands beside a connection"),
    ],
)
def test_mistakes(in_process: Run, arguments: list[str], code: int, message: str) -> None:
    """Before an interval is spent, with one clear message, without the password."""
    done = in_process("observe", *arguments)
    assert message in done.stderr
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert "secret" not in done.stderr
    assert done.stdout == ""


def test_the_script_needs_no_server(pgheadroom: Run, tmp_path: Path) -> None:
    """Whoever must review the statements first gets them without a connection."""
    done = pgheadroom("observe", "--print-sql", "--for", "2m", "--no-sample")
    assert done.returncode == 0, done.stderr
    assert "SET default_transaction_read_only = 'on';" in done.stdout
    assert "TABLESAMPLE" not in done.stdout
    assert "about 2 min" in done.stdout
    assert pgheadroom("observe", "--print-sql", "-o", "observe.sql").stdout == ""
    assert "TABLESAMPLE" in (tmp_path / "observe.sql").read_text()


def test_help_names_the_options(in_process: Run) -> None:
    """-h is the host, as everywhere; the options of the contract are there."""
    text = in_process("observe", "--help").stdout
    for option in ("--for", "--mask", "--no-sample", "--print-grants", "--log", "--statements"):
        assert option in text
