"""
Whether runs of the twin fit into memory, asked before any of them begins.

Each run holds its tables whole. The core says what a profile takes (`_core.needed_bytes`); what is
there is the least of what the kernel has available, what the control group leaves, and what this
process may still map. Memory that runs out all the same ends a run with a `TwinError` too.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Sequence
from pathlib import Path

from pgheadroom.errors import TwinError
from pgheadroom.predict.sampling import heap_pages, obstacle
from pgheadroom.profile import Profile
from pgheadroom.units import show_bytes

_FREE_FRAC = 0.9
"""Of the memory that is available; the rest is for everything else. Arbitrary."""

_CGROUPS = (
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (
        Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
        Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ),
)


def check_memory(needed: Sequence[int], profiles: Sequence[Profile], runs: int) -> None:
    """
    Refuse what would not fit.

    Args:
        needed: Bytes of a run of each profile.
        profiles: What each of them plays.
        runs: How many there are of all profiles together; as many at once as there are cores.

    Raises:
        TwinError: Too little memory; with what would fit.
    """
    free_bytes = available_bytes()
    if not needed or free_bytes is None:
        return
    at_once = max(1, min(runs, len(os.sched_getaffinity(0))))
    each, profile = max(zip(needed, profiles, strict=True), key=lambda pair: pair[0])
    # The largest, and beside it as large ones: seeds of one cell run side by side.
    if each * at_once <= free_bytes * _FREE_FRAC:
        return
    fits = free_bytes * _FREE_FRAC / (each * at_once)
    several = f"{at_once} runs at once" if at_once > 1 else "a run"
    raise TwinError(
        f"{_largest(profile)} would take about {show_bytes(each * at_once)} of memory for "
        f"{several}, and {show_bytes(free_bytes)} are available: expected at most "
        f"{_what_fits(profile, fits)}{', or fewer cores (taskset)' if at_once > 1 else ''}"
    )


def _largest(profile: Profile) -> str:
    builtin = profile.workload.builtin
    if builtin is not None:
        return f"pgbench.scale {builtin.scale}"
    table = max(profile.tables, key=lambda table: table.rows)
    return f"table {table.name} with {table.rows} rows"


def _what_fits(profile: Profile, share: float) -> str:
    """The same profile made so much smaller, in the words of whoever writes one."""
    builtin, run = profile.workload.builtin, profile.workload.run
    if builtin is not None:
        found = f"scale {int(builtin.scale * share)}"
    else:
        rows = max(table.rows for table in profile.tables)
        found = f"{int(rows * share)} rows"
    if run.operations is not None:
        found += f" with {int(run.operations * share)} operations"
    if obstacle(profile) is None:
        found += f", or --sample-pages {max(1, int(heap_pages(profile) * share))}"
    return found


def available_bytes() -> int | None:
    """What may be taken: of the machine, and of the control group; None where nobody says it."""
    found = []
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                found.append(int(line.split()[1]) * 1024)
    except (OSError, ValueError):
        pass
    for limit, used in _CGROUPS:
        try:
            found.append(int(limit.read_text()) - int(used.read_text()))
        except (OSError, ValueError):  # not there, or "max"
            continue
    limit_bytes, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit_bytes != resource.RLIM_INFINITY:
        try:
            mapped_pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
            found.append(limit_bytes - mapped_pages * resource.getpagesize())
        except (OSError, ValueError):
            found.append(limit_bytes)
    return max(min(found), 0) if found else None
