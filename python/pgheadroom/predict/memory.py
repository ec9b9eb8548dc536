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

from pgheadroom import _core
from pgheadroom.errors import TwinError
from pgheadroom.predict.sampling import heap_pages, least_pages, obstacle, sample_of
from pgheadroom.profile import Profile
from pgheadroom.units import show_bytes

_ALWAYS_BYTES = 16_000_000
"""Of a run, whatever it plays (`ALWAYS_BYTES`, profile/estimate.rs of the twin)."""

_NEXT_TRY = 0.9
"""Of the pages that do not fit. Arbitrary."""

_FREE_FRAC = 0.9
"""Of the memory that is available; the rest is for everything else. Arbitrary."""

_CGROUPS = (
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (
        Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
        Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ),
)


def check_memory(
    needed: Sequence[int], profiles: Sequence[Profile], runs: int, *, may_sample: bool = False
) -> None:
    """
    Refuse what would not fit.

    Args:
        needed: Bytes of a run of each profile.
        profiles: What each of them plays.
        runs: How many there are of all profiles together; as many at once as there are cores.
        may_sample: Whether `--sample-pages` goes with what is asked for.

    Raises:
        TwinError: Too little memory; with what would fit.
    """
    free_bytes = available_bytes()
    if not needed or free_bytes is None:
        return
    cores = len(os.sched_getaffinity(0))
    at_once = max(1, min(runs, cores))
    each, profile = max(zip(needed, profiles, strict=True), key=lambda pair: pair[0])
    # The largest, and beside it as large ones: seeds of one cell run side by side.
    if each * at_once <= free_bytes * _FREE_FRAC:
        return
    several = f"{at_once} runs at once" if at_once > 1 else "a run"
    fewer = ", or fewer cores (taskset)" if at_once > 1 else ""
    fits = _what_fits(profile, each, free_bytes * _FREE_FRAC / at_once)
    # Of samples there are several, where a profile of one client is one run.
    pages = _pages_that_fit(profile, free_bytes * _FREE_FRAC / cores) if may_sample else None
    raise TwinError(
        f"{_largest(profile)} would take about {show_bytes(each * at_once)} of memory for "
        f"{several}, and {show_bytes(free_bytes)} are available: expected at most "
        f"{fits}{'' if pages is None else f', or `sample_pages` {pages}'}{fewer}",
        mentions=("sample_pages",),
    )


def check_run(needed_bytes: int) -> None:
    """
    Refuse one run that would not fit, on a machine that others are not planned for.

    Raises:
        TwinError: Too little memory.
    """
    free_bytes = available_bytes()
    if free_bytes is not None and needed_bytes > free_bytes * _FREE_FRAC:
        raise TwinError(
            f"a run would take about {show_bytes(needed_bytes)} of memory, and "
            f"{show_bytes(free_bytes)} are available on the worker: expected a smaller profile, "
            "`sample_pages`, or workers with more",
            mentions=("sample_pages",),
        )


def _largest(profile: Profile) -> str:
    builtin = profile.workload.builtin
    if builtin is not None:
        return f"pgbench.scale {builtin.scale}"
    table = max(profile.tables, key=lambda table: table.rows)
    return f"table {table.name} with {table.rows} rows"


def _what_fits(profile: Profile, needed: int, free_bytes: float) -> str:
    """The same profile made so much smaller, in the words of whoever writes one."""
    builtin, run = profile.workload.builtin, profile.workload.run
    share = max(0.0, free_bytes - _ALWAYS_BYTES) / (needed - _ALWAYS_BYTES)
    if builtin is not None:
        found = f"scale {int(builtin.scale * share)}"
    else:
        rows = max(table.rows for table in profile.tables)
        found = f"{int(rows * share)} rows"
    if run.operations is not None:
        found += f" with {int(run.operations * share)} operations"
    return found


def _pages_that_fit(profile: Profile, free_bytes: float) -> int | None:
    """Pages of a sample that fits, a little fewer than would; None where none does."""
    if obstacle(profile) is not None:
        return None
    pages = heap_pages(profile)
    while pages >= least_pages(profile):
        if _core.needed_bytes(sample_of(profile, pages).twin_json(0)) <= free_bytes:
            return pages
        pages = int(pages * _NEXT_TRY)
    return None


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
