"""
The values of a profile: what a table looks like, what is done to it, on which server.

Frozen, with units in the names; `reading.py` makes them and has checked them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal

ValuesKind = Literal["serial", "constant", "random"]
OperationKind = Literal["insert", "update", "delete", "select", "upsert", "lock"]
Distribution = Literal[
    "uniform", "zipfian", "gaussian", "hot_set", "sequential", "stride", "newest", "oldest"
]
Builtin = Literal["tpcb-like", "simple-update", "select-only"]

CHECKSUMS_FROM_MAJOR = 18
"""From here on initdb makes clusters with checksums, unless told otherwise."""

PGBENCH_TABLES = ("pgbench_accounts", "pgbench_branches", "pgbench_tellers", "pgbench_history")


class Kind(StrEnum):
    """What a column's values are, which decides how they are made and changed."""

    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"
    STRING = "string"
    PADDED = "padded"


KINDS: Mapping[str, Kind] = {
    "int2": Kind.INTEGER,
    "int4": Kind.INTEGER,
    "int8": Kind.INTEGER,
    "float4": Kind.NUMBER,
    "float8": Kind.NUMBER,
    "numeric": Kind.NUMBER,
    "bool": Kind.BOOLEAN,
    "timestamp": Kind.TIMESTAMP,
    "timestamptz": Kind.TIMESTAMP,
    "text": Kind.STRING,
    "varchar": Kind.STRING,
    "bpchar": Kind.PADDED,
}
"""Types that a profile's columns may have, by PostgreSQL's own name without a modifier."""

INTEGER_MAX = {"int2": 2**15 - 1, "int4": 2**31 - 1, "int8": 2**63 - 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The server of a profile; None where PostgreSQL's or the run's own default stands."""

    version: str
    shared_buffers_bytes: int
    full_page_writes: bool
    wal_level: Literal["minimal", "replica", "logical"]
    wal_compression: Literal["off", "pglz", "lz4", "zstd", "on"]
    wal_log_hints: bool
    data_checksums: bool | None
    autovacuum: bool
    autovacuum_naptime_s: float | None
    checkpoint_interval_s: float | None
    max_wal_size_bytes: int | None
    settings: Mapping[str, str]
    observed: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Width:
    """Payload bytes of a string, uniform between the two."""

    min_bytes: int
    max_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """How a column's values are made; `ndistinct` is set for random ones only."""

    kind: ValuesKind
    ndistinct: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnProfile:
    """A column; `type` is canonical (`int4`, `bpchar(84)`), `width` stands for strings only."""

    name: str
    type: str
    values: Values
    width: Width | None = None
    null_frac: float = 0.0

    @property
    def kind(self) -> Kind:
        """What its values are."""
        return KINDS[self.base_type]

    @property
    def base_type(self) -> str:
        """The type without its modifier."""
        return self.type.partition("(")[0]

    @property
    def type_length(self) -> int | None:
        """The n of `bpchar(n)` or `varchar(n)`."""
        _, _, modifier = self.type.partition("(")
        digits = modifier.rstrip(")")
        return int(digits) if digits.isdecimal() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexProfile:
    """An index over columns or over expressions (one of the two is empty)."""

    name: str
    columns: tuple[str, ...]
    expressions: tuple[str, ...]
    unique: bool
    method: Literal["btree", "brin"]
    include: tuple[str, ...]
    where: str | None
    fillfactor: int | None
    deduplicate_items: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableProfile:
    """A table as it is loaded; `fillfactor` in percent."""

    name: str
    rows: int
    fillfactor: int
    columns: tuple[ColumnProfile, ...]
    indexes: tuple[IndexProfile, ...]
    reloptions: Mapping[str, str]
    observed: Mapping[str, Any] | None = None

    def column(self, name: str) -> ColumnProfile:
        """The column of that name, which must exist."""
        return next(column for column in self.columns if column.name == name)

    @property
    def key_index(self) -> IndexProfile | None:
        """The first unique index, by which rows are found."""
        return next((index for index in self.indexes if index.unique), None)

    @property
    def key(self) -> ColumnProfile | None:
        """The key: the first column of the first unique index; None without such an index."""
        index = self.key_index
        return None if index is None else self.column(index.columns[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What an update does to one column; `grows_*_bytes` are both 0 when it keeps its length."""

    column: str
    changed_frac: float = 1.0
    grows_min_bytes: int = 0
    grows_max_bytes: int = 0

    @property
    def draws(self) -> bool:
        """Whether each execution draws a random number for it."""
        return self.changed_frac < 1 or self.grows_max_bytes > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """Which key an operation works on; parameters that a distribution lacks are None."""

    distribution: Distribution
    theta: float | None = None
    param: float | None = None
    rows_frac: float | None = None
    weight: float | None = None
    n: int | None = None
    scatter: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRange:
    """Rows of a statement that draws their number each time, evenly between the two."""

    min_rows: int
    max_rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One `[[operation]]`; `pick` is None for an insert."""

    table: str
    kind: OperationKind
    weight: int
    rows_per_statement: int | RowRange
    abort_frac: float
    sets: tuple[Change, ...]
    pick: Pick | None
    find: Literal["index", "seqscan"]
    transaction: str | None

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A snapshot held by another session, in fractions of the run."""

    start_frac: float
    length_frac: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How long and by whom; exactly one of `operations` and `duration_s` is set."""

    operations: int | None
    duration_s: float | None
    rate_per_s: float | None
    clients: int
    seed: int
    snapshots: tuple[Snapshot, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PgbenchBuiltin:
    """A script that pgbench has built in, on its own tables; fillfactor by table name."""

    builtin: Builtin
    scale: int
    fillfactor: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What the clients do: operations of the profile's own, or a script of pgbench's."""

    operations: tuple[Operation, ...]
    builtin: PgbenchBuiltin | None
    run: Run

    def transactions(self) -> tuple[tuple[Operation, ...], ...]:
        """The operations by transaction, each one script, in order of first appearance."""
        named: dict[str, list[Operation]] = {}
        scripts: list[list[Operation]] = []
        for operation in self.operations:
            if operation.transaction is None:
                scripts.append([operation])
            elif operation.transaction in named:
                named[operation.transaction].append(operation)
            else:
                named[operation.transaction] = [operation]
                scripts.append(named[operation.transaction])
        return tuple(map(tuple, scripts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A whole profile; `assumed` has each default that was used, by the field's path."""

    server: ServerSettings
    tables: tuple[TableProfile, ...]
    workload: Workload
    assumed: Mapping[str, Any] = field(default_factory=dict, compare=False)

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
