"""
An error that is a bug of ours: one line for the user, the details in a private file.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

import pgheadroom
from pgheadroom.redaction import command_line, process_secrets, redacted

EXIT_CODE = 70  # EX_SOFTWARE, sysexits.h
_LINE_CHARACTERS = 160


def describe(error: BaseException, arguments: Sequence[str]) -> str:
    """
    Write the details of an error down, without passwords, and give the line that names them.

    Args:
        error: What nobody expected.
        arguments: The command line.
    """
    secrets = process_secrets(arguments)
    said = " ".join(str(error).split())
    what = redacted(f"{type(error).__name__}{': ' if said else ''}{said}", secrets)
    if len(what) > _LINE_CHARACTERS:
        what = what[: _LINE_CHARACTERS - 3] + "..."
    details = "\n".join(
        [
            f"pgheadroom {pgheadroom.__version__}, Python {platform.python_version()}, "
            f"{platform.platform()}",
            command_line(arguments),
            "",
            redacted("".join(traceback.format_exception(error)), secrets),
        ]
    )
    path = _written(details)
    where = "could not be written down" if path is None else f"are in {path}"
    return f"{what}; this is a bug of pgheadroom's, not of what you gave it. The details {where}"


def _written(details: str) -> Path | None:
    """In the folder for temporary files, readable by nobody else."""
    try:
        handle, name = tempfile.mkstemp(prefix="pgheadroom-error-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(details)
    except OSError:
        sys.stderr.write(details)
        return None
    return Path(name)
