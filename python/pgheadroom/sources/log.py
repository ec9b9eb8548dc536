"""
Statements out of a server's log (csvlog, jsonlog or stderr) or a file of statements.

Executed statements only: what log_statement and log_min_duration_statement write. Parse and bind
lines of the extended protocol stand beside their execute line and are left out.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pgheadroom.errors import InputError
from pgheadroom.input_file import read_text
from pgheadroom.sources.statements import NotParsed, split

_MESSAGE = re.compile(
    r"(?:duration: [\d.]+ ms  )?(?:statement|execute [^:\n]*): (?P<statement>.*)", re.DOTALL
)
# log_line_prefix may be anything, so the severity is looked for; two blanks follow it.
_STDERR = re.compile(r"^(?P<prefix>[^\t].*?|)(?<![A-Z])LOG:  (?P<message>.*)$", re.DOTALL)
_SEVERITY = re.compile(
    r"(?<![A-Z])(?:LOG|ERROR|FATAL|PANIC|WARNING|NOTICE|INFO|DEBUG[1-5]?|DETAIL|HINT|CONTEXT|"
    r"STATEMENT|QUERY|LOCATION):  "
)
_CSV_DATABASE, _CSV_SEVERITY, _CSV_MESSAGE, _CSV_COLUMNS_MIN = 2, 11, 13, 23
_CSV_SEVERITIES = frozenset(
    (
        "LOG",
        "ERROR",
        "FATAL",
        "PANIC",
        "WARNING",
        "NOTICE",
        "INFO",
        *(f"DEBUG{n}" for n in range(1, 6)),
    )
)
_HEAD_CHARACTERS = 65_536
_STATEMENTS_BYTES_MAX = 16 * 1024**2  # an application's distinct statements; arbitrary
_META_COMMAND = re.compile(r"^[ \t]*\\(?![;:]).*$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementCounts:
    """How often each statement was seen, literals put away; `cut` of them did not end."""

    source: str
    counts: Counter[str]
    seen: int
    cut: int


def read_log(path: Path, database: str) -> StatementCounts:
    """
    Count the statements of a log file.

    Args:
        path: csvlog, jsonlog or stderr, recognised by the first line.
        database: Only statements of this database, where the format names it; stderr does not.

    Raises:
        InputError: Not readable, or without any executed statement.
    """
    try:
        # Line by line: a busy server's log has gigabytes.
        with path.open(encoding="utf-8", errors="replace", newline="") as file:
            head = file.read(_HEAD_CHARACTERS)
            file.seek(0)
            if head.lstrip()[:1] == "{":
                kind, found = "jsonlog", _json(file, database, path)
            elif _is_csv(head):
                kind, found = "csvlog", _csv(file, database)
            else:
                kind, found = "stderr log", _stderr(file)
            result = _count(kind, found)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except csv.Error as error:
        raise InputError(f"{path} is not a csvlog to its end: {error}") from None
    if not result.seen:
        raise InputError(
            f"{path} ({kind}) holds no executed statement of this database: expected lines of "
            "log_statement = 'mod' or log_min_duration_statement, with lc_messages = 'C'"
        )
    return result


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


def _count(source: str, texts: Iterator[str]) -> StatementCounts:
    counts: Counter[str] = Counter()
    seen = cut = 0
    for text in texts:
        seen += 1
        try:
            counts.update(split(text))
        except NotParsed:
            cut += 1
    return StatementCounts(source=source, counts=counts, seen=seen, cut=cut)


def _is_csv(head: str) -> bool:
    try:
        row = next(csv.reader(io.StringIO(head, newline="")), [])
    except csv.Error:
        return False
    # A stderr log's first statement may have as many commas.
    return len(row) >= _CSV_COLUMNS_MIN and row[_CSV_SEVERITY] in _CSV_SEVERITIES


def _csv(lines: Iterable[str], database: str) -> Iterator[str]:
    csv.field_size_limit(2**30)
    for row in csv.reader(lines):
        if len(row) < _CSV_COLUMNS_MIN or row[_CSV_SEVERITY] != "LOG":
            continue
        match = _MESSAGE.fullmatch(row[_CSV_MESSAGE])
        if match is not None and row[_CSV_DATABASE] == database:
            yield match["statement"]


def _json(lines: Iterable[str], database: str, path: Path) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
        except ValueError:
            raise InputError(f"{path}, line {number}: not a line of jsonlog") from None
        if data.get("error_severity") != "LOG" or data.get("dbname") != database:
            continue
        match = _MESSAGE.fullmatch(str(data.get("message", "")))
        if match is not None:
            yield match["statement"]


def _stderr(lines: Iterable[str]) -> Iterator[str]:
    entry: list[str] = []
    for line in itertools.chain((line.rstrip("\r\n") for line in lines), ["LOG:  "]):
        if line.startswith("\t"):
            entry.append(line[1:])
            continue
        if _SEVERITY.search(line) is None:
            continue
        if entry:
            match = _STDERR.match("\n".join(entry))
            inner = _MESSAGE.fullmatch(match["message"]) if match is not None else None
            if inner is not None:
                yield inner["statement"]
        entry = [line]
