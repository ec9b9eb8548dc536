"""
What a statement writes: the table, and for an update the columns that it assigns.

Statements are parsed by sqlglot. Before that its literals, parameters and comments are put away:
they say nothing about the target, sqlglot takes `$1, $` for a quoted string, and equal statements
become one. What sqlglot does not understand is an error with a reason, for the caller to count.
"""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from sqlglot import exp

WriteKind = Literal["insert", "update", "upsert", "merge", "delete"]

_STATEMENT_CHARACTERS_MAX = 200_000  # longer ones are lists of values; parsing takes seconds
_TOKEN = re.compile(
    r"""
    (?P<comment>--[^\n]*|/\*)
  | (?P<escaped>\b[eE]'(?:[^'\\]|''|\\.)*')
  | (?P<string>(?:\b(?:[uU]&|[bBxXnN]))?'(?:[^']|'')*')
  | (?P<dollar>(?<![\w$])\$(?P<tag>[A-Za-z_\u0080-\uffff][\w]*)?\$)
  | (?P<name>"(?:[^"]|"")*")
  | (?P<parameter>(?<![\w$])\$\d+)
  | (?P<variable>(?<![:\w]):[A-Za-z_]\w*)
  | (?P<end>\\?;)
  | (?P<cut>['"])
    """,
    re.VERBOSE | re.DOTALL,
)
_META_OR_TOKEN = re.compile(
    r"(?P<meta>^[ \t]*\\(?![;:])[^\n]*$) |" + _TOKEN.pattern, _TOKEN.flags | re.MULTILINE
)
_WRITES = re.compile(r"\b(?:update|insert|merge|delete)\b", re.IGNORECASE)
_PREPARE = re.compile(r"\s*prepare\s+(?:\"[^\"]*\"|\w+)\s*(?:\([^)]*\)\s*)?as\b", re.IGNORECASE)
# Valid in PostgreSQL, of no concern here, and unknown to sqlglot.
_CURRENT_OF = re.compile(r"\bwhere\s+current\s+of\s+(?:\"[^\"]*\"|\w+)", re.IGNORECASE)
_ALIASED_RETURNING = re.compile(r"\breturning\s+with\s*\([^)]*\)", re.IGNORECASE)
_STAR_TARGET = re.compile(r"(\bupdate\s+(?:[\w.]|\"[^\"]*\")+)\s*\*(?=\s)", re.IGNORECASE)


class NotParsed(Exception):  # noqa: N818 - says what happened
    """A statement is not understood; the text is a reason without the statement's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """
    One target of a statement.

    `columns` are those that an update assigns, in order; `same` those of them that are assigned
    to themselves, `appended` those that get something appended to their own value. `is_inner`:
    it stands in a WITH of the statement, whose count of rows has not its rows.
    """

    kind: WriteKind
    schema: str | None
    table: str
    columns: tuple[str, ...] = ()
    same: frozenset[str] = frozenset()
    appended: frozenset[str] = frozenset()
    is_inner: bool = False


def split(text: str, *, variables: bool = False) -> Iterator[str]:
    """
    The statements of a text, each without comments and with '' for literals and parameters.

    Args:
        text: Statements, separated by semicolons.
        variables: `:name` is a variable, as in pgbench's scripts.

    Raises:
        NotParsed: A string, name or comment does not end.
    """
    parts: list[str] = []
    place = 0
    while (match := _TOKEN.search(text, place)) is not None:
        parts.append(text[place : match.start()])
        place = match.end()
        group = match.lastgroup if match.lastgroup != "tag" else "dollar"
        if group == "end":
            yield from _whole(parts)
            parts = []
        elif group == "comment":
            place = _comment_end(text, match)
            parts.append(" ")
        elif group == "dollar":
            end = text.find(match[0], place)
            if end < 0:
                raise NotParsed("its text is cut off")
            place = end + len(match[0])
            parts.append("''")
        elif group == "cut":
            raise NotParsed("its text is cut off")
        elif group == "name" or (group == "variable" and not variables):
            parts.append(match[0])
        else:
            parts.append("''")
    parts.append(text[place:])
    yield from _whole(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """A statement of a file with its line, from 1; or what stands there and is none, and why."""

    line: int
    text: str
    problem: str | None = None


def located(text: str) -> Iterator[Located]:
    """
    The statements of a file with their literals, without comments, each with its line.

    psql's own commands and a statement that does not end come out with their problem.
    """
    parts: list[tuple[int, str]] = []
    place = 0

    def made(problem: str | None = None) -> Iterator[Located]:
        whole = "".join(part for _, part in parts).strip()
        if whole:
            begins = next((at + len(p) - len(p.lstrip()) for at, p in parts if p.strip()), 0)
            line = text.count("\n", 0, begins) + 1
            yield Located(line=line, text=whole, problem=problem)
        parts.clear()

    while (match := _META_OR_TOKEN.search(text, place)) is not None:
        parts.append((place, text[place : match.start()]))
        place = match.end()
        group = match.lastgroup if match.lastgroup != "tag" else "dollar"
        if group == "meta":
            yield from made()
            line = text.count("\n", 0, match.start()) + 1
            name = match[0].split()[0]
            yield Located(
                line=line, text=match[0].strip(), problem=f"psql's {name} is not followed"
            )
        elif group == "end":
            yield from made()
        elif group == "comment":
            try:
                place = _comment_end(text, match)
            except NotParsed as error:
                parts.append((match.start(), text[match.start() :]))
                yield from made(str(error))
                return
            parts.append((match.start(), " "))
        elif group == "dollar":
            end = text.find(match[0], place)
            place = len(text) if end < 0 else end + len(match[0])
            parts.append((match.start(), text[match.start() : place]))
            if end < 0:
                yield from made("its text is cut off")
        else:
            parts.append((match.start(), match[0]))
            if group == "cut":
                parts.append((place, text[place:]))
                yield from made("its text is cut off")
                return
    parts.append((place, text[place:]))
    yield from made()


def _whole(parts: list[str]) -> Iterator[str]:
    statement = " ".join("".join(parts).split())
    if statement:
        yield statement


def _comment_end(text: str, match: re.Match[str]) -> int:
    """Comments in /* */ nest in PostgreSQL."""
    if match[0] != "/*":
        return match.end()
    depth, place = 1, match.end()
    for mark in re.finditer(r"/\*|\*/", text[place:]):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return place + mark.end()
    raise NotParsed("its text is cut off")


@functools.lru_cache(maxsize=20_000)
def writes_of(statement: str) -> tuple[Write, ...]:
    """
    What a statement from `split` writes; empty for one that only reads.

    Raises:
        NotParsed: sqlglot does not understand it.
    """
    if not _WRITES.search(statement):
        return ()
    if len(statement) > _STATEMENT_CHARACTERS_MAX:
        raise NotParsed("it is too long")
    statement = _PREPARE.sub("", statement)
    for pattern, instead in (
        (_CURRENT_OF, "WHERE true"),
        (_ALIASED_RETURNING, "RETURNING"),
        (_STAR_TARGET, r"\1"),
    ):
        statement = pattern.sub(instead, statement)
    return tuple(_writes(_parse(statement)))


def _parse(statement: str) -> exp.Expr:
    import sqlglot  # noqa: PLC0415 - slow to import, and most commands do not need it
    from sqlglot.errors import SqlglotError  # noqa: PLC0415

    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # it says what we count
    try:
        roots = [root for root in sqlglot.parse(statement, read="postgres") if root is not None]
    except SqlglotError:
        raise NotParsed("its syntax is not understood by sqlglot") from None
    except (RecursionError, ValueError):
        raise NotParsed("it is nested too deeply") from None
    if len(roots) != 1:
        raise NotParsed("its syntax is not understood by sqlglot")
    return roots[0]


def _writes(root: exp.Expr) -> Iterator[Write]:
    from sqlglot import exp  # noqa: PLC0415

    if isinstance(root, exp.Command):
        word = str(root.this).split()[0].upper() if str(root.this).split() else "?"
        raise NotParsed(f"sqlglot has no grammar for {word if word.isalpha() else 'it'}")
    for node in root.walk():
        if isinstance(node, exp.Insert) and isinstance(node.parent, exp.When):
            merge = node.find_ancestor(exp.Merge)
            yield _write("insert", merge.this if merge is not None else None, [])
        elif isinstance(node, exp.Insert):
            conflict = node.args.get("conflict")
            assigned = conflict.args.get("expressions") if conflict is not None else None
            kind: WriteKind = "upsert" if assigned else "insert"
            is_inner = node.find_ancestor(exp.CTE) is not None
            yield replace(_write(kind, node.this, assigned or []), is_inner=is_inner)
        elif isinstance(node, exp.Delete):
            yield _write("delete", node.this, [])
        elif isinstance(node, exp.Update):
            merge = node.find_ancestor(exp.Merge)
            inside = merge is not None and isinstance(node.parent, exp.When)
            target = merge.this if inside and merge is not None else node.this
            if not node.args.get("expressions"):
                raise NotParsed("its text is cut off")
            kind = "merge" if inside else "update"
            is_inner = node.find_ancestor(exp.CTE) is not None
            yield replace(_write(kind, target, node.expressions), is_inner=is_inner)


def _write(kind: WriteKind, target: object, assigned: list[exp.Expr]) -> Write:
    from sqlglot import exp  # noqa: PLC0415

    if isinstance(target, exp.Schema):  # INSERT INTO t (columns)
        target = target.this
    if not isinstance(target, exp.Table) or not isinstance(target.this, exp.Identifier):
        raise NotParsed("its target is not a table's name")
    columns: list[str] = []
    same: set[str] = set()
    appended: set[str] = set()
    for item in assigned:
        if not isinstance(item, exp.EQ):
            raise NotParsed("its assignments are not understood")
        left = item.this
        names = [_column(part) for part in _targets(left)]
        columns += [name for name in names if name not in columns]
        if isinstance(left, exp.Column) and len(names) == 1:
            value = item.expression
            if _is_column(value, names[0], target):
                same.add(names[0])
            elif isinstance(value, exp.DPipe) and any(
                _is_column(part, names[0], target) for part in value.flatten()
            ):
                appended.add(names[0])
    schema = target.args.get("db")
    return Write(
        kind=kind,
        schema=_name(schema) if isinstance(schema, exp.Identifier) else None,
        table=_name(target.this),
        columns=tuple(columns),
        same=frozenset(same),
        appended=frozenset(appended),
    )


def _targets(left: exp.Expr) -> list[exp.Expr]:
    from sqlglot import exp  # noqa: PLC0415

    if isinstance(left, exp.Tuple):
        return list(left.expressions)
    if isinstance(left, exp.Paren):
        return [left.this]
    return [left]


def _column(target: exp.Expr) -> str:
    """The column of `c`, `c[1]`, `c.field`: the leftmost name, for a target has no table."""
    from sqlglot import exp  # noqa: PLC0415

    while isinstance(target, exp.Bracket | exp.Dot):
        target = target.this
    if isinstance(target, exp.Column):
        return _name(target.parts[0])
    if isinstance(target, exp.Identifier):
        return _name(target)
    raise NotParsed("its assignments are not understood")


def _is_column(value: object, name: str, table: exp.Table) -> bool:
    """Whether a value is that column of the row itself."""
    from sqlglot import exp  # noqa: PLC0415

    if not isinstance(value, exp.Column) or _name(value.parts[-1]) != name:
        return False
    if len(value.parts) == 1:
        return True
    alias = table.args.get("alias")
    own = {_name(table.this)}
    if alias is not None and isinstance(alias.this, exp.Identifier):
        own = {_name(alias.this)}
    return len(value.parts) == 2 and _name(value.parts[0]) in own


def _name(identifier: exp.Expr) -> str:
    """A name as PostgreSQL folds it."""
    name = str(identifier.this)
    return name if identifier.args.get("quoted") else name.lower()
