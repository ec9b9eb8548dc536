"""
Sessions on a user's database: how we connect, and the read-only one with its timeouts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, ClassVar, Self

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
    "idle_session_timeout": "0",  # an interval that somebody asked for is no idleness
    "search_path": "pg_catalog",
}
_OF_TRANSACTION = {"default_transaction_read_only": "transaction_read_only"}
"""What a setting of the session is called for a transaction that has begun."""


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


def set_for_session(connection: psycopg.Connection[Any], name: str, value: str) -> None:
    """
    Have all that is asked from now on run with a setting.

    Args:
        connection: From `read_only_session`, or one that is nobody else's.
        name: Of the setting.
        value: Its own.
    """
    settings = getattr(connection.cursor_factory, "settings", None)
    if settings is None:
        connection.execute("SELECT set_config(%s, %s, false)", (name, value))
    else:
        settings[name] = value


def _is_pooled(connection: psycopg.Connection[Any]) -> bool:
    """Whether somebody hands our statements on: a pooler makes up the process that it names."""
    row = connection.execute("SELECT pg_catalog.pg_backend_pid()").fetchone()
    return row is not None and int(row[0]) != connection.info.backend_pid


def _set_each_time(connection: psycopg.Connection[Any]) -> None:
    """
    Set nothing that outlives a statement.

    In a pooler's transaction mode each statement may go to another server connection, and the next
    who gets that is an application: what we set for a session would be its own, and no RESET would
    find it again.
    """
    import psycopg  # noqa: PLC0415 - loads libpq, as above

    class OneTransaction(psycopg.Cursor[Any]):
        """Runs each statement in a transaction of its own, with the settings in it."""

        settings: ClassVar[dict[str, str]] = dict(_SETTINGS)

        def execute(self, *args: Any, **options: Any) -> Self:
            with self.connection.transaction():
                calls = ", ".join(["pg_catalog.set_config(%s, %s, true)"] * len(self.settings))
                pairs = [
                    text
                    for name, value in self.settings.items()
                    for text in (_OF_TRANSACTION.get(name, name), value)
                ]
                psycopg.Cursor(self.connection).execute(f"SELECT {calls}".encode(), pairs)
                return super().execute(*args, **options)

    connection.prepare_threshold = None
    connection.cursor_factory = OneTransaction


def _put_back(connection: psycopg.Connection[Any]) -> None:
    """Leave a session as it was found; one that has ended needs nothing."""
    import psycopg  # noqa: PLC0415 - loads libpq, as above

    if connection.closed or hasattr(connection.cursor_factory, "settings"):
        return
    with suppress(psycopg.Error):
        connection.execute("RESET ALL")


@contextmanager
def read_only_session(
    conninfo: str, parameters: Mapping[str, str]
) -> Iterator[psycopg.Connection[Any]]:
    """
    Open a session that only reads, and leave nothing set in it.

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
            if _is_pooled(connection):
                _set_each_time(connection)
            else:
                for name, value in _SETTINGS.items():
                    set_for_session(connection, name, value)
            try:
                yield connection
            finally:
                _put_back(connection)
        except psycopg.OperationalError as error:
            raise ConnectionFailed(f"the connection ended: {str(error).strip()}") from None
        except psycopg.Error as error:
            raise SourceError(f"the database did not answer: {str(error).strip()}") from None
