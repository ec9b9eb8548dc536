"""
What a statement of a migration does, as values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

IndexKind = Literal["index", "primary key", "unique constraint", "exclusion constraint"]
DefaultKind = Literal["none", "constant", "stable", "volatile", "unknown"]
"""
Of a new column: without a default or DEFAULT NULL; literals and immutable or stable functions of
PostgreSQL (`now()`, `CURRENT_TIMESTAMP`), which are computed once; volatile ones of PostgreSQL
(`random()`, `gen_random_uuid()`, `clock_timestamp()`, `nextval()`: serial and identity too), which
take a rewrite; functions that are not PostgreSQL's own.
"""
WorkKind = Literal[
    "set not null",
    "drop not null",
    "set default",
    "set statistics",
    "set clustering",
    "set storage",
    "add check",
    "add not null",
    "add foreign key",
    "validate constraint",
    "primary key using index",
    "unique using index",
    "attach partition",
    "detach partition",
    "set logged",
    "set unlogged",
    "set access method",
    "set tablespace",
    "cluster",
    "vacuum full",
    "reindex",
    "refresh",
    "truncate",
    "drop table",
    "lock",
    "inherit",
    "set trigger",
    "set row security",
    "set owner",
    "replica identity",
    "rule",
    "policy",
    "rename",
    "comment",
    "statistics",
    "storage parameter",
    "publication",
    "inherited",
    "new partition",
    "analyze",
    "vacuum",
    "column is there",
    "column is absent",
    "index is there",
    "other",
]
"""What statements do to a table besides changing its columns, indexes and fillfactor."""


Address = tuple[str, str]
"""Schema and name of a table or index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRelation:
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
    and predicate too. `whole_row`: an expression or the predicate names the row itself (`t.*`).
    `may_be_row`: one of them names `t` alone (`f(t)`, `t IS NOT NULL`), the column of that name,
    which is among the columns here, or the row where the table has none. `named_after`: what an
    index without a name is called after, None for an expression without a name of its own.
    `opclasses` has one for each key, "" for the default; none where none is named.
    `comes_with`: the column of ADD COLUMN IF NOT EXISTS behind which it stands.
    """

    table: NamedRelation
    name: str | None
    kind: IndexKind
    method: str = "btree"
    columns: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    depends: tuple[str, ...] = ()
    has_expressions: bool = False
    has_predicate: bool = False
    fillfactor: int | None = None
    opclasses: tuple[str, ...] = ()
    fastupdate: bool | None = None
    only: bool = False
    expression_columns: tuple[str, ...] = ()
    predicate_columns: tuple[str, ...] = ()
    whole_row: bool = False
    may_be_row: bool = False
    named_after: tuple[str | None, ...] = ()
    concurrently: bool = False
    if_not_exists: bool = False
    comes_with: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropIndex:
    """An index goes; by its own name, or as the constraint of a table."""

    index: NamedRelation
    table: NamedRelation | None = None
    concurrently: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetColumn:
    """
    A column is added (`is_new`) or gets another type; `type` as PostgreSQL spells it.

    `default` is that of a new column, `not_null` and `generated` too; `reads` are the columns that
    a generated one reads. `has_using`: the new type's value is another expression than the column
    itself or a plain cast of it. Indexes of UNIQUE and PRIMARY KEY are actions of their own, checks
    and foreign keys are `Work`.
    """

    table: NamedRelation
    name: str
    type: str
    is_new: bool
    default: DefaultKind = "none"
    not_null: bool = False
    generated: Literal["stored", "virtual"] | None = None
    reads: tuple[str, ...] = ()
    has_using: bool = False
    collation: str | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetExpression:
    """
    A generated column reads other columns from here on (ALTER COLUMN ... SET EXPRESSION).

    `reads` None: it is no generated column any more (DROP EXPRESSION).
    """

    table: NamedRelation
    name: str
    reads: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropColumn:
    """A column goes, and the indexes over it; rows keep its bytes until they are written anew."""

    table: NamedRelation
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFillfactor:
    """The fillfactor of new pages; None: the default again."""

    table: NamedRelation
    fillfactor: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    """A table, a column of it or an index is called otherwise from here on."""

    what: Literal["table", "column", "index"]
    old: NamedRelation
    new: str
    column: str | None = None
    schema: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Remarkable:
    """Something about a table that nobody can judge from a profile, as a sentence."""

    table: NamedRelation
    kind: Literal["new", "dropped", "trigger", "partition"]
    text: str
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """
    What a statement does to a table that ends no HOT, but may rewrite, scan or lock it.

    Attributes:
        table: The table; for `attach partition` and `detach partition` the partitioned one; None
            where only an index is named, and of VACUUM FULL, CLUSTER or REINDEX of a database.
        kind: What is done; "other" for what no rule of ours knows.
        index: Of REINDEX INDEX, CLUSTER USING, ADD CONSTRAINT ... USING INDEX; the name only where
            it has one.
        other: The referenced table of a foreign key; the partition of attach and detach, and the
            new one.
        is_default: The partition that is attached, or new, is the default one.
        column: Of SET NOT NULL and the like; of `index is there` the index.
        not_valid: ADD CONSTRAINT ... NOT VALID.
        concurrently: REINDEX, REFRESH, DETACH PARTITION CONCURRENTLY.
        mode: Of LOCK TABLE, in PostgreSQL's words, such as ACCESS EXCLUSIVE.
        schema: Of REINDEX SCHEMA.
        comes_with: The column of ADD COLUMN IF NOT EXISTS behind which it stands.
        name: Of a foreign key, if one was given.
        columns: Of a foreign key.
        referenced: Of a foreign key; none: the primary key of the other table.
    """

    table: NamedRelation | None
    kind: WorkKind
    index: NamedRelation | None = None
    other: NamedRelation | None = None
    is_default: bool = False
    column: str | None = None
    not_valid: bool = False
    concurrently: bool = False
    mode: str | None = None
    schema: str | None = None
    comes_with: str | None = None
    name: str | None = None
    columns: tuple[str, ...] = ()
    referenced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """
    A domain comes (`is_new`) or has another constraint.

    `is_checked`: the columns of it that are there are read. `is_constrained`: by CHECK or NOT NULL.
    `over`: the type that a new one is over.
    """

    domain: NamedRelation
    is_new: bool
    over: str | None = None
    is_constrained: bool
    is_checked: bool


OfTable = AddIndex | SetColumn | SetExpression | DropColumn | SetFillfactor
"""What changes a table whose name it has."""

Action = OfTable | DropIndex | Rename | Remarkable | Work | Domain


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """Rows of a table are updated or deleted; `is_part`: those that a WHERE finds."""

    table: NamedRelation
    kind: Literal["UPDATE", "DELETE"]
    is_part: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationStatement:
    """
    A statement of a migration.

    `problem` says why it, or a part of it, is not understood; without it and without actions the
    statement is of no concern for HOT. `is_sql`: the grammar takes it, whatever it does.
    `transaction` is the line of the BEGIN whose transaction it is in; None: one of its own.
    `savepoint` is the name of one that it sets, `takes_back` that of the one to which it goes back,
    empty for the whole transaction. `newer` is syntax of it that servers have only from a major
    version on, with that. `is_command`: none, but a command of psql that runs nothing;
    `connects` is then the database that it names for what follows, empty for the same one.
    `fills` are tables whose rows it updates or deletes. `tool`: a line of the tool's that runs the
    migration, a command too, and what is said of it.
    """

    line: int
    text: str
    actions: tuple[Action, ...] = ()
    problem: str | None = None
    is_sql: bool = True
    transaction: int | None = None
    savepoint: str | None = None
    takes_back: str | None = None
    newer: tuple[tuple[int, str], ...] = ()
    is_command: bool = False
    connects: str | None = None
    fills: tuple[RowChange, ...] = ()
    tool: str | None = None
