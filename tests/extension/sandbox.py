"""A copy of a server's programs, library and share folder, and the extension to put into it."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pgheadroom.extension import Built, build
from pgheadroom.servers import ServerPrograms
from places import fast_place

BUILD = Path(__file__).parents[2] / "build" / "extension-tests"

_LEFT_OUT = shutil.ignore_patterns("include", "doc", "man", "pgxs", "bitcode", "*.a", "locale")


@dataclass(frozen=True)
class Copied:
    """A copied server, and where the original's paths are in it."""

    programs: ServerPrograms
    common: Path
    folder: Path

    def place(self, original: Path) -> Path:
        """Where a file of the original belongs in the copy."""
        return self.folder / original.relative_to(self.common)


def copy_of_server(programs: ServerPrograms, folder: Path) -> Copied:
    """
    Copy what a server needs to run into a folder.

    The server finds its library and share folders relative to its program, so these keep their
    places to each other. Libraries of a wheel lie two levels above its prefix.
    """
    told = {
        name: Path(os.path.realpath(_told(programs, f"--{name}")))
        for name in ("bindir", "pkglibdir", "sharedir")
    }
    parts = list(told.values())
    prefix = told["bindir"].parent
    package = prefix.parent
    libraries = package.with_name(package.name + ".libs")
    if programs.origin == "wheel":
        parts = [prefix, libraries] if libraries.is_dir() else [prefix]
    # With the folder's own name, `usr`, which paths of libraries go through.
    common = Path(os.path.commonpath([*parts, *told.values()])).parent
    for part in parts:
        target = folder / part.relative_to(common)
        if not target.exists():
            shutil.copytree(part, target, symlinks=True, ignore=_LEFT_OUT)
    for path in folder.rglob("*"):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o555 if path.is_dir() else 0o444))
    # Debian's fetched servers have the libraries of their own Debian beside them.
    fetched = common / "usr" / "lib" / "x86_64-linux-gnu"
    if common != Path("/") and fetched.is_dir():
        (folder / fetched.relative_to(common)).symlink_to(fetched)
    bin_dir = folder / told["bindir"].relative_to(common)
    return Copied(ServerPrograms(bin_dir, programs.version, "folder"), common, folder)


def _told(programs: ServerPrograms, what: str) -> str:
    done = subprocess.run(
        [programs.program("pg_config"), what], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def built_once(programs: ServerPrograms) -> Built:
    """
    The extension for that server, by whichever process of the tests comes first.

    make finds the objects of an earlier run and compiles what has changed since: six files for each
    server in each of three processes took longer than the tests.
    """
    digest = hashlib.sha256(str(programs.bin_dir).encode()).hexdigest()[:8]
    folder = BUILD / f"{programs.version}-{digest}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return build(programs, folder, warnings_are_errors=True)


def extended_copy(programs: ServerPrograms, made: dict[Path, ServerPrograms]) -> ServerPrograms:
    """
    A copy of the server with the extension in it; of each server one.

    Args:
        programs: It has headers and PGXS.
        made: Copies by the original's folder, to which this one is added.
    """
    if programs.bin_dir not in made:
        built = built_once(programs)  # first: where it fails, no folder is left
        folder = Path(tempfile.mkdtemp(prefix="pgh-extension-", dir=fast_place()))
        folder.chmod(0o755)
        copied = copy_of_server(programs, folder)
        for file in built.files:
            target = copied.place(file.target)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file.source, target)
            target.chmod(0o755 if target.suffix == ".so" else 0o644)
        made[programs.bin_dir] = copied.programs
    return made[programs.bin_dir]
