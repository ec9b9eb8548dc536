"""
Measurement of one trial of `custom`: counters of a fixed number of transactions, then a window.
"""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from pgheadroom.errors import MeasurementInvalid
from pgheadroom.lab import driver, guards
from pgheadroom.lab.checkpoints import checkpoints_begun
from pgheadroom.lab.counters import uncounted, wait_for_clients
from pgheadroom.lab.design import Measure, Request, Trial
from pgheadroom.lab.environment import describe_server
from pgheadroom.lab.experiment import TrialOutcome
from pgheadroom.lab.experiments.custom.load import (
    ReadyWorkload,
    load,
    load_settings,
    with_reloptions,
    work_of,
)
from pgheadroom.lab.place import Place, Running, Shape
from pgheadroom.lab.record import SecondsSeries
from pgheadroom.lab.series import Sampler, of_window
from pgheadroom.profile.pages import said_loaded_anew
from pgheadroom.servers.pgbench import PgbenchReport, read_logs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pgheadroom.lab.design import LevelValue

MEASURES = (
    Measure(name="hot_frac", description="share of HOT updates, all tables", better="higher"),
    Measure(
        name="newpage_frac",
        description="share of updates that went to another page (counted from 16 on)",
        better="lower",
    ),
    Measure(
        name="wal_bytes_per_tx",
        description="WAL bytes per transaction, images included",
        unit="bytes",
        better="lower",
    ),
    Measure(name="wal_records_per_tx", description="WAL records per transaction", better="lower"),
    Measure(name="wal_fpi_per_tx", description="full-page images per transaction", better="lower"),
    Measure(
        name="heap_pages_before", description="pages of all tables after loading", unit="pages"
    ),
    Measure(name="heap_pages", description="pages of all tables", unit="pages", better="lower"),
    Measure(
        name="index_pages", description="pages of all their indexes", unit="pages", better="lower"
    ),
    Measure(name="n_tup_ins", description="rows inserted", unit="rows"),
    Measure(name="n_tup_upd", description="rows updated", unit="rows"),
    Measure(name="n_tup_hot_upd", description="of these HOT", unit="rows", better="higher"),
    Measure(name="n_tup_newpage_upd", description="of these to another page", unit="rows"),
    Measure(name="n_tup_del", description="rows deleted", unit="rows"),
    Measure(name="transactions", description="transactions of the counter window"),
    Measure(name="tps", description="transactions per second", unit="1/s", better="higher"),
    Measure(name="latency_ms_p50", description="median latency", unit="ms", better="lower"),
    Measure(
        name="latency_ms_p99", description="99th percentile of latency", unit="ms", better="lower"
    ),
    Measure(
        name="checkpoints", description="checkpoints begun in the throughput window", clock=True
    ),
)

COMPARED = (
    "hot_frac",
    "wal_bytes_per_tx",
    "heap_pages",
    "index_pages",
    "tps",
    "latency_ms_p99",
)

_SETTINGS = {"autovacuum": "off", "checkpoint_timeout": "1d", "max_wal_size": "100GB"}
"""Of a script's server where no factor says otherwise: nothing happens by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Counters of all tables of the database, and the server's WAL."""

    n_tup_ins: int
    n_tup_upd: int
    n_tup_del: int
    n_tup_hot_upd: int
    n_tup_newpage_upd: int | None
    heap_pages: int
    index_pages: int
    wal_records: int
    wal_fpi: int
    wal_bytes: int

    def since(self, before: Totals) -> dict[str, float | None]:
        """Differences by name."""
        found: dict[str, float | None] = {}
        for each in fields(self):
            now, then = getattr(self, each.name), getattr(before, each.name)
            found[each.name] = None if now is None or then is None else now - then
        return found


def totals(server: Running) -> Totals:
    """
    Read the counters; nothing of ours may be connected to the database under test.

    Raises:
        MeasurementInvalid: Somebody is connected to it.
    """
    newpage = "n_tup_newpage_upd" if server.version.major >= 16 else "NULL::bigint"
    with server.connect() as connection:
        wait_for_clients(connection)
        tables = connection.execute(
            "SELECT coalesce(sum(n_tup_ins), 0)::bigint, coalesce(sum(n_tup_upd), 0)::bigint, "
            "coalesce(sum(n_tup_del), 0)::bigint, coalesce(sum(n_tup_hot_upd), 0)::bigint, "
            f"sum({newpage})::bigint, coalesce(sum(pg_relation_size(relid)), 0)::bigint, "
            # Main forks: pg_indexes_size counts free space maps and init forks too.
            "(SELECT coalesce(sum(pg_relation_size(i.indexrelid)), 0)::bigint "
            " FROM pg_index AS i JOIN pg_stat_user_tables AS t ON t.relid = i.indrelid), "
            "current_setting('block_size')::int FROM pg_stat_user_tables"
        ).fetchone()
        assert tables is not None, "an aggregate returns one row"
        wal = connection.execute(
            "SELECT wal_records, wal_fpi, wal_bytes::bigint FROM pg_stat_wal"
        ).fetchone()
        assert wal is not None, "pg_stat_wal has one row"
    return Totals(
        n_tup_ins=tables[0],
        n_tup_upd=tables[1],
        n_tup_del=tables[2],
        n_tup_hot_upd=tables[3],
        n_tup_newpage_upd=tables[4],
        heap_pages=tables[5] // tables[7],
        index_pages=tables[6] // tables[7],
        wal_records=wal[0],
        wal_fpi=wal[1],
        wal_bytes=wal[2],
    )


def measure(request: Request, place: Place, trial: Trial, shape_name: str) -> TrialOutcome:
    """
    Run one trial.

    Raises:
        MeasurementInvalid: Transactions failed, or their number is not the intended one.
    """
    work = work_of(request)
    cell = trial.cell
    reloptions = {
        name: level
        for name, level in cell.items()
        if name != "server" and not name.startswith("setting.")
    }
    shape = Shape(
        name=shape_name,
        load=functools.partial(load, work=work, scale=request.scale, reloptions=reloptions),
        bytes_expected=256 * 1024**2,  # unknown before it is loaded; arbitrary
        load_settings=load_settings(work),
        server=None if "server" not in cell else str(cell["server"]),
    )
    settings = {
        **_SETTINGS,
        **work.settings,
        "max_connections": str(work.clients + 20),
        **{
            name.partition(".")[2]: str(level)
            for name, level in cell.items()
            if name.startswith("setting.")
        },
    }
    with place.running(shape, settings if place.throw_away else {}) as server:
        environment = describe_server(server, timed=int(request.options["window_s"]) > 0)
        before = totals(server)
        measures: dict[str, float | None] = {"heap_pages_before": before.heap_pages}
        measures.update(_count(server, request, work, trial, before))
        notes: Sequence[str] = ()
        series = None
        if window_s := int(request.options["window_s"]):
            timed, series, notes = _time(server, request, work, trial, window_s)
            measures.update(timed)
        assumed = dict(server.assumed)
        version = server.version
    assumed.update(_assumed(work, reloptions))
    if "server" in cell:
        assumed[f"server {cell['server']}"] = f"PostgreSQL {version}"
    assumed |= uncounted(version)
    return TrialOutcome(
        measures=measures,
        notes=tuple(notes),
        assumed=assumed,
        series=series,
        environment=environment,
    )


def _assumed(work: ReadyWorkload, reloptions: Mapping[str, LevelValue]) -> dict[str, str]:
    """What of a profile is not played, and what it left open."""
    if work.profile is None:
        return {}
    found = {str(path): str(value) for path, value in work.profile.assumed.items()}
    if work.profile.server.data_checksums is not None:
        found["server.data_checksums"] = "as initdb sets them, not as the profile says"
    if work.profile.workload.builtin is None:
        played = with_reloptions(work.profile, reloptions)
        for n, (own, table) in enumerate(zip(work.profile.tables, played.tables, strict=True)):
            if own.pages and not table.pages:
                found[f"table[{n}].pages"] = said_loaded_anew(own)
    return found


def _count(
    server: Running, request: Request, work: ReadyWorkload, trial: Trial, before: Totals
) -> dict[str, float | None]:
    report = _pgbench(server, request, work, trial, "-t", str(work.transactions // work.clients))
    after = totals(server)
    if report.transactions != work.transactions:
        raise MeasurementInvalid(
            f"{report.transactions} transactions ran, expected {work.transactions}"
        )
    changed = after.since(before)
    updated, hot = changed["n_tup_upd"], changed["n_tup_hot_upd"]
    newpage = changed["n_tup_newpage_upd"]
    return {
        **{name: changed[name] for name in ("n_tup_ins", "n_tup_upd", "n_tup_del")},
        "n_tup_hot_upd": hot,
        "n_tup_newpage_upd": newpage,
        "hot_frac": hot / updated if updated and hot is not None else None,
        "newpage_frac": newpage / updated if updated and newpage is not None else None,
        "heap_pages": after.heap_pages,
        "index_pages": after.index_pages,
        "transactions": work.transactions,
        **{
            f"{name}_per_tx": (changed[name] or 0) / work.transactions
            for name in ("wal_bytes", "wal_records", "wal_fpi")
        },
    }


def _time(
    server: Running, request: Request, work: ReadyWorkload, trial: Trial, window_s: int
) -> tuple[dict[str, float | None], SecondsSeries, list[str]]:
    """
    The throughput window, its series, and notes; sampled every second from outside the database.

    Sizes are those of the files that tables have as it begins: a script that truncates or rewrites
    one takes it out of the series.
    """
    import numpy as np  # noqa: PLC0415 - slow to import; only a run needs it

    driver.durable(server)
    with server.connect() as connection:
        begun = checkpoints_begun(connection, server.version)
        tables = connection.execute(
            "SELECT relid::regclass::text FROM pg_stat_user_tables "
            "JOIN pg_class ON pg_class.oid = relid WHERE relkind = 'r'"
        )
        names = [str(name) for (name,) in tables]
    start_s = time.time()
    with driver.processor_time() as used, Sampler(server, *names) as sampler:
        report = _pgbench(
            server, request, work, trial, "-T", str(window_s), "-l", "--log-prefix=transactions"
        )
    end_s = time.time()
    log = read_logs(server.scratch.glob("transactions.*"))
    with server.connect() as connection:
        checkpoints = checkpoints_begun(connection, server.version) - begun
    series, unsteady = of_window(
        server, trial, log, start_s=start_s, end_s=end_s, window_s=window_s, sampler=sampler
    )
    p50, p99 = np.percentile(log.latency_ms, [50, 99])
    measures: dict[str, float | None] = {
        "tps": report.tps,
        "latency_ms_p50": float(p50),
        "latency_ms_p99": float(p99),
        "checkpoints": checkpoints,
    }
    notes = guards.driver(used.seconds, window_s, driver.threads(work.clients)) + unsteady
    return measures, series, notes


def _pgbench(
    server: Running, request: Request, work: ReadyWorkload, trial: Trial, *length: str
) -> PgbenchReport:
    """Run the clients; the seed is the block's, the same for all its arms."""
    arguments = list(work.arguments)
    for name, text in work.files.items():
        path = server.scratch / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o644)
        arguments = [each.replace(name, str(path)) if each.startswith(name) else each
                     for each in arguments]  # fmt: skip
    log = [each.replace("=transactions", f"={server.scratch / 'transactions'}") for each in length]
    return driver.run_pgbench(
        server, [*log, *arguments], clients=work.clients, seed=driver.seed_of(request, trial)
    )
