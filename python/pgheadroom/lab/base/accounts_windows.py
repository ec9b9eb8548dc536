"""
Windows of single-row updates on pgbench_accounts, one after another, with counters of each.

What the book's timelines need: a fixed number of updates per window, something that happens before
certain windows (a checkpoint, a snapshot that is opened or closed), and counters, not clocks.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from pgheadroom import _core
from pgheadroom.errors import MeasurementInvalid
from pgheadroom.lab import driver
from pgheadroom.lab.base.accounts_trial import (
    OWN_SCRIPTS,
    ROWS_PER_SCALE,
    TABLE,
    data_bytes,
)
from pgheadroom.lab.counters import TableMoment, table_counters
from pgheadroom.lab.design import Factor, Request, Trial
from pgheadroom.lab.place import Running, Shape
from pgheadroom.servers.pgbench import parse_report
from pgheadroom.units import setting_bytes

UPDATES_PER_WINDOW_PER_SCALE = 1000

UPDATES_OPTION = Factor(
    name="updates",
    description="updates in each window; 0: 1,000 x scale",
    default=(0,),
    bounds=(0, 100_000_000),
    single=True,
)


def row_bytes() -> int:
    """A row of pgbench_accounts."""
    return _core.heap_tuple_bytes([("int4", 4), ("int4", 4), ("int4", 4), ("bpchar", 84)])


def updates(request: Request) -> int:
    """Updates in a window."""
    return int(request.options["updates"]) or UPDATES_PER_WINDOW_PER_SCALE * request.scale


def settings(request: Request, memory_bytes: int) -> dict[str, str]:
    """Data in memory; no checkpoint, no vacuum, nothing written but what the updates write."""
    wanted = int(data_bytes(request.scale, 50) * 1.5) + 64 * 1024**2
    return {
        "shared_buffers": setting_bytes(min(wanted, memory_bytes // 2)),
        "autovacuum": "off",
        "checkpoint_timeout": "1d",
        "max_wal_size": "1TB",
        "bgwriter_lru_maxpages": "0",
        "fsync": "off",
    }


def _load(server: Running, *, scale: int, fillfactor: int) -> None:
    server.run_client(
        ["pgbench", "-i", "-q", "-I", "dtGvp", "-s", str(scale), "-F", str(fillfactor)],
        timeout_s=7200,
    )
    with server.connect() as connection:
        connection.execute(f"ALTER TABLE {TABLE} SET (autovacuum_enabled = off)")
    server.checkpoint()


def shape(request: Request, trial: Trial, name: str) -> Shape:
    """The tables of pgbench, loaded by the server itself."""
    fillfactor = int(trial.cell["fillfactor"])
    return Shape(
        name=name,
        load=functools.partial(_load, scale=request.scale, fillfactor=fillfactor),
        bytes_expected=data_bytes(request.scale, fillfactor),
    )


def play(
    server: Running,
    request: Request,
    trial: Trial,
    *,
    windows: int,
    before: Callable[[int], int],
) -> dict[int, dict[str, float | None]]:
    """
    Run the windows and count each.

    Args:
        server: The running server.
        request: What was asked.
        trial: Its repetition gives the seed, so that all arms of a block update the same rows.
        windows: How many.
        before: Called with each window's number before it begins; what it does is in no window.
            Returns how many of our sessions stay connected.

    Returns:
        Measures by window, from 1.

    Raises:
        MeasurementInvalid: Another number of rows was updated.
    """
    found: dict[int, dict[str, float | None]] = {}
    for number in range(1, windows + 1):
        others = before(number)
        start = table_counters(server, TABLE, others=others)
        _update(server, request, trial, number)
        end = table_counters(server, TABLE, others=others)
        found[number] = _measures(start, end, updates(request))
    return found


def _update(server: Running, request: Request, trial: Trial, number: int) -> None:
    seed = driver.seed_of(request, trial) * 1000 + number
    output = server.run_client(
        [
            "pgbench",
            *("-n", "-M", "prepared", "-c", "1", "-s", str(request.scale)),
            *("-t", str(updates(request)), f"--random-seed={seed}"),
            *("-f", str(OWN_SCRIPTS["accounts-update"])),
        ],
        timeout_s=86_400,
    )
    done = parse_report(output).transactions
    if done != updates(request):
        raise MeasurementInvalid(f"{done} updates ran, expected {updates(request)}")


def _measures(start: TableMoment, end: TableMoment, count: int) -> dict[str, float | None]:
    updated = end.n_tup_upd - start.n_tup_upd
    if updated != count:
        raise MeasurementInvalid(f"{updated} rows were updated, expected {count}")
    newpage = (
        None
        if end.n_tup_newpage_upd is None or start.n_tup_newpage_upd is None
        else end.n_tup_newpage_upd - start.n_tup_newpage_upd
    )
    return {
        "hot_frac": (end.n_tup_hot_upd - start.n_tup_hot_upd) / count,
        "newpage_frac": None if newpage is None else newpage / count,
        "wal_bytes_per_update": (end.wal_bytes - start.wal_bytes) / count,
        "wal_fpi_per_update": (end.wal_fpi - start.wal_fpi) / count,
        "heap_pages": end.heap_pages,
        "index_pages": end.index_pages,
        "buffers_per_update": (
            end.buffers_hit + end.buffers_read - start.buffers_hit - start.buffers_read
        )
        / count,
    }


def pages_and_rows(scale: int, fillfactor: int) -> tuple[int, int, int]:
    """Heap pages as loaded, rows of a full page, rows of the last."""
    rows = scale * ROWS_PER_SCALE
    pages = _core.heap_pages(rows, row_bytes(), fillfactor)
    per_page = _core.rows_per_page(row_bytes(), fillfactor)
    return pages, per_page, rows - (pages - 1) * per_page
