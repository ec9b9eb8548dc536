"""
The advice as a value: per table the causes, the curve, the verdict, and what it forecasts.

Made by `advise`, saved as JSON (`kind = "advice"`), read by plans, verification and reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from pgheadroom.advise.cold_updates import IndexesTogether, IndexFinding
from pgheadroom.advise.table_advice import Remark, TableAdvice
from pgheadroom.forms import Filed, in_file, read, unframed
from pgheadroom.tabular import Row, Tabular, columns, even

Goal = Literal["balanced", "wal", "size", "latency"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Of a day, in units of one GB kept for a day."""

    kept_gb: float
    wal_gb: float
    written_mpages: float
    read_mpages: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedPolicy:
    """
    By what was decided, as `policy.Policy` explains it.

    None where an advice of an earlier version did not ask for it.
    """

    goal: Goal
    prices: Prices
    max_growth_frac: float | None
    min_gain_frac: float
    images_gain_frac: float | None = field(default=None, metadata=in_file(unless_none=True))
    gain_per_growth: float | None = field(default=None, metadata=in_file(unless_none=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """
    What the time for simulations was enough for.

    Attributes:
        cpu_s: Processor time that was allowed.
        worth: Tables that were worth playing.
        played: Of them those that were, to their end.
        not_weighed: Names of those for which not enough was left, and no rule decided.
        cut_off: Names of those that were begun when it was spent; None where there are none.

    A file of an earlier version may say none of it.
    """

    cpu_s: float | None = field(default=None, metadata=in_file(unless_none=True))
    worth: int | None = field(default=None, metadata=in_file(unless_none=True))
    played: int | None = field(default=None, metadata=in_file(unless_none=True))
    not_weighed: tuple[str, ...] | None = field(default=None, metadata=in_file(unless_none=True))
    cut_off: tuple[str, ...] | None = field(default=None, metadata=in_file(unless_none=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """Tables by their verdict."""

    change: int = field(metadata=in_file("CHANGE"))
    keep: int = field(metadata=in_file("KEEP"))
    abstain: int = field(metadata=in_file("ABSTAIN"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitions:
    """
    A partitioned table: its partitions by name, their verdicts counted, what is advised.

    Partitions of all levels; `parent` is the partitioned table that it is itself a partition of.
    `updates_per_s` has those of partitions that are not in the profile; None: how many these had is
    not known.
    """

    schema: str = "public"
    name: str
    partitions: tuple[str, ...]
    verdicts: Verdicts
    advised_fillfactors: tuple[int, ...]
    updates_per_s: float | None
    parent: str | None = field(default=None, metadata=in_file(unless_none=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """
    Where and when the advice's facts were taken.

    `database_oid` and `system_identifier` (None where it was not to be had, or masked) say which
    database a plan is for. `changed`: tables that were dropped or rewritten meanwhile; `left_out`:
    those that the profile does not have, and why. `is_superuser`: the role that observed is one.
    """

    server_version: str
    database: str | None
    database_oid: int | None
    system_identifier: str | None
    observed_at: str | None
    interval_s: float
    masked: bool
    levels: tuple[str, ...]
    missing: tuple[str, ...]
    broken: tuple[str, ...]
    modules: Mapping[str, str]
    changed: tuple[str, ...] | None = field(default=None, metadata=in_file(unless_none=True))
    left_out: tuple[str, ...] | None = field(default=None, metadata=in_file(unless_none=True))
    is_superuser: bool | None = field(default=None, metadata=in_file(unless_none=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice(Tabular, Filed):
    """
    All tables, ranked by gain.

    `first` are findings about the whole server that go before everything else (a horizon that is
    held: no fillfactor helps then). `partitioned` sums up the partitions of each parent. `indexes`
    are those that end HOT, of all tables, by the WAL that they cost; `indexes_together` are several
    of a table, and what goes without all of them.
    """

    KIND = "advice"

    tool_version: str
    observation: Observation
    policy: StatedPolicy
    first: tuple[Remark, ...]
    # An advice of an earlier version has neither.
    indexes: tuple[IndexFinding, ...] = ()
    indexes_together: tuple[IndexesTogether, ...] | None = field(
        default=None, metadata=in_file(unless_none=True)
    )
    budget: Budget = field(default_factory=Budget)
    tables: tuple[TableAdvice, ...]
    partitioned: tuple[Partitions, ...]
    assumed: tuple[str, ...]

    def rows(self) -> list[Row]:
        """One row a table: the verdict, what was measured, and the long run now and as advised."""
        return even([_row(table) for table in self.tables])

    def summary(self) -> str:
        """How many tables, and how many to change."""
        count = sum(table.verdict == "CHANGE" for table in self.tables)
        return f"Advice for {len(self.tables)} tables: {count} to change"

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """
        Read what `to_json` wrote.

        Raises:
            InputError: It is no advice, or a field is not as it must be.
        """
        return read(cls, unframed(data), at="advice", exact=True)


def _row(table: TableAdvice) -> Row:
    now, then = table.point(table.fillfactor), table.point(table.advised_fillfactor)
    found: Row = {
        "table": table.table,
        "verdict": table.verdict,
        "fillfactor": table.fillfactor,
        "advised_fillfactor": table.advised_fillfactor,
        **columns("gain_frac", table.gain_frac),
        "updates_per_s": table.updates_per_s,
        "hot_frac_measured": table.hot_frac,
    }
    for when, point in (("now", now), ("advised", then)):
        for measure in ("hot_frac", "wal_bytes_per_update", "heap_bytes"):
            value = None if point is None else getattr(point, measure)
            found |= columns(f"{measure}_{when}", value)
    return found | {"reason": table.reason}
