"""
Cluster templates: `initdb` takes seconds and always makes the same, so it runs once.

    CACHE/templates/VERSION-KEY/
        data/           what initdb made, never started
        complete.json   number and size of its files, as a check against damage

KEY stands for the build, the options of initdb, and the user who owns the files.
"""

from __future__ import annotations

import errno
import fcntl
import functools
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISREG

from pgheadroom.errors import LabError
from pgheadroom.servers import disk
from pgheadroom.servers.cache import cache_folder
from pgheadroom.servers.environment import server_environment
from pgheadroom.servers.locked_folder import LockedFolder
from pgheadroom.servers.programs import ServerPrograms
from pgheadroom.servers.run_folder import RunFolder
from pgheadroom.servers.user import arguments

SETTINGS_FILE = "settings.conf"
"""Our settings, beside the data directory; postgresql.conf includes them last."""

_INITDB_OPTIONS = (
    "--username=postgres",
    "--auth=trust",  # the socket's folder is closed to everybody else
    "--encoding=UTF8",
    "--locale=C",  # the same order of keys on every machine
    "--no-sync",
    "--no-instructions",
)
_INITDB_BYTES = 80 * 1024 * 1024  # 39 MB in 15, 47 MB in 18, and room to grow
_FORMAT = 1  # to be raised when this module makes templates differently


def put_new_cluster(
    run: RunFolder, programs: ServerPrograms, destination: Path, *, data_checksums: bool | None
) -> None:
    """
    Make `destination` the data directory of a new cluster, by copying the cached template.

    Args:
        run: The run that the cluster belongs to.
        programs: Those that the server's user can run.
        destination: Must not exist.
        data_checksums: None: as that version's initdb does by default.

    Raises:
        LabError: initdb failed; its words are in the message.
        DiskFull: No room for the template or its copy.
    """
    options = [*_INITDB_OPTIONS, *_checksum_options(programs, data_checksums)]
    templates = cache_folder() / "templates"
    template = templates / f"{programs.version}-{_key(run, programs, options)}"
    if _copy(run, template, destination):
        return
    built = _build(run, programs, options)
    _install(run, built, template)
    if not _copy(run, template, destination):
        raise LabError(f"the cluster template {template} is damaged again right after it was made")


def _checksum_options(programs: ServerPrograms, data_checksums: bool | None) -> list[str]:
    if data_checksums is None:
        return []
    if data_checksums:
        return ["--data-checksums"]
    # Off is the default before 18, whose initdb does not know the option.
    return ["--no-data-checksums"] if programs.version.major >= 18 else []


def _key(run: RunFolder, programs: ServerPrograms, options: list[str]) -> str:
    digest = hashlib.sha256()
    for path in (programs.program("postgres"), programs.share_dir / "postgres.bki"):
        found = path.stat()
        digest.update(_digest(path, found.st_ino, found.st_mtime_ns, found.st_size))
    owner = os.geteuid() if run.user is None else run.user.uid
    digest.update(json.dumps([_FORMAT, owner, options]).encode())
    return digest.hexdigest()[:16]


# A server is 9 MB, and a run makes many clusters of it.
@functools.lru_cache(maxsize=64)
def _digest(path: Path, *_identity: int) -> bytes:
    """Of a file's content; read again when its inode, time or size is another."""
    return hashlib.sha256(path.read_bytes()).digest()


@contextmanager
def _locked(templates: Path, operation: int) -> Iterator[None]:
    """Readers share, whoever replaces a damaged template is alone."""
    lock_fd = os.open(templates / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock_fd, operation)
        yield
    finally:
        os.close(lock_fd)


def _size(data: Path) -> dict[str, int]:
    sizes = [status.st_size for _, status in disk.entries(data) if S_ISREG(status.st_mode)]
    return {"file_count": len(sizes), "file_bytes": sum(sizes)}


def _is_whole(template: Path) -> bool:
    try:
        noted = json.loads((template / "complete.json").read_text())
        return bool(noted == _size(template / "data"))
    except (OSError, ValueError):
        return False


def _copy(run: RunFolder, template: Path, destination: Path) -> bool:
    """Copy the template's data directory; False if there is none, or none that is whole."""
    with _locked(template.parent, fcntl.LOCK_SH):
        if not _is_whole(template):
            return False
        disk.copy_folder(template / "data", destination, run.run)
    return True


def _build(run: RunFolder, programs: ServerPrograms, options: list[str]) -> Path:
    """Run initdb in the run folder; a folder with `data` and `complete.json`."""
    disk.require_free(run.path, _INITDB_BYTES, "initialise a cluster")
    folder = run.make_folder(run.path / "clusters" / f"template-{os.urandom(4).hex()}")
    data = folder / "data"
    data.mkdir(mode=0o700)
    if run.user is not None:
        os.chown(data, run.user.uid, run.user.gid)
    done = run.run(
        [programs.program("initdb"), f"--pgdata={data}", *options],
        env=server_environment(),
        cwd=data,
        **arguments(run.user),
    )
    if done.returncode != 0:
        if disk.NO_SPACE in done.stderr:
            raise disk.disk_full(run.path, "initialise a cluster")
        raise LabError(
            f"initdb of {programs} failed with exit code {done.returncode}:\n"
            f"{done.stderr.strip() or done.stdout.strip()}"
        )
    with (data / "postgresql.conf").open("a") as file:
        file.write(
            f"\n# pgheadroom's settings of this start, beside the data directory\n"
            f"include '../{SETTINGS_FILE}'\n"
        )
    (folder / "complete.json").write_text(json.dumps(_size(data)))
    folder.chmod(0o700 if run.user is None else 0o755)
    return folder


def _install(run: RunFolder, built: Path, template: Path) -> None:
    """Put a new template into the cache, unless another run was faster; then it is thrown away."""
    with _locked(template.parent, fcntl.LOCK_EX):
        if _is_whole(template):
            shutil.rmtree(built)
            return
        if template.exists():
            shutil.rmtree(template)
        try:
            built.rename(template)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            # Another file system: copy first, so that the last step is a rename again.
            with LockedFolder.create(template.parent, unfinished=True) as building:
                disk.copy_folder(built, building.path / "new", run.run)
                (building.path / "new").rename(template)
            shutil.rmtree(built)
