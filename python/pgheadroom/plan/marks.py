"""
Fingerprints of tables and of the database: from an observed profile, and from the catalog now.

Both go through the same functions of `observe`, so that an unchanged table gives an equal mark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgheadroom.errors import SourceError
from pgheadroom.observe.index_row import read_index
from pgheadroom.observe.indexes import observed_index
from pgheadroom.plan.values import ColumnMark, IndexMark, TableMark, Target
from pgheadroom.profile import Profile
from pgheadroom.profile.observed import ObservedIndex
from pgheadroom.profile.tables import TableProfile
from pgheadroom.sources.observing import ask
from pgheadroom.sources.recording import AnswerRow, Recording
from pgheadroom.types import PgVersion

if TYPE_CHECKING:
    import psycopg

QUERIES = (
    "identity",
    "cluster",
    "instant",
    "tables",
    "columns",
    "indexes",
    "index_definitions",
    "table_counters",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTable:
    """A table in the catalog now, with the rows that its counters have; None uncounted."""

    mark: TableMark
    relkind: str
    inserts: int | None
    updates: int | None
    deletes: int | None
    vacuums: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """The database now, its tables by OID."""

    target: Target
    in_recovery: bool
    tables: Mapping[int, FoundTable]

    @property
    def names(self) -> dict[tuple[str, str], int]:
        """OIDs by schema and name."""
        return {(one.mark.schema, one.mark.name): oid for oid, one in self.tables.items()}


def target_of(profile: Profile) -> Target:
    """The database of an observed, unmasked profile."""
    observed = profile.server.observed
    assert observed is not None, "the caller has checked that the profile is observed"
    return Target(
        system_identifier=observed.system_identifier,
        database_oid=int(observed.database_oid),
        database=str(observed.database),
        server_version=str(profile.server.version),
        is_superuser=observed.access.is_superuser,
    )


def mark_of(table: TableProfile) -> TableMark:
    """The fingerprint of a table when it was observed."""
    facts = table.observed
    assert facts is not None, "tables of an observed profile are observed"
    options = facts.reloptions
    if options is None:  # of an earlier release: 100 stands for not set
        options = {k: v for k, v in table.reloptions.items() if not k.startswith("toast.")}
        options |= {} if table.fillfactor == 100 else {"fillfactor": str(table.fillfactor)}
    return TableMark(
        schema=str(facts.schema),
        name=str(facts.name),
        oid=int(facts.oid),
        relfilenode=int(facts.relfilenode),
        columns=tuple(ColumnMark(name=column.name, type=column.type) for column in facts.columns),
        indexes=_indexes(facts.indexes),
        reloptions=dict(options),
    )


def _indexes(facts: Sequence[ObservedIndex]) -> tuple[IndexMark, ...]:
    made = [
        IndexMark(
            name=index.name,
            method=index.method,
            is_unique=index.is_unique,
            columns=index.columns,
            include=index.include or (),
            expressions=_text(index.expressions),
            predicate=index.predicate,
        )
        for index in facts
    ]
    return tuple(sorted(made, key=lambda index: index.name))


def _text(found: str | Sequence[str] | None) -> str | None:
    """Expressions as one text."""
    return found if found is None or isinstance(found, str) else ", ".join(found)


def read_catalog(connection: psycopg.Connection[Any]) -> Catalog:
    """
    The database as it is now.

    Raises:
        SourceError: A query of the catalog had no answer.
    """
    recording = ask(connection, QUERIES)
    # The cluster's number may be kept from the role; everything else is anyone's.
    failed = [line for line in recording.failures() if line.query != "cluster"]
    if failed:
        said = "; ".join(f"{line.query}: {line.failed}" for line in failed)
        raise SourceError(f"the catalog could not be read ({said}): expected every query to answer")
    return _catalog(recording)


def _catalog(recording: Recording) -> Catalog:
    identity = recording.row("identity", "shape") or {}
    cluster = recording.row("cluster", "shape") or {}
    instant = recording.row("instant", "shape") or {}
    version = PgVersion.of_server(
        int(identity["server_version_num"]), str(identity["server_version"])
    )
    columns: dict[int, list[AnswerRow]] = {}
    for row in recording.rows("columns"):
        columns.setdefault(int(row["oid"]), []).append(row)
    indexes: dict[int, list[AnswerRow]] = {}
    for row in recording.rows("indexes"):
        indexes.setdefault(int(row["table_oid"]), []).append(row)
    definitions = {int(row["oid"]): row for row in recording.rows("index_definitions")}
    counters = {int(row["oid"]): row for row in recording.rows("table_counters")}
    tables = {}
    for row in recording.rows("tables"):
        oid = int(row["oid"])
        own = columns.get(oid, [])
        live = [column for column in own if not column["is_dropped"]]
        names = {int(column["attnum"]): str(column["name"]) for column in live}
        numbers = [column["attnum"] for column in own]
        facts = [
            observed_index(
                read_index(index, definitions.get(int(index["oid"])), numbers),
                names,
                version.major,
            )
            for index in indexes.get(oid, ())
        ]
        counted = counters.get(oid)
        tables[oid] = FoundTable(
            mark=TableMark(
                schema=str(row["schema"]),
                name=str(row["name"]),
                oid=oid,
                relfilenode=int(row["relfilenode"]),
                columns=tuple(
                    ColumnMark(name=str(column["name"]), type=str(column["type"]))
                    for column in live
                ),
                indexes=_indexes(facts),
                reloptions={k: str(v) for k, v in (row["reloptions"] or {}).items()},
            ),
            relkind=str(row["relkind"]),
            inserts=None if counted is None else int(counted["n_tup_ins"]),
            updates=None if counted is None else int(counted["n_tup_upd"]),
            deletes=None if counted is None else int(counted["n_tup_del"]),
            vacuums=None
            if counted is None
            else int(counted["vacuum_count"]) + int(counted["autovacuum_count"]),
        )
    return Catalog(
        target=Target(
            system_identifier=cluster.get("system_identifier"),
            database_oid=int(identity["database_oid"]),
            database=str(identity["database"]),
            server_version=str(version),
        ),
        in_recovery=bool(instant["in_recovery"]),
        tables=tables,
    )
