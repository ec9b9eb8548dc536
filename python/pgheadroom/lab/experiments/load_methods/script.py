"""
The ways in which `load-methods` fills its table: statements, and who sends them.

One row at a time is sent by pgbench as one long script of statements, whose time it reports; COPY
by this process, which has the data ready before the clock starts.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pgheadroom.errors import MeasurementInvalid
from pgheadroom.lab import driver
from pgheadroom.lab.base.plain_rows import value_text
from pgheadroom.lab.place import Running

if TYPE_CHECKING:
    import psycopg

TABLE = "t"
SOURCE = "source"
VALUE_BYTES = 100
_ROWS_PER_STATEMENT = 1000

METHODS = {
    "insert": "an INSERT a row, each a transaction",
    "insert-one-tx": "an INSERT a row, all in one transaction",
    "values": "an INSERT with 1,000 rows of VALUES, all in one transaction",
    "insert-select": "one INSERT ... SELECT from another table",
    "copy": "one COPY",
    "copy-new": "one COPY into a table of the same transaction",
    "copy-freeze": "the same with FREEZE",
    "unlogged": "one COPY into an unlogged table, then SET LOGGED",
}
BY_PGBENCH = ("insert", "insert-one-tx", "values")
BY_COPY = ("copy", "copy-new", "copy-freeze", "unlogged")

_INDEX = f"CREATE UNIQUE INDEX {TABLE}_k ON {TABLE} (k)"


def keys(rows: int, order: str) -> list[int]:
    """Keys from 1 in the order in which they are loaded; random is the same in every run."""
    found = list(range(1, rows + 1))
    if order == "random":
        random.Random(1).shuffle(found)  # noqa: S311 - an order, not a secret
    return found


def load_source(server: Running, order_keys: Sequence[int]) -> None:
    """The table that INSERT ... SELECT reads, in the order of loading, with nothing left to do."""
    with server.connect() as connection:
        connection.execute(
            f"CREATE TABLE {SOURCE} (k int NOT NULL, v text) WITH (autovacuum_enabled = off)"
        )
        _copy(connection, SOURCE, _blocks(order_keys), "")
        connection.execute(f"VACUUM (FREEZE) {SOURCE}")
    server.checkpoint()


def create(connection: psycopg.Connection[Any], method: str, index: str) -> None:
    """The empty table, with its index if that comes before."""
    kind = "UNLOGGED TABLE" if method == "unlogged" else "TABLE"
    connection.execute(
        f"CREATE {kind} {TABLE} (k int NOT NULL, v text) WITH (autovacuum_enabled = off)".encode()
    )
    if index == "before":
        connection.execute(_INDEX)


def load(server: Running, method: str, index: str, order_keys: Sequence[int]) -> float:
    """
    Fill the table, create its index if that comes after.

    Returns:
        Milliseconds of both.

    Raises:
        MeasurementInvalid: Another number of rows came.
    """
    rows = len(order_keys)
    took = 0.0
    if method in BY_PGBENCH:
        took = _by_pgbench(server, method, order_keys)
    with server.connect() as connection:
        blocks = _blocks(order_keys) if method in BY_COPY else []
        start = time.perf_counter()
        if method == "insert-select":
            done = connection.execute(
                f"INSERT INTO {TABLE} SELECT k, v FROM {SOURCE}"
            ).statusmessage
            if done != f"INSERT 0 {rows}":
                raise MeasurementInvalid(f"the load ended with {done}, expected {rows} rows")
        elif method in ("copy-new", "copy-freeze"):
            with connection.transaction():
                create(connection, method, index)
                freeze = " WITH (FREEZE)" if method == "copy-freeze" else ""
                _copy(connection, TABLE, blocks, freeze)
        elif method in BY_COPY:
            _copy(connection, TABLE, blocks, "")
            if method == "unlogged":
                connection.execute(f"ALTER TABLE {TABLE} SET LOGGED")
        if index == "after":
            connection.execute(_INDEX)
        took += (time.perf_counter() - start) * 1000
    return took


def _blocks(order_keys: Sequence[int]) -> list[bytes]:
    value = value_text(VALUE_BYTES)
    return [
        "".join(f"{key}\t{value}\n" for key in order_keys[first : first + 1000]).encode("ascii")
        for first in range(0, len(order_keys), 1000)
    ]


def _copy(
    connection: psycopg.Connection[Any], table: str, blocks: Sequence[bytes], options: str
) -> None:
    cursor = connection.cursor()
    with cursor.copy(f"COPY {table} FROM STDIN{options}".encode()) as copy:
        for block in blocks:
            copy.write(block)
    expected = sum(block.count(b"\n") for block in blocks)
    if cursor.rowcount != expected:
        raise MeasurementInvalid(f"COPY loaded {cursor.rowcount} rows, expected {expected}")


def _by_pgbench(server: Running, method: str, order_keys: Sequence[int]) -> float:
    value = value_text(VALUE_BYTES)
    size = _ROWS_PER_STATEMENT if method == "values" else 1
    lines = [
        f"INSERT INTO {TABLE} VALUES "
        + ", ".join(f"({key}, '{value}')" for key in order_keys[first : first + size])
        + ";\n"
        for first in range(0, len(order_keys), size)
    ]
    if method != "insert":
        lines = ["BEGIN;\n", *lines, "COMMIT;\n"]
    path = server.scratch / "load.sql"
    path.write_text("".join(lines), encoding="ascii")
    path.chmod(0o644)
    report = driver.run_pgbench(
        server, ["-M", "simple", "-f", str(path), "-t", "1"], clients=1, seed=1
    )
    if report.transactions != 1:
        raise MeasurementInvalid(f"the script ran {report.transactions} times, expected once")
    return 1000 / report.tps
