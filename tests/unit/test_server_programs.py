"""Finding servers and reading what users type, without starting one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pgheadroom.errors import InputError, ProgramMissing, ServerNotFound
from pgheadroom.servers import ServerPrograms, find_client, find_programs, is_connection, programs
from pgheadroom.servers.environment import client_environment, without_postgres_variables
from pgheadroom.types import PgVersion


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("postgresql://", True),
        ("postgresql://user@host/db", True),
        ("postgres://host", True),
        ("host=/tmp dbname=x", True),
        ("service = mine", True),
        ("dbname=x", True),
        ("18", False),
        ("18.4", False),
        ("", False),
        ("/usr/lib/postgresql/15/bin", False),
        ("/no/such/folder", False),
        ("./a=b", False),
        ("C=D", False),
    ],
)
def test_what_is_a_connection(text: str, expected: bool) -> None:
    """A URI or key=value pairs; versions and paths, even missing ones, are not."""
    assert is_connection(text) is expected


def test_an_existing_file_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if its name looks like a conninfo string: so says the contract."""
    monkeypatch.chdir(tmp_path)
    assert is_connection("host=x")
    Path("host=x").mkdir()
    assert not is_connection("host=x")


def test_a_version_that_is_not_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what was wanted, what there is, and what to do."""
    known = [ServerPrograms(Path("/opt/pg/bin"), PgVersion(16, 3), "installed")]
    monkeypatch.setattr(programs, "at_hand", lambda: known)
    monkeypatch.setattr(programs, "fetched", list)
    for spec in ("17", "17.10", "19rc1", "12"):
        with pytest.raises(ServerNotFound, match="`server` FOLDER") as caught:
            find_programs(spec)
        assert f"PostgreSQL {spec} " in str(caught.value)
        assert "16.3" in str(caught.value)
        assert "`make servers` fetches 17, 18 and 19" in str(caught.value)
        assert caught.value.at_hand == ("PostgreSQL 16.3 (/opt/pg/bin)",)


def test_fetched_servers_come_after_those_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `make servers` has is for versions that are not there; a candidate has its own name."""
    wheel = ServerPrograms(Path("/wheel/bin"), PgVersion(18, 4), "wheel")
    candidate = ServerPrograms(Path("/debian/19/bin"), PgVersion(19, 0, "rc1"), "folder")
    minor = ServerPrograms(Path("/debian/18/bin"), PgVersion(18, 6), "folder")
    monkeypatch.setattr(programs, "at_hand", lambda: [wheel])
    monkeypatch.setattr(programs, "fetched", lambda: [candidate, minor])
    assert find_programs("18") == wheel
    assert find_programs("18.6") == minor
    assert find_programs("19") == find_programs("19rc1") == candidate
    with pytest.raises(
        ServerNotFound, match=r"no PostgreSQL 19\.0 server is at hand, only .*19rc1"
    ):
        find_programs("19.0")


def test_the_wheel_goes_before_a_newer_minor(monkeypatch: pytest.MonkeyPatch) -> None:
    """`--server 18` means the pinned build, on every machine; `--server 18.6` means that one."""
    newer = ServerPrograms(Path("/usr/pgsql-18/bin"), PgVersion(18, 6), "installed")
    wheel = ServerPrograms(Path("/wheel/bin"), PgVersion(18, 4), "wheel")
    old = [ServerPrograms(Path(f"/{n}/bin"), PgVersion(15, n), "installed") for n in (9, 2)]
    monkeypatch.setattr(programs, "at_hand", lambda: [newer, wheel, *old])
    assert find_programs("18") == wheel
    assert find_programs("18.6") == newer
    assert find_programs("15") == old[0]
    assert find_programs("15.2") == old[1]


@pytest.mark.parametrize("spec", ["", "x", "18.4.1", "/no/such/folder", "118"])
def test_what_is_no_server_name(spec: str) -> None:
    """It is the user's to repair, and the message lists what is understood."""
    with pytest.raises(InputError, match="expected a version such as 18"):
        find_programs(spec)


def test_a_client_that_is_nowhere() -> None:
    """The message says what to install."""
    with pytest.raises(ProgramMissing, match="postgresql-contrib"):
        find_client("no-such-program", None)
    with pytest.raises(ProgramMissing, match="no program psql"):
        ServerPrograms(Path("/nonexistent"), PgVersion(18, 4), "folder").program("psql")


def test_environment_of_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """No PG* variable of the user, but ours; everything else stays; and it is put back."""
    monkeypatch.setenv("PGSERVICE", "mine")
    monkeypatch.setenv("PGHEADROOM_CACHE", "/cache")
    monkeypatch.setenv("EDITOR", "vi")
    environment = client_environment()
    assert "PGSERVICE" not in environment
    assert environment["PGHEADROOM_CACHE"] == "/cache"
    assert environment["EDITOR"] == "vi"
    assert environment["LC_ALL"] == "C"
    with pytest.raises(ZeroDivisionError), without_postgres_variables():  # noqa: PT012
        assert "PGSERVICE" not in os.environ
        raise ZeroDivisionError
    assert os.environ["PGSERVICE"] == "mine"


def test_importing_is_cheap() -> None:
    """Finding programs and printing help must not load psycopg or what reports need."""
    script = (
        "import sys, pgheadroom.servers\n"
        "print([name for name in ('psycopg', 'numpy', 'scipy', 'altair', 'rich') "
        "if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
