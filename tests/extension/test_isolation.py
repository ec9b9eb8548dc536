"""The extension's isolation tests: specs/NAME.spec gives expected/NAME.out on every version."""

from __future__ import annotations

import difflib
import os
import subprocess
from pathlib import Path

import pytest

from pgheadroom.extension import SOURCES
from pgheadroom.servers import Cluster, ServerPrograms, find_programs

NAMES = sorted(path.stem for path in (SOURCES / "specs").glob("*.spec"))


def isolationtester(programs: ServerPrograms) -> Path | None:
    """
    PostgreSQL's program beside PGXS, of that server or of the embedded one.

    It is a client like psql. Debian's of another release does not start here.
    """
    for each in (programs, find_programs("18")):
        told = subprocess.run(
            [each.program("pg_config"), "--pgxs"], capture_output=True, text=True, check=True
        ).stdout.strip()
        path = Path(told).parents[1] / "test" / "isolation" / "isolationtester"
        if path.is_file():
            done = subprocess.run([path, "-V"], capture_output=True, check=False)
            if done.returncode == 0:
                return path
    return None


@pytest.mark.each
@pytest.mark.parametrize("name", NAMES)
def test_isolation(
    cluster: Cluster,
    programs: ServerPrograms,
    database: str,
    name: str,
) -> None:
    """Output is the expected one, to the letter; PGHEADROOM_REGRESS=write writes it anew."""
    tester = isolationtester(programs)
    if tester is None:
        pytest.skip(f"{programs}: no isolationtester")
    expected = SOURCES / "expected" / f"{name}.out"
    # As pg_isolation_regress calls it: with libpq of its server, and by the name of the database.
    done = subprocess.run(
        [tester, f"dbname={database}"],
        input=(SOURCES / "specs" / f"{name}.spec").read_text(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=cluster.client_env(),
        text=True,
        timeout=300,
        check=False,
    )
    said = done.stdout
    if os.environ.get("PGHEADROOM_REGRESS") == "write":
        expected.write_text(said)
    lines = difflib.unified_diff(expected.read_text().splitlines(), said.splitlines(), lineterm="")
    difference = "\n".join(lines)
    assert not difference, difference
    assert done.returncode == 0


def test_names_stand_in_the_makefile() -> None:
    """`make installcheck` plays the same files."""
    makefile = (SOURCES / "Makefile").read_text()
    (line,) = [line for line in makefile.splitlines() if line.startswith("ISOLATION = ")]
    assert sorted(line.split()[2:]) == NAMES
    assert NAMES
