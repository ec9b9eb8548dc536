"""Processors that this process and those that it starts may use."""

from __future__ import annotations

import math
import os
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def usable(quota: Path = _QUOTA, allowed: int | None = None) -> int:
    """
    How many there are for it, at least 1: those that it may run on, or a container's quota of time.

    Quotas of a service's control group, and of version 1, are not looked at.

    Args:
        quota: `cpu.max` of version 2 of Linux's control groups, as a container has it:
            microseconds of processor time, or `max`, in so many.
        allowed: How many it may run on; None: as the system says.

    Source: Documentation/admin-guide/cgroup-v2.rst of Linux.
    """
    if allowed is None:
        has_affinity = hasattr(os, "sched_getaffinity")
        allowed = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    try:
        most, period = quota.read_text(encoding="ascii").split()
        of_quota = math.ceil(int(most) / int(period))
    except (OSError, ValueError, ZeroDivisionError):
        return allowed
    return max(1, min(allowed, of_quota))
