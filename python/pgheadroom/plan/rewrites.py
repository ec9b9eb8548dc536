"""
What can rewrite a table on a server, and why the others cannot.

Each rule is what a server said when the tool was run on such a table: REPACK of 19rc1, pg_squeeze
1.9.4 and pg_repack 1.5.3 on 18.6 (`tests/postgres/test_rewrites.py` runs them again). What an older
profile does not say is taken to be in order.

Source: `check_concurrent_repack_requirements`, src/backend/commands/repack.c (REL_19_STABLE);
`squeeze_table_impl`, pg_squeeze.c; `primary_keys`, pg_repack.sql.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pgheadroom.plan.statements import REPACK_FROM_MAJOR, REWRITES
from pgheadroom.plan.values import Tool
from pgheadroom.profile.observed import ObservedIndex, ObservedTable
from pgheadroom.profile.observed_server import ObservedServer, ServerSetting

_NO_IDENTITY = "the table has no primary key and no index as its replica identity"
_NOT_LOGGED = "the table is not logged"
_NOT_INSTALLED = "the extension is not installed in the database"
_ASKED = "max_replication_slots"
"""Whether a profile was observed with the settings that the tools need."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewritableIndex:
    """An index of a table that was not observed; fields as `ObservedIndex` has them."""

    is_unique: bool
    is_primary: bool
    is_valid: bool | None
    is_nullable: bool | None
    is_deferrable: bool | None
    is_replica_identity: bool | None
    expressions: str | None
    predicate: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RewritableTable:
    """A table that was not observed; fields as `ObservedTable` has them."""

    persistence: str | None
    replica_identity: str | None
    indexes: tuple[RewritableIndex, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RewritingServer:
    """A server that was not observed: its settings, and the names of its extensions."""

    settings: Mapping[str, ServerSetting]
    modules: tuple[str, ...]


_Table = ObservedTable | RewritableTable


def usable_rewrites(
    table: _Table, server: ObservedServer | RewritingServer, *, major: int, wal_level: str
) -> tuple[list[Tool], dict[Tool, str]]:
    """
    Find what can rewrite a table there, best first; and why the others cannot.

    Args:
        table: What was observed of it.
        server: What was observed of the server: modules and settings.
        major: The server's version.
        wal_level: The setting in force.
    """
    settings = server.settings or {}
    found: dict[Tool, str | None] = {
        "REPACK (CONCURRENTLY)": _repack(table, settings, major, wal_level),
        "pg_squeeze": _NOT_INSTALLED
        if "pg_squeeze" not in server.modules
        else _squeeze(table, settings, major, wal_level),
        "pg_repack": _NOT_INSTALLED if "pg_repack" not in server.modules else _pg_repack(table),
        "VACUUM FULL": None,
    }
    unfit = {tool: why for tool, why in found.items() if why is not None}
    return [tool for tool in REWRITES if tool not in unfit], unfit


def _repack(
    table: _Table, settings: Mapping[str, ServerSetting], major: int, wal_level: str
) -> str | None:
    if major < REPACK_FROM_MAJOR:
        return f"it is of version {REPACK_FROM_MAJOR}"
    if wal_level == "minimal":
        return "wal_level is minimal, and it needs replica"
    if _setting(settings, "max_repack_replication_slots") == "0":
        return "max_repack_replication_slots is 0"
    if not _is_logged(table):
        return _NOT_LOGGED
    if table.replica_identity in ("full", "nothing"):
        return f"the table's REPLICA IDENTITY is {table.replica_identity.upper()}"
    identity = _identity(table)
    if identity is None:
        return _NO_IDENTITY
    return "the table's primary key is deferrable" if identity.is_deferrable else None


def _squeeze(
    table: _Table, settings: Mapping[str, ServerSetting], major: int, wal_level: str
) -> str | None:
    if _ASKED in settings and "squeeze.max_xlock_time" not in settings:
        return "its library is not in shared_preload_libraries"
    # From 19 a logical slot makes wal_level = replica logical (effective_wal_level).
    if wal_level != "logical" and (major < REPACK_FROM_MAJOR or wal_level == "minimal"):
        return f"wal_level is {wal_level}, and it needs logical"
    if _setting(settings, "max_replication_slots") == "0":
        return "max_replication_slots is 0"
    if _setting(settings, "output_plugin_libraries") == "":
        return "output_plugin_libraries does not name it, so that the server refuses its decoding"
    if not _is_logged(table):
        return _NOT_LOGGED
    if table.replica_identity == "nothing":
        return "the table's REPLICA IDENTITY is NOTHING"
    return _NO_IDENTITY if _identity(table) is None else None


def _pg_repack(table: _Table) -> str | None:
    if not _is_logged(table):
        return _NOT_LOGGED
    fit = any(
        index.is_unique
        and index.is_valid is not False
        and not index.is_nullable
        and index.predicate is None
        and index.expressions is None
        for index in table.indexes
    )
    return None if fit else "the table has no unique index over NOT NULL columns"


def _identity(table: _Table) -> ObservedIndex | RewritableIndex | None:
    """Source: `RelationGetReplicaIndex`, and the primary key where that has none."""
    usable = [index for index in table.indexes if index.is_valid is not False]
    chosen = [index for index in usable if index.is_replica_identity]
    return next(iter(chosen or [index for index in usable if index.is_primary]), None)


def _is_logged(table: _Table) -> bool:
    return table.persistence == "permanent"


def _setting(settings: Mapping[str, ServerSetting], name: str) -> str | None:
    found = settings.get(name)
    return None if found is None else found.setting
