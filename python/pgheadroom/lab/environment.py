"""
The environment of a run: server, settings, machine, tool. Kept with every record.

What cannot be read is null; nothing is guessed.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pgheadroom
from pgheadroom import redaction
from pgheadroom.lab.environment_form import AT_DEFAULT, Machine, ServerFound
from pgheadroom.lab.place import Running, memory_bytes

SYNC_PROBE_S = 0.3

_PLACES = (
    *("data_directory", "unix_socket_directories", "config_file", "hba_file", "ident_file"),
    *("port", "cluster_name"),
)
"""Settings that say where a server lives and what it is called, others in every trial."""

FSYNC_IN_TRIALS = "off while loading and for counters, on in timed windows"


def describe_server(server: Running, *, timed: bool = False) -> ServerFound:
    """
    Version, build and every setting that is not at its default.

    Args:
        server: The running server of a trial.
        timed: Whether the trial, once its counters are taken, switches fsync on for a window whose
            times count (`driver.durable`): fsync is then said to vary, and when it is what.
    """
    with server.connect() as connection:
        settings = connection.execute(
            "SELECT name, current_setting(name) FROM pg_settings "
            "WHERE source NOT IN ('default', 'override', 'client') AND name <> ALL (%s) "
            "ORDER BY name",
            (list(_PLACES),),
        ).fetchall()
        fixed = connection.execute(
            "SELECT name, setting FROM pg_settings WHERE name IN ('block_size', 'data_checksums', "
            "'wal_block_size', 'wal_segment_size', 'debug_assertions') ORDER BY name"
        ).fetchall()
        version = connection.execute("SELECT version()").fetchone()
    assert version is not None, "a function returns one row"
    found = ServerFound(server_version=version[0], settings=dict(settings), build=dict(fixed))
    if timed and server.cluster is not None:
        first = found.settings.get("fsync", AT_DEFAULT)
        return replace(
            found,
            settings={name: item for name, item in found.settings.items() if name != "fsync"},
            settings_that_vary={"fsync": (first, "on")},
            fsync=FSYNC_IN_TRIALS,
        )
    return found


def describe_machine(folder: Path) -> Machine:
    """Kernel, processor, memory, and the disk under `folder` with its rate of synced writes."""
    return Machine(
        kernel=platform.release(),
        cpu=_cpu_name(),
        cores=os.cpu_count(),
        memory_bytes=memory_bytes(),
        filesystem=_filesystem(folder),
        disk_syncs_per_s=disk_syncs_per_s(folder),
        load_average_1min=os.getloadavg()[0],
        python=platform.python_version(),
        tool_version=pgheadroom.__version__,
    )


def command_line(arguments: Sequence[str] | None = None) -> str:
    """The command that was typed, quoted so that it can be typed again; passwords left out."""
    return redaction.command_line(sys.argv[1:] if arguments is None else arguments)


def _cpu_name() -> str | None:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or None


def _filesystem(folder: Path) -> str | None:
    """Type of the file system, by the longest mount point that is a parent of `folder`."""
    best, kind = "", None
    try:
        for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines():
            _, mount_point, found, *_ = line.split(" ")
            inside = folder.is_relative_to(mount_point)
            if inside and len(mount_point) >= len(best):
                best, kind = mount_point, found
    except (OSError, ValueError):
        return None
    return kind


def disk_syncs_per_s(folder: Path) -> float | None:
    """8 KiB writes with fdatasync per second, over a fraction of a second."""
    path = folder / f".pgheadroom-sync-probe-{os.getpid()}"
    block = b"\0" * 8192
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:
        return None
    try:
        count, start = 0, time.perf_counter()
        while (elapsed_s := time.perf_counter() - start) < SYNC_PROBE_S:
            os.pwrite(descriptor, block, 0)
            os.fdatasync(descriptor)
            count += 1
        return round(count / elapsed_s, 1)
    except OSError:
        return None
    finally:
        os.close(descriptor)
        path.unlink(missing_ok=True)
