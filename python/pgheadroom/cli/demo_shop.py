"""
The demo's database: a small shop under load, with one table for each answer that advice has.

    orders    come and are paid, packed and sent at once; rows of 1.4 kB fill their page before
              that: short of room for as long as orders come
    devices   report the time, which an index has: no update can be HOT
    accounts  fillfactor 90, updated evenly: fine as it is

pgbench is the load; nothing here knows what the advice will be.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pgheadroom.errors import LabError
from pgheadroom.servers import Cluster, Host, find_client

DATABASE = "shop"

ORDERS = 40_000
DEVICES = 5_000
ACCOUNTS = 20_000

SETTINGS = {
    "shared_buffers": "256MB",
    "log_transaction_sample_rate": "0.05",  # the source of update classes, as cheap as wanted
    "autovacuum_naptime": "5s",  # seconds stand for minutes
}

SCHEMA = f"""
CREATE TABLE orders (id bigserial PRIMARY KEY, customer int4 NOT NULL, state int4 NOT NULL,
    document text NOT NULL);
CREATE INDEX orders_customer ON orders (customer);
CREATE TABLE devices (id int4 PRIMARY KEY, site int4 NOT NULL, last_seen timestamptz NOT NULL,
    label text NOT NULL);
CREATE INDEX devices_last_seen ON devices (last_seen);
CREATE TABLE accounts (id int4 PRIMARY KEY, balance int8 NOT NULL, filler char(84) NOT NULL)
    WITH (fillfactor = 90);
INSERT INTO orders (customer, state, document)
    SELECT i % 1000, 0, repeat(md5(i::text), 42) FROM generate_series(1, {ORDERS}) i;
INSERT INTO devices SELECT i, i % 50, now(), md5(i::text) FROM generate_series(1, {DEVICES}) i;
INSERT INTO accounts SELECT i, 0, '' FROM generate_series(1, {ACCOUNTS}) i;
VACUUM ANALYZE
"""

SCRIPTS = {
    "order_comes.sql": (
        1,
        "\\set customer random(1, 1000)\n"
        "INSERT INTO orders (customer, state, document)"
        " VALUES (:customer, 0, repeat(md5(:customer::text), 42));\n",
    ),
    # The newest order is paid, packed, sent.
    "order_changes.sql": (
        3,
        "SELECT max(id) AS id FROM orders \\gset\n"
        "UPDATE orders SET state = state + 1 WHERE id = :id;\n",
    ),
    "device_reports.sql": (
        1,
        f"\\set id random(1, {DEVICES})\n"
        "UPDATE devices SET last_seen = clock_timestamp() WHERE id = :id;\n",
    ),
    "account_is_booked.sql": (
        2,
        f"\\set id random(1, {ACCOUNTS})\n"
        "UPDATE accounts SET balance = balance + 1 WHERE id = :id;\n",
    ),
}
CLIENTS = 1
"""As the twin plays what it has observed."""
RATE_PER_S = 600
"""Transactions a second, below what two slow cores do, so that before and after are alike."""

_STARTED_WITHIN_S = 3600


@dataclass(frozen=True, slots=True)
class Shop:
    """The running server: how to connect, and where its log is."""

    conninfo: str
    log: Path


@contextmanager
def opened(host: Host) -> Iterator[tuple[Shop, Cluster]]:
    """Make the database; the server is gone at the end."""
    cluster = host.cluster("demo")
    cluster.start(SETTINGS)
    try:
        with cluster.connect() as connection:
            connection.execute(f"CREATE DATABASE {DATABASE}".encode())
        with cluster.connect(DATABASE) as connection:
            for statement in SCHEMA.split(";"):
                connection.execute(statement.encode())
        env = cluster.client_env()
        parts = {"host": env["PGHOST"], "port": env["PGPORT"], "user": "postgres"}
        text = " ".join(f"{name}={value}" for name, value in parts.items())
        yield Shop(f"{text} dbname={DATABASE}", cluster.log_path), cluster
    finally:
        if cluster.running:
            cluster.stop("immediate")


@contextmanager
def under_load(host: Host, cluster: Cluster) -> Iterator[None]:
    """
    Run pgbench until the end of the block.

    Raises:
        LabError: pgbench ended by itself, with what it said.
    """
    program, _ = find_client("pgbench", host.programs)
    arguments = ["-n", "-c", str(CLIENTS), "-j", "1", "-R", str(RATE_PER_S)]
    arguments += ["-T", str(_STARTED_WITHIN_S), "--random-seed=1"]
    for name, (weight, script) in SCRIPTS.items():
        (host.scratch / name).write_text(script, encoding="utf-8")
        arguments += ["-f", f"{name}@{weight}"]
    said = host.scratch / "pgbench.err"
    with said.open("wb") as errors:
        process = host.popen(
            [program, *arguments, DATABASE],
            env=cluster.client_env(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
        try:
            yield
            if process.poll() is not None:
                raise LabError(
                    f"pgbench ended by itself, with exit code {process.returncode}; it said: "
                    f"{said.read_text(errors='replace').strip()[-1000:]}"
                )
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
