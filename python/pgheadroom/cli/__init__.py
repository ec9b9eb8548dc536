"""
The command line: parse, call one stage, print. One thin module a command.

Data go to standard output, progress and messages to standard error. Every error of ours ends with
its message and its exit code; anything else is a bug, with exit code 70 and its trace in a file.
"""

from __future__ import annotations

# Without the enumerations of `signal`, whose import takes longer than all before it.
import _signal as signal  # type: ignore[import-not-found]
import os
import sys

INTERRUPTED = 130
"""As shells say that Ctrl-C ended a program: 128 and the number of SIGINT."""


def main() -> None:
    """Entry point of the `pgheadroom` program."""
    # Importing takes most of the first half second, and there is nothing yet to put in order. A
    # handler that is not Python's own, as under nohup, stays.
    polite = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if polite:
        signal.signal(signal.SIGINT, leave)
    from pgheadroom.cli.app import run_program

    try:
        if polite:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        code = run_program(sys.argv[1:])
    except KeyboardInterrupt:  # while the first one was told
        code = INTERRUPTED
    finally:
        if polite:
            signal.signal(signal.SIGINT, leave)
    sys.exit(code)


def leave(_number: int, _frame: object) -> None:
    """End at once: before the program has begun, or after all of it is done."""
    os.write(2, b"pgheadroom: interrupted\n")
    os._exit(INTERRUPTED)
