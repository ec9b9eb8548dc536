"""
Connection strings: what may be shown and kept of them.
"""

from __future__ import annotations

from pgheadroom.errors import InputError
from pgheadroom.redaction import refuse_misread

SECRETS = frozenset({"passfile", "sslkey", "scram_client_key", "scram_server_key"})
"""Options that are left out beside those that libpq itself marks as not to be shown."""


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
    refuse_misread(values)
    hidden = {
        option.keyword.decode()
        for option in psycopg.pq.Conninfo.get_defaults()
        if option.dispchar == b"*"
    } | SECRETS
    shown = {name: str(value) for name, value in values.items() if name not in hidden}
    return make_conninfo("", **shown)
