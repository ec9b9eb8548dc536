"""
The command line: parse, call one stage, print. One thin module a command.

Data go to standard output, progress and messages to standard error. Every error of ours ends with
its message and its exit code; anything else is a bug and shows its trace.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the `pgheadroom` program."""
    from pgheadroom.cli.app import run  # noqa: PLC0415 - keeps `import pgheadroom` light

    sys.exit(run(sys.argv[1:]))
