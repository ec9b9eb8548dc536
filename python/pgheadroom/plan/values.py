"""
The plan as a value: for which database, which statements, with which locks, undone by what.

Made of an advice (`making.py`), saved as JSON (`kind = "plan"`), carried out by `apply.py`, held
against what happened by `verify`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pgheadroom.advise.advice import StatedPolicy
from pgheadroom.advise.foreseen import Point, Transition
from pgheadroom.advise.knobs import Fit
from pgheadroom.forms import Filed, in_file, read, unframed
from pgheadroom.plan.measured import MeasuredInterval
from pgheadroom.plan.remedies import RemedyStep, WalWindow
from pgheadroom.profile.within import StoredProfile
from pgheadroom.quoting import called, printable, shown_relation
from pgheadroom.types import Interval, PgVersion

HIDDEN = "hidden"
"""Stands for the text of an expression or predicate while somebody holds its table exclusively."""

StepKind = Literal["set_fillfactor", "rewrite"]
Tool = Literal["ALTER TABLE", "REPACK (CONCURRENTLY)", "pg_squeeze", "pg_repack", "VACUUM FULL"]
RunBy = Literal["apply", "you"]


def now_text() -> str:
    """The time as plans and records have it: UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """
    The database that a plan is for; the identifier is None where it could not be read.

    `is_superuser`: the role that observed it is one, as whoever carries out the plan may be another
    role it says nothing about the database itself; None: not known.
    """

    system_identifier: str | None
    database_oid: int
    database: str
    server_version: str
    is_superuser: bool | None = field(default=None, metadata=in_file(unless_none=True))

    @property
    def major(self) -> int:
        """Major version of the server."""
        return PgVersion.parse(self.server_version).major

    def differs(self, found: Target) -> tuple[str, ...]:
        """What is different about another database, in words; empty for the same one."""
        said = []
        if None not in (self.system_identifier, found.system_identifier):
            said += _difference("cluster", self.system_identifier, found.system_identifier)
        said += _difference("database OID", self.database_oid, found.database_oid)
        said += _difference("database", self.database, found.database)
        said += _difference("major version", self.major, found.major)
        return tuple(said)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexMark:
    """What a plan rests on of an index."""

    name: str
    method: str
    is_unique: bool
    columns: tuple[str, ...]
    include: tuple[str, ...]
    expressions: str | None
    predicate: str | None

    def equals(self, other: IndexMark) -> bool:
        """Whether it is the same; a text that a lock has hidden is taken for the same."""
        texts = ((self.expressions, other.expressions), (self.predicate, other.predicate))
        return (self.name, self.method, self.is_unique, self.columns, self.include) == (
            other.name,
            other.method,
            other.is_unique,
            other.columns,
            other.include,
        ) and all(mine == theirs or HIDDEN in (mine, theirs) for mine, theirs in texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMark:
    """A column with its type, as `format_type` writes it."""

    name: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMark:
    """
    A table's fingerprint: what a plan rests on, by which a changed table is noticed.

    `reloptions` are those that are set; `columns` in order of their attribute numbers, `indexes`
    by name.
    """

    schema: str
    name: str
    oid: int
    relfilenode: int
    columns: tuple[ColumnMark, ...]
    indexes: tuple[IndexMark, ...]
    reloptions: Mapping[str, str]

    @property
    def qualified(self) -> str:
        """Schema and name, quoted for SQL, with nothing in it that acts on a reader's screen."""
        return shown_relation(self.schema, self.name)

    @property
    def fillfactor(self) -> int | None:
        """As it is set; None where it is not."""
        found = self.reloptions.get("fillfactor")
        return None if found is None else int(found)

    def differs(self, found: TableMark) -> tuple[str, ...]:
        """What is different about the table now, in words; empty for an unchanged one."""
        said = _difference("name", f"{self.schema}.{self.name}", f"{found.schema}.{found.name}")
        said += _difference("OID", self.oid, found.oid)
        said += _difference("relfilenode (rewritten)", self.relfilenode, found.relfilenode)
        said += _listed("column", [c.name for c in self.columns], [c.name for c in found.columns])
        types_now = {column.name: column.type for column in found.columns}
        for column in self.columns:
            now = types_now.get(column.name, column.type)
            said += _difference(f"type of column {column.name!r}", column.type, now)
        before, after = ({i.name: i for i in mark.indexes} for mark in (self, found))
        said += _listed("index", list(before), list(after))
        said += [
            f"index {name!r} is another one"
            for name, index in before.items()
            if name in after and not index.equals(after[name])
        ]
        for option in sorted({*self.reloptions, *found.reloptions}):
            said += _difference(
                f"storage parameter {option}",
                self.reloptions.get(option, "not set"),
                found.reloptions.get(option, "not set"),
            )
        return tuple(said)


def _difference(what: str, planned: object, found: object) -> list[str]:
    return [] if planned == found else [f"{what}: found {found}, the plan has {planned}"]


def _listed(what: str, before: list[str], after: list[str]) -> list[str]:
    gone = [f"{what} {name!r} is gone" for name in before if name not in after]
    new = [f"{what} {name!r} is new" for name in after if name not in before]
    moved = sorted(before) == sorted(after) and before != after
    return gone + new + ([f"the order of {what} names changed"] if moved else [])


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """
    What is expected of a table, and from where it starts.

    Attributes:
        table: Its fingerprint when it was observed.
        verdict: Of the advice; KEEP forecasts that nothing changes.
        fillfactor: After the plan.
        before: The curve's point at the setting in force; None where it has none.
        after: At `fillfactor`.
        transition: The way there without a rewrite.
        measured: What was observed.
        reason: Of the advice.
        fit: What the twin was played with, so that `verify` need not calibrate again; None where
            it was not, and in plans of earlier versions.
    """

    table: TableMark
    verdict: Literal["CHANGE", "KEEP"]
    fillfactor: int
    before: Point | None
    after: Point | None
    transition: Transition | None
    measured: MeasuredInterval
    reason: str
    fit: Fit | None = field(default=None, metadata=in_file(added_later=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """
    One statement, or one command of yours.

    Attributes:
        number: From 1 on, in order; 0 for a rewrite that is only offered.
        kind: What it does.
        tool: By what.
        table: Fingerprint before the plan.
        fillfactor: In force after the step.
        copied_bytes: What a rewrite makes: table, indexes, TOAST; 0 for a setting.
        sql: The statement; None for a client's command.
        command: The client's command line; None for a statement.
        undo: The statement that undoes it; None where nothing can or has to.
        undo_note: What to know about undoing.
        lock: The strongest lock, by PostgreSQL's name.
        blocks: What that lock keeps waiting, and for how long.
        duration_s: Estimated, waiting for the lock left out.
        duration_basis: Where the estimate is from.
        disk_bytes: Needed while it runs, estimated; for a setting, what the table grows by later.
        wal_bytes: Written, estimated.
        in_transaction: Whether it may run inside a transaction block.
        run_by: `apply` runs statements; commands are left to you.
        verified: Whether this statement was run on a server of this version in our tests.
        risk: In words.
        forecast: What is expected of the table afterwards.
    """

    number: int
    kind: StepKind
    tool: Tool
    table: TableMark
    fillfactor: int
    copied_bytes: int
    sql: str | None
    command: str | None
    undo: str | None
    undo_note: str
    lock: str
    blocks: str
    duration_s: Interval
    duration_basis: str
    disk_bytes: int
    wal_bytes: int
    in_transaction: bool
    run_by: RunBy
    verified: bool
    risk: str
    forecast: Forecast

    @property
    def about(self) -> str:
        """The table, for people, on one line."""
        return printable(called(self.table.schema, self.table.name))

    @property
    def skip_key(self) -> int:
        """By what it is left alone with others of the same table."""
        return self.table.oid


PlanStep = Step | RemedyStep
"""What `apply` carries out: of an advice, or of the doctor's findings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Filed):
    """
    Statements in order, for one database.

    Attributes:
        tool_version: That made it.
        created_at: UTC.
        observed_at: When the facts were taken; None where that is not known.
        target: The only database it may be applied to.
        policy: Of the advice; None in a plan of the doctor's.
        rewrite: How rewrites were asked for.
        steps: Of an advice, in order.
        offers: Rewrites that the server has and that are not part of the plan.
        kept: Forecasts of tables that stay as they are.
        notes: What else is to be known: findings that go before, tables left out and why.
        profile: Of the tables that were simulated, from which `verify` foresees again what has
            become of a table that grows; None without one.
        remedies: Steps of the doctor's, in order; None in a plan of an advice. A plan has the ones
            or the others.
        wal: What the doctor watched of the write-ahead log, beside which `verify` puts what is
            written afterwards; None where it watched no interval.
    """

    KIND = "plan"
    VERSION = 2
    ADDED = False

    tool_version: str
    created_at: str
    observed_at: str | None
    target: Target
    policy: StatedPolicy | None
    rewrite: str
    steps: tuple[Step, ...]
    offers: tuple[Step, ...]
    kept: tuple[Forecast, ...]
    notes: tuple[str, ...]
    profile: StoredProfile | None = None
    remedies: tuple[RemedyStep, ...] | None = field(
        default=None, metadata=in_file(unless_none=True)
    )
    wal: WalWindow | None = field(default=None, metadata=in_file(unless_none=True))

    @property
    def work(self) -> tuple[PlanStep, ...]:
        """What `apply` carries out, in order."""
        return self.steps if self.remedies is None else self.remedies

    @property
    def forecasts(self) -> tuple[Forecast, ...]:
        """One a table: those that change, then those that stay."""
        changed = {step.table.oid: step.forecast for step in self.steps}
        return (*changed.values(), *self.kept)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Plan:
        """
        Read what `to_json` wrote.

        Raises:
            InputError: It is no plan of this version, or a field is not as it must be.
        """
        rest = {name: value for name, value in unframed(data).items() if name != "digest"}
        return read(cls, rest, at="plan")
