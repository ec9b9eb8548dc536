"""
New orders per minute and load time beside go-tpc's, on one server, by turns.

    tools/tprocc_beside_gotpc.py --go-tpc PATH --host 127.0.0.1 --port 5432 --user postgres

The server is one that listens on TCP and trusts the user; both work in databases of their own
there, which are dropped afterwards. Blocks alternate (ours first, go-tpc first), and the ratios
are paired. The time to load includes the consistency checks of each, which go-tpc makes more of.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import time
from pathlib import Path

import psycopg

from pgheadroom.errors import LabError
from pgheadroom.lab.experiments.tprocc import consistency, load, run
from pgheadroom.lab.opening import place_for
from pgheadroom.lab.place import Running, Shape
from pgheadroom.stats import paired_ratio
from pgheadroom.types import Interval

DATABASE = "gotpc"
LOADERS = 2


def main() -> None:
    """Load both, run by turns, print the ratios."""
    asked = _arguments()
    uri = f"postgresql://{asked.user}@{asked.host}:{asked.port}/postgres"
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {DATABASE}".encode())
        connection.execute(f"CREATE DATABASE {DATABASE}".encode())
        try:
            _compare(asked, uri)
        finally:
            connection.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)".encode())


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--go-tpc", type=Path, required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=5432)
    parser.add_argument("--user", default="postgres")
    parser.add_argument("--warehouses", type=int, default=4)
    parser.add_argument("--users", default="1,2,4")
    parser.add_argument("--seconds", type=int, default=15)
    parser.add_argument("--blocks", type=int, default=5)
    return parser.parse_args()


def _compare(asked: argparse.Namespace, uri: str) -> None:
    started = time.monotonic()
    _go_tpc(asked, "prepare", "-T", str(LOADERS))
    theirs_s = time.monotonic() - started
    with psycopg.connect(uri, dbname=DATABASE, autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE)")  # as our load does
    shape = Shape(
        name="tprocc", load=lambda server: _load(server, asked.warehouses), bytes_expected=0
    )
    with place_for(uri) as place, place.running(shape, {}) as server:
        with server.connect() as connection:
            began = time.monotonic()
            consistency.require_consistent(connection, "after loading")
            ours_s = load.loaded_s(connection) + time.monotonic() - began
        print(f"load: ours {ours_s:.1f} s, go-tpc {theirs_s:.1f} s, {theirs_s / ours_s:.1f} times")
        for users in map(int, asked.users.split(",")):
            _by_turns(asked, server, users)
        with server.connect() as connection:
            consistency.require_consistent(connection, "after all runs")


def _load(server: Running, warehouses: int) -> None:
    load.load(server.connect, warehouses=warehouses, level=100, workers=LOADERS)


def _by_turns(asked: argparse.Namespace, server: Running, users: int) -> None:
    ours: list[float] = []
    theirs: list[float] = []
    for block in range(1, asked.blocks + 1):
        for whose in ("ours", "theirs") if block % 2 else ("theirs", "ours"):
            if whose == "ours":
                ours.append(_ours(asked, server, users, block))
            else:
                theirs.append(_theirs(asked, users))
        print(f"{users} users, block {block}: ours {ours[-1]:,.0f}, go-tpc {theirs[-1]:,.0f}")
    ratio = paired_ratio(ours, theirs)
    said = "no interval" if ratio is None else _words(ratio)
    print(f"{users} users: new orders per minute, ours over go-tpc's: {said}")


def _words(ratio: Interval) -> str:
    return f"{ratio.mid:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]"


def _ours(asked: argparse.Namespace, server: Running, users: int, seed: int) -> float:
    orders = "SELECT sum(d_next_o_id) FROM district"
    before = _value(server, orders)
    drivers = run.Users(count=users, at_home=False, warehouses=asked.warehouses)
    report = run.run(server, drivers, seed=seed, length=("-T", str(asked.seconds)))
    took_s = report.transactions / report.tps
    return (_value(server, orders) - before) / took_s * 60


def _value(server: Running, sql: str) -> int:
    with server.connect() as connection:
        row = connection.execute(sql.encode()).fetchone()
    assert row is not None, "an aggregate returns one row"
    return int(row[0])


def _theirs(asked: argparse.Namespace, users: int) -> float:
    said = _go_tpc(asked, "run", "-T", str(users), "--time", f"{asked.seconds}s")
    found = re.search(r"tpmC: ([\d.]+)", said)
    if found is None:
        raise LabError(f"go-tpc said no tpmC: {said[-300:]!r}")
    return float(found[1])


def _go_tpc(asked: argparse.Namespace, command: str, *more: str) -> str:
    done = subprocess.run(
        [
            asked.go_tpc,
            *("tpcc", command),
            *("-d", "postgres"),
            *("-H", asked.host),
            *("-P", str(asked.port)),
            *("-U", asked.user),
            *("-D", DATABASE),
            *("--conn-params", "sslmode=disable"),
            *("--warehouses", str(asked.warehouses)),
            *more,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise LabError(f"go-tpc {command} ended with {done.returncode}: {done.stderr[-500:]}")
    return done.stdout


if __name__ == "__main__":
    main()
