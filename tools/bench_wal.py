"""
`wal stats` beside `pg_waldump --stats=record` on the same files, in the page cache.

    python tools/bench_wal.py [--server 18] [--scale 20] [--transactions 600000] [FOLDER]

Without a folder a throw-away server writes the log by pgbench, half a GB. The reader is called in
this process, `command` is the whole program, its start included; pg_waldump and what has one thread
are held on one core, what has two on two. The order is drawn anew for each round; what is printed
are medians of wall time and of processor time, and of their paired ratios, the system's part of
processor time (copying pages), and the memory that was taken at most. On one thread processor time
is what to compare where the machine has other work; on two it is the wall's, on a quiet one.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pgheadroom import _core
from pgheadroom.servers import Host, find_client, find_programs

SETTINGS = {
    "autovacuum": "off",
    "max_wal_size": "64GB",
    "wal_keep_size": "64GB",
    "synchronous_commit": "off",
    "checkpoint_timeout": "1h",
}


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--server", default="18")
    parser.add_argument("--scale", type=int, default=20)
    parser.add_argument("--transactions", type=int, default=600_000)
    parser.add_argument("--rounds", type=int, default=11)
    arguments = parser.parse_args()
    programs = find_programs(arguments.server)
    waldump, version = find_client("pg_waldump", programs)
    print(f"pg_waldump of {version}; {platform.processor() or platform.machine()}")
    if arguments.folder is not None:
        measure(arguments.folder, waldump, arguments.rounds)
        return
    with Host(programs) as host:
        cluster = host.cluster("bench")
        cluster.start(SETTINGS)
        pgbench, _ = find_client("pgbench", programs)
        environment = {**cluster.client_env(), "PGDATABASE": "postgres"}
        host.run([pgbench, "-i", "-q", "-s", str(arguments.scale)], env=environment)
        host.run(
            [pgbench, "-n", "-c", "2", "-t", str(arguments.transactions // 2)], env=environment
        )
        cluster.stop()
        measure(cluster.data_dir / "pg_wal", waldump, arguments.rounds)


def measure(folder: Path, waldump: Path, rounds: int) -> None:
    """Paired rounds in an order drawn anew for each."""
    start = min(path.name for path in folder.glob("[0-9A-F]" * 24))
    first = _core.wal_sums([folder])
    lsn = first.spans[0][0]
    position = f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"
    records, length, _, images = first.total
    print(f"{records:,} records, {length:,} bytes, of it images {images:,}; from {start}")
    command = [str(waldump), "-p", str(folder), "-s", position, "--stats=record"]
    whole = [sys.executable, "-m", "pgheadroom", "wal", "stats", str(folder), "--allow-gaps"]
    arms: dict[str, tuple[int, Callable[[], object]]] = {
        "pg_waldump": (1, lambda: subprocess.run(command, check=False, capture_output=True)),
        "one thread": (1, lambda: _core.wal_sums([folder], threads=1)),
        "command": (1, lambda: subprocess.run(whole, check=True, capture_output=True)),
    }
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) > 1:
        arms["two threads"] = (2, lambda: _core.wal_sums([folder], threads=2))
        arms["command, two"] = (2, lambda: subprocess.run(whole, check=True, capture_output=True))
    else:
        print("one core: nothing is said of two threads")
    print(f"cores {cores}, load {os.getloadavg()[0]:.1f}")
    taken: dict[str, list[tuple[float, ...]]] = {name: [] for name in arms}
    order = list(arms)
    draw = random.Random(1)  # noqa: S311 - an order, no secret
    for _ in range(rounds):
        draw.shuffle(order)
        for name in order:
            count, work = arms[name]
            os.sched_setaffinity(0, cores[:count])
            begin, begin_cpu = time.perf_counter(), cpu_s()
            work()
            wall, cpu = time.perf_counter() - begin, cpu_s()
            spent = [now - before for now, before in zip(cpu, begin_cpu, strict=True)]
            taken[name].append((wall, sum(spent), spent[1]))
    os.sched_setaffinity(0, cores)
    for name, times in taken.items():
        shown = []
        for place, what in ((0, "wall"), (1, "processor")):
            seconds = [pair[place] for pair in times]
            theirs = [pair[place] for pair in taken["pg_waldump"]]
            ratios = sorted(other / own for other, own in zip(theirs, seconds, strict=True))
            middle = statistics.median(seconds)
            shown.append(
                f"{what} {middle:.3f} s, {length / middle / 1e6:,.0f} MB/s, "
                f"{statistics.median(ratios):.2f} times as fast "
                f"[{ratios[0]:.2f}, {ratios[-1]:.2f}]"
            )
        of_system = statistics.median(pair[2] for pair in times)
        print(f"{name:12} {'; '.join(shown)}; of the system {of_system:.3f} s")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"memory of this process at most, Python with it: {most:,.0f} MiB")


def cpu_s() -> tuple[float, float]:
    """Processor time, ours and the system's, of this process and those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime for one in used), sum(one.ru_stime for one in used)


if __name__ == "__main__":
    main()
