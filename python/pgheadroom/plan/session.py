"""
The one session of ours that writes: `apply`'s.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from pgheadroom.errors import ConnectionFailed, PrivilegeMissing, SourceError
from pgheadroom.plan.marks import Catalog, read_catalog
from pgheadroom.plan.statements import name_of
from pgheadroom.plan.values import TableMark
from pgheadroom.quoting import printable
from pgheadroom.sources import sql
from pgheadroom.sources.session import connect

if TYPE_CHECKING:
    import psycopg

APPLICATION_NAME = "pgheadroom apply"
LOCK_CLASS = 1885825138  # "pghr" as four bytes
"""First half of the advisory lock that keeps two applies of one database apart."""

LOCK_WAIT_S = 5.0
LOCK_TRIES = 50
"""A call that ended has its lock until its server process ends, on a busy machine a while later."""


@contextmanager
def writing_session(
    conninfo: str, parameters: Mapping[str, str]
) -> Iterator[psycopg.Connection[Any]]:
    """
    Open a session that may write, alone among ours in its database.

    Args:
        conninfo: A libpq URI or conninfo string, empty for the environment.
        parameters: libpq parameters that overrule it.

    Raises:
        InputError: The connection string is not understood.
        ConnectionFailed: No connection.
        UnsupportedServer: An older server than 15.
        SourceError: Another apply is at work on the database, or a query failed.
    """
    import psycopg  # noqa: PLC0415 - loads libpq, which most commands do not need

    named = {"application_name": APPLICATION_NAME, **parameters}
    with connect(conninfo, named) as connection:
        # A pooler's server connection is not ours alone: nothing prepared.
        connection.prepare_threshold = None
        try:
            for name, value in (
                ("default_transaction_read_only", "off"),
                ("search_path", "pg_catalog"),
                ("client_encoding", "UTF8"),
            ):
                connection.execute("SELECT set_config(%s, %s, false)", (name, value))
            _be_alone(connection)
            yield connection
            # A server process ends a moment after its client: the next call need not wait for it.
            with suppress(psycopg.Error):
                connection.execute("SELECT pg_advisory_unlock(%s, 1)", (LOCK_CLASS,))
        except psycopg.OperationalError as error:
            raise ConnectionFailed(f"the connection ended: {str(error).strip()}") from None
        except psycopg.Error as error:
            raise SourceError(f"the database did not answer: {str(error).strip()}") from None


def _be_alone(connection: psycopg.Connection[Any]) -> None:
    for _ in range(LOCK_TRIES):
        row = connection.execute("SELECT pg_try_advisory_lock(%s, 1)", (LOCK_CLASS,)).fetchone()
        if row is not None and row[0]:
            return
        time.sleep(LOCK_WAIT_S / LOCK_TRIES)
    raise SourceError(
        "another `pgheadroom apply` is at work on this database, or one that was killed "
        f"still is on the server: expected to be alone; look for application_name "
        f"'{APPLICATION_NAME}' in pg_stat_activity, wait until it is gone, and run the "
        "same again"
    )


def look_now(connection: psycopg.Connection[Any]) -> Catalog:
    """
    The catalog as it is.

    Raises:
        ConnectionFailed: The connection has ended.
        SourceError: A query failed.
    """
    import psycopg  # noqa: PLC0415 - loads libpq, which most commands do not need

    try:
        return read_catalog(connection)
    except psycopg.OperationalError as error:
        raise ConnectionFailed(f"the connection ended: {str(error).strip()}") from None
    except psycopg.Error as error:
        raise SourceError(f"the database did not answer: {str(error).strip()}") from None


def foreign_owners(
    connection: psycopg.Connection[Any], marks: Sequence[TableMark]
) -> dict[int, str]:
    """The owners, by OID, of the tables that this role may not change."""
    query = sql.apply_text("owners")
    rows = connection.execute(query.encode(), {"oids": [mark.oid for mark in marks]}).fetchall()
    return {oid: printable(owner) for oid, owns, owner in rows if not owns}


def check_rights(connection: psycopg.Connection[Any], marks: Sequence[TableMark]) -> None:
    """
    Refuse before the first write what would fail for want of a right.

    Raises:
        PrivilegeMissing: Some table's owner is a role that this one is no member of.
    """
    foreign = foreign_owners(connection, marks)
    if foreign:
        named = {mark.oid: name_of(mark) for mark in marks}
        tables = ", ".join(f"{named[oid]} (owner {owner})" for oid, owner in foreign.items())
        role = printable(connection.info.user)
        raise PrivilegeMissing(
            f"only its owner may change a table: found role {role}, which does not own {tables}; "
            "expected the owner, a member of it, or a superuser. Nothing was changed"
        )


def holders(connection: psycopg.Connection[Any], oid: int) -> str | None:
    """Who holds a lock on a table, in words; None where nobody does, or it cannot be seen."""
    import psycopg  # noqa: PLC0415 - loads libpq, which most commands do not need

    try:
        rows = connection.execute(sql.apply_text("holders").encode(), {"oid": oid}).fetchall()
    except psycopg.Error:
        return None
    said = [
        f"{mode} by process {pid} ({who or 'unknown'}, {state or 'state hidden'}"
        + (f", transaction open for {age_s:.0f} s)" if age_s is not None else ")")
        for pid, mode, who, state, age_s in rows
    ]
    return "; ".join(said) or None


def heap_bytes(connection: psycopg.Connection[Any], mark: TableMark) -> int | None:
    """Size of the table's main fork; None where it is locked, or cannot be had."""
    import psycopg  # noqa: PLC0415 - loads libpq, which most commands do not need

    try:
        row = connection.execute("SELECT pg_relation_size(%s::oid)", (mark.oid,)).fetchone()
    except psycopg.Error:
        return None
    return None if row is None or row[0] is None else int(row[0])
