"""
The cache folder: the only thing that pgheadroom leaves on a machine.

    CACHE/programs/KEY/...    copies of server programs that the server's user could not run
    CACHE/templates/KEY/...   freshly initialised clusters (`templates.py`)

CACHE is `$PGHEADROOM_CACHE`, else /var/cache/pgheadroom for root, else
`$XDG_CACHE_HOME/pgheadroom` or ~/.cache/pgheadroom. It may be removed whenever nothing of ours
runs. Entries appear by renaming a finished one into place, so that there are no half ones; the
loser of a race throws his away.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from pathlib import Path

from pgheadroom.errors import LabError
from pgheadroom.servers.locked_folder import LockedFolder, sweep_unfinished

_BUILD_ONLY = {"include", "doc", "man", "pkgconfig", "pgxs"}
"""Folders of a build that running a server does not need."""


def cache_folder() -> Path:
    """The cache folder, made if need be."""
    given = os.environ.get("PGHEADROOM_CACHE")
    if given:
        folder = Path(given).expanduser().absolute()
    elif os.geteuid() == 0:
        folder = Path("/var/cache/pgheadroom")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        folder = Path(base).expanduser().absolute() / "pgheadroom"
    for part in (folder, folder / "programs", folder / "templates"):
        try:
            part.mkdir(parents=True, exist_ok=True, mode=0o755)
            found = part.lstat()
        except OSError as error:
            raise LabError(
                f"the cache folder {folder} cannot be made ({error.strerror}): set "
                "PGHEADROOM_CACHE to a folder that you can write"
            ) from error
        if found.st_uid != os.geteuid() or found.st_mode & stat.S_IWOTH:
            # Programs in it are executed: nobody else may put any there.
            raise LabError(
                f"the cache folder {part} belongs to another user or is writable by everybody: "
                "set PGHEADROOM_CACHE to a folder of your own"
            )
        sweep_unfinished(part)
    return folder


def copy_of_build(bin_dir: Path) -> Path | None:
    """
    Copy a self-contained build into the cache, unless it is there already.

    Everybody can read and run the copy, and it has the links of its libraries: npm's packages list
    them in `pg-symlinks.json`, for an install script that is often switched off.

    Args:
        bin_dir: The build's `bin`; its `lib` and `share` must lie beside it.

    Returns:
        The copy's `bin`; None if `lib` or `share` lie elsewhere, as in Debian's packages.
    """
    prefix = bin_dir.parent
    if not (prefix / "lib").is_dir() or not (prefix / "share").is_dir():
        return None
    # Programs of a wheel find its libraries beside the package: PACKAGE.libs, two levels up.
    package = prefix.parent
    libraries = package.with_name(package.name + ".libs")
    listing = _listing(prefix, bin_dir)
    parent = cache_folder() / "programs"
    key = f"{prefix.name}-{_digest(listing, bin_dir)}"
    finished = parent / key
    inside = Path(package.name) / prefix.name / bin_dir.name
    if not finished.is_dir():
        with LockedFolder.create(parent, unfinished=True) as building:
            target = building.path / key
            for relative in listing:
                _copy_file(prefix / relative, target / package.name / prefix.name / relative)
            if libraries.is_dir():
                for library in sorted(libraries.iterdir()):
                    _copy_file(library, target / libraries.name / library.name)
            _make_links(prefix, target / package.name / prefix.name)
            _install(target, finished)
    return finished / inside


def _install(built: Path, finished: Path) -> None:
    """Rename a finished entry into place; if another run was faster, its entry is as good."""
    try:
        built.rename(finished)
    except OSError:
        if not finished.is_dir():
            raise


def _listing(prefix: Path, bin_dir: Path) -> list[Path]:
    """Paths of the files that running needs, relative to the prefix, sorted."""
    found = []
    for part in (bin_dir, prefix / "lib", prefix / "share"):
        for parent, folders, names in os.walk(part):
            folders[:] = [name for name in folders if name not in _BUILD_ONLY]
            found += [Path(parent, name) for name in names]
    return sorted(
        path.relative_to(prefix) for path in found if path.suffix != ".a" and path.is_file()
    )


def _digest(listing: list[Path], bin_dir: Path) -> str:
    """Identity of a build: its server's bytes, and the names and sizes of all files."""
    prefix = bin_dir.parent
    digest = hashlib.sha256((bin_dir / "postgres").read_bytes())
    for relative in listing:
        digest.update(f"{relative}\0{(prefix / relative).stat().st_size}\n".encode())
    return digest.hexdigest()[:16]


def _copy_file(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
    shutil.copyfile(source, target)  # follows links: a copy must not point back
    executable = "bin" in target.parts[-3:-1] or source.stat().st_mode & stat.S_IXUSR
    target.chmod(0o755 if executable else 0o644)


def _make_links(prefix: Path, target: Path) -> None:
    """The links that npm's package lists; entries that lead out of the package are refused."""
    package = prefix.parent
    try:
        entries = json.loads((prefix / "pg-symlinks.json").read_text())
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise LabError(f"{prefix / 'pg-symlinks.json'} cannot be read: {error}") from error
    for entry in entries if isinstance(entries, list) else []:
        source = Path(os.path.normpath(package / str(entry["source"])))
        link = Path(os.path.normpath(package / str(entry["target"])))
        if source.parent != link.parent or not link.is_relative_to(prefix):
            raise LabError(f"{prefix / 'pg-symlinks.json'} has an entry that leads out: {entry}")
        made = target / link.relative_to(prefix)
        if made.parent.is_dir() and not made.exists():
            made.symlink_to(source.name)
