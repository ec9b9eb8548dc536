"""
What `observe` wrote of the server and of the interval: `[server.observed]`.

Typed and checked like the tables' part (`observed.py`), whose numbers it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Literal

from pgheadroom.forms import Kept, between, kept
from pgheadroom.profile.observed import (
    SECONDS_MAX,
    UNLESS_NONE,
    Counts,
    Frac,
    Oid,
    Seconds,
    Texts,
    WalCount,
    Whole,
)
from pgheadroom.types import AnyCount


@kept
class ServerWal(Kept):
    """
    The log of the interval, of the whole server.

    `format` is 1; the form of `[table.observed.wal]` is of the same number. `source` says where the
    log was read, `nameless_bytes` are those of relations that no name was found for.
    """

    format: Annotated[int, between(1, 1)]
    source: str
    start_lsn: str | None
    end_lsn: str | None
    records: Whole
    bytes: Whole
    fpi: Whole
    fpi_bytes: Whole
    nameless_bytes: Whole
    by_cause: Mapping[str, WalCount]
    notes: Texts | None = None


@kept
class StoodStill(Kept):
    """A part of the interval in which the horizon stood still."""

    start_frac: Frac
    length_frac: Frac


@kept
class Holder(Kept):
    """What holds the horizon."""

    kind: Literal["session", "standby", "slot", "prepared"]
    name: str
    backend_type: str | None = None
    application_name: str | None = None
    usename: str | None = None
    state: str | None = None
    holds_data: bool | None
    age_xids_max: Whole
    seen: Whole | None = None
    transaction_age_s: Seconds | None


@kept
class Moment(Kept):
    """How old the oldest snapshot was at one moment, in transactions."""

    at_s: float | None = None
    age_xids: AnyCount | None = None
    oldest_xid: str | int | None = None


@kept
class Horizon(Kept):
    """How the horizon moved, and by what it was held."""

    series: tuple[Moment, ...] | None = None
    holders: tuple[Holder, ...]
    stood_still: tuple[StoodStill, ...]


@kept
class ServerSetting(Kept):
    """A setting in force."""

    setting: str | None
    unit: str | None = None
    source: str | None = None


@kept
class Access(Kept):
    """What the role could read, and what not; profiles of an earlier version say not who it is."""

    levels: Texts
    missing: Texts
    would_help: Texts | None = None
    is_superuser: bool | None = field(default=None, metadata=UNLESS_NONE)


@kept
class Partitioned(Kept):
    """
    A partitioned table, which has no pages of its own.

    `moved_rows`: that UPDATEs moved to another partition, which counts as a delete and an insert;
    of the topmost table, for all levels; None where that is not known. `default`: its default
    partition; None: it has none, or the profile is of a time when none was read. `came`, `went`:
    partitions of all levels that were made, or dropped, inside the interval, which are no tables
    of the profile. `updates_elsewhere`: updates that its partitions had and no table of the profile
    has, as far as counters and statements tell; None where nothing tells, or no partition came or
    went.
    """

    schema: str
    name: str
    oid: Oid | None = None
    strategy: str | None = None
    parent: str | None = None
    default: str | None = field(default=None, metadata=UNLESS_NONE)
    update_classes: Whole | None = None
    moved_rows: Whole | None = field(default=None, metadata=UNLESS_NONE)
    came: Whole | None = field(default=None, metadata=UNLESS_NONE)
    went: Whole | None = field(default=None, metadata=UNLESS_NONE)
    updates_elsewhere: Whole | None = field(default=None, metadata=UNLESS_NONE)


@kept
class ObservedForeignKey(Kept):
    """
    A foreign key: columns of a table that refer to those of another, or of its own.

    `left_out`: why the tables of the profile do not have it; None: they have, or the profile is of
    an earlier version.
    """

    schema: str
    table: str
    name: str
    columns: Texts
    references_schema: str
    references: str
    references_columns: Texts
    references_index: str | None = None
    is_valid: bool | None = None
    left_out: str | None = field(default=None, metadata=UNLESS_NONE)


@kept
class ObservedDomain(Kept):
    """A domain; constrained by a CHECK or NOT NULL, its own or of the domain that it is over."""

    schema: str
    name: str
    is_constrained: bool


@kept
class CheckpointCounters(Kept):
    """Checkpoints of the interval."""

    num_timed: AnyCount | None = None
    num_requested: AnyCount | None = None
    totals: Counts | None = None


@kept
class WalCounters(Kept):
    """WAL of the interval, of the whole cluster."""

    wal_records: AnyCount | None = None
    wal_fpi: AnyCount | None = None
    wal_bytes: AnyCount | None = None
    totals: Counts | None = None


@kept
class DatabaseCounters(Kept):
    """Of pg_stat_database."""

    xact_commit: AnyCount | None = None
    totals: Counts | None = None


@kept
class IoCounters(Kept):
    """Of pg_stat_io, of one kind of backend, object and context."""

    backend_type: str
    object: str
    context: str


@kept
class ServerCounters(Kept):
    """Counters of the whole server, over the interval."""

    database: DatabaseCounters | None = field(default=None, metadata=UNLESS_NONE)
    wal: WalCounters | None = field(default=None, metadata=UNLESS_NONE)
    checkpoint: CheckpointCounters | None = field(default=None, metadata=UNLESS_NONE)
    io: tuple[IoCounters, ...] | None = None
    wal_position_bytes: float | None = field(default=None, metadata=UNLESS_NONE)
    wal_bytes_per_s: float | None = field(default=None, metadata=UNLESS_NONE)
    xids: Whole | None = None
    xids_per_s: AnyCount | None = None


DROPPED = "dropped inside the interval"
CREATED = "created inside the interval"
"""Why the profile does not hold a table that was there for a part of the interval alone."""


@kept
class LeftOut(Kept):
    """A table that the profile does not hold; `parent`: the partitioned table that it is of."""

    schema: str
    name: str
    why: str
    parent: str | None = field(default=None, metadata=UNLESS_NONE)

    @property
    def is_told_as_changed(self) -> bool:
        """Whether a line of `changed` says it: of a partition the line of its table does."""
        return self.why == DROPPED or (self.parent is not None and self.why.startswith(CREATED))


@kept
class ObservedStatements(Kept):
    """Where statements were read, and how many."""

    source: str
    detail: str | None = None
    statements: Whole
    calls: Whole
    not_understood: Mapping[str, Whole] | None = None
    notes: Texts | None = None


@kept
class ObservedServer(Kept):
    """`[server.observed]`."""

    tool_version: str | None = None
    observed_at: str
    interval_s: Annotated[float, between(0.001, SECONDS_MAX)]
    passes: Whole | None = None
    server_version: str
    database: str
    database_oid: Oid
    system_identifier: str | None
    role: str | None = None
    in_recovery: bool | None
    broken: Texts
    changed: Texts
    left_out: tuple[LeftOut, ...] | None = None
    partitioned: tuple[Partitioned, ...]
    statements: tuple[ObservedStatements, ...] | None = None
    counters: ServerCounters
    horizon: Horizon
    settings: Mapping[str, ServerSetting] | None = None
    modules: Mapping[str, str]
    assumed: Texts
    access: Access
    masked: bool
    domains: tuple[ObservedDomain, ...] | None = None
    foreign_keys: tuple[ObservedForeignKey, ...] | None = None
    is_idle: bool
    wal: ServerWal | None = field(default=None, metadata=UNLESS_NONE)
