"""Where tests put what is made and removed many times."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

_FREE_BYTES_MIN = 4 * 1024**3


def fast_place(*, programs: bool = False) -> Path:
    """
    Where run folders of tests lie: in memory if there is room, which /dev/shm lacks in containers.

    A cluster has a thousand files, and ext4 slows down when thousands are made and removed within
    a minute (it does not use a freed inode again at once): up to 2 s per cluster.

    Args:
        programs: They are started there, which some mounts of /dev/shm refuse.
    """
    memory = Path("/dev/shm")
    disk = Path("/var/tmp")
    if not memory.is_dir() or (programs and os.statvfs(memory).f_flag & os.ST_NOEXEC):
        return disk
    return memory if shutil.disk_usage(memory).free > _FREE_BYTES_MIN else disk
