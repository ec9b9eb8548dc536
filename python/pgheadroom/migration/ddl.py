"""
What a migration does to tables and indexes, as far as it concerns HOT.

The outer form of a statement is read here, which in PostgreSQL's DDL is regular; what stands inside
(columns, expressions, predicates, types) is parsed by sqlglot. A statement is understood, or of no
concern, or named with its line: never passed over.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pgheadroom.migration.actions import (
    Action,
    AddIndex,
    DropColumn,
    DropIndex,
    IndexKind,
    Remarkable,
    Rename,
    SetColumn,
    SetFillfactor,
    Statement,
    Target,
)
from pgheadroom.sources.statements import Located, NotParsed, located

if TYPE_CHECKING:
    from sqlglot import exp

_NAME = r"(?:\"(?:[^\"]|\"\")+\"|[^\W\d][\w$]*)"
_QUALIFIED = rf"{_NAME}(?:\s*\.\s*{_NAME})?"
_FLAGS = re.IGNORECASE | re.DOTALL


def _pattern(text: str) -> re.Pattern[str]:
    """Words apart by any blanks."""
    return re.compile(text.replace(" ", r"\s+"), _FLAGS)


_ALTER_TABLE = _pattern(
    rf"alter table (?:if exists )?(?P<only>only )?(?P<name>{_QUALIFIED})\s*\*?\s*(?P<rest>.+)"
)
_ALTER_INDEX = _pattern(
    rf"alter index (?:if exists )?(?P<name>{_QUALIFIED})\s*rename to (?P<new>{_NAME})\s*"
)
_DROP = _pattern(
    rf"drop (?P<kind>index|table)(?: concurrently)?(?: if exists)? (?P<names>{_QUALIFIED}"
    rf"(?:\s*,\s*{_QUALIFIED})*)\s*(?:cascade|restrict)?\s*"
)
_CREATE_INDEX = _pattern(r"create (?:unique )?index\b.*")
_CREATE_TABLE = _pattern(
    r"create (?:(?:global |local )?temp(?:orary)? |unlogged )?table (?:if not exists )?"
    rf"(?P<name>{_QUALIFIED}).*"
)
_CREATE_TRIGGER = _pattern(
    rf"create (?:or replace )?(?:constraint )?trigger {_NAME} before .*?\bupdate\b.*? on "
    rf"(?P<name>{_QUALIFIED}).*"
)
_ON_ONLY = _pattern(rf"(create (?:unique )?index\b.*?\bon )only ({_QUALIFIED})")
_NULLS_DISTINCT = _pattern(r"\bnulls (?:not )?distinct\b")
_OPTIONS = _pattern(r"(?P<what>set|reset)\s*\((?P<list>.*)\)\s*")
_RENAME = _pattern(
    rf"rename (?:(?P<constraint>constraint )|(?:column )?)(?:(?P<old>{_NAME}) )?to (?P<new>{_NAME})"
)
_SET_SCHEMA = _pattern(rf"set schema (?P<schema>{_NAME})\s*")
_DROP_PART = _pattern(
    rf"drop (?P<what>constraint |column )?(?:if exists )?(?P<name>{_NAME})\s*(?:cascade|restrict)?"
)
_USING_INDEX = _pattern(
    rf"add (?:constraint {_NAME} )?(?:unique|primary key) using index {_NAME}.*"
)
_PARTITION = _pattern(rf"(?P<what>attach|detach) partition (?P<name>{_QUALIFIED}).*")
_INNER_TYPE = _pattern(rf"alter (?:column )?{_NAME} (?:set data )?type .+")
_OTHER_CONSTRAINT = _pattern(rf"add (?:constraint {_NAME} )?(?:check|foreign key|not null)\b.*")
_WITHOUT_CONCERN = tuple(
    _pattern(text)
    for text in (
        r"(?:begin|start|commit|end|abort|rollback|savepoint|release|prepare transaction)\b.*",
        r"(?:set|reset|show|discard|listen|notify|unlisten|checkpoint)\b.*",
        r"(?:select|with|values|table|insert|update|delete|merge|copy|truncate|lock)\b.*",
        r"(?:comment|grant|revoke|analyze|analyse|vacuum|reindex|cluster|refresh)\b.*",
        r"(?:create|alter|drop) (?:or replace )?(?:recursive )?(?:temp |temporary )?"
        r"(?:materialized )?view\b.*",
        r"(?:create|alter|drop) (?:or replace )?(?:trusted )?(?:procedural )?(?:function|procedure|"
        r"routine|type|domain|sequence|schema|extension|role|user|group|policy|publication|"
        r"subscription|statistics|aggregate|operator|collation|conversion|cast|server|database|"
        r"tablespace|language|foreign table|transform|access method|event trigger|"
        r"foreign data wrapper|"
        r"text search|default privileges|owned|rule|temp sequence|temporary sequence|"
        r"unlogged sequence)\b.*",
        r"(?:create|alter|drop) (?:or replace )?(?:constraint )?trigger\b.*",
        r"alter (?:index|system)\b.*",
        r"(?:reassign|security label|import foreign schema)\b.*",
    )
)
_ACTION_WITHOUT_CONCERN = tuple(
    _pattern(text)
    for text in (
        r"(?:validate|enable|disable|force|no force|owner|cluster)\b.*",
        r"(?:inherit|no inherit|of|not of)\b.*",
        r"(?:set (?:tablespace|logged|unlogged|access method|without)|replica identity)\b.*",
        r"alter (?:column )?" + _NAME + r" (?:set|drop|reset|add|restart)\b.*",
        r"alter constraint\b.*",
        r"rename constraint\b.*",
    )
)


@dataclass(slots=True)
class _Found:
    actions: list[Action] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def read_migration(text: str) -> tuple[Statement, ...]:
    """
    The statements of a migration, in order.

    Args:
        text: Of the file.
    """
    return tuple(_statement(found) for found in located(text))


def _statement(found: Located) -> Statement:
    shown = " ".join(found.text.split())
    if found.problem is not None:
        return Statement(line=found.line, text=shown, problem=found.problem)
    made = _Found()
    try:
        _read(found.text.strip(), made)
    except NotParsed as error:
        made.problems.append(str(error))
    return Statement(
        line=found.line,
        text=shown,
        actions=tuple(made.actions),
        problem="; ".join(made.problems) or None,
    )


def _read(text: str, made: _Found) -> None:
    if (match := _ALTER_TABLE.fullmatch(text)) is not None:
        table = _target(match["name"])
        for action in _parts(match["rest"]):
            try:
                made.actions += _alter(table, action.strip(), only=bool(match["only"]))
            except NotParsed as error:
                made.problems.append(f"{' '.join(action.split())[:60]}: {error}")
    elif (match := _ALTER_INDEX.fullmatch(text)) is not None:
        index = _target(match["name"])
        made.actions.append(Rename(what="index", old=index, new=_folded(match["new"])))
    elif (match := _DROP.fullmatch(text)) is not None:
        for name in re.findall(_QUALIFIED, match["names"]):
            if match["kind"].lower() == "index":
                made.actions.append(DropIndex(index=_target(name)))
            else:
                told = Remarkable(table=_target(name), kind="dropped", text="the table goes")
                made.actions.append(told)
    elif _CREATE_INDEX.fullmatch(text) is not None:
        made.actions.append(_create_index(text))
    elif (match := _CREATE_TABLE.fullmatch(text)) is not None:
        told = Remarkable(
            table=_target(match["name"]), kind="new", text="a new table: nothing was observed of it"
        )
        made.actions.append(told)
    elif (match := _CREATE_TRIGGER.fullmatch(text)) is not None:
        told = Remarkable(
            table=_target(match["name"]),
            kind="trigger",
            text="a trigger before UPDATE may change columns that no statement assigns",
        )
        made.actions.append(told)
    elif not any(pattern.fullmatch(text) for pattern in _WITHOUT_CONCERN):
        word = text.split(maxsplit=1)[0].upper()
        why = "what its code does is not known" if word in ("DO", "CALL", "EXECUTE") else ""
        raise NotParsed(why or f"no grammar for this {word if word.isalpha() else 'statement'}")


def _alter(table: Target, text: str, *, only: bool) -> Iterator[Action]:
    """One action of ALTER TABLE."""
    if (match := _OPTIONS.fullmatch(text)) is not None:
        yield from _options(table, match["what"].lower(), match["list"])
    elif (match := _SET_SCHEMA.fullmatch(text)) is not None:
        yield Rename(what="table", old=table, new=table.name, schema=_folded(match["schema"]))
    elif any(pattern.fullmatch(text) for pattern in _ACTION_WITHOUT_CONCERN):
        if _INNER_TYPE.fullmatch(text) is not None:
            yield from _parsed_action(table, text, only=only)
    elif (match := _RENAME.fullmatch(text)) is not None:
        column = None if match["old"] is None else _folded(match["old"])
        what: Literal["table", "column"] = "table" if column is None else "column"
        yield Rename(what=what, old=table, new=_folded(match["new"]), column=column)
    elif (match := _DROP_PART.fullmatch(text)) is not None:
        name = _folded(match["name"])
        if (match["what"] or "").strip().lower() == "constraint":
            yield DropIndex(index=Target(schema=table.schema, name=name), table=table)
        else:
            yield DropColumn(table=table, name=name)
    elif (match := _PARTITION.fullmatch(text)) is not None:
        what_done = "is attached" if match["what"].lower() == "attach" else "is detached"
        yield Remarkable(
            table=_target(match["name"]),
            kind="partition",
            text=f"it {what_done}: indexes of the partitioned table are not followed there",
        )
    elif _OTHER_CONSTRAINT.fullmatch(text) is None and _USING_INDEX.fullmatch(text) is None:
        yield from _parsed_action(table, text, only=only)


def _options(table: Target, what: str, listed: str) -> Iterator[Action]:
    for option in _parts(listed):
        name, _, value = (part.strip() for part in option.partition("="))
        if name.lower() != "fillfactor":
            continue
        if what == "reset":
            yield SetFillfactor(table=table, fillfactor=None)
            continue
        digits = value.strip("'")
        if not digits.isdecimal() or not 10 <= int(digits) <= 100:
            raise NotParsed(f"fillfactor {value}: expected a whole number from 10 to 100")
        yield SetFillfactor(table=table, fillfactor=int(digits))


def _parsed_action(table: Target, text: str, *, only: bool) -> Iterator[Action]:
    """An action with columns, constraints or types inside."""
    from sqlglot import exp  # noqa: PLC0415 - slow to import, and most commands do not need it

    root = _parse(f"ALTER TABLE t {text}", exp.Alter)
    actions = root.args.get("actions") or []
    if not actions:
        raise NotParsed("its syntax is not understood by sqlglot")
    for action in actions:
        if isinstance(action, exp.AlterColumn) and action.args.get("dtype") is not None:
            spelled = action.args["dtype"].sql("postgres")
            yield SetColumn(table=table, name=_name(action.this), type=spelled, is_new=False)
        elif isinstance(action, exp.ColumnDef):
            yield from _new_column(table, action, only=only)
        elif isinstance(action, exp.AddConstraint):
            yield from _constraint(table, action, only=only)
        else:
            raise NotParsed("this action is not known")


def _new_column(table: Target, column: exp.ColumnDef, *, only: bool) -> Iterator[Action]:
    from sqlglot import exp  # noqa: PLC0415

    kind = column.args.get("kind")
    if kind is None:
        raise NotParsed("it has no type")
    name = _name(column.this)
    yield SetColumn(table=table, name=name, type=kind.sql("postgres"), is_new=True)
    for constraint in column.args.get("constraints") or ():
        why: IndexKind | None = None
        if isinstance(constraint.args.get("kind"), exp.PrimaryKeyColumnConstraint):
            why = "primary key"
        elif isinstance(constraint.args.get("kind"), exp.UniqueColumnConstraint):
            why = "unique constraint"
        if why is not None:
            yield AddIndex(
                table=table, name=None, kind=why, columns=(name,), depends=(name,), only=only
            )


def _constraint(table: Target, action: exp.AddConstraint, *, only: bool) -> Iterator[Action]:
    from sqlglot import exp  # noqa: PLC0415

    for item in action.expressions:
        name = _name(item.this) if isinstance(item, exp.Constraint) else None
        for body in item.expressions if isinstance(item, exp.Constraint) else [item]:
            if isinstance(body, exp.PrimaryKey):
                columns = [_name(_inner(part)) for part in body.expressions]
                yield _made(table, name, "primary key", columns, body.args.get("include"), only)
            elif isinstance(body, exp.UniqueColumnConstraint) and body.this is not None:
                columns = [_name(_inner(part)) for part in body.this.expressions]
                yield _made(
                    table, name, "unique constraint", columns, body.args.get("include"), only
                )
            elif isinstance(body, exp.ExcludeColumnConstraint):
                yield _index(table, name, "exclusion constraint", body.this, only=only)
            elif not isinstance(body, exp.CheckColumnConstraint | exp.ForeignKey):
                raise NotParsed("this constraint is not known")


def _made(
    table: Target,
    name: str | None,
    kind: IndexKind,
    columns: list[str],
    parameters: exp.Expr | None,
    only: bool,
) -> AddIndex:
    include = [] if parameters is None else parameters.args.get("include") or []
    included = tuple(_name(_inner(part)) for part in include)
    return AddIndex(
        table=table,
        name=name,
        kind=kind,
        columns=tuple(columns),
        include=included,
        depends=(*columns, *included),
        fillfactor=_fillfactor(parameters),
        only=only,
    )


def _create_index(text: str) -> AddIndex:
    from sqlglot import exp  # noqa: PLC0415

    only = _ON_ONLY.match(text) is not None
    text = _NULLS_DISTINCT.sub(" ", _ON_ONLY.sub(r"\1\2", text))
    root = _parse(text, exp.Create)
    index = root.this
    if not isinstance(index, exp.Index) or not isinstance(index.args.get("table"), exp.Table):
        raise NotParsed("its syntax is not understood by sqlglot")
    found = index.args["table"]
    schema = found.args.get("db")
    table = Target(schema=None if schema is None else _name(schema), name=_name(found.this))
    name = None if index.this is None else _name(index.this)
    return _index(table, name, "index", index.args.get("params"), only=only)


def _index(
    table: Target, name: str | None, kind: IndexKind, parameters: Any, *, only: bool
) -> AddIndex:
    from sqlglot import exp  # noqa: PLC0415

    if parameters is None or not parameters.args.get("columns"):
        raise NotParsed("it has no columns")
    columns: list[str] = []
    depends: list[str] = []
    expressions = False
    for item in parameters.args["columns"]:
        part = _inner(item)
        named = _columns(part)
        if isinstance(part, exp.Column | exp.Identifier):
            columns += named
        else:
            expressions = True
        depends += named
    include = [_name(_inner(part)) for part in parameters.args.get("include") or ()]
    where = parameters.args.get("where")
    using = parameters.args.get("using")
    method = "gist" if kind == "exclusion constraint" and using is None else "btree"
    depends += include + ([] if where is None else _columns(where))
    return AddIndex(
        table=table,
        name=name,
        kind=kind,
        method=method if using is None else str(using.this).lower(),
        columns=tuple(columns),
        include=tuple(include),
        depends=tuple(dict.fromkeys(depends)),
        has_expressions=expressions,
        has_predicate=where is not None,
        fillfactor=_fillfactor(parameters),
        only=only,
    )


def _inner(item: Any) -> exp.Expr:
    """What an entry of an index is over, without order, operator class, collation, brackets."""
    from sqlglot import exp  # noqa: PLC0415

    while isinstance(item, exp.Ordered | exp.Opclass | exp.Collate | exp.Paren | exp.WithOperator):
        item = item.this
    if not isinstance(item, exp.Expr):
        raise NotParsed("its columns are not understood")
    return item


def _columns(node: exp.Expr) -> list[str]:
    from sqlglot import exp  # noqa: PLC0415

    if isinstance(node, exp.Identifier):
        return [_name(node)]
    found = [_name(column.parts[-1]) for column in node.find_all(exp.Column)]
    return list(dict.fromkeys(found))


def _fillfactor(parameters: Any) -> int | None:
    for option in (parameters.args.get("with_storage") if parameters is not None else None) or ():
        if str(option.this).lower() == "fillfactor":
            digits = str(option.args["value"].this)
            return int(digits) if digits.isdecimal() else None
    return None


def _parse(text: str, kind: type[Any]) -> Any:
    import sqlglot  # noqa: PLC0415
    from sqlglot.errors import SqlglotError  # noqa: PLC0415

    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # it says what we count
    try:
        roots = [root for root in sqlglot.parse(text, read="postgres") if root is not None]
    except SqlglotError:
        raise NotParsed("its syntax is not understood by sqlglot") from None
    except (RecursionError, ValueError):
        raise NotParsed("it is nested too deeply") from None
    if len(roots) != 1 or not isinstance(roots[0], kind):
        raise NotParsed("its syntax is not understood by sqlglot")
    return roots[0]


def _name(node: Any) -> str:
    """A name as PostgreSQL folds it."""
    from sqlglot import exp  # noqa: PLC0415

    if isinstance(node, exp.Column | exp.Table):
        node = node.parts[-1]
    if not isinstance(node, exp.Identifier):
        raise NotParsed("a name is not understood")
    name = str(node.this)
    return name if node.args.get("quoted") else name.lower()


def _folded(spelled: str) -> str:
    spelled = spelled.strip()
    if spelled.startswith('"'):
        return spelled[1:-1].replace('""', '"')
    return spelled.lower()


def _target(spelled: str) -> Target:
    parts = [_folded(part) for part in re.findall(_NAME, spelled)]
    return Target(schema=parts[0] if len(parts) > 1 else None, name=parts[-1])


def _parts(text: str) -> Iterator[str]:
    """A list cut at its commas, not at those in brackets, names and literals."""
    depth = start = 0
    quote = ""
    for place, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
        elif character == "," and depth == 0:
            yield text[start:place]
            start = place + 1
    yield text[start:]
