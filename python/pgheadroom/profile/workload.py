"""
What the clients of a profile do: operations and the rows they pick, or a script of pgbench's.

Frozen, with units in the names, declared as the file has them, like the tables (`tables.py`). How
long it goes on is the `Run`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Literal

from pgheadroom.forms import Expected, NameList, Stored, Text, between, in_file
from pgheadroom.profile.change import (
    SETS_EXPECTED,
    Change,
    ChangeInFile,
    changes_in_file,
    changes_of,
)
from pgheadroom.profile.machine import MachineTimes
from pgheadroom.profile.spelling import predicate

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
MaintenanceCommand = Literal["vacuum", "vacuum full", "analyze", "reindex", "truncate", "cluster"]
Builtin = Literal["tpcb-like", "simple-update", "select-only"]

PGBENCH_TABLES = ("pgbench_accounts", "pgbench_branches", "pgbench_tellers", "pgbench_history")
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
        Stored(NameList | Mapping[str, ChangeInFile], changes_of, changes_in_file),
        Expected(SETS_EXPECTED),
    ] = field(default=(), metadata=in_file(unless_empty=True))
    pick: Pick | None = None
    find: Literal["index", "seqscan", "bitmap"] = field(
        default="index", metadata=in_file(only=lambda it: it.kind not in ("insert", "upsert"))
    )
    transaction: Text | None = None

    @property
    def is_update(self) -> bool:
        """Whether it updates rows; an upsert, which picks rows that are there, does."""
        return self.kind in ("update", "upsert")

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
class Maintenance:
    """
    A command that another session runs between two transactions.

    Exactly one of `after`, so many transactions, and `at_frac` is set. `index` is that of `reindex`
    (None: all of the table's) and `cluster`; `freeze` and `parallel`, so many workers at most, are
    VACUUM's options.
    """

    do: MaintenanceCommand
    table: Text
    index: Text | None = field(default=None, metadata=in_file(unless_none=True))
    freeze: bool = field(default=False, metadata=in_file(unless_empty=True))
    parallel: Annotated[int, between(0, 1024)] = field(
        default=0, metadata=in_file(unless_empty=True)
    )
    after: Annotated[int, between(0, 2**31 - 1)] | None = field(
        default=None, metadata=in_file(unless_none=True)
    )
    at_frac: Annotated[float, between(0, 1)] | None = field(
        default=None, metadata=in_file(unless_none=True)
    )


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
    maintenance: Annotated[tuple[Maintenance, ...], Expected("a list of commands")] = field(
        default=(), metadata=in_file(unless_empty=True)
    )
    machine: MachineTimes | None = field(default=None, metadata=in_file(unless_none=True))

    @property
    def last_vacuum(self) -> int | None:
        """After how many transactions the last VACUUM comes that is not at the end; None: none."""
        found = []
        for command in self.maintenance:
            if not command.do.startswith("vacuum"):
                continue
            at = command.after
            if at is None and command.at_frac is not None and self.operations is not None:
                at = int(command.at_frac * self.operations)
            if at is not None and (self.operations is None or at < self.operations):
                found.append(at)
        return max(found, default=None)


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
