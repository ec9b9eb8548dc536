"""
Building the extension for one server, out of tree, by that server's own pg_config.

    SOURCES ── make ──> FOLDER/clustered_heap.so
       └── control file, SQL ──> the files of `Built`, each with the place it belongs to

Nothing is written outside the folder that is given, and nothing is installed here.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from pgheadroom.errors import LabError, ProgramMissing, UnsupportedServer
from pgheadroom.quoting import literal
from pgheadroom.servers.environment import client_environment
from pgheadroom.servers.programs import ServerPrograms

NAME = "clustered_heap"
SOURCES = Path(__file__).parent / NAME
"""C, SQL, Makefile and README of the extension."""

_MAJORS = range(15, 20)
"""As compat.h has it."""
_TIMEOUT_S = 600.0  # a compiler on a busy machine takes seconds; arbitrary
_TAIL_LINES = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file of the extension, and where a server looks for it."""

    source: Path
    target: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """The extension as built for one server: the library, the control file, the SQL."""

    programs: ServerPrograms
    files: tuple[File, ...]


def lacking(programs: ServerPrograms) -> str | None:
    """
    What keeps the extension from being built for a server here, in words; None: nothing.

    A compiler that is there and fails is not found out here.
    """
    if programs.version.major not in _MAJORS:
        return f"the extension is for PostgreSQL {_MAJORS[0]} to {_MAJORS[-1]}"
    if not programs.has("pg_config"):
        return f"there is no pg_config in {programs.bin_dir}"
    if not Path(_told(programs, "--pgxs")).is_file():
        return "its PGXS makefiles are missing"
    if not (Path(_told(programs, "--includedir-server")) / "postgres.h").is_file():
        return "its server headers are missing"
    if shutil.which("make") is None:
        return "there is no program make here"
    return None


def build(programs: ServerPrograms, folder: Path, *, warnings_are_errors: bool = False) -> Built:
    """
    Build the extension.

    Args:
        programs: The server it is for.
        folder: Where the objects go; made if need be.
        warnings_are_errors: Whether a warning under the server's own flags fails.

    Raises:
        UnsupportedServer: Another major version.
        ProgramMissing: No pg_config, headers, PGXS or make.
        LabError: The compiler failed; with the end of what it said.
    """
    problem = lacking(programs)
    if problem is not None:
        if programs.version.major not in _MAJORS:
            raise UnsupportedServer(f"{programs}: {problem}")
        raise ProgramMissing(
            f"the extension cannot be built for {programs}: {problem}. Its development files are "
            f"needed (Debian: postgresql-server-dev-{programs.version.major}), make and a C "
            "compiler"
        )
    folder.mkdir(parents=True, exist_ok=True)
    words = [
        "make",
        "-f",
        str(SOURCES / "Makefile"),
        f"PG_CONFIG={programs.program('pg_config')}",
    ]
    if warnings_are_errors:
        words.append("COPT=-Werror")
    # MAKEFLAGS: of a make that called us.
    environment = {
        name: value
        for name, value in client_environment().items()
        if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "COPT", "PROFILE", "DESTDIR")
    }
    try:
        done = subprocess.run(
            words,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env=environment,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise LabError(f"building for {programs} took more than {_TIMEOUT_S:.0f} s") from error
    library = folder / f"{NAME}.so"
    if done.returncode != 0 or not library.is_file():
        said = (done.stdout + done.stderr).strip().splitlines()[-_TAIL_LINES:]
        raise LabError(f"building for {programs} failed; make said:\n" + "\n".join(said))
    library_folder = Path(_told(programs, "--pkglibdir"))
    share_folder = Path(_told(programs, "--sharedir")) / "extension"
    scripts = sorted(SOURCES.glob(f"{NAME}--*.sql"))
    return Built(
        programs=programs,
        files=(
            File(source=library, target=library_folder / library.name),
            *(
                File(source=source, target=share_folder / source.name)
                for source in (SOURCES / f"{NAME}.control", *scripts)
            ),
        ),
    )


def objects_sql(programs: ServerPrograms, folder: Path) -> str:
    """
    What `CREATE EXTENSION` would do, for a server of ours into which nothing is installed.

    Args:
        programs: The server.
        folder: Where the library is built, and has to stay: the statements name it by its path.

    Returns:
        Statements for a superuser; the objects belong to no extension.

    Raises:
        UnsupportedServer, ProgramMissing, LabError: As `build`.
    """
    built = build(programs, folder)
    (library,) = [file.source for file in built.files if file.source.suffix == ".so"]
    (script,) = [file.source for file in built.files if file.source.suffix == ".sql"]
    # Whoever runs the server reads them.
    for path in (folder, library):
        path.chmod(0o755)
    lines = script.read_text(encoding="utf-8").splitlines()
    statements = [line for line in lines if not line.startswith("\\")]
    return "\n".join(statements).replace("'MODULE_PATHNAME'", literal(str(library.resolve())))


def _told(programs: ServerPrograms, what: str) -> str:
    """What the server's pg_config says; empty where it says nothing."""
    done = subprocess.run(
        [programs.program("pg_config"), what],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        env=client_environment(),
        timeout=60,
        check=False,
    )
    return done.stdout.strip() if done.returncode == 0 else ""
