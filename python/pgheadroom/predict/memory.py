"""
Whether pgbench's tables fit into memory, which a run of the twin holds whole: asked beforehand.

Left out: tables of a profile's own, of which `sampling` simulates a part where they are big.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pgheadroom.errors import TwinError
from pgheadroom.predict.cells import Cell
from pgheadroom.units import show_bytes

_ROWS_A_SCALE = 100_000  # naccounts, src/bin/pgbench/pgbench.c; the other tables have 11
# Measured: 191 at scale 5, 189 at scale 20, pages and index entries included; a quarter more.
_ROW_BYTES = 240
_FREE_FRAC = 0.9
"""Of the memory that is available; the rest is for everything else. Arbitrary."""

_CGROUPS = (
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (
        Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
        Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ),
)


def check_memory(cells: Sequence[Cell], runs_each: int) -> None:
    """
    Refuse what would not fit.

    Args:
        cells: What is simulated, as many at once as there are cores.
        runs_each: Of each cell.

    Raises:
        TwinError: Too little memory; with what would fit.
    """
    scales = [c.profile.workload.builtin.scale for c in cells if c.profile.workload.builtin]
    free_bytes = available_bytes()
    if not scales or free_bytes is None:
        return
    at_once = min(len(scales) * runs_each, len(os.sched_getaffinity(0)))
    scale = max(scales)
    needed_bytes = at_once * scale * _ROWS_A_SCALE * _ROW_BYTES
    if needed_bytes <= free_bytes * _FREE_FRAC:
        return
    fits = int(free_bytes * _FREE_FRAC / (at_once * _ROWS_A_SCALE * _ROW_BYTES))
    raise TwinError(
        f"pgbench.scale {scale} needs about {show_bytes(needed_bytes)} of memory for "
        f"{at_once} run{'s' if at_once > 1 else ''} at once, and {show_bytes(free_bytes)} are "
        f"available: expected at most scale {fits} here"
        + (", or fewer fillfactors at once" if at_once > 1 else "")
    )


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
    return max(min(found), 0) if found else None
