"""
Counted statements: what a log or a file of statements gives, and the file of statements.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pgheadroom.errors import InputError
from pgheadroom.input_file import read_text
from pgheadroom.sources.statements import NotParsed, split

_STATEMENTS_BYTES_MAX = 16 * 1024**2  # an application's distinct statements; arbitrary
_META_COMMAND = re.compile(r"^[ \t]*\\(?![;:]).*$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementCounts:
    """
    How often each statement was seen, literals put away; `cut` of them did not end.

    `lost` are others that say nothing, by reason; `notes` say what makes the counts less than all.
    """

    source: str
    counts: Counter[str]
    seen: int
    cut: int
    lost: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def read_statements(path: Path) -> StatementCounts:
    """
    Count the statements of a file: SQL separated by semicolons, or a pgbench script.

    Args:
        path: The file; `FILE@N` counts each of its statements N times, as in pgbench.

    Raises:
        InputError: Not readable, or without a statement.
    """
    name, _, weight = str(path).rpartition("@")
    times = 1
    if name and weight.isascii() and weight.isdecimal():
        path, times = Path(name), int(weight)
    text = read_text(
        path,
        bytes_max=_STATEMENTS_BYTES_MAX,
        expected="a file of statements or a pgbench script",
        errors="replace",
    )
    text = _META_COMMAND.sub("", text)
    counts: Counter[str] = Counter()
    try:
        for statement in split(text, variables=True):
            counts[statement] += times
    except NotParsed:
        raise InputError(f"{path}: a string or comment does not end") from None
    if not counts:
        raise InputError(f"{path} holds no statement: expected SQL or a pgbench script")
    return StatementCounts(source="statements", counts=counts, seen=counts.total(), cut=0)
