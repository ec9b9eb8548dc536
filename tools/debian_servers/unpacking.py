"""Packages as folders, and programs that find the libraries beside them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from debian_servers.manifest import Package, Server

_ELF = b"\x7fELF"
_LIBRARIES = "usr/lib/x86_64-linux-gnu"
_LOADER = "ld-linux-x86-64.so.2"
# Neither is a library that is loaded beside a server, and both take room.
_LEFT_OUT = ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/lib/systemd")


def unpack_package(file: Path, folder: Path) -> None:
    """Unpack one package, but for what its scripts would do."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["dpkg-deb", "--extract", file, folder], check=True, capture_output=True, text=True
    )


def unpack(
    packages: Sequence[Package], downloads: Path, folder: Path, *, final: Path, server: Server
) -> None:
    """
    Unpack a server with its libraries, and point its programs at them.

    Args:
        packages: Those of `Archive.download`.
        downloads: Where their files lie.
        folder: Where to.
        final: Where that folder will be in the end.
        server: Which one it is.

    Raises:
        OSError: The result does not run.
    """
    for package in packages:
        unpack_package(downloads / package.file_name, folder)
    for name in _LEFT_OUT:
        shutil.rmtree(folder / name, ignore_errors=True)
    loader = final / _LIBRARIES / _LOADER
    for program in _elf_files(folder / server.bin_dir):
        _patchelf(
            "--set-interpreter",
            str(loader),
            "--force-rpath",
            "--set-rpath",
            f"$ORIGIN/../../../../../{_LIBRARIES}",
            str(program),
        )
    # At another place than the final one the loader is not found, so it is called by name.
    here = folder / _LIBRARIES
    shown = subprocess.run(
        [here / _LOADER, "--library-path", here, folder / server.bin_dir / "postgres", "--version"],
        capture_output=True,
        text=True,
        check=False,
    )
    if shown.returncode != 0:
        raise OSError(f"postgres --version fails: {shown.stderr}")


def libraries(folder: Path) -> set[str]:
    """Names of the shared libraries below a folder of the system's."""
    return {path.name for path in folder.rglob("*.so*")}


def needed(folder: Path, left_out: Sequence[str]) -> set[str]:
    """Names of the shared libraries that a program or a library below the folder asks for."""
    found: set[str] = set()
    places = [*folder.glob("usr/lib/postgresql/*/bin"), *folder.glob("usr/lib/postgresql/*/lib")]
    places.append(folder / _LIBRARIES)
    for place in places:
        for path in _elf_files(place):
            if path.name not in left_out:
                found.update(_patchelf("--print-needed", str(path)).split())
    return found


def _elf_files(folder: Path) -> Iterator[Path]:
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if file.read(4) == _ELF:
                    yield path


def _patchelf(*words: str) -> str:
    program = Path(sys.executable).with_name("patchelf")
    done = subprocess.run([program, *words], check=True, capture_output=True, text=True)
    return done.stdout
