"""
What a statement writes: the table, and for an update the columns that it assigns.

Statements are read by PostgreSQL's own grammar (`crates/pgheadroom-sql`). Before that their
constants, parameters and comments are put away: they say nothing about the target, must not reach
a profile, and equal statements become one. What the grammar does not understand is an error with a
reason, for the caller to count.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pgheadroom import _core

WriteKind = Literal["insert", "update", "upsert", "merge", "delete"]
ConditionKind = Literal[
    "equal", "any", "below", "above", "null", "not null", "true", "false", "other"
]

_SKIPS = re.compile(r"\bskip\s+locked\b", re.IGNORECASE)
_WRITES = re.compile(r"\b(?:update|insert|merge|delete)\b", re.IGNORECASE)
_CUT = "its text is cut off"
_VARIABLE = "it has a variable of psql, whose value is not known here"


class NotParsed(Exception):  # noqa: N818 - says what happened
    """
    A statement is not understood; the text is a reason without the statement's words.

    `message` may have them: PostgreSQL's own, for the statement's owner.
    """

    def __init__(self, reason: str, message: str | None = None) -> None:
        super().__init__(reason)
        self.message = message or reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """
    One target of a statement.

    `columns` are those that an update assigns, in order; `same` those of them that are assigned
    to themselves, `appended` those that get something appended to their own value. `is_inner`:
    it stands in a WITH of the statement, whose count of rows has not its rows. `has_where`: an
    update or delete of rows that a condition finds. `only`: of ONLY that table, without those that
    inherit from it.
    """

    kind: WriteKind
    schema: str | None
    table: str
    columns: tuple[str, ...] = ()
    same: frozenset[str] = frozenset()
    appended: frozenset[str] = frozenset()
    is_inner: bool = False
    has_where: bool = False
    only: bool = False


def grammar_version() -> int:
    """The major version of PostgreSQL whose grammar reads statements."""
    return _core.grammar_major()


def split(text: str, *, variables: bool = False) -> Iterator[str]:
    """
    The statements of a text, each without comments and with $1, $2, ... for its constants.

    Parameters are numbered as they stand, so equal statements are one text, whether their values
    stood in them or came beside. Of DDL, and of what the grammar does not accept, only strings are
    put away.

    Args:
        text: Statements, separated by semicolons.
        variables: `:name` is a variable, as in pgbench's scripts, and backslash commands are left
            out.

    Raises:
        NotParsed: A string, name or comment does not end.
    """
    found = _core.normalized_statements(_text(text), variables=variables)
    if found is None:
        raise NotParsed(_CUT)
    yield from found


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """
    A statement of a file with its line, from 1; or what stands there and is none, and why.

    `is_command`: one of psql's that runs nothing. `connects`: it names the database that what
    follows goes to; empty for the same one.
    """

    line: int
    text: str
    problem: str | None = None
    is_command: bool = False
    connects: str | None = None


def located(text: str) -> Iterator[Located]:
    """
    The statements of a file with their literals, without comments, each with its line.

    A command of psql that changes what is run, a statement with a variable of psql and one that
    does not end come out with their problem; other commands as what they are.
    """
    known = {None: None, "cut": _CUT, "variable": _VARIABLE}
    for line, statement, found in _core.split_statements(_text(text)):
        connects = None
        if found is not None and found.startswith("connects "):
            connects = found.removeprefix("connects ")
        if connects is not None or found == "skipped":
            yield Located(line=line, text=statement, is_command=True, connects=connects)
            continue
        problem = known.get(found, f"psql's {found} is not followed")
        yield Located(line=line, text=statement, problem=problem)


@functools.lru_cache(maxsize=20_000)
def writes_of(statement: str) -> tuple[Write, ...]:
    """
    What a statement from `split` writes; empty for one that only reads, or whose code is not seen.

    Raises:
        NotParsed: The grammar does not accept it.
    """
    if not _WRITES.search(statement):
        return ()
    found = _answer(_core.statement_writes(_text(statement)))
    return tuple(
        Write(
            kind=write["kind"],
            schema=write["schema"],
            table=write["table"],
            columns=tuple(write["columns"]),
            same=frozenset(write["same"]),
            appended=frozenset(write["appended"]),
            is_inner=write["is_inner"],
            has_where=write["has_where"],
            only=write["only"],
        )
        for write in found["writes"]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadOrder:
    """
    A column by which a query has its rows; None for an expression.

    `odd_nulls`: NULLs are on the other side than the direction has them.
    """

    column: str | None
    descending: bool = False
    odd_nulls: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What a row has to fulfil, and the columns that it reads: one, but for `other`."""

    kind: ConditionKind
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """
    The rows of a queue that a statement takes: those that FOR UPDATE SKIP LOCKED finds first.

    `kind` is `select` where another statement changes them, else `key` is the column by which this
    one does. `is_limited`: there is a LIMIT. `is_joined`: the query reads other tables too.
    """

    kind: Literal["update", "delete", "select"]
    schema: str | None
    table: str
    key: str | None
    ordered: tuple[HeadOrder, ...]
    conditions: tuple[Condition, ...]
    is_limited: bool
    is_joined: bool


@functools.lru_cache(maxsize=2_000)
def heads_of(statement: str) -> tuple[Head, ...]:
    """
    What a statement from `split` takes from the heads of queues.

    Raises:
        NotParsed: The grammar does not accept it.
    """
    if not _SKIPS.search(statement):
        return ()
    return tuple(
        Head(
            kind=head["kind"],
            schema=head["schema"],
            table=head["table"],
            key=head["key"],
            ordered=tuple(HeadOrder(**one) for one in head["ordered"]),
            conditions=tuple(
                Condition(kind=one["is"], columns=tuple(one["columns"]))
                for one in head["conditions"]
            ),
            is_limited=head["is_limited"],
            is_joined=head["is_joined"],
        )
        for head in _answer(_core.statement_heads(_text(statement)))["heads"]
    )


def facts_of(statement: str) -> list[dict[str, Any]]:
    """
    What a statement does to tables and indexes: the core's facts, for `migration/ddl.py`.

    Raises:
        NotParsed: The grammar does not accept it.
    """
    facts: list[dict[str, Any]] = _answer(_core.statement_facts(_text(statement)))["facts"]
    return facts


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpressionReads:
    """
    What an expression over a table's row reads.

    `whole_row`: it names the row itself (`t.*`). `may_be_row`: it names `t` alone, the column of
    that name, which is among `columns`, or the row where the table has none. `text` is the
    expression as PostgreSQL would write it.
    """

    columns: tuple[str, ...]
    whole_row: bool
    may_be_row: bool
    functions: tuple[str, ...]
    text: str


def expression_reads(expression: str, table: str) -> ExpressionReads:
    """
    Read an expression, a predicate or the formula of a generated column.

    Args:
        expression: As SQL.
        table: The table's name, by which an expression may name the whole row.

    Raises:
        NotParsed: The grammar does not accept it.
    """
    found = _answer(_core.expression_reads(_text(expression), table=_text(table)))
    return ExpressionReads(
        columns=tuple(found["columns"]),
        whole_row=found["whole_row"],
        may_be_row=found["may_be_row"],
        functions=tuple(found["functions"]),
        text=found["text"],
    )


def _answer(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    if "reason" in found:
        raise NotParsed(found["reason"], found["message"])
    return found


def _text(text: str) -> str:
    """Without lone surrogates, which are no characters: the core takes text alone."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text
