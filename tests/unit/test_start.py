"""What a command loads before it does anything: its own modules, and the help loads none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pgheadroom.cli.commands import COMMANDS

EXAMPLES = Path(__file__).parents[2] / "examples"
HEAVY = ("numpy", "scipy", "psycopg", "pydantic", "altair", "jinja2", "rich", "pgheadroom._core")
DRAWN = ("altair", "jinja2", "pgheadroom.report.site", "pgheadroom.report.html")
PARTS = (
    "profile",
    "layout",
    "observe",
    "predict",
    "prove",
    "wal",
    "advise",
    "plan",
    "report",
    "lab",
)
FOR_WORK = (
    "numpy",
    "scipy",
    "psycopg",
    "pgheadroom._core",
    *DRAWN,
    *map("pgheadroom.{}".format, PARTS),
)
"""What no command needs before it works."""

LISTED = """
import sys
from pgheadroom.cli.app import run
code = run(sys.argv[1:])
sys.stderr.write("\\n".join(sorted(sys.modules)))
raise SystemExit(code)
"""


def _loaded(*arguments: str, says: str = "Usage: pgheadroom") -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", LISTED, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert says in done.stdout
    return set(done.stderr.split("\n"))


def test_help_loads_no_command() -> None:
    """`--help` took 1.1 s of processor time, for the modules of all commands."""
    loaded = _loaded("--help")
    assert loaded.isdisjoint(HEAVY)
    ours = {name for name in loaded if name.startswith("pgheadroom.")}
    assert {name.split(".")[1] for name in ours} <= {
        "cli",
        "errors",
        "on_demand",
        "quoting",
        "redaction",
        "servers",
    }
    modules = {f"pgheadroom.cli.{found.module}" for found in COMMANDS.values()}
    assert ours.isdisjoint(modules)


OWN_MODULES_MAX = 35
"""Of ours that a command's help loads: its options, and what errors and output go through."""


@pytest.mark.parametrize("command", list(COMMANDS))
def test_help_loads_few_modules(command: str) -> None:
    """
    A count, for processor time is the machine's.

    `advise`, `check` and `verify` loaded 149 to 167 modules for their help, 0.5 s of it; `apply`,
    `layout`, `observe`, `predict`, `prove` and `wal` 65 to 130, 0.36 to 0.5 s; all take 0.2 now.
    """
    ours = [name for name in _loaded(command, "--help") if name.startswith("pgheadroom")]
    assert len(ours) <= OWN_MODULES_MAX


@pytest.mark.parametrize("command", list(COMMANDS))
def test_no_command_loads_what_only_work_needs(command: str) -> None:
    """Nor does one that is still to come; profiles, layouts and results are loaded for work."""
    assert _loaded(command, "--help").isdisjoint(FOR_WORK)


@pytest.mark.parametrize("command", ["list", "run", "report", "compare", "merge"])
def test_help_of_the_laboratory_loads_no_experiment(command: str) -> None:
    """`lab run --help` took 0.75 s of processor time, for all experiments, charts and numpy."""
    loaded = _loaded("lab", command, "--help")
    assert loaded.isdisjoint(FOR_WORK)


def test_the_list_of_experiments_loads_no_run() -> None:
    """Showing what experiments ask needs no array, no connection, no page and no twin."""
    loaded = _loaded("lab", "list", says="update-cost")
    assert "pgheadroom.lab.experiments" in loaded
    assert loaded.isdisjoint(
        (*DRAWN, "psycopg", "numpy", "pgheadroom.report", "pgheadroom.predict", "pgheadroom.play")
    )


def test_a_prediction_loads_no_experiment(tmp_path: Path) -> None:
    """Showing a prediction loaded all experiments, and numpy with them: 0.4 s of processor time."""
    profile = (EXAMPLES / "accounts.toml").read_text(encoding="utf-8")
    small = profile.replace("1_000_000", "1000").replace("200_000", "10")
    assert small.count("1000\n") == 1
    (tmp_path / "small.toml").write_text(small, encoding="utf-8")
    loaded = _loaded("predict", str(tmp_path / "small.toml"), says="18")
    assert loaded.isdisjoint(("numpy", "psycopg", "pgheadroom.lab.experiments", "altair"))
    # Its core alone: pydantic and what it made of the profile's declaration took half of the start.
    assert "pydantic_core" in loaded
    assert "pydantic" not in loaded
    # Nor how experiments look, nor the bar of progress, which only a terminal shows.
    shown = ("lab.presented", "lab.presentation", "lab.answer", "report.experiment.tables")
    assert loaded.isdisjoint((*map("pgheadroom.{}".format, shown), "rich.progress"))


def test_a_check_of_a_migration_loads_no_observing(tmp_path: Path) -> None:
    """It reads a profile: how one is made of a live database it needs not, nor a connection."""
    (tmp_path / "migration.sql").write_text("CREATE TABLE apart (id int);", encoding="utf-8")
    profile = Path(__file__).parent / "observed" / "ledger.json"
    loaded = _loaded("check", str(tmp_path / "migration.sql"), "--profile", str(profile), says="")
    assert "pydantic" not in loaded
    assert "pgheadroom.migration" in loaded
    making = ("build", "live", "ages", "classes", "columns", "sample", "tables")
    assert loaded.isdisjoint(
        (*map("pgheadroom.observe.{}".format, making), "psycopg", "numpy", "altair")
    )


def test_ctrl_c_is_handled_before_anything_is_loaded() -> None:
    """A trace came out of `typing`, which took longer than all that comes before the handler."""
    code = (
        "import sys; before = set(sys.modules); import pgheadroom.cli; "
        "print(*sorted(set(sys.modules) - before))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(found.stdout.split()) <= {"__future__", "types", "pgheadroom", "pgheadroom.cli"}
