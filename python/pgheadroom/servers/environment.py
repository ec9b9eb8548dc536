"""
The PG* variables of the user's environment, kept away from servers and sessions of ours.

libpq and PostgreSQL's programs read some thirty of them. PGSERVICE or PGOPTIONS, meant for the
user's own database, would change what a lab measures, or where it connects.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

_lock = threading.RLock()


def _is_postgres(name: str) -> bool:
    # PGHEADROOM_* are our own and mean nothing to libpq.
    return name.startswith("PG") and not name.startswith("PGHEADROOM_")


def client_environment() -> dict[str, str]:
    """
    The user's environment without PG* variables, and with messages in English.

    Output of programs is read by us: LC_ALL=C keeps it as documented.
    """
    kept = {name: value for name, value in os.environ.items() if not _is_postgres(name)}
    return kept | {"LC_ALL": "C", "PGCLIENTENCODING": "UTF8"}


def server_environment() -> dict[str, str]:
    """What a server gets: only what it needs, so that it is the same for everybody."""
    kept = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
    return {name: os.environ[name] for name in kept if name in os.environ} | {"LC_ALL": "C"}


@contextlib.contextmanager
def without_postgres_variables() -> Iterator[None]:
    """
    Take the PG* variables out of this process while a connection is made.

    Most could be overruled by parameters, but PGTZ, PGDATESTYLE and PGGEQO go to the server as
    settings, and PGSERVICE must name a service that exists. One thread at a time.
    """
    with _lock:
        hidden = {name: value for name, value in os.environ.items() if _is_postgres(name)}
        try:
            for name in hidden:
                del os.environ[name]
            yield
        finally:
            os.environ.update(hidden)
