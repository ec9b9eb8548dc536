"""
Loading the nine tables, several warehouses side by side.

Each step is a transaction of its own and leaves a mark in the database, so that a load that was
stopped goes on where it stopped: a warehouse's own row is the mark of all its rows.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgheadroom.errors import InputError
from pgheadroom.lab.experiments.tprocc.schedules import TABLES, fillfactors
from pgheadroom.progress import Progress
from pgheadroom.schedule import run_pieces

if TYPE_CHECKING:
    import psycopg

    Connect = Callable[[], psycopg.Connection[Any]]

_HERE = Path(__file__).parent

_LOCK = 0x74707263
"""Of the advisory lock that a load holds: the letters tprc."""

PRIMARY_KEYS = tuple(table for table in TABLES if table != "history")


def load(
    connect: Connect,
    *,
    warehouses: int,
    level: str | int,
    workers: int,
    report: Progress | None = None,
) -> float:
    """
    Load what is not loaded yet.

    Args:
        connect: Gives a connection in autocommit mode to the database; called for each worker.
        warehouses: How many.
        level: Fillfactor of the tables, or the name of a published schedule.
        workers: Warehouses that are loaded at a time.
        report: Called with how many warehouses are loaded, and how many there will be.

    Returns:
        Seconds that loading took so far, all its parts together.

    Raises:
        InputError: The database holds another load, or tables of these names that are none.
    """
    with connect() as connection:
        # Another load of the same database, or what is left of one that was killed, ends first.
        connection.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
        clock = _Clock(connection)
        _begin(connection, warehouses, level)
        _once(connection, "item", "item.sql")
        clock.note()
        done = {row[0] for row in connection.execute("SELECT w_id FROM warehouse")}
        left = [number for number in range(1, warehouses + 1) if number not in done]
        with ThreadPoolExecutor(max_workers=workers) as executor:
            loaded = run_pieces(
                lambda number: _load_warehouse(connect, number),
                left,
                executor=executor,
                in_flight=workers,
            )
            for count, _ in enumerate(loaded, start=1):
                clock.note()
                if report is not None:
                    report(warehouses - len(left) + count, warehouses, "warehouses")
            made = run_pieces(
                lambda sql: _execute(connect, sql),
                _statements("indexes.sql"),
                executor=executor,
                in_flight=workers,
            )
            for _ in made:
                pass
        _add_keys(connection)
        connection.execute("VACUUM (ANALYZE)")
        connection.execute("CHECKPOINT")
        clock.note()
        return loaded_s(connection)


def loaded_s(connection: psycopg.Connection[Any]) -> float:
    """Seconds that loading took, as the load itself noted them."""
    row = connection.execute("SELECT seconds FROM tprocc_load").fetchone()
    assert row is not None, "the table of marks has one row"
    return float(row[0])


class _Clock:
    """Adds the time since it was last asked to what the database says that loading took."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._since_s = time.monotonic()

    def note(self) -> None:
        """Write the time down; what a load that is killed has not noted is lost."""
        now_s = time.monotonic()
        self._connection.execute(
            "UPDATE tprocc_load SET seconds = seconds + %s", (now_s - self._since_s,)
        )
        self._since_s = now_s


def _begin(connection: psycopg.Connection[Any], warehouses: int, level: str | int) -> None:
    """Tables and procedures in one transaction, with a note of what they are for."""
    wanted = (warehouses, str(level))
    row = connection.execute("SELECT to_regclass('tprocc_load')").fetchone()
    if row is not None and row[0] is not None:
        found = connection.execute("SELECT warehouses, fillfactor FROM tprocc_load").fetchone()
        if found != wanted:
            raise InputError(
                f"the database holds a load of {found[0]} warehouses at fillfactor {found[1]}, "
                f"and {warehouses} at {level} are asked for: drop its tables, or name another "
                "database"
                if found
                else "the database holds a load that is damaged: drop its tables"
            )
        return
    taken = [
        table
        for table in TABLES
        if connection.execute("SELECT to_regclass(%s) IS NOT NULL", (table,)).fetchone() == (True,)
    ]
    if taken:
        raise InputError(
            f"the database has tables {', '.join(taken)} that are not of this workload: name "
            "another database"
        )
    with connection.transaction():
        connection.execute(_with_options(_text("tables.sql"), fillfactors(level)).encode())
        connection.execute(_text("values.sql").encode())
        connection.execute(_text("procedures.sql").encode())
        connection.execute(
            "CREATE TABLE tprocc_load (warehouses int NOT NULL, fillfactor text NOT NULL, "
            "seconds float8 NOT NULL)"
        )
        connection.execute("INSERT INTO tprocc_load VALUES (%s, %s, 0)", wanted)


def _with_options(text: str, levels: Mapping[str, int]) -> str:
    """The tables' definitions with their fillfactors."""
    return re.sub(
        r"/\* options (\w+) \*/", lambda found: f"WITH (fillfactor = {levels[found[1]]})", text
    )


def _once(connection: psycopg.Connection[Any], table: str, file: str) -> None:
    """Fill a table that is empty; in a transaction, which dies with its client."""
    with connection.transaction():
        row = connection.execute(f"SELECT EXISTS (SELECT 1 FROM {table})".encode()).fetchone()
        if row == (False,):
            connection.execute(_text(file).encode())


def _load_warehouse(connect: Connect, number: int) -> None:
    """One warehouse in one transaction."""
    with connect() as connection, connection.transaction():
        for sql in _statements("warehouse.sql"):
            connection.execute(sql.encode(), {"warehouse": number})


def _execute(connect: Connect, sql: str) -> None:
    with connect() as connection:
        connection.execute(sql.replace(" INDEX ", " INDEX IF NOT EXISTS ", 1).encode())


def _add_keys(connection: psycopg.Connection[Any]) -> None:
    """Make the unique indexes primary keys, where that is still to do."""
    known = {
        row[0] for row in connection.execute("SELECT conname FROM pg_constraint WHERE contype='p'")
    }
    for table in PRIMARY_KEYS:
        if f"{table}_pkey" not in known:
            connection.execute(
                f"ALTER TABLE {table} ADD PRIMARY KEY USING INDEX {table}_pkey".encode()
            )


def _text(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _statements(name: str) -> Iterable[str]:
    """The statements of a file; none of ours has a semicolon inside."""
    text = re.sub(r"--.*", "", _text(name))
    return [part.strip() for part in text.split(";") if part.strip()]
