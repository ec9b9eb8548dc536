"""
PostgreSQL servers for experiments: found, started, and gone without a trace; or borrowed.

`programs.py` finds server programs; `host.py` and `cluster.py` are throw-away servers;
`borrowed.py` is a database of our own on an existing server. Importing this package is cheap:
psycopg is loaded by the first connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgheadroom.on_demand import on_demand

if TYPE_CHECKING:
    from pgheadroom.servers.borrowed import BorrowedServer
    from pgheadroom.servers.cluster import Cluster
    from pgheadroom.servers.host import Host
    from pgheadroom.servers.programs import (
        ServerPrograms,
        at_hand,
        find_client,
        find_programs,
        is_connection,
    )
    from pgheadroom.servers.signals import terminate_cleanly

__all__ = [
    "BorrowedServer",
    "Cluster",
    "Host",
    "ServerPrograms",
    "at_hand",
    "find_client",
    "find_programs",
    "is_connection",
    "terminate_cleanly",
]

_HOMES = {
    "BorrowedServer": "borrowed",
    "Cluster": "cluster",
    "Host": "host",
    "ServerPrograms": "programs",
    "at_hand": "programs",
    "find_client": "programs",
    "find_programs": "programs",
    "is_connection": "programs",
    "terminate_cleanly": "signals",
}

__getattr__ = on_demand(__name__, _HOMES)
