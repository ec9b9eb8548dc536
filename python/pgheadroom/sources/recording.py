"""
What a database said, as it said it: one line of JSON a query, live or from psql's files.

    {"query": "table_counters", "pass": "start", "rows": [{...}, ...]}
    {"query": "sizes", "pass": "start", "failed": "55P03 lock_not_available"}

Everything derived starts from here, so both ways in give the same result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from pgheadroom.errors import InputError
from pgheadroom.input_file import read_text

FILE_PATTERN = "pgheadroom-observed-*.jsonl"
_FILE_BYTES_MAX = 1024**3  # thousands of tables give some tens of MB; arbitrary
_UNDECODED = re.compile("[\udc80-\udcff]")  # what surrogateescape makes of a byte
AnswerRow = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAnswer:
    """One query's answer in one pass; `failed` says why there are no rows."""

    query: str
    moment: str
    rows: tuple[AnswerRow, ...]
    failed: str | None = None


@dataclass(frozen=True, slots=True)
class Recording:
    """All answers, in the order in which they came."""

    lines: tuple[RecordedAnswer, ...]

    def rows(self, query: str, moment: str | None = None) -> tuple[AnswerRow, ...]:
        """The rows of a query, of one pass or of all; empty if it was not asked."""
        return tuple(
            chain.from_iterable(
                line.rows
                for line in self.lines
                if line.query == query and moment in (None, line.moment)
            )
        )

    def row(self, query: str, moment: str) -> AnswerRow | None:
        """The first row, None if there is none."""
        found = self.rows(query, moment)
        return found[0] if found else None

    def answered(self, query: str, moment: str) -> bool:
        """Whether the query has an answer in the pass, if an empty one."""
        return any(
            line.query == query and line.moment == moment and line.failed is None
            for line in self.lines
        )

    def failures(self) -> tuple[RecordedAnswer, ...]:
        """What was asked without an answer."""
        return tuple(line for line in self.lines if line.failed is not None)

    def ticks(self) -> tuple[str, ...]:
        """Names of all passes that have a moment, in order of time."""
        moments = [
            (float(line.rows[0]["at_epoch_s"]), line.moment)
            for line in self.lines
            if line.query == "instant" and line.rows
        ]
        return tuple(name for _, name in sorted(moments))


def parsed(text: str) -> Any:
    """
    Parse JSON whose strings may hold bytes that are no text in the database's encoding.

    Such bytes become a backslash, x and their two digits, and the object that has one in a string
    of its own gets `"unreadable": true`: a name that is shown so names nothing any more.

    Args:
        text: Decoded with `surrogateescape`.
    """
    data = json.loads(text)
    return _escaped(data) if _UNDECODED.search(text) else data


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return _UNDECODED.sub(lambda found: f"\\x{ord(found[0]) - 0xDC00:02x}", value)
    if isinstance(value, list):
        return [_escaped(item) for item in value]
    if isinstance(value, dict):
        made = {_escaped(name): _escaped(item) for name, item in value.items()}
        own = any(isinstance(item, str) and _UNDECODED.search(item) for item in value.values())
        return made | ({"unreadable": True} if own else {})
    return value


def line_of(data: Mapping[str, Any]) -> RecordedAnswer:
    """
    Check one parsed line.

    Raises:
        ValueError: Not a line of ours.
    """
    query, moment, rows = data.get("query"), data.get("pass"), data.get("rows", [])
    failed = data.get("failed")
    texts = isinstance(query, str) and isinstance(moment, str)
    if not texts or not isinstance(rows, list) or not isinstance(failed, str | None):
        raise ValueError("expected query, pass and rows")
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError("expected rows that are objects")
    return RecordedAnswer(query=str(query), moment=str(moment), rows=tuple(rows), failed=failed)


def read_files(place: Path) -> Recording:
    """
    Read what the script of `--print-sql` has written.

    Args:
        place: The folder that holds the files, or one of the files.

    Raises:
        InputError: No such files, or a line of another form; with file and line.
    """
    paths = [place] if place.is_file() else sorted(place.glob(FILE_PATTERN))
    if not paths:
        raise InputError(
            f"{place} holds no {FILE_PATTERN}: expected the folder in which psql ran the script "
            "of `pgheadroom observe --print-sql`"
        )
    lines: list[RecordedAnswer] = []
    for path in paths:
        lines.extend(_read_file(path))
    recording = Recording(tuple(lines))
    _check_whole(recording, place)
    return recording


def _read_file(path: Path) -> list[RecordedAnswer]:
    texts = read_text(
        path,
        bytes_max=_FILE_BYTES_MAX,
        expected="what the script of `pgheadroom observe --print-sql` wrote",
        errors="surrogateescape",
    ).split("\n")
    found = []
    for number, text in enumerate(texts, start=1):
        if not text.strip():
            continue
        try:
            data = parsed(text)
            if not isinstance(data, dict):
                raise ValueError("expected an object")
            found.append(line_of(data))
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"{path}, line {number}: not written by the script of "
                f"`pgheadroom observe --print-sql` ({error}); run the script again with the "
                "options that it names"
            ) from None
    return found


def _check_whole(recording: Recording, place: Path) -> None:
    """The least that an observation needs."""
    needed: Iterable[tuple[str, str]] = [
        ("identity", "shape"),
        ("settings", "shape"),
        ("access", "shape"),
        ("tables", "shape"),
        ("columns", "shape"),
        ("indexes", "shape"),
        ("instant", "start"),
        ("instant", "end"),
        ("table_counters", "start"),
        ("table_counters", "end"),
    ]
    for query, moment in needed:
        if not recording.answered(query, moment):
            raise InputError(
                f"{place} lacks the answer of {query} in the pass {moment!r}: was the script "
                "stopped? Run it again to its end"
            )
