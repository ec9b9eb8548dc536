"""
Sessions on a user's database: how we connect, and the read-only one with its timeouts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pgheadroom.errors import ConnectionFailed, ConnectionMisread, SourceError, UnsupportedServer
from pgheadroom.redaction import refuse_misread

if TYPE_CHECKING:
    import psycopg

VERSION_MIN = 15
_SETTINGS = {
    "default_transaction_read_only": "on",
    "statement_timeout": "30s",  # catalog queries take milliseconds; arbitrary
    "lock_timeout": "1s",  # never queue behind DDL, and so never make others queue behind us
    "idle_in_transaction_session_timeout": "60s",
    "search_path": "pg_catalog",
}


def connect(conninfo: str, parameters: Mapping[str, str]) -> psycopg.Connection[Any]:
    """
    Connect as a user says it, in autocommit mode, without changing any setting of the session.

    Args:
        conninfo: A libpq URI or conninfo string, empty for the environment (PGHOST, ...).
        parameters: libpq parameters that overrule it.

    Raises:
        ConnectionMisread: It is neither a URI nor keywords.
        ConnectionFailed: No connection.
        UnsupportedServer: An older server than 15.
    """
    import psycopg  # noqa: PLC0415 - loads libpq, which most commands do not need
    from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415

    try:
        refuse_misread(conninfo_to_dict(conninfo))
    except psycopg.ProgrammingError:
        raise ConnectionMisread(
            "the connection is not understood: expected an existing file, postgresql://user@host/"
            "dbname, or 'host=... dbname=...'"
        ) from None
    named = {"connect_timeout": "10", "application_name": "pgheadroom", **parameters}
    try:
        connection = psycopg.connect(conninfo, **named, autocommit=True)  # type: ignore[arg-type]
    except psycopg.Error as error:
        raise ConnectionFailed(f"no connection: {str(error).strip()}") from None
    if connection.info.server_version // 10000 < VERSION_MIN:
        found = connection.info.parameter_status("server_version")
        connection.close()
        raise UnsupportedServer(f"the server is version {found}, expected {VERSION_MIN} or later")
    return connection


def _read_texts(connection: psycopg.Connection[Any]) -> None:
    """
    Have texts read as UTF-8 where the database does not say what its bytes are.

    Names of other databases may be of any encoding, whatever this one's is.
    """
    from psycopg import adapt, pq  # noqa: PLC0415 - loads libpq, as above

    # What else the client asked for (PGCLIENTENCODING) says how bytes are meant.
    if connection.info.parameter_status("client_encoding") not in ("SQL_ASCII", "UTF8"):
        return

    class AssumedUtf8(adapt.Loader):
        """Any bytes come back as they went."""

        format = pq.Format.TEXT

        def load(self, data: adapt.Buffer) -> str:
            return bytes(data).decode("utf-8", "surrogateescape")

    # The number is of types that psycopg does not know.
    for kind in ("text", "varchar", "bpchar", "name", '"char"', 0):
        connection.adapters.register_loader(kind, AssumedUtf8)


@contextmanager
def read_only_session(
    conninfo: str, parameters: Mapping[str, str]
) -> Iterator[psycopg.Connection[Any]]:
    """
    Open a session that only reads.

    Args:
        conninfo: A libpq URI or conninfo string, empty for the environment (PGHOST, ...).
        parameters: libpq parameters that overrule it.

    Raises:
        ConnectionMisread: It is neither a URI nor keywords.
        ConnectionFailed: No connection, or it ended.
        UnsupportedServer: An older server than 15.
        SourceError: A query failed.
    """
    import psycopg  # noqa: PLC0415 - loads libpq, which most commands do not need

    with connect(conninfo, parameters) as connection:
        try:
            _read_texts(connection)
            for name, value in _SETTINGS.items():
                connection.execute("SELECT set_config(%s, %s, false)", (name, value))
            yield connection
        except psycopg.OperationalError as error:
            raise ConnectionFailed(f"the connection ended: {str(error).strip()}") from None
        except psycopg.Error as error:
            raise SourceError(f"the database did not answer: {str(error).strip()}") from None
