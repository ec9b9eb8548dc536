"""
What placement costs and gives, beside plain heap: the table of build/bench-extension.md.

    PYTHONPATH=tools python -m bench_extension [--server 18] [--rows 1000000] [--runs 3]

Every ratio is the median of paired rounds with a distribution-free interval of 95 %; rounds are
interleaved on one server, in an order that is drawn. `--rows 20000 --runs 1` tries it in some
minutes, and its times say nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench_extension.rows import Row, table
from bench_extension.workloads import ascending, program_of_2007, single_rows, streams
from pgheadroom.servers import find_programs


def main() -> None:
    """Measure, print, write; the table is written anew after each workload."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", default="18")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("build/bench-extension.md"))
    arguments = parser.parse_args()
    programs = find_programs(arguments.server)
    rows, runs = arguments.rows, arguments.runs
    small, large = max(rows * 80 // 10**6, 1), max(rows * 3000 // 10**6, 16)
    rounds = 14 * runs
    workloads: tuple[Callable[[], Iterator[Row]], ...] = (
        lambda: program_of_2007(programs, rows, runs, small, (1.35, 1.15, 0.4)),
        lambda: program_of_2007(programs, rows, runs, large, (1.75, 1.4, None)),
        lambda: streams(programs, rows, runs),
        lambda: ascending(programs, rows, rounds),
        lambda: single_rows(programs, rows, rounds),
    )
    found: list[Row] = []
    begun = time.monotonic()
    load = os.getloadavg()[0]
    for number, workload in enumerate(workloads, start=1):
        found.extend(workload())
        taken = time.monotonic() - begun
        print(f"{number} of {len(workloads)} after {taken:.0f} s", file=sys.stderr)
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(
            f"PostgreSQL {programs.version}, {os.cpu_count()} processors, load {load:.1f} when it "
            f"began; {taken:.0f} s\n\n{table(found)}\n"
        )
    print(arguments.out.read_text(), end="")


if __name__ == "__main__":
    main()
