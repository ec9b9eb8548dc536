"""
What a migration does to tables and indexes, as far as it concerns HOT, locks and rewrites.

Statements are read by PostgreSQL's own grammar (`crates/pgheadroom-sql`, whose facts are actions
here). A statement is understood, or of no concern, or named with its line: never passed over. Names
without a schema get that of `SET search_path`, where it names one schema alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, get_args

from pgheadroom.migration.actions import Action, MigrationStatement, NamedRelation, RowChange
from pgheadroom.migration.sections import forward, unwritten
from pgheadroom.sources.statements import Located, NotParsed, facts_of, located, writes_of

_ACTIONS: dict[str, type[Any]] = {kind.__name__: kind for kind in get_args(Action)}
"""By the names that the core's facts have."""

_UNWRITTEN = "Django runs an operation here that is no SQL (RunPython): what it does is not seen"


@dataclass(slots=True)
class _Session:
    """The only schema of its search_path, and until the transaction ends; the line of BEGIN."""

    session: str | None = None
    local: str | None = None
    is_local: bool = False
    begun: int | None = None

    def set(self, schema: str | None, *, local: bool) -> None:
        if local:
            self.local, self.is_local = schema, True
        else:
            self.session, self.is_local = schema, False

    def schema(self) -> str | None:
        return self.local if self.is_local else self.session


@dataclass(slots=True)
class _Found:
    actions: list[Action] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    newer: list[tuple[int, str]] = field(default_factory=list)
    fills: list[RowChange] = field(default_factory=list)
    is_sql: bool = True


def read_migration(text: str) -> tuple[MigrationStatement, ...]:
    """
    The statements of a migration, in order; of a tool's file those of the way forward.

    Args:
        text: Of the file.
    """
    part = forward(text)
    session = _Session(begun=part.begun)
    missing = unwritten(part.text)
    listed: list[MigrationStatement] = []
    for found in located(part.text):
        while missing and missing[0][0] < found.line:
            listed.append(_unwritten(*missing.pop(0), session))
        listed.append(_statement(found, session))
    listed += [_unwritten(line, said, session) for line, said in missing]
    if part.said is not None:
        line, said = part.said
        listed.insert(
            0, MigrationStatement(line=line, text="", is_sql=False, is_command=True, tool=said)
        )
    return tuple(listed)


def _unwritten(line: int, said: str, session: _Session) -> MigrationStatement:
    """What a tool runs in its own language: of the same transaction, and nobody sees into it."""
    return MigrationStatement(
        line=line, text=said, problem=_UNWRITTEN, is_sql=True, transaction=session.begun
    )


def _statement(found: Located, session: _Session) -> MigrationStatement:
    if found.is_command:
        if found.connects is not None:  # a session of its own
            session.set(None, local=False)
            session.begun = None
        return MigrationStatement(
            line=found.line,
            text=found.text,
            is_sql=False,
            is_command=True,
            connects=found.connects,
        )
    made = _Found()
    transaction = session.begun
    if found.problem is not None:
        made.problems.append(found.problem)
        made.is_sql = False
    else:
        _read(found.text, made, session)
        # No other statement of the grammar begins so; comments before it are no part of it.
        is_begin = made.is_sql and found.text.split(None, 1)[0].upper() in ("BEGIN", "START")
        is_chained = transaction is not None and session.begun is None and _is_chained(found.text)
        if (is_begin and session.begun is None) or is_chained:
            session.begun = found.line
    savepoint, takes_back = _taken_back(found.text) if made.is_sql else (None, None)
    return MigrationStatement(
        line=found.line,
        text=" ".join(found.text.split()),
        actions=tuple(made.actions),
        problem="; ".join(made.problems) or None,
        is_sql=made.is_sql,
        transaction=transaction,
        savepoint=savepoint,
        takes_back=takes_back,
        newer=tuple(dict.fromkeys(made.newer)),
        fills=tuple(made.fills),
    )


def _is_chained(text: str) -> bool:
    """COMMIT or ROLLBACK AND CHAIN: the next transaction begins there."""
    return text.upper().split()[-2:] == ["AND", "CHAIN"]


def _taken_back(text: str) -> tuple[str | None, str | None]:
    """
    The savepoint that a statement sets, and the one that it goes back to, empty for all.

    The grammar has taken the statement, so its first word tells what it is.
    """
    words = text.split()
    first = words[0].upper()
    if first == "SAVEPOINT":
        return _folded(words[-1]), None
    is_prepared = len(words) > 1 and words[1].upper() == "PREPARED"
    if first not in ("ROLLBACK", "ABORT") or is_prepared:
        return None, None
    is_part = any(word.upper() == "TO" for word in words[1:-1])
    return None, _folded(words[-1]) if is_part else ""


def _folded(name: str) -> str:
    return name[1:-1] if name.startswith('"') else name.lower()


def _read(text: str, made: _Found, session: _Session) -> None:
    try:
        facts = facts_of(text)
    except NotParsed as error:
        made.problems.append(error.message)
        made.is_sql = False
        return
    for fact in facts:
        kind = fact.pop("action")
        if kind == "Problem":
            made.problems.append(fact["text"])
        elif kind == "Newer":
            made.newer.append((fact["since"], fact["text"]))
        elif kind == "SearchPath":
            session.set(fact["schema"], local=fact["local"])
        elif kind == "TransactionEnd":
            session.is_local, session.begun = False, None
        else:
            made.actions.append(_placed(_action(kind, fact), session.schema()))
    if not made.actions:
        made.fills.extend(_fills(text, session))


def _fills(text: str, session: _Session) -> Iterator[RowChange]:
    """Tables whose rows a statement updates or deletes, itself or in its WITH."""
    try:
        writes = writes_of(text)
    except NotParsed:  # more than one would have been understood as facts
        return
    for write in writes:
        if write.kind in ("update", "delete"):
            yield RowChange(
                table=NamedRelation(schema=write.schema or session.schema(), name=write.table),
                kind="UPDATE" if write.kind == "update" else "DELETE",
                is_part=write.has_where,
            )


def _action(kind: str, fact: dict[str, Any]) -> Action:
    made: Action = _ACTIONS[kind](**{name: _value(value) for name, value in fact.items()})
    return made


def _value(value: object) -> object:
    if isinstance(value, dict):
        return NamedRelation(schema=value["schema"], name=value["name"])
    return tuple(value) if isinstance(value, list) else value


def _placed(action: Action, schema: str | None) -> Action:
    """With the schema for every name that has none."""
    if schema is None:
        return action
    bare = {
        name: replace(value, schema=schema)
        for name, value in _targets(action)
        if value.schema is None
    }
    return replace(action, **bare)  # type: ignore[arg-type]


def _targets(action: Action) -> Iterator[tuple[str, NamedRelation]]:
    for entry in fields(action):
        value = getattr(action, entry.name)
        if isinstance(value, NamedRelation):
            yield entry.name, value
