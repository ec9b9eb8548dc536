"""`pgheadroom extension install`: what is shown, what is asked, what is put where."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pgheadroom.extension import lacking
from pgheadroom.servers import Host, ServerPrograms
from places import fast_place

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def elsewhere(programs: ServerPrograms) -> Iterator[Path]:
    """
    The `bin` of a server whose pg_config names empty folders for libraries and for SQL.

    Not pytest's tmp_path: that is closed to the unprivileged user who runs servers for root.
    """
    problem = lacking(programs)
    if problem is not None:
        pytest.skip(f"{programs}: {problem}")
    prefix = Path(tempfile.mkdtemp(prefix="pgh-install-", dir=fast_place()))
    prefix.chmod(0o755)
    for name in ("bin", "lib", "share/extension"):
        (prefix / name).mkdir(parents=True)
    for program in ("postgres", "initdb"):
        (prefix / "bin" / program).symlink_to(programs.program(program))
    pg_config = prefix / "bin" / "pg_config"
    pg_config.write_text(
        "#!/bin/sh\n"
        'case "$*" in\n'
        f"--pkglibdir) echo '{prefix}/lib' ;;\n"
        f"--sharedir) echo '{prefix}/share' ;;\n"
        f"*) exec '{programs.program('pg_config')}' \"$@\" ;;\n"
        "esac\n"
    )
    pg_config.chmod(0o755)
    yield prefix / "bin"
    shutil.rmtree(prefix)


def files_in(prefix: Path) -> set[str]:
    return {
        path.relative_to(prefix).as_posix()
        for part in ("lib", "share")
        for path in (prefix / part).rglob("*")
        if path.is_file()
    }


FILES = {
    "lib/clustered_heap.so",
    "share/extension/clustered_heap.control",
    "share/extension/clustered_heap--1.0.sql",
}


def test_install(in_process: Run, elsewhere: Path) -> None:
    """--dry-run shows and writes nothing; --yes writes; again it writes what differs."""
    prefix = elsewhere.parent
    looked = in_process("extension", "install", str(elsewhere), "--dry-run")
    assert looked.returncode == 0, looked.stderr
    assert "Nothing was installed: --dry-run." in looked.stdout
    for name in FILES:
        assert f"  new       {prefix / name}\n" in looked.stdout
    assert files_in(prefix) == set()

    done = in_process("extension", "install", str(elsewhere), "--yes")
    assert done.returncode == 0, done.stderr
    assert files_in(prefix) == FILES
    assert "3 files installed" in done.stdout
    assert "CREATE EXTENSION clustered_heap;" in done.stdout

    # The library has the path of its build in its debugging information, so it may differ.
    (prefix / "share/extension/clustered_heap.control").write_text("another\n")
    over = in_process("extension", "install", str(elsewhere), "--yes")
    assert f"  replaces  {prefix / 'share/extension/clustered_heap.control'}\n" in over.stdout
    assert f"  the same  {prefix / 'share/extension/clustered_heap--1.0.sql'}\n" in over.stdout
    assert "default_version" in (prefix / "share/extension/clustered_heap.control").read_text()
    assert files_in(prefix) == FILES


@pytest.mark.pg(">= 18")
def test_what_is_installed_works(
    in_process: Run, elsewhere: Path, programs: ServerPrograms
) -> None:
    """A server that looks in those folders (extension_control_path, from 18 on) creates it."""
    prefix = elsewhere.parent
    assert in_process("extension", "install", str(elsewhere), "--yes").returncode == 0
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start(
            {
                "extension_control_path": f"{prefix}/share:$system",
                "dynamic_library_path": f"{prefix}/lib:$libdir",
            }
        )
        with cluster.connect() as session:
            session.execute("CREATE EXTENSION clustered_heap")
            session.execute("CREATE TABLE t (k int PRIMARY KEY)")
            session.execute("INSERT INTO t SELECT generate_series(1, 10)")
            found = session.execute("SELECT row_count FROM cluster_quality('t', 't_pkey')")
            assert found.fetchone() == (10,)


def test_refused(in_process: Run, elsewhere: Path) -> None:
    """Nobody to ask, no such server, a folder that is missing: told by name, nothing written."""
    asked = in_process("extension", "install", str(elsewhere))
    assert asked.returncode == 2
    assert "--yes" in asked.stderr
    assert "Nothing was built or installed" in asked.stderr
    nowhere = in_process("extension", "install", "/nonexistent", "--yes")
    assert nowhere.returncode == 2
    share = elsewhere.parent / "share"
    (share / "extension").rmdir()
    missing = in_process("extension", "install", str(elsewhere), "--yes")
    assert missing.returncode == 2
    assert f"{share}/extension does not exist, and nothing was installed" in missing.stderr
    assert files_in(elsewhere.parent) == set()


def test_without_development_files(
    in_process: Run, programs: ServerPrograms, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A server without pg_config is told which package would have it."""
    bare = tmp_path_factory.mktemp("bare")
    for program in ("postgres", "initdb"):
        (bare / program).symlink_to(programs.program(program))
    done = in_process("extension", "install", str(bare), "--yes")
    assert done.returncode == 4
    assert f"there is no pg_config in {bare}" in done.stderr
    assert f"postgresql-server-dev-{programs.version.major}" in done.stderr
