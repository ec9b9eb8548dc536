"""
What relations are called: WAL knows the numbers of their files alone.

WAL is of the whole cluster and `pg_class` of one database, so all databases are asked that can be
reached. A relation gets another file when it is rewritten: a names file keeps every one that it has
seen.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgheadroom.errors import InputError, SourceError
from pgheadroom.forms import FieldError, Filed, fail, in_file, read, unframed
from pgheadroom.input_file import read_text
from pgheadroom.quoting import called

if TYPE_CHECKING:
    from pgheadroom.profile import Profile

NAMES_EXPECTED = "a names file (`wal names`) or a profile (`observe`)"

_FILE_BYTES_MAX = 256 * 1024**2  # a million relations; arbitrary


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationName:
    """
    A relation's file and what it is called.

    `name` has the schema where that is not `public`; `table` is that of an index or a TOAST table,
    `method` the access method. `database` is None of shared catalogs, the tablespace's oid of a
    profile, which does not know it. `oid` and `table_oid` are those of the relation and of its
    table, which stay when it is renamed; files of earlier versions do not have them.
    """

    tablespace_oid: int | None
    database_oid: int | None
    relfilenode: int
    database: str | None
    name: str
    table: str | None = field(default=None, metadata=in_file(unless_none=True))
    method: str | None = field(default=None, metadata=in_file(unless_none=True))
    oid: int | None = field(default=None, metadata=in_file(unless_none=True))
    table_oid: int | None = field(default=None, metadata=in_file(unless_none=True))


@dataclass(frozen=True, kw_only=True)
class Names(Filed):
    """
    Names of relations.

    `not_reached` are databases that could not be asked, each with the reason.
    """

    KIND = "wal_names"

    relations: tuple[RelationName, ...]
    not_reached: Mapping[str, str] = field(default_factory=dict)

    def of(self, tablespace: int, database: int, relfilenode: int) -> RelationName | None:
        """The relation of a file; None where the names do not have it."""
        exact = self._known.get((tablespace, database, relfilenode))
        return exact or self._known.get((None, database, relfilenode))

    @cached_property
    def _known(self) -> Mapping[tuple[int | None, int | None, int], RelationName]:
        return {
            (found.tablespace_oid, found.database_oid, found.relfilenode): found
            for found in self.relations
        }


def read_names(path: Path) -> Names:
    """
    Read a names file, or the names of a profile.

    Raises:
        InputError: Neither, or a field is wrong.
    """
    from pgheadroom.profile import read_profile  # noqa: PLC0415 - most logs are read without one

    text = read_text(path, bytes_max=_FILE_BYTES_MAX, expected=NAMES_EXPECTED)
    data = _json(text)
    if data is None or data.get("kind") != Names.KIND:
        return _of_profile(read_profile(path))
    try:
        if data.get("schema_version") != Names.VERSION:
            fail("schema_version", data.get("schema_version"), str(Names.VERSION))
        return read(Names, unframed(data))
    except FieldError as error:
        raise InputError(f"{path}: {error}") from None


def _json(text: str) -> dict[str, Any] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _of_profile(profile: Profile) -> Names:
    server = profile.server.observed
    if server is None:
        return Names(relations=())
    return Names(
        relations=tuple(
            RelationName(
                tablespace_oid=None,
                database_oid=server.database_oid,
                relfilenode=table.observed.relfilenode,
                database=server.database,
                name=table.name,
            )
            for table in profile.tables
            if table.observed is not None
        )
    )


def names_of_server(conninfo: str, parameters: Mapping[str, str]) -> Names:
    """
    Ask every database that can be reached, only reading.

    Raises:
        ConnectionFailed: Not even the first one.
    """
    # Files are read without a driver.
    from pgheadroom.sources.session import read_only_session  # noqa: PLC0415

    with read_only_session(conninfo, parameters) as connection:
        databases = [
            str(row[0])
            for row in connection.execute(
                "SELECT datname FROM pg_database WHERE datallowconn ORDER BY datname"
            )
        ]
    found: dict[tuple[int | None, int | None, int], RelationName] = {}
    not_reached: dict[str, str] = {}
    for database in databases:
        try:
            for relation in _of_database(conninfo, {**parameters, "dbname": database}):
                found[relation.tablespace_oid, relation.database_oid, relation.relfilenode] = (
                    relation
                )
        except (SourceError, UnicodeError) as error:
            not_reached[database] = str(error)
    return Names(relations=tuple(found.values()), not_reached=not_reached)


def _of_database(conninfo: str, parameters: Mapping[str, str]) -> list[RelationName]:
    from pgheadroom.sources import sql  # noqa: PLC0415 - as above
    from pgheadroom.sources.session import read_only_session  # noqa: PLC0415

    with read_only_session(conninfo, parameters) as connection:
        return [
            RelationName(
                tablespace_oid=tablespace,
                database_oid=database,
                relfilenode=relfilenode,
                database=database_name,
                name=called(schema, name),
                table=None if table is None else called(table_schema, table),
                method=method,
                oid=oid,
                table_oid=table_oid,
            )
            for (
                tablespace, database, relfilenode, database_name, schema, name, method,
                table_schema, table, oid, table_oid,
            ) in connection.execute(sql.wal_text("relations").encode())
        ]  # fmt: skip


class NamesMeanwhile:
    """
    What a server's relations are called over an interval: asked before it, and called behind it.

        before:  t -> 16384                 d -> 16390
        behind:  t -> 16402    n -> 16395

    A table that was rewritten has a file on either side, one that was made or dropped on one. What
    was made and dropped within the interval, or rewritten twice, has a file that nobody names, and
    so has what a transaction made that had not committed.

    Raises:
        ConnectionFailed: No connection.
    """

    def __init__(self, conninfo: str, parameters: Mapping[str, str]) -> None:
        self._asked = (conninfo, dict(parameters))
        self._before = names_of_server(*self._asked)

    def __call__(self) -> Names:
        """Ask again; names of both moments. What was asked before stays, whatever comes now."""
        try:
            now = names_of_server(*self._asked)
        except SourceError as error:
            not_reached = {**self._before.not_reached, "the server, at the end,": str(error)}
            return replace(self._before, not_reached=not_reached)
        return add_names(self._before, now)


def add_names(before: Names, now: Names) -> Names:
    """Names of both; of a file that both have, the later ones."""
    found = {(r.tablespace_oid, r.database_oid, r.relfilenode): r for r in before.relations}
    found |= {(r.tablespace_oid, r.database_oid, r.relfilenode): r for r in now.relations}
    return Names(relations=tuple(found.values()), not_reached=now.not_reached)
