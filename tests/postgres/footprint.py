"""What a running server has on the machine, noted while it lives, to be looked for afterwards."""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from pgheadroom.servers import Cluster

DEADLINE_S = 60.0  # for anything that happens by itself; the machine may be busy


@dataclass(frozen=True)
class Footprint:
    """Folder, processes, and shared memory of a run with a running cluster."""

    folder: str
    socket_dir: str
    processes: dict[int, int]  # pid -> start time, which tells a pid that is used again
    segment: int
    dynamic_segments: list[str]

    @classmethod
    def of(cls, cluster: Cluster) -> Footprint:
        """Note what a running cluster of ours consists of, in RUN/clusters/NAME/data."""
        lines = (cluster.data_dir / "postmaster.pid").read_text().split("\n")
        postmaster = int(lines[0])
        family = [postmaster, *_children(postmaster)]
        maps = Path(f"/proc/{postmaster}/maps").read_text()
        return cls(
            folder=str(cluster.data_dir.parents[2]),
            socket_dir=lines[4],
            processes={pid: start for pid in family if (start := start_time(pid)) is not None},
            segment=int(lines[6].split()[1]),
            dynamic_segments=sorted(set(re.findall(r"/dev/shm/PostgreSQL\.\d+", maps))),
        )

    @classmethod
    def from_json(cls, text: str) -> Footprint:
        fields = json.loads(text)
        fields["processes"] = {int(pid): start for pid, start in fields["processes"].items()}
        return cls(**fields)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    def left(self) -> list[str]:
        """What is still there."""
        found = [
            f"process {pid}" for pid, start in self.processes.items() if start_time(pid) == start
        ]
        found += [path for path in (self.folder, self.socket_dir) if os.path.lexists(path)]
        found += [path for path in self.dynamic_segments if os.path.lexists(path)]
        if self.segment in segments():
            found.append(f"shared memory segment {self.segment}")
        return found

    def wait_until_gone(self) -> None:
        """Fail, naming what is left, if not everything is gone in time."""
        deadline = time.monotonic() + DEADLINE_S
        while left := self.left():
            assert time.monotonic() < deadline, f"left behind: {left}"
            time.sleep(0.05)


def start_time(pid: int) -> int | None:
    """Start time of a live process, in clock ticks; None for none, and for a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in ("Z", "X") else int(fields[19])


def segments() -> set[int]:
    """Ids of all System V shared memory segments."""
    lines = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    return {int(line.split()[1]) for line in lines}


def _children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid:
                found.append(int(entry.name))
    return found
