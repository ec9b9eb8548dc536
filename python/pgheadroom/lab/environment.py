"""
The environment of a run: server, settings, machine, tool. Kept with every record.

What cannot be read is null; nothing is guessed.
"""

from __future__ import annotations

import os
import platform
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pgheadroom
from pgheadroom.lab.place import Running, memory_bytes

SYNC_PROBE_S = 0.3

_PLACES = ("data_directory", "unix_socket_directories", "config_file", "hba_file", "ident_file")
"""Settings that say where a server lives, another folder in every run."""


def describe_server(server: Running) -> dict[str, Any]:
    """Version, build and every setting that is not at its default."""
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
    return {
        "server_version": version[0],
        "settings": dict(settings),
        "build": dict(fixed),
    }


def describe_machine(folder: Path) -> dict[str, Any]:
    """Kernel, processor, memory, and the disk under `folder` with its rate of synced writes."""
    return {
        "kernel": platform.release(),
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "memory_bytes": memory_bytes(),
        "filesystem": _filesystem(folder),
        "disk_syncs_per_s": disk_syncs_per_s(folder),
        "load_average_1min": os.getloadavg()[0],
        "python": platform.python_version(),
        "tool_version": pgheadroom.__version__,
    }


def command_line(arguments: Sequence[str] | None = None) -> str:
    """The command that was typed, quoted so that it can be typed again."""
    return shlex.join(["pgheadroom", *(sys.argv[1:] if arguments is None else arguments)])


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
