"""
Who runs the server programs: we, or, as root, an unprivileged user that the system has.

PostgreSQL's programs refuse to run as root. Nothing is installed and no user is made: `postgres`,
which PostgreSQL's packages create, else `nobody`. Client programs run as the invoking user.
"""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from pgheadroom.errors import LabError

_CANDIDATES = ("postgres", "nobody")
_SUCCEEDED: set[tuple[ServerUser | None, tuple[str | Path, ...]]] = set()


class UserArguments(TypedDict, total=False):
    """Arguments of `subprocess.Popen` that change the user; empty: stay who we are."""

    user: int
    group: int
    extra_groups: Sequence[int]


@dataclass(frozen=True, slots=True)
class ServerUser:
    """The user whose server programs we start; only when we are root."""

    name: str
    uid: int
    gid: int


def server_user() -> ServerUser | None:
    """
    The user that servers run as; None: the invoking user, who is not root.

    Raises:
        LabError: We are root, and there is neither `postgres` nor `nobody` that we may become.
    """
    if os.geteuid() != 0:
        return None
    for name in _CANDIDATES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        user = ServerUser(name, entry.pw_uid, entry.pw_gid)
        if user.uid != 0 and succeeds(user, "/bin/sh", "-c", ":"):
            return user
    raise LabError(
        "PostgreSQL refuses to run as root, and there is neither a user postgres nor a user nobody "
        "that we may become to run it: create one (useradd --system postgres), give the container "
        "the capabilities SETUID and SETGID, or do not run as root"
    )


def arguments(user: ServerUser | None) -> UserArguments:
    """What `subprocess.Popen` needs to start a program as `user`."""
    if user is None:
        return {}
    return {"user": user.uid, "group": user.gid, "extra_groups": ()}


def succeeds(user: ServerUser | None, *command: str | Path) -> bool:
    """
    Whether a short, harmless command, run as `user`, ends with exit code 0.

    What has succeeded once in this process is not tried again: each host asks the same, and every
    answer costs a copy of this process.
    """
    if (user, command) in _SUCCEEDED:
        return True
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            timeout=60,
            check=False,
            **arguments(user),
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    if done.returncode == 0:
        _SUCCEEDED.add((user, command))
    return done.returncode == 0


def can_traverse(user: ServerUser | None, folder: Path) -> bool:
    """Whether `user` can go through `folder`, whatever forbids it: modes, ACLs, mounts."""
    if user is None:
        return os.access(folder, os.X_OK)
    return succeeds(user, "/bin/sh", "-c", 'cd -- "$1"', "sh", folder)
