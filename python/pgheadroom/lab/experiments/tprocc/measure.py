"""
Measurement of one trial of `tprocc`: load, warm, counter window, ramp-up, throughput window.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgheadroom.errors import InputError, MeasurementInvalid
from pgheadroom.lab import driver, guards
from pgheadroom.lab.base.accounts_trial import AUTOVACUUM_SETTINGS
from pgheadroom.lab.checkpoints import checkpoints_begun
from pgheadroom.lab.counters import uncounted, wait_for_clients
from pgheadroom.lab.design import Measure, Request, Trial
from pgheadroom.lab.environment import describe_server
from pgheadroom.lab.experiment import TrialOutcome
from pgheadroom.lab.experiments.tprocc import consistency, load, run
from pgheadroom.lab.experiments.tprocc.schedules import TABLES, UPDATED, fillfactors
from pgheadroom.lab.place import Place, Running, Shape
from pgheadroom.lab.record import SecondsSeries
from pgheadroom.lab.series import Sampler, of_window
from pgheadroom.lab.wal_images import image_bytes, wal_position
from pgheadroom.servers.pgbench import read_logs
from pgheadroom.units import setting_bytes, show_bytes

if TYPE_CHECKING:
    import psycopg

_HEAP_BYTES = 95 * 1024**2
_OTHER_BYTES = 20 * 1024**2
"""A warehouse at fillfactor 100, its share of the items included, and its indexes."""

MEASURES = (
    Measure(name="nopm", description="new orders per minute", unit="1/min", better="higher"),
    Measure(name="tpm", description="transactions per minute", unit="1/min", better="higher"),
    *(
        Measure(
            name=f"{transaction}_ms_p{percent}",
            description=f"latency of {transaction}, {percent} % of them at most",
            unit="ms",
            better="lower",
        )
        for transaction in run.MIX
        for percent in (50, 90, 99)
    ),
    Measure(
        name="cpu_frac",
        description="share of all processors that were busy in the throughput window, pgbench's "
        "included",
        clock=True,
    ),
    Measure(name="hot_frac", description="share of HOT updates, all tables", better="higher"),
    *(
        measure
        for table in UPDATED
        for measure in (
            Measure(name=f"{table}_hot_frac", description=f"of {table}", better="higher"),
            Measure(
                name=f"predicted_{table}_hot_frac",
                description="by the twin",
                evidence="predicted",
            ),
            Measure(
                name=f"{table}_newpage_frac",
                description=f"share of the updates of {table} that went to another page (from 16)",
                better="lower",
            ),
            Measure(
                name=f"{table}_updates_per_h",
                description=f"updates of {table} an hour, at the pace of the throughput window",
                unit="1/h",
            ),
        )
    ),
    Measure(
        name="data_bytes",
        description="size of the nine tables and their indexes after loading; loaded once",
        unit="bytes",
        better="lower",
    ),
    Measure(
        name="predicted_data_bytes", description="by the twin", unit="bytes", evidence="predicted"
    ),
    Measure(
        name="aged_bytes",
        description="the same size after aging, where every trial starts",
        unit="bytes",
        better="lower",
    ),
    Measure(
        name="grown_bytes_per_tx",
        description="growth of tables and indexes in the counter window for each transaction",
        unit="bytes",
        better="lower",
    ),
    Measure(
        name="load_s",
        description="time to load the database of this fillfactor, once, fsync and "
        "full_page_writes off",
        unit="s",
    ),
    Measure(
        name="wal_nonfpi_bytes_per_tx",
        description="WAL bytes per transaction of the counter window without full-page images",
        unit="bytes",
        better="lower",
    ),
    Measure(
        name="predicted_wal_nonfpi_bytes_per_tx",
        description="by the twin",
        unit="bytes",
        evidence="predicted",
    ),
    Measure(
        name="wal_bytes_per_tx",
        description="the same with images, which the checkpoint right before the window makes many",
        unit="bytes",
        better="lower",
    ),
    Measure(
        name="predicted_wal_bytes_per_tx",
        description="by the twin",
        unit="bytes",
        evidence="predicted",
    ),
    Measure(
        name="predicted_log_bytes_per_tx",
        description="the same on a log-structured storage, which needs no full-page images",
        unit="bytes",
        evidence="predicted",
    ),
    Measure(name="wal_fpi_per_tx", description="full-page images per transaction", better="lower"),
    Measure(
        name="checkpoints", description="checkpoints begun in the throughput window", clock=True
    ),
    Measure(name="autovacuums", description="vacuums by autovacuum in both windows", clock=True),
)


def transactions(request: Request) -> int:
    """Transactions of the counter window, to be shared out among the users."""
    return int(request.options["transactions"]) or 2500 * request.scale


def _bytes_expected(warehouses: int, level: str | int) -> int:
    """About what the tables of a level take after loading."""
    levels = fillfactors(level)
    # The large ones decide: stock, order_line and customer are nine tenths.
    least = min(levels[table] for table in ("stock", "order_line", "customer"))
    return warehouses * (_HEAP_BYTES * 100 // least + _OTHER_BYTES) + 16 * 1024**2


def _shared_buffers_bytes(request: Request) -> int:
    """The same for every fillfactor: what a page more or less costs is part of the question."""
    if asked := int(request.options["shared_buffers_mb"]):
        return asked * 1024**2
    levels = request.levels["fillfactor"]
    return max(_bytes_expected(request.scale, level) for level in levels) * 5 // 4 + 128 * 1024**2


def _settings(request: Request, place: Place, trial: Trial) -> dict[str, str]:
    shared_bytes = _shared_buffers_bytes(request)
    if shared_bytes > place.memory_bytes * 0.6:
        raise InputError(
            f"{request.scale} warehouses need {show_bytes(shared_bytes)} of shared_buffers, and "
            f"this machine has {show_bytes(place.memory_bytes)} of memory: take a smaller `scale`, "
            "or set shared_buffers_mb",
            mentions=("scale",),
        )
    settings = {
        **AUTOVACUUM_SETTINGS[str(request.options["autovacuum"])],
        "shared_buffers": setting_bytes(shared_bytes),
        "fsync": "off",
        "max_connections": str(int(trial.cell["users"]) + 20),
        "jit": "off",
        # One checkpoint a window at most, unless the window is longer than the default timeout.
        "max_wal_size": "16GB",
    }
    if trial.cell["io"] == "direct":
        settings["debug_io_direct"] = "data"
    return settings


def _load(server: Running, *, request: Request, level: str | int) -> None:
    """Load, then age: what a trial starts from."""
    loaders = int(request.options["loaders"])
    load.load(server.connect, warehouses=request.scale, level=level, workers=loaders)
    with server.connect() as connection:
        consistency.require_consistent(connection, "after loading")
        connection.execute(
            "CREATE TABLE tprocc_sizes AS SELECT sum(pg_relation_size(relid) + "
            "pg_indexes_size(relid))::bigint AS loaded_bytes FROM pg_stat_user_tables "
            "WHERE relname = ANY (%s)",
            (list(TABLES),),
        )
    if age := int(request.options["age"]):
        users = run.Users(count=min(2, request.scale), at_home=False, warehouses=request.scale)
        each = age * request.scale // users.count
        run.run(server, users, seed=request.seed, length=("-t", str(each)))
    server.checkpoint()


def warm(server: Running) -> None:
    """
    Fetch a row of every page, so that it passes through shared buffers, and checkpoint.

    A row is fetched by its address, for any scan of a table or an index prunes the pages that it
    comes to: what transactions would have pruned in the window would be done before it.
    """
    with server.connect() as connection:
        for table in TABLES:
            connection.execute(
                f"SELECT count(*) FROM {table} WHERE ctid = ANY (ARRAY("
                "SELECT format('(%s,1)', page)::tid FROM generate_series(0, "
                f"pg_relation_size('{table}') / current_setting('block_size')::int - 1) AS page))"
            )
    server.checkpoint()


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Counters by table and name, sizes of all tables together, and the server's."""

    by_table: Mapping[str, Mapping[str, int | None]]
    data_bytes: int
    orders: int
    wal_bytes: int
    wal_fpi: int
    checkpoints: int


def counted(server: Running) -> Counted:
    """
    Read the counters; nothing of ours may be connected to the database under test.

    Raises:
        MeasurementInvalid: Somebody is connected to it, or a table is missing.
    """
    newpage = "n_tup_newpage_upd" if server.version.major >= 16 else "NULL::bigint"
    with server.connect() as connection:
        wait_for_clients(connection)
        rows = connection.execute(
            f"SELECT relname, n_tup_upd, n_tup_hot_upd, {newpage}, autovacuum_count, "
            "pg_relation_size(relid) + pg_indexes_size(relid) "
            "FROM pg_stat_user_tables WHERE relid = to_regclass(relname) AND relname = ANY (%s)",
            (list(TABLES),),
        ).fetchall()
        wal = connection.execute("SELECT wal_bytes::bigint, wal_fpi FROM pg_stat_wal").fetchone()
        assert wal is not None, "pg_stat_wal has one row"
        orders = connection.execute("SELECT sum(d_next_o_id)::bigint FROM district").fetchone()
        assert orders is not None, "an aggregate returns one row"
        checkpoints = checkpoints_begun(connection, server.version)
    if len(rows) != len(TABLES):
        raise MeasurementInvalid(f"{len(rows)} of the {len(TABLES)} tables have counters")
    names = ("n_tup_upd", "n_tup_hot_upd", "n_tup_newpage_upd", "autovacuums")
    return Counted(
        by_table={row[0]: dict(zip(names, row[1:5], strict=True)) for row in rows},
        data_bytes=sum(row[5] for row in rows),
        orders=orders[0],
        wal_bytes=wal[0],
        wal_fpi=wal[1],
        checkpoints=checkpoints,
    )


def _changed(before: Counted, after: Counted, table: str, name: str) -> int | None:
    first, last = before.by_table[table][name], after.by_table[table][name]
    return None if first is None or last is None else last - first


def _share(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def measure(request: Request, place: Place, trial: Trial, shape_name: str) -> TrialOutcome:
    """
    Run one trial.

    Raises:
        MeasurementInvalid: Transactions failed, their number is not the intended one, or the data
            are not consistent.
    """
    level, warehouses = trial.cell["fillfactor"], request.scale
    shape = Shape(
        name=shape_name,
        load=functools.partial(_load, request=request, level=level),
        bytes_expected=_bytes_expected(warehouses, level),
        load_settings={
            "shared_buffers": setting_bytes(_shared_buffers_bytes(request)),
            "checkpoint_timeout": "1d",
        },
    )
    users = run.Users(
        count=int(trial.cell["users"]),
        at_home=request.options["home"] == "own",
        warehouses=warehouses,
    )
    settings = _settings(request, place, trial) if place.throw_away else {}
    measures: dict[str, float | None] = {}
    notes: list[str] = []
    series = None
    if place.throw_away:
        # In a copy of its own, for the check reads whole tables, and so prunes their pages.
        with place.running(shape, settings) as server, server.connect() as connection:
            consistency.require_consistent(connection, "before the run")
    with place.running(shape, settings) as server:
        environment = describe_server(server, timed=int(request.options["window_s"]) > 0)
        with server.connect() as connection:
            measures["load_s"] = load.loaded_s(connection)
            measures["data_bytes"] = _loaded_bytes(connection)
            if not place.throw_away:
                consistency.require_consistent(connection, "before the run")
        warm(server)
        start = counted(server)
        measures["aged_bytes"] = start.data_bytes
        measures.update(_count(server, request, users, trial, start))
        if int(request.options["window_s"]):
            timed, series, found = _time(server, request, users, trial)
            measures.update(timed)
            notes.extend(found)
        with server.connect() as connection:
            consistency.require_consistent(connection, "after the run")
        end = counted(server)
        measures["autovacuums"] = sum(
            _changed(start, end, table, "autovacuums") or 0 for table in TABLES
        )
        assumed = dict(server.assumed)
    if not place.throw_away:
        assumed["pruned"] = "the check before the run read all rows and pruned their pages"
    assumed |= uncounted(place.version)
    return TrialOutcome(
        measures=measures,
        notes=tuple(notes),
        assumed=assumed,
        series=series,
        environment=environment,
    )


def _loaded_bytes(connection: psycopg.Connection[Any]) -> float:
    row = connection.execute("SELECT loaded_bytes FROM tprocc_sizes").fetchone()
    assert row is not None, "the load left one row"
    return float(row[0])


def _count(
    server: Running, request: Request, users: run.Users, trial: Trial, before: Counted
) -> dict[str, float | None]:
    """The counter window: a fixed number of transactions after a checkpoint."""
    each = max(transactions(request) // users.count, 1)
    begun = wal_position(server)
    report = run.run(server, users, seed=driver.seed_of(request, trial), length=("-t", str(each)))
    after = counted(server)
    wanted = each * users.count
    if report.transactions != wanted:
        raise MeasurementInvalid(f"{report.transactions} transactions ran, expected {wanted}")
    wal_bytes = after.wal_bytes - before.wal_bytes
    images = image_bytes(server, begun, wal_position(server))
    found: dict[str, float | None] = {
        "wal_bytes_per_tx": wal_bytes / wanted,
        "wal_nonfpi_bytes_per_tx": None if images is None else (wal_bytes - images) / wanted,
        "wal_fpi_per_tx": (after.wal_fpi - before.wal_fpi) / wanted,
        "grown_bytes_per_tx": (after.data_bytes - before.data_bytes) / wanted,
    }
    updated = {table: _changed(before, after, table, "n_tup_upd") or 0 for table in UPDATED}
    hot = {table: _changed(before, after, table, "n_tup_hot_upd") or 0 for table in UPDATED}
    found["hot_frac"] = _share(sum(hot.values()), sum(updated.values()))
    for table in UPDATED:
        moved = _changed(before, after, table, "n_tup_newpage_upd")
        found[f"{table}_hot_frac"] = _share(hot[table], updated[table])
        found[f"{table}_newpage_frac"] = _share(moved, updated[table])
    return found


def _time(
    server: Running, request: Request, users: run.Users, trial: Trial
) -> tuple[dict[str, float | None], SecondsSeries, list[str]]:
    """The throughput window, after a ramp-up with fsync on."""
    window_s, rampup_s = int(request.options["window_s"]), int(request.options["rampup_s"])
    seed = driver.seed_of(request, trial) + 500
    driver.durable(server)
    if rampup_s:
        run.run(server, users, seed=seed, length=("-T", str(rampup_s)))
    before = counted(server)
    logs = server.scratch / "transactions"
    begun = guards.processor_ticks()
    start_s = time.time()
    with driver.processor_time() as used, Sampler(server, *TABLES) as sampler:
        length = ("-T", str(window_s), "-l", f"--log-prefix={logs}")
        report = run.run(server, users, seed=seed + 1, length=length)
    end_s = time.time()
    ended = guards.processor_ticks()
    after = counted(server)
    log = read_logs(server.scratch.glob("transactions.*"))
    series, unsteady = of_window(
        server, trial, log, start_s=start_s, end_s=end_s, window_s=window_s, sampler=sampler
    )
    took_s = report.transactions / report.tps
    measures: dict[str, float | None] = {
        "nopm": (after.orders - before.orders) / took_s * 60,
        "tpm": report.tps * 60,
        "cpu_frac": guards.busy_frac(begun, ended),
        "checkpoints": after.checkpoints - before.checkpoints,
        **run.latencies(log),
    }
    for table in UPDATED:
        updated = _changed(before, after, table, "n_tup_upd") or 0
        measures[f"{table}_updates_per_h"] = updated / took_s * 3600
    notes = guards.driver(used.seconds, window_s, driver.threads(users.count)) + unsteady
    return measures, series, notes
