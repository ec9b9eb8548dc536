"""
Connection strings: what may be shown and kept of them.
"""

from __future__ import annotations

from pgheadroom.errors import InputError

SECRETS = frozenset({"password", "passfile", "sslpassword", "sslkey", "oauth_client_secret"})


def without_password(conninfo: str) -> str:
    """
    A connection string or URI without its secrets, fit for a record or a message.

    Raises:
        InputError: libpq does not understand it; the message shows none of it.
    """
    import psycopg  # noqa: PLC0415 - loads libpq, which most commands do not need
    from psycopg.conninfo import conninfo_to_dict, make_conninfo  # noqa: PLC0415

    try:
        values = conninfo_to_dict(conninfo)
    except psycopg.ProgrammingError:
        raise InputError(
            "the connection string is not understood: expected postgresql://user@host:port/dbname "
            "or 'host=... dbname=...'"
        ) from None
    shown = {name: str(value) for name, value in values.items() if name not in SECRETS}
    return make_conninfo("", **shown)
