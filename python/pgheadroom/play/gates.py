"""
Where pgbench stands still for maintenance, so that one client's transactions are counted exactly.

Each script counts, and waits in a shell until a file is gone:

    gate-N    is there until the commands that are due after N transactions are done
    asked-N   pgbench has come there
"""

from __future__ import annotations

from pgheadroom.profile import Profile
from pgheadroom.profile.maintaining import due_after, is_counted

GATE = """\
: > "asked-$1"
while [ -e "gate-$1" ]; do sleep 0.01; done
"""
GATE_FILE = "gate.sh"
_COUNTER = "t"


def gate_lines(profile: Profile) -> list[str]:
    """What each script begins with, so that it waits where a command is due."""
    run = profile.workload.run
    if not run.maintenance or not is_counted(run):
        return []
    lines = [f"\\set {_COUNTER} :{_COUNTER} + 1"]
    for after in moments(profile):
        if run.operations is not None and after < run.operations:
            lines += [f"\\if :{_COUNTER} = {after + 1}", f"\\shell sh {GATE_FILE} {after}"]
            lines.append("\\endif")
    return lines


def gate_variables(profile: Profile) -> dict[str, int]:
    """Variables of these lines, with the values that a client starts with."""
    return {_COUNTER: 0} if gate_lines(profile) else {}


def moments(profile: Profile) -> list[int]:
    """After how many transactions commands are due."""
    run = profile.workload.run
    return sorted({due_after(command, run) for command in run.maintenance})
