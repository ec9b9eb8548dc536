"""A Dask cluster of processes on this machine: a scheduler, and workers with labels."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pgheadroom.schedule.scheduler import Scheduler
from pgheadroom.servers.death import ends_with_us
from places import fast_place

STARTS_S = 120.0


@dataclass(frozen=True)
class StartedCluster:
    """Its scheduler and its address; of each worker the process, and the folder for its runs."""

    address: str
    scheduler: subprocess.Popen[bytes]
    workers: Mapping[str, subprocess.Popen[bytes]]
    folders: Mapping[str, Path]


@contextmanager
def started(
    folder: Path, labels: Mapping[str, str], *, options: Sequence[str] = ()
) -> Iterator[StartedCluster]:
    """
    A cluster, with all workers there; its processes end with the block, and with us.

    Args:
        folder: For files of Dask's.
        labels: Of each worker, by its name.
        options: Of scheduler and workers.
    """
    places = Path(tempfile.mkdtemp(prefix="pgh-dask-", dir=fast_place()))
    places.chmod(0o755)  # servers that root starts are another user's
    processes: dict[str, subprocess.Popen[bytes]] = {}
    folders = {name: places / name for name in labels}
    about = folder / "scheduler.json"

    def start(name: str, program: str, *arguments: str, **environment: str) -> None:
        with (folder / f"{name}.log").open("wb") as log:
            processes[name] = subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.{program}", *options, *arguments],
                env=os.environ | {"DASK_TEMPORARY_DIRECTORY": str(folder)} | environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
                preexec_fn=ends_with_us(signal.SIGKILL),  # noqa: PLW1509 - calls of the kernel's
            )

    try:
        start(
            "scheduler",
            "dask_scheduler",
            *("--host", "127.0.0.1", "--port", "0", "--no-dashboard"),
            *("--scheduler-file", str(about)),
        )
        address = _address(about, processes)
        for name, label in labels.items():
            folders[name].mkdir()
            start(
                name,
                "dask_worker",
                *(address, "--host", "127.0.0.1", "--name", name),
                *("--nthreads", "1", "--no-nanny", "--no-dashboard", "--memory-limit", "0"),
                *("--resources", f"{label}=1", "--local-directory", str(folder)),
                PGHEADROOM_TMPDIR=str(folders[name]),
            )
        _wait_for(address, set(labels), processes)
        yield StartedCluster(
            address=address,
            scheduler=processes["scheduler"],
            workers={name: processes[name] for name in labels},
            folders=folders,
        )
    finally:
        for process in reversed(processes.values()):
            process.kill()
            process.wait()
        for made in filter(Path.exists, folders.values()):
            _emptied(made)
            made.rmdir()
        places.rmdir()


def _address(about: Path, processes: Mapping[str, subprocess.Popen[bytes]]) -> str:
    for _ in _while_alive(processes):
        with suppress(FileNotFoundError, json.JSONDecodeError):  # not there, or not yet whole
            return str(json.loads(about.read_text())["address"])
    raise AssertionError("the scheduler has not started")


def _wait_for(
    address: str, names: set[str], processes: Mapping[str, subprocess.Popen[bytes]]
) -> None:
    with Scheduler(address) as scheduler:
        for _ in _while_alive(processes):
            if {worker.name for worker in scheduler.workers()} == names:
                return
    raise AssertionError(f"not all workers have started: {names}")


def _while_alive(processes: Mapping[str, subprocess.Popen[bytes]]) -> Iterator[None]:
    deadline = time.monotonic() + STARTS_S
    while time.monotonic() < deadline:
        for name, process in processes.items():
            assert process.poll() is None, f"{name} has ended"
        yield
        time.sleep(0.02)


def _emptied(folder: Path) -> None:
    """Watchdogs remove what a killed worker had."""
    deadline = time.monotonic() + STARTS_S
    while left := [path.name for path in folder.iterdir()]:
        assert time.monotonic() < deadline, f"left behind: {left}"
        time.sleep(0.02)
