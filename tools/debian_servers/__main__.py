"""
Servers of Debian's archive for the tests, unpacked below a folder without touching the system.

    python -m debian_servers FOLDER [--refresh]

`servers.toml` names packages, versions and hashes. They are downloaded by an apt with a state of
its own from the archive that this machine's apt uses, unpacked into FOLDER/MAJOR, and their
programs are pointed at the C library and the loader beside them (patchelf), so that a server of a
newer Debian runs here. Where the archive no longer has a version, what it has is taken, and said.
`taken.json` in FOLDER/MAJOR has what was taken. `--refresh` writes `servers.toml` anew with what
the archive has today.

Optional: where this is no x86-64 Linux, or there is no apt, it says so and the tests of those
versions are skipped; the exit code is 0 all the same.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from debian_servers.archive import Archive, ArchiveError
from debian_servers.manifest import Manifest, Server
from debian_servers.unpacking import unpack

MANIFEST = Path(__file__).with_name("servers.toml")


def main() -> int:
    """Fetch what is not there yet, or write the manifest anew."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--refresh", action="store_true", help="write servers.toml anew")
    arguments = parser.parse_args()
    folder = arguments.folder.absolute()
    manifest = Manifest.read(MANIFEST)
    wanted = [
        server
        for server in manifest.servers
        if arguments.refresh or not server.is_in(folder / str(server.major))
    ]
    if not wanted:
        return 0
    try:
        _require_machine()
        folder.mkdir(parents=True, exist_ok=True)
        with Archive(folder / "apt", manifest.suites) as archive:
            for server in wanted:
                if arguments.refresh:
                    manifest.replace(server, archive.resolve(server))
                else:
                    _fetch(archive, server, folder)
        if arguments.refresh:
            manifest.write(MANIFEST)
    except ArchiveError as why:
        names = ", ".join(str(server.major) for server in wanted)
        print(f"Debian's servers of {names} are not fetched: {why}", file=sys.stderr)
    return 0


def _require_machine() -> None:
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise ArchiveError("they are for Linux on x86-64")
    for program in ("apt-get", "dpkg-deb"):
        if shutil.which(program) is None:
            raise ArchiveError(f"{program} is not installed")


def _fetch(archive: Archive, server: Server, folder: Path) -> None:
    """One server, whole or not at all."""
    target = folder / str(server.major)
    partial = target.with_suffix(".partial")
    for old in (target, partial):
        shutil.rmtree(old, ignore_errors=True)
    try:
        packages = archive.download(server)
        # The loader's path is written into the programs: that of the final place.
        unpack(packages, archive.downloads, partial, final=target, server=server)
        server.note_taken(partial, packages)
        partial.rename(target)
    except (subprocess.SubprocessError, OSError) as error:
        shutil.rmtree(partial, ignore_errors=True)
        said = getattr(error, "stderr", None) or str(error)
        print(
            f"Debian's PostgreSQL {server.major} could not be fetched whole, its tests are "
            f"skipped: {said.strip()[-300:]}",
            file=sys.stderr,
        )


if __name__ == "__main__":
    sys.exit(main())
