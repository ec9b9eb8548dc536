"""
Debian's archive: its lists by an apt with a state of its own, its packages by their hashes there.

Nothing of the system's apt is written. apt checks the lists' signatures; each package is checked
against its hash in them, and `servers.toml` says besides whether it is the file of then.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from debian_servers.manifest import Package, Server
from debian_servers.unpacking import libraries, needed, unpack_package

_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_TIMEOUT_S = 300.0
# It wants a compiler's library of 120 MB, and our servers run without it.
_NOT_NEEDED = ("llvmjit.so",)
_LIBRARY = re.compile(r"(?:lib(?!llvm)\S+|zlib1g)")


class ArchiveError(Exception):
    """The archive cannot be used here; says why."""


class _Listed(NamedTuple):
    package: Package
    path: str
    depends: str


class Archive:
    """The archive's suites; a context manager that removes its lists and downloads."""

    def __init__(self, folder: Path, suites: Sequence[str]) -> None:
        self.folder = folder
        self._suites = suites
        self._address = ""
        self._lists: dict[str, dict[str, _Listed]] = {}

    def __enter__(self) -> Archive:
        shutil.rmtree(self.folder, ignore_errors=True)
        for name in ("state/lists/partial", "cache/archives/partial", "parts", "deb"):
            (self.folder / name).mkdir(parents=True)
        for name in ("status", "preferences"):
            (self.folder / name).touch()
        try:
            self._update()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._remove()

    def _remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _update(self) -> None:
        if not _KEYRING.is_file():
            raise ArchiveError(f"the archive's keyring {_KEYRING} is not installed")
        self._address = _address()
        sources = [
            f"deb [signed-by={_KEYRING}] {self._address} {suite} main" for suite in self._suites
        ]
        (self.folder / "sources.list").write_text("\n".join(sources) + "\n")
        settings = {
            "Dir::State": self.folder / "state",
            "Dir::State::status": self.folder / "status",
            "Dir::Cache": self.folder / "cache",
            "Dir::Etc::sourcelist": self.folder / "sources.list",
            "Dir::Etc::sourceparts": self.folder / "parts",
            "Dir::Etc::preferences": self.folder / "preferences",
            "Dir::Etc::preferencesparts": self.folder / "parts",
            "APT::Architecture": "amd64",
            "APT::Sandbox::User": "root",
            "Acquire::Languages": "none",
            "Acquire::Retries": "1",
            "Acquire::http::Timeout": "20",
            "Acquire::https::Timeout": "20",
            "Acquire::GzipIndexes": "false",
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
        }
        options = [f"-o{name}={value}" for name, value in settings.items()]
        try:
            _run("apt-get", *options, "update", "--quiet", "--error-on=any")
        except (subprocess.SubprocessError, OSError) as error:
            said = getattr(error, "stderr", None) or str(error)
            why = f"the archive at {self._address} gives no lists: {said.strip()[-300:]}"
            raise ArchiveError(why) from error
        for suite in self._suites:
            (file,) = (self.folder / "state/lists").glob(f"*_{suite}_main_binary-amd64_Packages")
            self._lists[suite] = {listed.package.name: listed for listed in _stanzas(file)}

    def download(self, server: Server) -> list[Package]:
        """
        The server's packages as files in `folder/deb`, and what they are.

        Another version is taken, and said, where the archive no longer has the manifest's.

        Raises:
            OSError: A package cannot be had, or is not what the lists say.
        """
        taken = []
        for package in server.packages:
            listed = self._listed(package.name, server.suites)
            if listed.package.version != package.version:
                print(
                    f"{package.name} {package.version} is no longer in Debian's archive: "
                    f"{listed.package.version} is taken",
                    file=sys.stderr,
                )
            elif listed.package != package:
                raise OSError(
                    f"{package.name} {package.version} has the hash {listed.package.sha256} in "
                    f"Debian's archive, expected {package.sha256}"
                )
            taken.append(self._get(listed))
        return taken

    def resolve(self, server: Server) -> list[Package]:
        """What the archive has today: the roots, and each library that one of their files needs."""
        found = {name: self._get(self._listed(name, server.suites)) for name in server.roots}
        place = self.folder / "tried"
        shutil.rmtree(place, ignore_errors=True)
        for package in found.values():
            unpack_package(self.file_of(package), place)
        by_soname: dict[str, Package] = {}
        for listed in self._libraries_of(server):
            package = self._get(listed)
            one = self.folder / "one"
            shutil.rmtree(one, ignore_errors=True)
            unpack_package(self.file_of(package), one)
            for soname in libraries(one):
                by_soname.setdefault(soname, package)
        while True:
            missing = needed(place, _NOT_NEEDED) - libraries(place)
            new = {by_soname[soname] for soname in missing if soname in by_soname}
            if not new:
                break
            for package in sorted(new, key=lambda package: package.name):
                found[package.name] = package
                unpack_package(self.file_of(package), place)
        if missing:
            raise OSError(f"no package has {', '.join(sorted(missing))}")
        return list(found.values())

    @property
    def downloads(self) -> Path:
        """Where the packages' files are."""
        return self.folder / "deb"

    def file_of(self, package: Package) -> Path:
        """Where a downloaded package lies."""
        return self.downloads / package.file_name

    def _listed(self, name: str, suites: Sequence[str]) -> _Listed:
        """The package in the first of these suites that has it."""
        for suite in suites:
            if name in self._lists[suite]:
                return self._lists[suite][name]
        raise OSError(f"Debian's archive has no {name} in {', '.join(suites)}")

    def _get(self, listed: _Listed) -> Package:
        file = self.file_of(listed.package)
        if not file.exists():
            address = f"{self._address.rstrip('/')}/{listed.path}"
            try:
                # Where this machine's apt has its packages from, checked by hash.
                with urllib.request.urlopen(address, timeout=60) as answer:  # noqa: S310
                    content = answer.read()
            except urllib.error.URLError as error:
                raise OSError(f"{listed.path} cannot be downloaded: {error}") from error
            digest = hashlib.sha256(content).hexdigest()
            if digest != listed.package.sha256:
                raise OSError(
                    f"{listed.path} has the hash {digest}, expected {listed.package.sha256}"
                )
            file.write_bytes(content)
        return listed.package

    def _libraries_of(self, server: Server) -> list[_Listed]:
        """Packages of libraries that the roots depend on, directly or not."""
        roots = [root for root in server.roots if not root.startswith("postgresql-server-dev")]
        waiting, seen, found = list(roots), set(roots), []
        while waiting:
            name = waiting.pop()
            try:
                listed = self._listed(name, server.suites)
            except OSError:
                continue  # a virtual package, or an alternative that is not there
            if name not in roots:
                found.append(listed)
            for other in re.findall(r"(?:^|[,|])\s*([^\s,|(:]+)", listed.depends):
                if other not in seen and _LIBRARY.fullmatch(other):
                    seen.add(other)
                    waiting.append(other)
        return found


def _stanzas(file: Path) -> Iterator[_Listed]:
    """What a list of packages says of each."""
    fields: dict[str, str] = {}
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            if line == "\n":
                yield _listed_of(fields)
                fields = {}
            elif line[0] not in " \t":
                name, _, value = line.partition(":")
                fields[name] = value.strip()
    if fields:
        yield _listed_of(fields)


def _listed_of(fields: dict[str, str]) -> _Listed:
    package = Package(fields["Package"], fields["Version"], fields["SHA256"])
    depends = ", ".join(fields[name] for name in ("Pre-Depends", "Depends") if name in fields)
    return _Listed(package, fields["Filename"], depends)


def _address() -> str:
    """Where this machine's apt has Debian from."""
    for line in _run("apt-get", "indextargets", "--format", "$(REPO_URI)").splitlines():
        if line.rstrip("/").endswith("/debian"):
            return line
    raise ArchiveError("this machine's apt knows no archive of Debian's")


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True)
    return done.stdout
