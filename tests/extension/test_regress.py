"""The extension's pg_regress files: sql/NAME.sql gives expected/NAME.out on every version."""

from __future__ import annotations

import difflib
import os
import subprocess
from pathlib import Path

import pytest

from pgheadroom.extension import SOURCES
from pgheadroom.servers import Cluster, ServerPrograms, find_client

NAMES = sorted(path.stem for path in (SOURCES / "sql").glob("*.sql"))


def played(cluster: Cluster, programs: ServerPrograms, database: str, script: Path) -> str:
    """What psql prints, called as pg_regress calls it (`psql_start_test`, pg_regress_main.c)."""
    psql, _ = find_client("psql", programs)
    environment = cluster.client_env() | {
        "PGDATABASE": database,
        "PGTZ": "America/Los_Angeles",
        "PGDATESTYLE": "Postgres, MDY",
    }
    with script.open() as source:
        done = subprocess.run(
            [psql, "-X", "-a", "-q"],
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            text=True,
            timeout=300,
            check=False,
        )
    return done.stdout


@pytest.mark.each
@pytest.mark.parametrize("name", NAMES)
def test_regress(cluster: Cluster, extended: ServerPrograms, database: str, name: str) -> None:
    """Output is the expected one, to the letter; PGHEADROOM_REGRESS=write writes it anew."""
    expected = SOURCES / "expected" / f"{name}.out"
    said = played(cluster, extended, database, SOURCES / "sql" / f"{name}.sql")
    if os.environ.get("PGHEADROOM_REGRESS") == "write":
        expected.write_text(said)
    lines = difflib.unified_diff(expected.read_text().splitlines(), said.splitlines(), lineterm="")
    difference = "\n".join(lines)
    assert not difference, difference


def test_names_stand_in_the_makefile() -> None:
    """`make installcheck` plays the same files."""
    makefile = (SOURCES / "Makefile").read_text()
    (line,) = [line for line in makefile.splitlines() if line.startswith("REGRESS = ")]
    assert sorted(line.split()[2:]) == NAMES
    assert NAMES
