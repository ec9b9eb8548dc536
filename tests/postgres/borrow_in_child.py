"""
A run with a borrowed database in a process of its own, to be killed by a test.

Argument: a conninfo string. Prints the database's name and the watchdogs' pids, then waits.
"""

from __future__ import annotations

import json
import sys
import time

from pgheadroom.servers import BorrowedServer, find_client


def main(conninfo: str) -> None:
    with BorrowedServer(conninfo, label="test") as server:
        with server.connect() as connection:
            connection.execute("CREATE TABLE t AS SELECT 1 AS a")
        psql, _ = find_client("psql", None)
        client = server.popen([psql, "-c", "SELECT pg_sleep(600)"])
        watchdog = server._run._watchdog
        assert watchdog is not None
        assert server._watchdog is not None
        pids = {
            "client": client.pid,
            "watchdogs": [server._watchdog.pid, watchdog._process.pid],
            "dbname": server.dbname,
            "folder": str(server.folder),
        }
        print(json.dumps(pids), flush=True)
        while True:
            time.sleep(600)


if __name__ == "__main__":
    main(sys.argv[1])
