"""
The two windows of an `insert-rate` trial: a number of rows for counters, a time for rates.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from pgheadroom import _core
from pgheadroom.errors import MeasurementInvalid
from pgheadroom.lab import driver, guards
from pgheadroom.lab.base import plain_rows
from pgheadroom.lab.counters import wait_for_clients
from pgheadroom.lab.design import Request, Trial
from pgheadroom.lab.experiments.insert_rate import model as insert_model
from pgheadroom.lab.experiments.insert_rate.script import TABLE
from pgheadroom.lab.place import Running
from pgheadroom.lab.record import SecondsSeries
from pgheadroom.lab.series import of_window
from pgheadroom.servers.pgbench import PgbenchReport, read_logs

ROWS_PER_SCALE = 20_000


def create(server: Running, *, is_serial: bool) -> None:
    """The empty table, as a shape."""
    key = "k serial PRIMARY KEY, " if is_serial else ""
    with server.connect() as connection:
        connection.execute(
            f"CREATE TABLE {TABLE} ({key}v text) WITH (autovacuum_enabled = off)".encode()
        )
    server.checkpoint()


def tuple_bytes(value_bytes: int, *, is_serial: bool) -> int:
    """Heap tuple length of a row whose value is not out of line."""
    key = [("int4", 4)] if is_serial else []
    return _core.heap_tuple_bytes([*key, ("text", value_bytes)])


def _pgbench(
    server: Running, request: Request, trial: Trial, script: Sequence[str], *length: str
) -> PgbenchReport:
    return driver.run_pgbench(
        server,
        ["-M", str(request.options["protocol"]), *script, *length],
        clients=int(trial.cell["clients"]),
        seed=driver.seed_of(request, trial),
    )


def count(
    server: Running, request: Request, trial: Trial, script: Sequence[str]
) -> dict[str, float | None]:
    """
    The counter window: a fixed number of rows into the emptied table.

    A statement each before, so that what sessions note in the catalogs (hint bits, logged where
    there are checksums) is not in it; TRUNCATE then changes them anew, and a session reads that.
    """
    cell = trial.cell
    clients, per_statement = int(cell["clients"]), int(cell["rows"])
    per_client = max(ROWS_PER_SCALE * request.scale // per_statement // clients, 1)
    _pgbench(server, request, trial, script, "-t", "1")
    with server.connect() as connection:
        connection.execute(f"TRUNCATE {TABLE} RESTART IDENTITY")
    with server.connect() as connection:
        plain_rows.require_rows(connection, 0, table=TABLE)
        row = connection.execute(
            "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint, "
            "current_setting('data_checksums') = 'on'"
        ).fetchone()
        assert row is not None, "a function returns one row"
    start = plain_rows.wal_counters(server)
    report = _pgbench(server, request, trial, script, "-t", str(per_client))
    wal = plain_rows.wal_counters(server).since(start)
    statements = per_client * clients
    rows = statements * per_statement
    if report.transactions != statements:
        raise MeasurementInvalid(f"{report.transactions} statements ran, expected {statements}")
    with server.connect() as connection:
        pages = plain_rows.relation_pages(connection, TABLE)
        plain_rows.require_rows(connection, rows, table=TABLE)
    is_serial = cell["index"] == "serial"
    plan = insert_model.expected(
        statements=statements,
        rows_per_statement=per_statement,
        tuple_bytes=tuple_bytes(int(cell["value_bytes"]), is_serial=is_serial),
        value_bytes=int(cell["value_bytes"]),
        is_copy=cell["method"] == "copy",
        is_serial=is_serial,
        logs_hints=row[1],
        next_xid=row[0],
        major=server.version.major,
    )
    if clients > 1:
        plan = None  # which client's rows come to lie on which page depends on the machine
    per_million = 1e6 / rows
    return {
        "wal_bytes_per_row": wal.size_bytes / rows,
        "predicted_wal_bytes_per_row": None if plan is None else plan.wal_bytes / rows,
        "wal_records_per_row": wal.records / rows,
        "predicted_wal_records_per_row": None if plan is None else plan.wal_records / rows,
        "heap_pages_per_million_rows": pages * per_million,
        "predicted_heap_pages_per_million_rows": (
            None if plan is None else plan.heap_pages * per_million
        ),
        "wal_fpi": wal.images,
    }


def time_window(
    server: Running, request: Request, trial: Trial, script: Sequence[str]
) -> tuple[dict[str, float | None], SecondsSeries, list[str]]:
    """
    The throughput window: fsync on, a checkpoint before.

    Returns:
        Measures, the window's series, notes. The series is made of the log that the latencies need
        in any case, a line a statement; no sampler runs beside the single client.
    """
    import numpy as np  # noqa: PLC0415 - slow to import; only a run needs it

    clients, window_s = int(trial.cell["clients"]), int(request.options["window_s"])
    with server.connect() as connection:
        connection.execute(f"TRUNCATE {TABLE} RESTART IDENTITY")
    driver.durable(server)
    logs = server.scratch / "transactions"
    before = plain_rows.checkpoints_logged(server)
    start_s = time.time()
    with driver.processor_time() as used:
        report = _pgbench(
            server, request, trial, script, "-T", str(window_s), "-l", f"--log-prefix={logs}"
        )
    end_s = time.time()
    with server.connect() as connection:
        wait_for_clients(connection)
        expected = report.transactions * int(trial.cell["rows"])
        plain_rows.require_rows(connection, expected, table=TABLE)
    log = read_logs(server.scratch.glob("transactions.*"))
    series, unsteady = of_window(
        server, trial, log, start_s=start_s, end_s=end_s, window_s=window_s
    )
    p50, p99 = np.percentile(log.latency_ms, [50, 99])
    measures: dict[str, float | None] = {
        "tps": report.tps,
        "rows_per_s": report.tps * int(trial.cell["rows"]),
        "latency_ms_p50": float(p50),
        "latency_ms_p99": float(p99),
        "latency_ms_max": float(log.latency_ms.max()),
        "checkpoints": plain_rows.checkpoints_logged(server) - before,
    }
    notes = guards.driver(used.seconds, window_s, driver.threads(clients)) + unsteady
    return measures, series, notes
