"""
The values of a profile: what a table looks like, what is done to it, on which server.

Frozen, with units in the names. What a file may say of each is declared beside it, and read and
written by that (`pgheadroom.forms`); what has to fit together is in `completing.py` and `check.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, Literal

from pgheadroom.forms import (
    Expected,
    Names,
    Stored,
    Text,
    between,
    in_file,
    write,
)
from pgheadroom.profile.change import (
    SETS_EXPECTED,
    Change,
    ChangeInFile,
    changes_in_file,
    changes_of,
)
from pgheadroom.profile.column_types import FORMS, ColumnForm, Kind, base_of, length_of
from pgheadroom.profile.observed import ObservedServer, ObservedTable
from pgheadroom.profile.spelling import (
    Name,
    Words,
    memory,
    predicate,
    server_version,
    type_name,
)
from pgheadroom.tabular import Row, Tabular

ValuesKind = Literal["serial", "constant", "random", "parent"]
OperationKind = Literal["insert", "update", "delete", "select", "upsert", "lock"]
Distribution = Literal[
    "uniform",
    "zipfian",
    "gaussian",
    "hot_set",
    "sequential",
    "stride",
    "newest",
    "oldest",
    "age",
    "head",
]
Isolation = Literal["read committed", "repeatable read"]
Builtin = Literal["tpcb-like", "simple-update", "select-only"]

CHECKSUMS_FROM_MAJOR = 18
"""From here on initdb makes clusters with checksums, unless told otherwise."""

SCHEMA_VERSION = 1
PGBENCH_TABLES = ("pgbench_accounts", "pgbench_branches", "pgbench_tellers", "pgbench_history")


ROWS_MAX = 2**40  # far beyond what one machine loads
STRING_BYTES_MAX = 1024**2  # made of hashes row by row; longer ones would take for ever; arbitrary
STATEMENT_ROWS_MAX = 10_000  # one VALUES list in one script; arbitrary
AGE_ROWS_MAX = 2**40  # as far back as rows go
PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "uniform": ("scatter", "among"),
    "zipfian": ("theta", "scatter", "among"),
    "gaussian": ("param", "scatter", "among"),
    "hot_set": ("rows_frac", "weight", "scatter"),
    "sequential": (),
    "stride": ("n",),
    "newest": (),
    "oldest": ("within",),
    "age": ("min", "max"),
    "head": ("using", "where"),
}
"""Which fields of a pick belong to a distribution."""
OPTIONAL_PARAMETERS = frozenset({"scatter", "among", "within", "where"})
"""Those of them that need not be given."""

_BELOW_ONE = 1 - 1e-9

INTEGER_MAX = {"int2": 2**15 - 1, "int4": 2**31 - 1, "int8": 2**63 - 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The server of a profile; None where PostgreSQL's or the run's own default stands."""

    version: Annotated[str, Stored(Text, server_version)] = "18"
    shared_buffers_bytes: Annotated[int, memory(128 * 1024)] = field(
        default=1024**3, metadata=in_file("shared_buffers")
    )
    full_page_writes: bool = True
    wal_level: Literal["minimal", "replica", "logical"] = "replica"
    wal_compression: Literal["off", "on", "pglz", "lz4", "zstd"] = "off"
    wal_log_hints: bool = False
    data_checksums: bool | None = None
    autovacuum: bool = False
    autovacuum_naptime_s: Annotated[float, between(1, 2147483)] | None = None
    # PostgreSQL's checkpoint_timeout is at least 30 s.
    checkpoint_interval_s: Annotated[float, between(30, 86400)] | None = None
    max_wal_size_bytes: Annotated[int, memory(32 * 1024**2)] | None = field(
        default=None, metadata=in_file("max_wal_size")
    )
    settings: Words = field(default_factory=dict)
    observed: ObservedServer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Width:
    """Payload bytes of a string, uniform between the two."""

    min_bytes: Annotated[int, between(0, STRING_BYTES_MAX)]
    max_bytes: Annotated[int, between(0, STRING_BYTES_MAX)]


def _width(found: int | Width) -> Width:
    """A number is a width that all values have."""
    return Width(min_bytes=found, max_bytes=found) if isinstance(found, int) else found


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """
    How a column's values are made.

    `ndistinct` is set for random ones, and for keys of a parent, of which it is the loaded rows;
    `pick` says that a run's inserts take the parent's key that their client inserted last.
    `ordered` says that uuids and strings are in the order of their numbers.
    """

    kind: ValuesKind
    ndistinct: Annotated[int, between(1, 2**62)] | None = None
    pick: Literal["newest"] | None = None
    ordered: bool = field(default=False, metadata=in_file(unless_empty=True))


StatedWidth = Annotated[
    Width,
    Stored(Annotated[int, between(0, STRING_BYTES_MAX)] | Width, _width),
    Expected("bytes, or { min_bytes, max_bytes }"),
]
"""How long values are, as a profile may say it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnProfile:
    """A column; `type` is canonical (`int4`, `bpchar(84)`), `width` where that leaves it open."""

    name: Name
    type: Annotated[str, Stored(Text, type_name)]
    values: Values = Values(kind="constant")
    width: StatedWidth | None = None
    null_frac: Annotated[float, between(0, 1)] = 0.0

    @property
    def kind(self) -> Kind:
        """What its values are."""
        return self.form.kind

    @property
    def form(self) -> ColumnForm:
        """What is known of its type."""
        return FORMS[self.base_type]

    @property
    def base_type(self) -> str:
        """The type without its modifier."""
        return base_of(self.type)

    @property
    def type_length(self) -> int | None:
        """The n of `bpchar(n)`, `varchar(n)` or `bit(n)`."""
        return length_of(self.type)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """
    What the values of an index's expression or predicate are, where the twin cannot evaluate it.

    `columns` are those that it reads. `true_frac` is the share of rows that fulfil a predicate;
    `changed_frac` how many of the updates that change one of its columns change its value.
    `assumed` says that nobody stated it, so that figures go from the least to the most it may be.
    """

    expression: Text
    type: Annotated[str, Stored(Text, type_name)] = "text"
    width: StatedWidth | None = None
    ndistinct: Annotated[int, between(1, 2**62)] | None = None
    null_frac: Annotated[float, between(0, 1)] = 0.0
    true_frac: Annotated[float, between(0, 1)] | None = None
    changed_frac: Annotated[float, between(0, 1)] = 1.0
    columns: Names = ()
    assumed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexProfile:
    """
    An index over columns, expressions, or both, the columns first.

    `order` and `opclass` are those of the key columns, as CREATE INDEX has them; empty: default.
    """

    name: Name
    columns: Names = field(default=(), metadata=in_file(unless_empty=True))
    expressions: Names = field(default=(), metadata=in_file(unless_empty=True))
    unique: bool = False
    method: Literal["btree", "brin", "hash", "gin", "gist", "spgist"] = "btree"
    include: Names = field(default=(), metadata=in_file(unless_empty=True))
    where: Text | None = None
    fillfactor: Annotated[int, between(10, 100)] | None = None
    deduplicate_items: bool | None = None
    order: Names = field(default=(), metadata=in_file(unless_empty=True))
    opclass: Names = field(default=(), metadata=in_file(unless_empty=True))
    nulls_not_distinct: bool = field(default=False, metadata=in_file(unless_empty=True))
    pages_per_range: Annotated[int, between(1, 131_072)] | None = field(
        default=None, metadata=in_file(unless_none=True)
    )
    stated: Annotated[tuple[Stated, ...], Expected("a list of expressions and their values")] = (
        field(default=(), metadata=in_file(unless_empty=True))
    )

    @property
    def is_key(self) -> bool:
        """Whether rows may be found by it: unique, over columns, with all rows."""
        return self.unique and not self.expressions and self.where is None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKey:
    """A column that refers to the key of another table."""

    columns: Names
    references: Text

    @property
    def column(self) -> str:
        """The column, for there is one."""
        return self.columns[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableProfile:
    """A table as it is loaded; `fillfactor` in percent."""

    name: Name
    rows: Annotated[int, between(0, ROWS_MAX)]
    unlogged: bool = field(default=False, metadata=in_file(only=lambda it: it.unlogged))
    fillfactor: Annotated[int, between(10, 100)] = 100
    reloptions: Words = field(default_factory=dict)
    columns: Annotated[tuple[ColumnProfile, ...], Expected("a list of columns")]
    indexes: Annotated[tuple[IndexProfile, ...], Expected("a list of indexes")] = ()
    foreign_keys: Annotated[tuple[ForeignKey, ...], Expected("a list of foreign keys")] = field(
        default=(), metadata=in_file(unless_empty=True)
    )
    observed: ObservedTable | None = None

    def column(self, name: str) -> ColumnProfile:
        """The column of that name, which must exist."""
        return next(column for column in self.columns if column.name == name)

    @property
    def key_index(self) -> IndexProfile | None:
        """The first unique index over columns of all rows, by which rows are found."""
        return next((index for index in self.indexes if index.is_key), None)

    @property
    def key_columns(self) -> tuple[ColumnProfile, ...]:
        """
        The columns by which a statement names a row, the key last; none without a unique index.

        The key is the first column of the first unique index that counts the rows; those before
        it follow from the number of the row too.
        """
        index = self.key_index
        if index is None:
            return ()
        columns = [self.column(name) for name in index.columns]
        serial = (n for n, column in enumerate(columns) if column.values.kind == "serial")
        return tuple(columns[: next(serial, 0) + 1])

    @property
    def key(self) -> ColumnProfile | None:
        """The column that counts the rows in the first unique index; None without such an index."""
        columns = self.key_columns
        return columns[-1] if columns else None

    @property
    def has_ordered_keys(self) -> bool:
        """Whether the order of keys is that of their numbers, so that ranges of them exist."""
        columns = self.key_columns
        if len(columns) != 1:
            return False
        return columns[0].kind in (Kind.INTEGER, Kind.NUMBER) or columns[0].values.ordered


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """
    Which key an operation works on; parameters that a distribution lacks are None.

    `among` is None for the rows that were loaded; `within_rows` is the block through which deletes
    of the oldest go in a mixed order; ages are a client's own rows behind its last one.
    """

    distribution: Distribution
    # pgbench's own bounds: MIN_ZIPFIAN_PARAM, MAX_ZIPFIAN_PARAM, MIN_GAUSSIAN_PARAM.
    theta: Annotated[float, between(1.001, 1000)] | None = None
    param: Annotated[float, between(2, 1e6)] | None = None
    rows_frac: Annotated[float, between(0, _BELOW_ONE)] | None = None
    weight: Annotated[float, between(0, 1)] | None = None
    n: Annotated[int, between(1, 2**40)] | None = None
    using: Text | None = None
    where: Annotated[str, Stored(Text, predicate)] | None = None
    scatter: bool = field(default=False, metadata=in_file(unless_empty=True))
    among: Literal["live"] | None = field(default=None, metadata=in_file(unless_none=True))
    within_rows: Annotated[int, between(1, AGE_ROWS_MAX)] | None = field(
        default=None, metadata=in_file("within", unless_none=True)
    )
    min_age_rows: Annotated[int, between(0, AGE_ROWS_MAX)] | None = field(
        default=None, metadata=in_file("min", unless_none=True)
    )
    max_age_rows: Annotated[int, between(0, AGE_ROWS_MAX)] | None = field(
        default=None, metadata=in_file("max", unless_none=True)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRange:
    """Rows of a statement that draws their number each time, evenly between the two."""

    min_rows: Annotated[int, between(1, STATEMENT_ROWS_MAX)] = field(metadata=in_file("min"))
    max_rows: Annotated[int, between(1, STATEMENT_ROWS_MAX)] = field(metadata=in_file("max"))


def _rows(found: int | RowRange) -> int | RowRange:
    """Two ends that are equal are that number."""
    if isinstance(found, RowRange) and found.min_rows == found.max_rows:
        return found.min_rows
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One `[[operation]]`; `pick` is None for an insert."""

    table: Text
    kind: OperationKind
    weight: Annotated[int, between(1, 2**31 - 1)] = 1
    rows_per_statement: Annotated[
        int | RowRange,
        Stored(Annotated[int, between(1, STATEMENT_ROWS_MAX)] | RowRange, _rows),
        Expected(f"a whole number from 1 to {STATEMENT_ROWS_MAX}, or {{ min, max }} of such"),
    ] = 1
    abort_frac: Annotated[float, between(0, 1)] = 0.0
    sets: Annotated[
        tuple[Change, ...],
        Stored(Names | Mapping[str, ChangeInFile], changes_of, changes_in_file),
        Expected(SETS_EXPECTED),
    ] = field(default=(), metadata=in_file(unless_empty=True))
    pick: Pick | None = None
    find: Literal["index", "seqscan"] = field(
        default="index", metadata=in_file(only=lambda it: it.kind not in ("insert", "upsert"))
    )
    transaction: Text | None = None

    @property
    def is_living(self) -> bool:
        """Whether its pick follows the rows that are there, not those that were loaded."""
        pick = self.pick
        if pick is None:
            return False
        if pick.distribution == "oldest":
            return self.rows_max == 1 or pick.within_rows is not None
        return pick.distribution == "age" or pick.among is not None

    @property
    def is_head(self) -> bool:
        """Whether it takes its rows from the head of a queue."""
        return self.pick is not None and self.pick.distribution == "head"

    @property
    def rows_max(self) -> int:
        """Rows of a statement, at most: the room that its keys are given."""
        rows = self.rows_per_statement
        return rows if isinstance(rows, int) else rows.max_rows

    @property
    def rows_mean(self) -> float:
        """Rows of a statement, on average."""
        rows = self.rows_per_statement
        return rows if isinstance(rows, int) else (rows.min_rows + rows.max_rows) / 2


def by_transaction(operations: Sequence[Operation]) -> tuple[tuple[Operation, ...], ...]:
    """The operations by transaction, in order of first appearance."""
    named: dict[str, list[Operation]] = {}
    scripts: list[list[Operation]] = []
    for operation in operations:
        if operation.transaction is None:
            scripts.append([operation])
        elif operation.transaction in named:
            named[operation.transaction].append(operation)
        else:
            named[operation.transaction] = [operation]
            scripts.append(named[operation.transaction])
    return tuple(map(tuple, scripts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A snapshot held by another session, in fractions of the run."""

    start_frac: Annotated[float, between(0, 1)]
    length_frac: Annotated[float, between(0, 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How long and by whom; exactly one of `operations` and `duration_s` is set."""

    operations: Annotated[int, between(1, 2**31 - 1)] | None = None
    duration_s: Annotated[float, between(1, 10 * 86400)] | None = None
    rate_per_s: Annotated[float, between(0.001, 1e9)] | None = None
    clients: Annotated[int, between(1, 10_000)] = 1
    seed: Annotated[int, between(0, 2**63 - 1)] = 1
    isolation: Isolation = field(
        default="read committed",
        metadata=in_file(only=lambda it: it.isolation != "read committed"),
    )
    snapshots: Annotated[tuple[Snapshot, ...], Expected("a list of snapshots")] = field(
        default=(), metadata=in_file("snapshot", unless_empty=True)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PgbenchFillfactors:
    """The fillfactor of each of pgbench's tables."""

    pgbench_accounts: Annotated[int, between(10, 100)] = 100
    pgbench_branches: Annotated[int, between(10, 100)] = 100
    pgbench_tellers: Annotated[int, between(10, 100)] = 100
    pgbench_history: Annotated[int, between(10, 100)] = 100


def _of_pgbench(fillfactor: Mapping[str, int]) -> PgbenchFillfactors:
    return PgbenchFillfactors(**fillfactor)


@dataclass(frozen=True, slots=True, kw_only=True)
class PgbenchBuiltin:
    """A script that pgbench has built in, on its own tables; fillfactor by table name."""

    builtin: Builtin
    scale: Annotated[int, between(1, 100_000)]
    fillfactor: Annotated[
        Mapping[str, int],
        Stored(PgbenchFillfactors, asdict, _of_pgbench),
    ] = field(default_factory=lambda: dict.fromkeys(PGBENCH_TABLES, 100))


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What the clients do: operations of the profile's own, or a script of pgbench's."""

    operations: tuple[Operation, ...]
    builtin: PgbenchBuiltin | None
    run: Run

    def transactions(self) -> tuple[tuple[Operation, ...], ...]:
        """The operations by transaction, each one script, in order of first appearance."""
        return by_transaction(self.operations)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile(Tabular):
    """A whole profile; `assumed` has each default that was used, by the field's path."""

    server: ServerSettings
    tables: tuple[TableProfile, ...]
    workload: Workload
    assumed: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def to_json(self) -> dict[str, Any]:
        """The profile under the file's names; reading it again gives an equal profile."""
        is_own = self.workload.builtin is None
        file = ProfileFile(
            schema_version=SCHEMA_VERSION,
            server=self.server,
            tables=self.tables if is_own else (),
            operations=self.workload.operations if is_own else (),
            builtin=self.workload.builtin,
            run=self.workload.run,
        )
        made: dict[str, Any] = write(file, nulls=False)
        return made

    def rows(self) -> list[Row]:
        """One row a table: rows and fillfactor, and how many columns, indexes and operations."""
        if (builtin := self.workload.builtin) is not None:
            counts = dict(zip(PGBENCH_TABLES, (100_000, 1, 10, 0), strict=True))
            return [
                {
                    **{"table": name, "rows": counts[name] * builtin.scale},
                    **{"fillfactor": builtin.fillfactor[name]},
                }
                for name in PGBENCH_TABLES
            ]
        return [
            {
                **{"table": table.name, "rows": table.rows, "fillfactor": table.fillfactor},
                **{"columns": len(table.columns), "indexes": len(table.indexes)},
                "operations": sum(o.table == table.name for o in self.workload.operations),
            }
            for table in self.tables
        ]

    def summary(self) -> str:
        """The server, and what is played on how many tables."""
        names = self.table_names
        played = "operations of its own"
        if (builtin := self.workload.builtin) is not None:
            played = f"pgbench's {builtin.builtin} at scale {builtin.scale}"
        tables = "1 table" if len(names) == 1 else f"{len(names)} tables"
        return f"Profile for PostgreSQL {self.server.version}: {tables}, {played}"

    def table(self, name: str) -> TableProfile:
        """The table of that name, which must exist."""
        return next(table for table in self.tables if table.name == name)

    @property
    def table_names(self) -> tuple[str, ...]:
        """Names of all tables that take part, pgbench's own too."""
        if self.workload.builtin is not None:
            return PGBENCH_TABLES
        return tuple(table.name for table in self.tables)

    def assumed_on(self, major: int) -> dict[str, Any]:
        """The defaults that were used, on a server of this major version."""
        found = dict(self.assumed)
        if "server.data_checksums" in found:
            found["server.data_checksums"] = major >= CHECKSUMS_FROM_MAJOR
        return found

    def with_fillfactor(self, fillfactors: Mapping[str, int]) -> Profile:
        """The same profile with another fillfactor for the tables that are named."""
        unknown = set(fillfactors) - set(self.table_names)
        assert not unknown, f"no such tables: {unknown}"
        builtin = self.workload.builtin
        if builtin is not None:
            changed = replace(builtin, fillfactor={**builtin.fillfactor, **fillfactors})
            return replace(self, workload=replace(self.workload, builtin=changed))
        tables = tuple(
            replace(table, fillfactor=fillfactors.get(table.name, table.fillfactor))
            for table in self.tables
        )
        return replace(self, tables=tables)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileFile:
    """What stands in the file: tables and operations, or `[pgbench]`."""

    schema_version: Annotated[int, between(SCHEMA_VERSION, SCHEMA_VERSION)]
    server: ServerSettings = field(default_factory=ServerSettings)
    tables: Annotated[
        tuple[TableProfile, ...], Expected("at least one [[table]], or [pgbench]")
    ] = field(default=(), metadata=in_file("table", unless_empty=True))
    operations: Annotated[tuple[Operation, ...], Expected("at least one [[operation]]")] = field(
        default=(), metadata=in_file("operation", unless_empty=True)
    )
    builtin: PgbenchBuiltin | None = field(default=None, metadata=in_file("pgbench"))
    run: Annotated[Run, Expected("a table [run] with operations or duration_s")]
