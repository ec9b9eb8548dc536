"""
The part of a migration's file that goes forward, where a tool keeps the way back in the same file.

Tools that do so divide a file by comments on lines of their own. What stands after the one that
begins the way back is not run by a migration, and would undo in the answer what the first part
does: an index that it makes and the other drops. Most run the part forward in one transaction.

Django's `sqlmigrate` says in a comment what it runs in Python and cannot write down: that is part
of the migration, and nobody sees what it does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tool:
    """
    How a tool divides a file.

    Attributes:
        name: Of the tool.
        up: The line that begins the way forward; None: it begins with the file.
        down: The line that begins the way back.
        bare: The line that says that no transaction is begun; None:
            whether it begins one is not known from the file.
        is_prose: Its lines may be anybody's comments: only both together are the tool's.
    """

    name: str
    up: re.Pattern[str] | None
    down: re.Pattern[str]
    bare: re.Pattern[str] | None = None
    is_prose: bool = False


def _line(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_TOOLS = (
    _Tool(
        name="goose",
        up=_line(r"--\s*\+goose\s+up\s*$"),
        down=_line(r"--\s*\+goose\s+down\s*$"),
        bare=_line(r"--\s*\+goose\s+no\s+transaction\s*$"),
    ),
    _Tool(
        name="sql-migrate",
        up=_line(r"--\s*\+migrate\s+up\b"),
        down=_line(r"--\s*\+migrate\s+down\b"),
        bare=_line(r"--\s*\+migrate\s+up\s+notransaction\b"),
    ),
    _Tool(
        name="dbmate",
        up=_line(r"--\s*migrate:up\b"),
        down=_line(r"--\s*migrate:down\b"),
        bare=_line(r"--\s*migrate:up\b.*\btransaction:false\b"),
    ),
    _Tool(
        name="tern",
        up=None,
        down=_line(r"---- create above / drop below ----"),
        bare=_line(r"---- tern: disable-tx ----"),
    ),
    _Tool(
        name="node-pg-migrate",
        up=_line(r"\s*--[\s-]*up\s+migration\s*$"),
        down=_line(r"\s*--[\s-]*down\s+migration\s*$"),
        is_prose=True,
    ),
)


# `Migration.apply` (django/db/migrations/migration.py): today's text, and that until 4.0, which had
# the operation's description behind it.
_UNWRITTEN = re.compile(
    r"--\s*(?:THIS OPERATION CANNOT BE WRITTEN AS SQL"
    r"|MIGRATION NOW PERFORMS OPERATION THAT CANNOT BE WRITTEN AS SQL:)\s*$"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forward:
    """
    What a migration runs.

    Attributes:
        text: With empty lines where nothing is run, so that lines keep their numbers.
        begun: The line of the tool's with which its transaction begins.
        said: What is said of that: the line that it is about, and the text.
    """

    text: str
    begun: int | None = None
    said: tuple[int, str] | None = None


def forward(text: str) -> Forward:
    """
    The part that goes forward; all of a file that no tool divides.

    Args:
        text: Of the file.
    """
    lines = text.split("\n")
    for tool in _TOOLS:
        ups = [n for n, line in enumerate(lines) if tool.up and tool.up.match(line)]
        downs = [n for n, line in enumerate(lines) if tool.down.match(line)]
        if (ups and downs) or (not tool.is_prose and (ups or downs)):
            return _parted(tool, lines, ups, downs)
    return Forward(text=text)


def unwritten(text: str) -> list[tuple[int, str]]:
    """
    Lines on which a tool says that it runs what is no SQL (Django's RunPython): number and text.

    Args:
        text: What goes forward.
    """
    lines = enumerate(map(str.strip, text.split("\n")), start=1)
    return [(number, line) for number, line in lines if _UNWRITTEN.match(line)]


def _parted(tool: _Tool, lines: list[str], ups: list[int], downs: list[int]) -> Forward:
    is_run, kept = True, []
    for n, line in enumerate(lines):
        is_run = n in ups or (is_run and n not in downs)
        kept.append(line if is_run else "")
    is_bare = tool.bare is None or any(tool.bare.match(line) for line in lines)
    begun = None if is_bare else min(ups, default=0) + 1
    parts = [f"{tool.name} runs the migration in one transaction"] if begun else []
    if downs:
        parts.append(f"what follows {lines[downs[0]].strip()!r} is its way back, and left out")
    said = (begun or downs[0] + 1, "; ".join(parts)) if parts else None
    return Forward(text="\n".join(kept), begun=begun, said=said)
