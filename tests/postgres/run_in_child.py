"""
A run in a process of its own, to be killed by a test.

Arguments: the server as for --server, and words: `client` also runs psql, `fork` also has a worker
forked by multiprocessing, `polite` uses `terminate_cleanly`.
Prints one line of JSON, the footprint, when everything runs; then waits for its end.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import time

from footprint import DEADLINE_S, Footprint, start_time

from pgheadroom.servers import Host, find_client, find_programs, terminate_cleanly


def main(server: str, words: list[str]) -> None:
    programs = find_programs(server)
    with contextlib.ExitStack() as stack:
        if "polite" in words:
            stack.enter_context(terminate_cleanly())
        host = stack.enter_context(Host(programs, label="test"))
        cluster = host.cluster("main")
        cluster.start({})
        others = []
        if "client" in words:
            psql, _ = find_client("psql", programs)
            sleeping = host.popen([psql, "-c", "SELECT pg_sleep(600)"], env=cluster.client_env())
            others.append(sleeping.pid)
            query = "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(600)'"
            deadline = time.monotonic() + DEADLINE_S
            with cluster.connect() as connection:
                while connection.execute(query).fetchone() != (1,):
                    assert time.monotonic() < deadline
                    time.sleep(0.02)
        if "fork" in words:
            worker = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
            worker.daemon = True
            worker.start()
            print("worker", worker.pid, flush=True)
        footprint = Footprint.of(cluster)
        for pid in others:
            start = start_time(pid)
            assert start is not None
            footprint.processes[pid] = start
        watchdog = host._run._watchdog
        assert watchdog is not None
        print("watchdog", watchdog._process.pid, flush=True)
        print(footprint.to_json(), flush=True)
        while True:
            time.sleep(600)


if __name__ == "__main__":
    os.chdir("/")
    main(sys.argv[1], sys.argv[2:])
