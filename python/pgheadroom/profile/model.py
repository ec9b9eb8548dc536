"""
A whole profile: the server, its tables, what is done to them, and the file they stand in.

Tables and workload have files of their own (`tables.py`, `workload.py`), what `observe` adds has
others (`observed.py`, `observed_server.py`). What has to fit together is in `completing.py` and
`check.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from pgheadroom import _core
from pgheadroom.forms import Expected, Stored, Text, between, in_file, write
from pgheadroom.profile.observed_server import ObservedServer
from pgheadroom.profile.spelling import Words, memory, server_version
from pgheadroom.profile.tables import TableProfile
from pgheadroom.profile.workload import PGBENCH_TABLES, Operation, PgbenchBuiltin, Run, Workload
from pgheadroom.tabular import Row, Tabular
from pgheadroom.types import Assumed

CHECKSUMS_FROM_MAJOR = 18
"""From here on initdb makes clusters with checksums, unless told otherwise."""

TOAST_LZ4_FROM_MAJOR = 19
"""From here on `default_toast_compression` is lz4, in a server that was built with it."""
TOAST_COMPRESSION = "default_toast_compression"

SCHEMA_VERSION = 1


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
class Profile(Tabular):
    """A whole profile; `assumed` has each default that was used, by the field's path."""

    server: ServerSettings
    tables: tuple[TableProfile, ...]
    workload: Workload
    assumed: Assumed = field(default_factory=dict, compare=False)

    def in_file(self) -> ProfileFile:
        """What its file holds."""
        is_own = self.workload.builtin is None
        return ProfileFile(
            schema_version=SCHEMA_VERSION,
            server=self.server,
            tables=self.tables if is_own else (),
            operations=self.workload.operations if is_own else (),
            builtin=self.workload.builtin,
            run=self.workload.run,
        )

    def to_json(self) -> dict[str, Any]:
        """The profile under the file's names; reading it again gives an equal profile."""
        made: dict[str, Any] = write(self.in_file(), nulls=False)
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
    def may_autovacuum(self) -> bool:
        """Whether autovacuum may come: because it is on, or by the age of a table."""
        run = self.workload.run
        return self.server.autovacuum or _core.may_wake_autovacuum(
            dict(self.server.settings), run.operations, run.clients, run.last_vacuum
        )

    @property
    def table_names(self) -> tuple[str, ...]:
        """Names of all tables that take part, pgbench's own too."""
        if self.workload.builtin is not None:
            return PGBENCH_TABLES
        return tuple(table.name for table in self.tables)

    def assumed_on(self, major: int) -> Assumed:
        """The defaults that were used, on a server of this major version."""
        if "server.data_checksums" not in self.assumed:
            return self.assumed
        return {**self.assumed, "server.data_checksums": major >= CHECKSUMS_FROM_MAJOR}

    def as_built(self, major: int, toast_compression: str | None) -> Profile:
        """
        The same profile on a server whose own `default_toast_compression` is this.

        Args:
            major: The server's major version.
            toast_compression: What values are compressed by there, where no setting says so; None
                where nobody can tell.
        """
        of_version = "lz4" if major >= TOAST_LZ4_FROM_MAJOR else "pglz"
        is_known = TOAST_COMPRESSION in self.server.settings
        if is_known or toast_compression in (None, of_version):
            return self
        path = f"server.settings.{TOAST_COMPRESSION}"
        settings = {**self.server.settings, TOAST_COMPRESSION: str(toast_compression)}
        said = f"{toast_compression}, as this server was built"
        return replace(
            self,
            server=replace(self.server, settings=settings),
            assumed={**self.assumed, path: said},
        )

    def with_fillfactor(self, fillfactors: Mapping[str, int]) -> Profile:
        """
        The same profile with another fillfactor for the tables that are named.

        One whose fillfactor that changes is loaded anew, as a rewrite leaves it: its `pages` go.
        """
        unknown = set(fillfactors) - set(self.table_names)
        assert not unknown, f"no such tables: {unknown}"
        builtin = self.workload.builtin
        if builtin is not None:
            changed = replace(builtin, fillfactor={**builtin.fillfactor, **fillfactors})
            return replace(self, workload=replace(self.workload, builtin=changed))
        tables = tuple(
            table.loaded_at(fillfactors.get(table.name, table.fillfactor)) for table in self.tables
        )
        return replace(self, tables=tables)

    def loaded_anew(self) -> Profile:
        """The same with tables whose pages are all as a load, or a rewrite, leaves them."""
        tables = tuple(
            replace(table, pages=(), rows_per_page=None) if table.pages else table
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
