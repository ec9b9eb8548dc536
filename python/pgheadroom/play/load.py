"""
Loading a profile: tables, rows by one INSERT each, indexes, foreign keys, VACUUM ANALYZE.

Tables whose pages are not full are loaded with fillers (`page_kinds.py`).

Never COPY, which over-extends a table from 16 on. An index's expressions and predicate are text of
the profile; they are sent as one prepared statement each, so that no second statement can hide.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from pgheadroom import quoting
from pgheadroom.errors import LabError
from pgheadroom.play.page_kinds import fill_with_gaps
from pgheadroom.play.type_values import COMPOSITE, enum_type, sql_type
from pgheadroom.play.values import column_list, row_values
from pgheadroom.profile import ColumnProfile, ForeignKey, IndexProfile, Profile, TableProfile
from pgheadroom.profile.column_types import EXTENSIONS, OPERATORS_OF

if TYPE_CHECKING:
    import psycopg


def load(connection: psycopg.Connection[Any], profile: Profile) -> None:
    """
    Create and fill the profile's own tables.

    Args:
        connection: A session in an empty database, in autocommit mode.
        profile: A profile with tables of its own.
    """
    _check_compression(connection, profile)
    create_types(connection, profile)
    for table in profile.tables:
        connection.execute(create_table(table).encode())
        for statement in set_storage(table):
            connection.execute(statement.encode())
        if table.pages:
            fill_with_gaps(connection, table)
        else:
            connection.execute(fill_table(table).encode())
        for index in table.indexes:
            connection.execute(create_index(table, index).encode(), prepare=True)
    for table in profile.tables:
        for foreign_key in table.foreign_keys:
            connection.execute(add_foreign_key(profile, table, foreign_key).encode())
    for table in profile.tables:
        connection.execute(f"VACUUM ANALYZE {quoting.identifier(table.name)}".encode())


def create_types(connection: psycopg.Connection[Any], profile: Profile) -> None:
    """
    Make the types that the profile has beside the built-in ones; of a superuser's session.

    The composite type and enums come first: their OIDs, and those of labels, are stored in values,
    and the twin counts them from the first.
    """
    made = set()
    columns = [column for table in profile.tables for column in table.columns]
    if any(column.base_type == "composite" for column in columns):
        connection.execute(f"CREATE TYPE {COMPOSITE} AS (v text)".encode())
    for column in columns:
        name = enum_type(column) if column.labels else ""
        if not name or name in made:
            continue
        made.add(name)
        labels = ", ".join(quoting.literal(label) for label in column.labels)
        connection.execute(f"CREATE TYPE {name} AS ENUM ({labels})".encode())
    for extension in extensions(profile):
        _create_extension(connection, extension)


def _check_compression(connection: psycopg.Connection[Any], profile: Profile) -> None:
    """Whether the server was built with what columns are compressed by."""
    row = connection.execute(
        "SELECT enumvals FROM pg_settings WHERE name = 'default_toast_compression'"
    ).fetchone()
    assert row is not None, "a setting of every server from 14 on"
    for table in profile.tables:
        for column in table.columns:
            if column.compression is not None and column.compression not in row[0]:
                raise LabError(
                    f"this server was built without {column.compression}, by which "
                    f"{table.name}.{column.name} is compressed: expected one with it (Debian's "
                    "are; make servers has some)"
                )


def extensions(profile: Profile) -> tuple[str, ...]:
    """The extensions whose types or operator classes the profile has."""
    types = (column.base_type for table in profile.tables for column in table.columns)
    indexes = (index for table in profile.tables for index in table.indexes)
    opclasses = (name for index in indexes for name in index.opclass)
    named = itertools.chain(map(EXTENSIONS.get, types), map(OPERATORS_OF.get, opclasses))
    return tuple(dict.fromkeys(name for name in named if name is not None))


def _create_extension(connection: psycopg.Connection[Any], name: str) -> None:
    row = connection.execute(
        "SELECT count(*) FROM pg_available_extensions WHERE name = %s", (name,)
    ).fetchone()
    if row is None or not row[0]:
        raise LabError(
            f"this server has no extension {name}, which the profile needs: expected one "
            "with contrib modules (make servers has some)"
        )
    connection.execute(f"CREATE EXTENSION IF NOT EXISTS {quoting.identifier(name)}".encode())


def create_table(table: TableProfile) -> str:
    """The CREATE TABLE statement."""
    columns = ", ".join(map(_column, table.columns))
    options = [f"fillfactor = {table.fillfactor}"]
    options += [f"{name} = {quoting.literal(value)}" for name, value in table.reloptions.items()]
    kind = "UNLOGGED TABLE" if table.unlogged else "TABLE"
    return f"CREATE {kind} {quoting.identifier(table.name)} ({columns}) WITH ({', '.join(options)})"


def set_storage(table: TableProfile) -> tuple[str, ...]:
    """What gives columns a STORAGE of their own, which CREATE TABLE takes from 16 on."""
    return tuple(
        f"ALTER TABLE {quoting.identifier(table.name)} ALTER {quoting.identifier(column.name)} "
        f"SET STORAGE {column.storage}"
        for column in table.columns
        if column.storage is not None
    )


def _column(column: ColumnProfile) -> str:
    own = "" if column.compression is None else f" COMPRESSION {column.compression}"
    return f"{quoting.identifier(column.name)} {sql_type(column)}{own}"


def fill_table(table: TableProfile) -> str:
    """The INSERT that loads all rows."""
    values = row_values(table, 'g."row"')
    return (
        f"INSERT INTO {quoting.identifier(table.name)} ({column_list(table)}) SELECT {values} "
        f'FROM generate_series(1::int8, {table.rows}::int8) AS g("row")'
    )


def create_index(table: TableProfile, index: IndexProfile) -> str:
    """The CREATE INDEX statement."""
    keys = [quoting.identifier(name) for name in index.columns]
    keys += [f"({expression})" for expression in index.expressions]
    for n, opclass in enumerate(index.opclass):
        keys[n] += f" {quoting.identifier(opclass)}" if opclass else ""
    for n, order in enumerate(index.order):
        keys[n] += f" {order}" if order else ""
    unique = "UNIQUE " if index.unique else ""
    sql = (
        f"CREATE {unique}INDEX {quoting.identifier(index.name)} "
        f"ON {quoting.identifier(table.name)} USING {index.method} ({', '.join(keys)})"
    )
    if index.include:
        sql += f" INCLUDE ({', '.join(quoting.identifier(name) for name in index.include)})"
    if index.nulls_not_distinct:
        sql += " NULLS NOT DISTINCT"
    options = []
    if index.pages_per_range is not None:
        options.append(f"pages_per_range = {index.pages_per_range}")
    if index.fillfactor is not None:
        options.append(f"fillfactor = {index.fillfactor}")
    if index.deduplicate_items is not None:
        options.append(f"deduplicate_items = {'on' if index.deduplicate_items else 'off'}")
    if index.fastupdate is not None:
        options.append(f"fastupdate = {'on' if index.fastupdate else 'off'}")
    if index.gin_pending_list_limit is not None:
        options.append(f"gin_pending_list_limit = {index.gin_pending_list_limit}")
    if options:
        sql += f" WITH ({', '.join(options)})"
    return sql if index.where is None else f"{sql} WHERE ({index.where})"


def add_foreign_key(profile: Profile, table: TableProfile, foreign_key: ForeignKey) -> str:
    """The ALTER TABLE that makes a column refer to another table's key."""
    parent = profile.table(foreign_key.references)
    assert parent.key is not None, "a table that is referred to has a key"
    return (
        f"ALTER TABLE {quoting.identifier(table.name)} "
        f"ADD FOREIGN KEY ({quoting.identifier(foreign_key.column)}) "
        f"REFERENCES {quoting.identifier(parent.name)} ({quoting.identifier(parent.key.name)})"
    )
