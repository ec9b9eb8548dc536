"""What is to be taken from the archive: `servers.toml`."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

TAKEN = "taken.json"


@dataclass(frozen=True)
class Package:
    """A package of the archive; `sha256` is that of its file."""

    name: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """Of its file, downloaded."""
        return f"{self.name}_{self.sha256}.deb"


@dataclass(frozen=True)
class Server:
    """
    A server with the libraries that it needs.

    `suites` are searched in that order, `roots` are what a person would ask for; `packages` has
    the libraries too.
    """

    major: int
    suites: tuple[str, ...]
    roots: tuple[str, ...]
    packages: tuple[Package, ...]

    @property
    def bin_dir(self) -> str:
        """Where its programs lie, below the folder that it is unpacked into."""
        return f"usr/lib/postgresql/{self.major}/bin"

    def is_in(self, folder: Path) -> bool:
        """Whether what this manifest asks for was unpacked there."""
        try:
            noted = json.loads((folder / TAKEN).read_text())["asked"]
        except (OSError, ValueError, KeyError, TypeError):
            return False
        return bool(noted == self._asked())

    def note_taken(self, folder: Path, taken: Sequence[Package]) -> None:
        """Write down what was asked for and what the archive had."""
        about = {
            "asked": self._asked(),
            "taken": {package.name: package.version for package in taken},
        }
        (folder / TAKEN).write_text(json.dumps(about, indent=1) + "\n")

    def _asked(self) -> dict[str, str]:
        return {package.name: package.version for package in self.packages}


class Manifest:
    """The file: servers, and by whom each package is asked for."""

    def __init__(self, heading: str, servers: list[Server]) -> None:
        self.heading = heading
        self.servers = servers

    @property
    def suites(self) -> tuple[str, ...]:
        """All suites that any server takes packages from."""
        return tuple(dict.fromkeys(suite for server in self.servers for suite in server.suites))

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """Read the file; its leading comment is kept."""
        text = path.read_text(encoding="utf-8")
        servers = [
            Server(
                major=entry["major"],
                suites=tuple(entry["suites"]),
                roots=tuple(entry["roots"]),
                packages=tuple(Package(*words) for words in entry.get("packages", ())),
            )
            for entry in tomllib.loads(text)["server"]
        ]
        return cls(text[: text.index("[[server]]")], servers)

    def replace(self, server: Server, packages: Sequence[Package]) -> None:
        """Other packages for one of the servers."""
        place = self.servers.index(server)
        self.servers[place] = replace(server, packages=tuple(packages))

    def write(self, path: Path) -> None:
        """Write the file anew."""
        parts = [self.heading]
        for server in self.servers:
            rows = [
                json.dumps([package.name, package.version, package.sha256])
                for package in server.packages
            ]
            parts += [
                "[[server]]\n",
                f"major = {server.major}\n",
                f"suites = {json.dumps(server.suites)}\n",
                f"roots = {json.dumps(server.roots)}\n",
                "packages = [\n",
                *(f"  {row},\n" for row in rows),
                "]\n\n",
            ]
        path.write_text("".join(parts).rstrip("\n") + "\n", encoding="utf-8")
