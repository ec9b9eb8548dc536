"""
What a statement of a migration does, as values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

IndexKind = Literal["index", "primary key", "unique constraint", "exclusion constraint"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A table or index by name, as PostgreSQL folds it; the schema is None if none was given."""

    schema: str | None
    name: str

    def __str__(self) -> str:
        return self.name if self.schema is None else f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AddIndex:
    """
    A new index, by itself or by a constraint.

    `columns` are its plain key columns, `depends` all that end HOT by it: of expressions, INCLUDE
    and predicate too.
    """

    table: Target
    name: str | None
    kind: IndexKind
    method: str = "btree"
    columns: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    depends: tuple[str, ...] = ()
    has_expressions: bool = False
    has_predicate: bool = False
    fillfactor: int | None = None
    only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropIndex:
    """An index goes; by its own name, or as the constraint of a table."""

    index: Target
    table: Target | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetColumn:
    """A column is added (`is_new`) or gets another type; `type` as PostgreSQL spells it."""

    table: Target
    name: str
    type: str
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DropColumn:
    """A column goes, and the indexes over it; rows keep its bytes until they are written anew."""

    table: Target
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFillfactor:
    """The fillfactor of new pages; None: the default again."""

    table: Target
    fillfactor: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    """A table, a column of it or an index is called otherwise from here on."""

    what: Literal["table", "column", "index"]
    old: Target
    new: str
    column: str | None = None
    schema: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Remarkable:
    """Something about a table that nobody can judge from a profile, as a sentence."""

    table: Target
    kind: Literal["new", "dropped", "trigger", "partition"]
    text: str


Action = AddIndex | DropIndex | SetColumn | DropColumn | SetFillfactor | Rename | Remarkable


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """
    A statement of a migration.

    `problem` says why it, or a part of it, is not understood; without it and without actions the
    statement is of no concern for HOT.
    """

    line: int
    text: str
    actions: tuple[Action, ...] = ()
    problem: str | None = None
