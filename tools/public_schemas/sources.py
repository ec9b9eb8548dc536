"""
Files of public repositories at pinned commits, kept by git's hash of their contents.

A file is taken from where it lies already, else from a clone below the folder that was named
(OWNER/NAME), else from GitHub. Whatever it came from, its hash has to be the manifest's.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

from pgheadroom.errors import SourceError
from pgheadroom.files import write_atomically
from public_schemas.manifest import Application, Package, SourceFile

_TIMEOUT_S = 60.0


def texts(application: Application, store: Path, clones: Path | None) -> dict[str, str]:
    """
    The application's files by their path.

    Raises:
        SourceError: One cannot be had, or its contents are others.
    """
    if application.package is not None:
        _print_package(application, application.package, store)
    return {
        file.path: _contents(application, file, store, clones).decode("utf-8")
        for file in application.files
    }


def _print_package(application: Application, package: Package, store: Path) -> None:
    """Have npm install a package, without scripts of its own, and keep the texts it makes."""
    if all((store / file.blob).exists() for file in application.files):
        return
    folder = store / package.npm
    folder.mkdir(parents=True, exist_ok=True)
    install = ["npm", "install", "--prefix", str(folder), "--ignore-scripts", "--no-audit"]
    _run([*install, "--no-fund", "--no-save", package.npm])
    script = Path(__file__).with_name(package.script)
    for text in json.loads(_run(["node", str(script), str(folder)])).values():
        write_atomically(store / blob_of(text.encode()), text)


def _run(words: list[str]) -> str:
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise SourceError(f"{words[0]} is needed, and is not at hand") from error
    if done.returncode != 0:
        raise SourceError(f"{' '.join(words)}: {done.stderr.strip()[-500:]}")
    return done.stdout


def blob_of(contents: bytes) -> str:
    """Git's name of a file's contents (`git hash-object`)."""
    return hashlib.sha1(
        b"blob %d\0%s" % (len(contents), contents), usedforsecurity=False
    ).hexdigest()


def _contents(
    application: Application, file: SourceFile, store: Path, clones: Path | None
) -> bytes:
    kept = store / file.blob
    if kept.exists():
        contents = kept.read_bytes()
    else:
        contents = _from_clone(application, file, clones) or _from_github(application, file)
    found = blob_of(contents)
    if found != file.blob:
        raise SourceError(
            f"{application.repository} {file.path}: its hash is {found}, expected {file.blob}"
        )
    if not kept.exists():
        store.mkdir(parents=True, exist_ok=True)
        write_atomically(kept, contents.decode("utf-8"))
    return contents


def _from_clone(application: Application, file: SourceFile, clones: Path | None) -> bytes | None:
    if clones is None or not (clones / application.repository).exists():
        return None
    shown = subprocess.run(
        ["git", "-C", clones / application.repository, "cat-file", "blob", file.blob],
        capture_output=True,
        check=False,
    )
    return shown.stdout if shown.returncode == 0 else None


def _from_github(application: Application, file: SourceFile) -> bytes:
    url = (
        f"https://raw.githubusercontent.com/{application.repository}/{application.commit}/"
        f"{file.path}"
    )
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer:
            return bytes(answer.read())
    except (urllib.error.URLError, TimeoutError) as error:
        raise SourceError(
            f"{url}: {error}; a clone below --clones FOLDER, as {application.repository}, does too"
        ) from error
